"""The facts of one run, folded from its events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from backedge.analytics.defects import injected_phase
from backedge.analytics.facts import OPEN, FindingFacts, LoopFacts, RunFacts, Spent
from backedge.analytics.imported_facts import imported_facts
from backedge.analytics.loop_stats import counted_loops
from backedge.compat import read
from backedge.core import events as e
from backedge.core.feedback.loop import Loop, LoopState
from backedge.core.findings.ledger import TrackedFinding, after_sighting, with_status
from backedge.core.model import HUMAN, Severity
from backedge.core.state.evolve import replay
from backedge.core.value import replace
from backedge.core.workflow.definition import Step, Workflow, phase_order
from backedge.core.workflow.graph import Graph, graph_of
from backedge.core.workflow.plan import with_plan


def run_facts(events: Sequence[e.Event]) -> RunFacts | None:
    """The facts of one run; None for no events."""
    if not events:
        return None
    started = events[0]
    if not isinstance(started, e.RunStarted):
        raise ValueError(f"the first event of a run is {type(started).__name__}: expected RunStarted")
    facts = RunFacts(started.run, started.workflow.name, started.at)
    kinds = set(map(type, events))
    if kinds.isdisjoint(_FEEDBACK) and not any(event.findings for event in events if type(event) is e.VerdictGiven):
        # Most runs: there was no feedback, and only the attempts count.
        for event in events:
            if isinstance(event, _ENDS):
                facts.all.add_attempt(event.usage.cost_usd, event.seconds)
        return facts
    facts.phases = _phases(started.workflow, events)
    _add_attempts(facts, started.workflow, events)
    if kinds <= _ORDINARY and not any(map(_unusual, events)):
        _add_feedback(facts, started.workflow, events)
    else:
        _add_replayed(facts, events)
    return facts


def _phases(workflow: Workflow, events: Iterable[e.Event]) -> tuple[str, ...]:
    """The phases that the steps of a run have, in their order. Phases that only have a place in the order do not count."""
    graph = graph_of(workflow)
    used = set(graph.phase_of.values())
    for event in events:
        if isinstance(event, e.StepsChanged):
            used.update(step.phase for step in event.added)
    return tuple(phase for phase in phase_order(workflow) if phase in used)


_ENDS = (e.AttemptSucceeded, e.AttemptFailed, e.AttemptLimited, e.AttemptDropped)
_FEEDBACK: frozenset[type] = frozenset((e.LoopOpened, e.EscalationOpened, e.FileImported))
_ORDINARY: frozenset[type] = frozenset(
    (
        e.RunStarted,
        e.AttemptStarted,
        *_ENDS,
        e.VerdictGiven,
        e.LoopOpened,
        e.FeedbackRouted,
        e.LoopClosed,
        e.FindingsSettled,
        e.ConditionEvaluated,
        e.RunEnded,
    )
)
"""Events whose effect on loops and findings can be read from the event alone. A run with other events, such as
decisions, is replayed."""


def _unusual(event: e.Event) -> bool:
    """Whether an ordinary event has effects that it does not show: a contested finding, a round that is routed
    again."""
    if type(event) is e.AttemptSucceeded:
        return any(said.status == "contested" for said in event.claims)
    return type(event) is e.FeedbackRouted and bool(event.kept or event.feedback)


def _add_attempts(facts: RunFacts, workflow: Workflow, events: Iterable[e.Event]) -> None:
    graph = graph_of(workflow)
    rework: dict[tuple[str, int], tuple[str, str]] = {}
    """Attempts under way that a loop has caused, with the phase and the agent they count for."""
    for event in events:
        match event:
            case e.AttemptStarted() if event.cause and event.mode != "verify" and not graph.is_judge(event.step):
                agent = graph.steps[event.step].display_name(event.agent) or event.step
                rework[event.step, event.attempt] = (graph.phase_of[event.step], agent)
            case e.AttemptSucceeded() | e.AttemptFailed() | e.AttemptLimited() | e.AttemptDropped():
                facts.all.add_attempt(event.usage.cost_usd, event.seconds)
                origin = rework.pop((event.step, event.attempt), None)
                if origin is not None:
                    facts.rework.setdefault(origin, Spent()).add_attempt(event.usage.cost_usd, event.seconds)
            case e.StepsChanged():
                graph = graph_of(with_plan(graph.workflow, event.added, event.removed, event.gained))
            case _:
                pass


def _add_feedback(facts: RunFacts, workflow: Workflow, events: Iterable[e.Event]) -> None:
    """The loops and findings of a run with ordinary events only: five times as fast as a replay."""
    found: dict[int, TrackedFinding] = {}
    checked: set[int] = set()
    routed: set[str] = set()
    """Loops whose feedback was routed and not yet delivered: its delivery is their next round."""
    for event in events:
        match event:
            case e.AttemptStarted():
                for id in event.loops:
                    facts.loops[id].rounds += id in routed
                routed.difference_update(event.loops)
            case e.VerdictGiven():
                for sighting in event.findings:
                    found[sighting.id] = after_sighting(found.get(sighting.id), sighting, event.judge, 0)
                for finding, status in event.settled:
                    found[finding] = with_status(found[finding], status)
                if not event.attempt:
                    checked.update(sighting.id for sighting in event.findings)
            case e.LoopOpened(feedback=raised):
                kind, severity = (raised.word, raised.severity) if raised else (event.kind, Severity.LOW)
                facts.loops[event.loop] = LoopFacts(kind, severity)
                routed.add(event.loop)
            case e.FeedbackRouted():
                _route(facts.loops[event.loop], event, found)
                routed.add(event.loop)
            case e.LoopClosed():
                facts.loops[event.loop].state = event.state
            case e.FindingsSettled():
                found.update({id: with_status(found[id], event.status) for id in event.findings})
            case _:
                pass
    graph = graph_of(workflow)
    facts.findings = {id: _finding(graph, each, id in checked) for id, each in found.items()}


def _route(loop: LoopFacts, event: e.FeedbackRouted, found: dict[int, TrackedFinding]) -> None:
    chosen = {id for ids in event.rules.values() for id in ids}
    steps: dict[int, tuple[str, ...]] = {}
    for target, ids in event.shares.items():
        for id in ids:
            steps[id] = (*steps.get(id, ()), target) if target != HUMAN else steps.get(id, ())
    for id, targets in steps.items():
        if targets and id in chosen:
            found[id] = replace(found[id], introduced_by=targets)
        severity = found[id].finding.severity
        if severity.rank < Severity(loop.severity).rank:
            loop.severity = severity


def _add_replayed(facts: RunFacts, events: Iterable[e.Event]) -> None:
    state = replay(events)
    assert state is not None
    if state.imported is not None:
        imported_facts(facts, read(state.imported.form, state.imported.text))
        return
    escalated = {packet.loop for packet in state.escalations.values()}
    for loop in counted_loops(state):
        facts.loops[loop.id] = LoopFacts(loop.kind_name, loop.severity, loop.round, _state(loop, escalated))
    checks = (event for event in events if isinstance(event, e.VerdictGiven) and not event.attempt)
    checked = {sighting.id for event in checks for sighting in event.findings}
    facts.findings = {each.id: _finding(state.graph, each, each.id in checked) for each in state.findings.values()}
    facts.escalations = state.opened_escalations


def _state(loop: Loop, escalated: set[str | None]) -> str:
    if not loop.open:
        return loop.state
    return LoopState.ESCALATING if loop.id in escalated or loop.state is LoopState.ESCALATING else OPEN


def _finding(graph: Graph, tracked: TrackedFinding, checked: bool) -> FindingFacts:
    judge = graph.steps.get(tracked.found_by)
    return FindingFacts(
        name=tracked.name,
        description=tracked.finding.description,
        severity=tracked.finding.severity,
        status=tracked.status,
        found_by=tracked.found_by,
        detected=graph.phase_of.get(tracked.found_by, ""),
        injected=injected_phase(graph, tracked),
        means="check" if checked else _means(graph, judge),
        rounds_seen=tracked.rounds_seen,
    )


def _means(graph: Graph, judge: Step | None) -> str:
    """How a judge finds defects: a tool such as a linter does not review, and neither does a check or a gate."""
    if judge is None:
        return "review"
    if judge.name in graph.engine_judges:
        return "gate" if judge.name in graph.gates else "consistency check"
    return "test" if judge.tests else "tool" if judge.tool else "review"
