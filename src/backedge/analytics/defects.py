"""The defect log: for each finding, where it was injected, where it was detected, and what its correction took."""

from __future__ import annotations

from collections.abc import Iterable

from backedge.compat.contents import Defect
from backedge.core import events as e
from backedge.core.findings.ledger import TrackedFinding
from backedge.core.state.evolve import evolve
from backedge.core.state.run import RunState
from backedge.core.workflow.graph import Graph

__all__ = ["Defect", "defects", "injected_phase"]


def defects(events: Iterable[e.Event]) -> list[Defect]:
    """The defect log of one run, in the order of discovery."""
    attempts: dict[str, dict[str, int]] = {}
    cost: dict[str, float] = {}
    seconds: dict[str, float] = {}
    opened: dict[str, float] = {}
    closed: dict[str, float] = {}
    causes: dict[tuple[str, int], tuple[str, ...]] = {}
    state: RunState | None = None
    for event in events:
        state = evolve(state, event)
        match event:
            case e.AttemptStarted() if event.mode != "verify" and not state.graph.is_judge(event.step):
                causes[event.step, event.attempt] = event.cause
                for loop in event.cause:
                    by_step = attempts.setdefault(loop, {})
                    by_step[event.step] = by_step.get(event.step, 0) + 1
            case e.AttemptSucceeded() | e.AttemptFailed() | e.AttemptLimited() | e.AttemptDropped():
                for loop in causes.get((event.step, event.attempt), ()):
                    cost[loop] = cost.get(loop, 0.0) + event.usage.cost_usd
                    seconds[loop] = seconds.get(loop, 0.0) + event.seconds
            case e.LoopOpened():
                opened[event.loop] = event.at
            case e.LoopClosed():
                closed[event.loop] = event.at
            case _:
                pass
    if state is None:
        return []
    now = state.last_at
    return [
        _defect(
            state,
            tracked,
            attempts.get(tracked.loop or "", {}),
            cost.get(tracked.loop or "", 0.0),
            seconds.get(tracked.loop or "", 0.0),
            closed.get(tracked.loop or "", now) - opened.get(tracked.loop or "", now),
        )
        for tracked in state.findings.values()
    ]


def _defect(
    state: RunState, tracked: TrackedFinding, attempts: dict[str, int], cost: float, seconds: float, latency: float
) -> Defect:
    return Defect(
        finding=tracked.name,
        description=tracked.finding.description,
        severity=tracked.finding.severity,
        status=tracked.status,
        injected_phase=injected_phase(state.graph, tracked),
        injected_by=tracked.introduced_by,
        detected_by=tracked.found_by,
        detected_phase=state.graph.phase_of.get(tracked.found_by, ""),
        loop=tracked.loop,
        attempts=attempts,
        cost_usd=round(cost, 6),
        seconds=round(seconds, 6),
        latency=round(latency, 6),
    )


def injected_phase(graph: Graph, tracked: TrackedFinding) -> str:
    """The phase that caused a finding: the affected phase it names, else that of the step that introduced it."""
    if tracked.phases:
        return tracked.phases[0]
    return graph.phase_of.get(tracked.introduced_by[0], "") if tracked.introduced_by else ""
