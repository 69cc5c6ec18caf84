"""Which phases of a story are complete, and which loops wait for rework."""

from __future__ import annotations

from backedge.compat.agentic_sdlc import CREATE_PR
from backedge.core.feedback.loop import Loop
from backedge.core.scheduling.scheduler import passes
from backedge.core.scheduling.staleness import is_fresh
from backedge.core.state.run import RunState
from backedge.stories.rules.assessor import PHASES, StoryPhase
from backedge.stories.rules.refinement import phase_of


def complete_phases(state: RunState) -> dict[StoryPhase, bool]:
    """Whether each phase is complete; a phase is not complete while an earlier one is incomplete."""
    graph = state.graph
    complete: dict[StoryPhase, bool] = {}
    for phase in PHASES:
        steps = [name for name in state.steps if phase_of(graph, name) == phase and name != CREATE_PR]
        done = all(_is_done(state, name) for name in steps if not graph.is_judge(name))
        if phase != "implement":
            done = done and all(_passes(state, name) or _rejects(state, name) for name in steps if graph.is_judge(name))
        complete[phase] = done and all(complete.values())
    return complete


def _is_done(state: RunState, name: str) -> bool:
    """Whether a step is done and is not being reworked."""
    step = state.steps[name]
    if step.skipped_by_decision:
        return True
    under_way = any(
        name in loop.shares and loop.shares[name].counted and not loop.shares[name].done
        for loop in state.loops.values()
    )
    return step.running is None and not under_way and is_fresh(state, name)


def _passes(state: RunState, judge: str) -> bool:
    return state.steps[judge].skipped_by_decision or passes(state, judge)


def _rejects(state: RunState, judge: str) -> bool:
    """Whether a judge has rejected the current version, so that its subject was complete but needs rework."""
    return any(loop.source == judge and not loop.delivered for loop in state.loops.values() if loop.by_verdict)


def all_reviews_pass(state: RunState) -> bool:
    return all(_passes(state, name) for name in state.steps if state.graph.is_judge(name))


def undelivered_loops(state: RunState) -> list[Loop]:
    """The loops whose feedback waits for rework, not for a person."""
    return [
        loop
        for loop in state.loops.values()
        if not loop.answers_only and loop.escalation is None and targets_of(state, loop, begun=False)
    ]


def loops_under_way(state: RunState) -> list[Loop]:
    """The loops that are being reworked, or were until an interruption."""
    return [
        loop
        for loop in state.loops.values()
        if not loop.answers_only and loop.escalation is None and targets_of(state, loop, begun=True)
    ]


def targets_of(state: RunState, loop: Loop, begun: bool) -> list[str]:
    """The steps that a loop waits for: those that have started their rework, or those that have not."""
    return [
        name for name, share in loop.shares.items() if name in state.steps and share.counted is begun and not share.done
    ]
