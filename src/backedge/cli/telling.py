"""A run in words: one line per event, and a summary at the end."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from backedge.analytics.evidence_report import failed_before
from backedge.analytics.report import Report
from backedge.cli.common import counted, shown
from backedge.cli.evidence import (
    BEFORE,
    answered,
    baseline_line,
    closing_changes,
    evidence_line,
    noticed,
    verdict_tests,
)
from backedge.core import events as e
from backedge.core.events import Event
from backedge.core.findings.ledger import TrackedFinding
from backedge.core.state.evolve import replay
from backedge.core.state.run import RunState


class Teller:
    """Prints the events of runs, one line each, as they happen."""

    def __init__(self, say: Callable[[str], None], past: dict[str, list[Event]] | None = None) -> None:
        self._say = say
        self._states: dict[str, RunState | None] = {run: replay(events) for run, events in (past or {}).items()}
        self._notes = {
            (run, event.step): event.evidence.notes
            for run, events in (past or {}).items()
            for event in events
            if isinstance(event, e.EvidenceRecorded)
        }
        """What was noticed in the last attempt of each step: the same is not told again."""

    def state(self, run: str) -> RunState | None:
        """The state of a run after the events so far."""
        return self._states.get(run)

    def tell(self, run: str, event: Event) -> None:
        if run not in self._states and not isinstance(event, e.RunStarted):
            return self._say(f"  {type(event).__name__}")
        state = self._states[run] = replay([event], self._states.get(run))
        assert state is not None
        if isinstance(event, e.EvidenceRecorded):
            lines = list(noticed(event, self._notes.get((run, event.step), ())))
            self._notes[run, event.step] = event.evidence.notes
        else:
            lines = [line] if (line := line_of(event, state)) else []
        for line in lines:
            self._say(f"{event.at - state.started_at:7.1f} s  {line}")
        return None


def line_of(event: Event, state: RunState) -> str:
    """One event as a line; empty for events that are not shown."""
    match event:
        case e.AttemptStarted():
            return _started(event, state)
        case e.AttemptSucceeded() if not state.graph.is_judge(event.step):
            cost = f" (${event.usage.cost_usd:.2f})" if event.usage.cost_usd else ""
            done = f"  ✓ {event.step}{cost}: {shown(event.summary)}".rstrip(": ")
            return f"{done} (warning: {event.warning})" if event.warning else done
        case e.AttemptSucceeded(warning=str(warning)) if warning:
            return f"  ! {event.step}: warning: {warning}"
        case e.AttemptFailed():
            return f"  ! {event.step} broke: {shown(event.error)}"
        case e.AttemptDropped():
            return f"  ! attempt {event.attempt} of {event.step} {event.reason}"
        case e.VerdictGiven(word="fail"):
            found = [state.findings[sighting.id] for sighting in event.findings]
            told = "; ".join(f"{each.name} {shown(each.finding.description, 80)}{_mark(state, each)}" for each in found)
            return f"  ✗ {event.judge} fails it{verdict_tests(state, event.judge)}: {told}"
        case e.VerdictGiven():
            return f"  ✓ {event.judge}: {event.word}{verdict_tests(state, event.judge)}"
        case e.BaselineRecorded():
            return f"  {baseline_line(event.baseline)}"
        case e.ProtectedAnswered():
            return answered(event, state)
        case e.VerdictsVoided():
            return f"↻ {', '.join(event.judges)}: judged again ({shown(event.reason)})"
        case e.LoopOpened(warning=str(warning)) if warning:
            return f"  ! {event.loop}: warning: {warning}"
        case e.FeedbackRouted():
            loop = state.loops[event.loop]
            by = f" (by {', '.join(event.rules)})" if event.rules else ""
            return f"↩ {loop.id} {loop.kind_name}: {loop.source} → {', '.join(event.shares)}{by}"
        case e.PositionTaken():
            why = f": {shown(event.reason, 80)}" if event.reason else ""
            return f"  ~ {event.loop}: {event.target} is for “{shown(event.option, 60)}”{why}"
        case e.ChoiceMade():
            why = f": {shown(event.reason, 80)}" if event.reason else ""
            return f"◆ {event.loop}: {shown(event.by, 60)} chose “{shown(event.option, 60)}”{why}"
        case e.StepsChanged():
            return f"  ⟳ {event.by} {_changed(event)}"
        case e.RefusedFeedback():
            return f"  ! feedback from {event.source} was refused: {shown(event.reason)}"
        case e.LoopClosed():
            who = f" by {shown(event.resolution.by, 40)}" if event.resolution.by else ""
            return f"● {event.loop} {event.state}{who}"
        case e.EscalationOpened():
            about = event.loop or event.step or "the run"
            return f"? {event.escalation} about {about}: {shown(event.reason)} [{' | '.join(event.options)}]"
        case e.EscalationDecided():
            who = f" by {shown(event.by, 40)}" if event.by else ""
            return f"! {event.escalation} decided: {event.choice}{who} {shown(event.note, 60)}".rstrip()
        case e.ConditionEvaluated(met=False):
            return f"  » {event.step} is skipped: {shown(event.reason)} is false"
        case e.StepSkipped():
            return f"  » {event.step} is skipped by decision: {shown(event.reason)}"
        case e.FileImported():
            return f"⇥ {shown(event.name)}, {counted(len(event.text.encode()), 'byte')}, imported as {event.form}"
        case e.InputChanged():
            return "✎ the input changed; later attempts get the new one"
        case e.RunPaused():
            return "‖ paused"
        case e.RunResumed():
            return "▸ resumed"
        case e.RunRecovered():
            return "▸ resumed: the process that executed it had ended"
        case e.RunEnded():
            says_it = event.reason.startswith(event.outcome)
            return f"■ {shown(event.reason)}" if says_it else f"■ {event.outcome} {shown(event.reason)}".rstrip()
        case _:
            return ""


def _mark(state: RunState, found: TrackedFinding) -> str:
    return f" ({BEFORE})" if failed_before(state, found) else ""


def _changed(event: e.StepsChanged) -> str:
    added = [step.name for step in event.added if step.name not in event.replaced]
    changes = (("added", added), ("replaced", event.replaced), ("removed", event.removed))
    said = [f"{word} {', '.join(names)}" for word, names in changes if names]
    return " and ".join([", ".join(said[:-1]), said[-1]] if len(said) > 1 else said)


def _started(event: e.AttemptStarted, state: RunState) -> str:
    why = {
        "rework": f" reworks {', '.join(event.loops)}",
        "verify": " verifies",
        "answer": f" answers {', '.join(event.loops)}",
        "decide": f" chooses in {', '.join(event.loops)}",
        "work": " because its input changed" if event.cause and event.attempt > 1 else "",
    }[event.mode]
    again = f" (attempt {event.attempt})" if event.attempt > 1 else ""
    step = state.graph.steps[event.step]
    who = f" by {shown(step.display_name(event.agent), 40)}" if len(step.agents) > 1 else ""
    return f"▸ {event.step}{again}{who}{why}"


def closing_words(report: Report, changes: bool = True) -> Iterator[str]:
    """The summary that `run` prints at the end; with `changes`, it names changed tests."""
    usage = report.usage
    money = f", ${usage.cost_usd:.2f}" if usage.cost_usd else ""
    yield f"{report.outcome}: {counted(usage.attempts, 'attempt')}{money}, {usage.seconds:.1f} s at work"
    evidence = evidence_line(report)
    if evidence:
        yield f"  {evidence}"
    if changes:
        yield from closing_changes(report)
    waiting = [packet for packet in report.escalations if packet.decided is None]
    for packet in waiting:
        yield f"  {packet.id} about {packet.loop or packet.step or 'the run'}: {shown(packet.reason)}"
        yield f"     backedge decide {packet.id} {'|'.join(packet.options)} --run {report.run}"
    if waiting:
        yield f"  then: backedge resume {report.run}"
