"""The events of a run in words: one line for each, or a few."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from backedge.analytics.evidence_report import failed_before
from backedge.analytics.rounds import LoopHistory
from backedge.analytics.sentence import sentence
from backedge.core import events as e
from backedge.core.escalation.options import choice_words
from backedge.core.events import Event
from backedge.core.feedback.loop import Loop
from backedge.core.feedback.undoable import words_of
from backedge.core.findings.ledger import TrackedFinding
from backedge.core.model import Kind
from backedge.core.state.run import ASKED, RunState
from backedge.core.text import counted, duration, shown
from backedge.reading.clock_time import clock_time
from backedge.reading.evidence_words import BEFORE, answered, baseline_line, verdict_tests

MOST_FINDINGS = 5
"""How many findings of one verdict to name."""
MOST_TARGETS = 5


def lines_of(event: Event, state: RunState) -> Iterator[str]:
    """One event as lines; none for events that are not shown."""
    match event:
        case e.VerdictGiven(word="fail"):
            yield from _failed(event, state)
        case e.FeedbackRouted():
            yield from _routed(event, state)
        case e.EscalationOpened():
            yield from _asked(event, state)
        case _:
            yield from [line] if (line := line_of(event, state)) else []


def _failed(event: e.VerdictGiven, state: RunState) -> Iterator[str]:
    found = [state.findings[sighting.id] for sighting in event.findings]
    told = [f"{each.name} {shown(each.finding.description, 80)}{_mark(state, each)}" for each in found[:MOST_FINDINGS]]
    head = f"  ✗ {event.judge} fails it{verdict_tests(state, event.judge)}: "
    if len(found) <= 1:
        yield head + "".join(told)
        return
    yield f"{head}{counted(len(found), 'finding')}"
    yield from (f"      {each}" for each in told)
    if len(found) > len(told):
        yield f"      … and {len(found) - len(told)} more: backedge show {state.run} --all"


def _routed(event: e.FeedbackRouted, state: RunState) -> Iterator[str]:
    """The back edge, and the request if it is not a judge's finding."""
    loop = state.loops[event.loop]
    yield f"↩ {loop.id} {back_edge(loop.source, tuple(event.shares))}, {round_of(loop)}"
    if loop.feedback is not None:
        yield f"      {loop.kind_name.replace('_', ' ')}: {shown(loop.feedback.message, 160)}"


def _asked(event: e.EscalationOpened, state: RunState) -> Iterator[str]:
    """The question, with the recommended choice first, and what it is about."""
    packet = state.escalations.get(event.escalation)
    loop = state.loop(event.loop) if event.loop else None
    words = choice_words(state, packet) if packet is not None else event.options
    about = event.loop or event.step or "the run"
    asked = f" for {shown(' or '.join(event.for_roles), 60)}" if event.for_roles else ""
    yield f"? {event.escalation}{asked} about {about}: {shown(event.reason)} [{' | '.join(words)}]"
    known = loop is not None and loop.feedback is not None  # then its message was told when it was routed
    if packet is not None and not known and (event.loop or event.reason == ASKED):
        yield f"      {shown(sentence(state, packet, LoopHistory()), 200)}"


def back_edge(source: str, targets: Sequence[str]) -> str:
    """A back edge as it is drawn: to the left, from the step that found the defect to the step that caused it."""
    named = [shown(each, 40) for each in targets[:MOST_TARGETS]]
    more = f" and {len(targets) - len(named)} more" if len(targets) > len(named) else ""
    return f"{', '.join(named) or '…'}{more} ◄── {shown(source, 40)}"


