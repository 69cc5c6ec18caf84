"""Human feedback is verified by the judges of the reworked steps."""

from __future__ import annotations

from backedge.core.feedback.loop import Loop, LoopState
from backedge.core.model import HUMAN
from backedge.core.scheduling.skipping import input_versions
from backedge.core.state.run import RunState

_REWORKED_OR_UNVERIFIED = (LoopState.RESOLVING, LoopState.VALIDATING)


def human_feedback_to_verify(state: RunState, judge: str) -> tuple[Loop, ...]:
    """The loops raised by people whose fix is part of what a judge judges, and is not verified yet."""
    if not state.loops:
        return ()
    subjects = state.graph.steps[judge].judges
    return tuple(
        loop
        for loop in state.loops.values()
        if loop.source == HUMAN
        and loop.state in _REWORKED_OR_UNVERIFIED
        and not loop.answers_only
        and any(loop.shares[name].done for name in subjects if name in loop.shares)
    )


def unverified_fixes(state: RunState, name: str) -> tuple[Loop, ...]:
    """The loops whose fix by this step is not verified yet. An answer is not a fix."""
    loops = state.loops.values()
    return tuple(
        loop for loop in loops if loop.state is LoopState.VALIDATING and name in loop.shares and not loop.answers_only
    )


def not_delivered_yet(loop: Loop, name: str) -> bool:
    """Whether no execution of a step has been counted for this round of a loop, as after a new plan."""
    share = loop.shares.get(name)
    return share is not None and not share.counted


def only_verifies(state: RunState, judge: str) -> bool:
    """Whether a judge only has to verify a fix: since its last verdict, each step under judgement changed at most once, for
    nothing but the findings of this judge, and nothing else that it uses changed."""
    own = {loop.id for loop in state.loops.values() if loop.source == judge and loop.by_verdict}
    verdict, subjects = state.steps[judge].verdict, state.graph.steps[judge].judges
    if not own or verdict is None:
        return False
    for need, version in input_versions(state, judge).items():
        since, artifact = version - verdict.versions.get(need, 0), state.steps[need].artifact
        assert artifact is not None
        if since and (since > 1 or need not in subjects or not own.issuperset(artifact.cause)):
            return False
    return True
