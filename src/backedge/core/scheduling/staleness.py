"""Who has to run again: content digests, what a step consumed, and whether that is still what there is.

As in a build system, a step is stale only if what it consumed changed, not because something ran again.
"""

from __future__ import annotations

from hashlib import sha256

from backedge.core.feedback.loop import Loop, LoopState
from backedge.core.model import SIDE_MODES, OutputDigest
from backedge.core.scheduling.skipping import condition_pending, is_skipped, must_repeat
from backedge.core.state.run import Running, RunState
from backedge.core.value import Json

NOTHING = ""
"""What is consumed of a step that was passed over without an artifact, or is skipped."""


def artifact_digest(state: RunState, name: str, made: OutputDigest, running: Running) -> str:
    """The digest of a judge's artifact: its output and the versions it judged. Empty where it is that of the output."""
    if name not in state.graph.judges:
        return ""
    judged = "\n".join(f"{need} {digest}" for need, digest in running.consumed.items())
    return sha256(f"{made.digest}\n{judged}".encode()).hexdigest()


def consumed_by(state: RunState, step: str) -> dict[str, str]:
    """The digests of what a step would consume if it started now."""
    return {need: _consumed(state, step, need) for need in state.graph.needs[step]}


def _consumed(state: RunState, step: str, need: str) -> str:
    of_need = state.steps[need]
    artifact = of_need.artifact
    if artifact is None or of_need.condition_false:
        return NOTHING
    pointers = state.graph.reads.get((step, need))
    if pointers is None:
        return artifact.digest
    return " ".join(artifact.parts.get(pointer, NOTHING) for pointer in pointers)


def is_fresh(state: RunState, step: str) -> bool:
    """Whether a step has an artifact that was made from what there is now."""
    of_step = state.steps[step]
    artifact = of_step.artifact
    if artifact is None or of_step.replaced:
        return False
    consumed, needs = artifact.consumed, state.graph.needs[step]
    if len(consumed) != len(needs):
        return False
    for need in needs:  # noqa: SIM110 - asked more often than anything else
        if consumed.get(need) != _consumed(state, step, need):
            return False
    return True


def part(value: Json, pointer: str) -> Json:
    """The part of a JSON value that a pointer names; None where there is nothing."""
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    return value


def is_settled(state: RunState, name: str) -> bool:
    """Whether a step need not be executed for what there is now."""
    if condition_pending(state, name) or must_repeat(state, name):
        return state.steps[name].skipped_by_decision
    return state.steps[name].skipped_by_decision or is_skipped(state, name) or is_fresh(state, name)


def _changes_soon(loop: Loop, name: str) -> bool:
    """Whether a step is to be reworked for a loop. What is escalated may wait for long, and for nothing in the end."""
    return name in loop.shares and not loop.shares[name].done and loop.state is not LoopState.ESCALATING


def upstream_settled(state: RunState, name: str) -> bool:
    """Whether nothing that a step needs, directly or not, is going to change."""
    for other in state.graph.upstream[name]:
        step = state.steps[other]
        if step.running is not None and step.running.mode not in SIDE_MODES:
            return False
        if not is_settled(state, other):
            return False
        if not is_skipped(state, other) and any(_changes_soon(loop, other) for loop in state.loops.values()):
            return False
    return True