def round_of(loop: Loop) -> str:
    """The current round, and how many the first limit that counts rounds allows: "round 1 of 3". After the last one,
    that there is none left."""
    limits = loop.limits
    bounds = (limits.rounds_per_loop, limits.rounds_per_step, limits.rounds_per_pair)
    bound = next((each for each in bounds if each is not None), None)
    number = loop.round - loop.waived.get("loop", 0) + (not loop.delivered)
    if bound is None:
        return f"round {number}"
    most = bound + loop.granted
    return f"round {number} of {most}" if number <= most else f"{most} of {counted(most, 'round')} used"


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
            return f"  ! {event.step} broke: {shown(event.error, 200)}"
        case e.AttemptLimited():
            return f"  ⏳ {event.step} waits until {clock_time(event.retry_at, event.at)}{_reset(event)}: {shown(event.message)}"
        case e.AttemptDropped():
            return f"  ! attempt {event.attempt} of {event.step} {event.reason}"
        case e.VerdictGiven():
            return f"  ✓ {event.judge}: {event.word}{verdict_tests(state, event.judge)}"
        case e.BaselineRecorded():
            return f"  {baseline_line(event.baseline)}"
        case e.ProtectedAnswered():
            return answered(event, state)
        case e.VerdictsVoided():
            return f"↻ {', '.join(event.judges)}: judged again ({shown(event.reason)})"
        case e.RolledBack():
            return f"⤺ rolled back {shown(words_of(event))}"
        case e.FilesRestored():
            return _restored(event)
        case e.LoopOpened(warning=str(warning)) if warning:
            return f"  ! {event.loop}: warning: {warning}"
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
        case e.LoopOverdue():
            return f"  ! {event.loop} is overdue: no answer within {duration(event.breach.bound)}"
        case e.LoopClosed():
            who = f" by {shown(event.resolution.by, 40)}" if event.resolution.by else ""
            return f"● {event.loop} {event.state}{who}"
        case e.EscalationReminded():
            return f"? {event.escalation} is still open after {duration(max(event.after))}: people are reminded"
        case e.EscalationExpired():
            then = f"{event.choice} follows" if event.choice else "it stays open, and people are reminded"
            return f"? {event.escalation} was not answered in time: {then}"
        case e.EscalationDecided():
            who = f" by {shown(event.by, 40)}" if event.by else ""
            chosen = shown(event.option, 60) if event.option else event.choice
            note = f": {shown(event.note, 60)}" if event.note else ""
            return f"! {event.escalation} decided: {chosen}{who}{note}"
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


def _restored(event: e.FilesRestored) -> str:
    if event.kept:
        return "  ⤺ its files stay as they are"
    files = [name for each in event.workspaces.values() for name in each.files]
    patches = [each.patch for each in event.workspaces.values() if each.patch]
    kept = f"; what was undone is in {shown(patches[0])}" if patches else ""
    return f"  ⤺ {counted(len(files), 'file')} restored{kept}" if files else ""


def _reset(event: e.AttemptLimited) -> str:
    return ", when the limit of its provider resets" if event.stated else ", because its provider has reached a limit"


def _mark(state: RunState, found: TrackedFinding) -> str:
    return f" ({BEFORE})" if failed_before(state, found) else ""


def _changed(event: e.StepsChanged) -> str:
    added = [step.name for step in event.added if step.name not in event.replaced]
    changes = (("added", added), ("replaced", event.replaced), ("removed", event.removed))
    said = [f"{word} {', '.join(names)}" for word, names in changes if names]
    return " and ".join([", ".join(said[:-1]), said[-1]] if len(said) > 1 else said)


def _why_again(event: e.AttemptStarted, state: RunState) -> str:
    """Why a step that nothing asks to rework works again."""
    if event.results:
        return f" with the result of {', '.join(event.results)}"
    if event.cause:
        return " because its input changed" if event.attempt > 1 else ""
    asked = [state.loops[id].kind is Kind.CONTEXT_REQUEST for id in event.verifies]
    if asked:
        return f" {'with the answer to' if all(asked) else 'verifies'} {', '.join(event.verifies)}"
    return ""


def _started(event: e.AttemptStarted, state: RunState) -> str:
    why = {
        "rework": f" reworks {', '.join(event.loops)}",
        "verify": " verifies",
        "answer": f" answers {', '.join(event.loops)}",
        "decide": f" chooses in {', '.join(event.loops)}",
        "work": _why_again(event, state),
    }[event.mode]
    again = f" (attempt {event.attempt})" if event.attempt > 1 else ""
    step = state.graph.steps[event.step]
    who = f" by {shown(step.display_name(event.agent), 40)}" if len(step.agents) > 1 else ""
    return f"▸ {event.step}{again}{who}{why}"
