"""Which steps are stale, by comparing digests of what they consumed with the current artifacts.

As in a build system, a step is stale only if what it consumed changed, not because something ran again.
"""

from __future__ import annotations

from hashlib import sha256

from backedge.core.feedback.loop import Loop, LoopState
from backedge.core.model import HUMAN, SIDE_MODES, OutputDigest
from backedge.core.scheduling.skipping import condition_pending, is_skipped, must_repeat
from backedge.core.state.run import Running, RunState
from backedge.core.value import Json

NOTHING = ""
"""The digest consumed from a step that is skipped or has no artifact."""


def artifact_digest(state: RunState, name: str, made: OutputDigest, running: Running) -> str:
    """The digest of a judge's artifact: its output and the versions it judged. Empty for other steps, whose artifact digest
    is that of the output. A judge that judges the same versions once more keeps its digest, so that no other step runs
    again for it."""
    if name not in state.graph.judges:
        return ""
    step = state.steps[name]
    if step.rejudge and step.artifact is not None and step.artifact.consumed == running.consumed:
        return step.artifact.digest
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
    """Whether a step has an artifact that was made from the current versions of its needs."""
    of_step = state.steps[step]
    artifact = of_step.artifact
    if artifact is None or of_step.replaced or of_step.rejudge:
        return False
    consumed, needs = artifact.consumed, state.graph.needs[step]
    if len(consumed) != len(needs):
        return False
    for need in needs:  # noqa: SIM110 - the hottest function of the core: a plain loop is faster
        if consumed.get(need) != _consumed(state, step, need):
            return False
    return True


def part(value: Json, pointer: str) -> Json:
    """The part of a JSON value that a pointer names; None if there is nothing."""
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
    """Whether a step does not have to be executed for the current versions."""
    if condition_pending(state, name) or must_repeat(state, name):
        return state.steps[name].skipped_by_decision
    return state.steps[name].skipped_by_decision or is_skipped(state, name) or is_fresh(state, name)


def _changes_soon(loop: Loop, name: str) -> bool:
    """Whether a step is about to be reworked for a loop. Escalated loops do not count: they may wait long, or never
    continue. An answer or a choice changes no artifact."""
    if name not in loop.shares or loop.shares[name].done or loop.answers_only or loop.choosing:
        return False
    return loop.state is not LoopState.ESCALATING


def upstream_settled(state: RunState, name: str) -> bool:
    """Whether nothing upstream of a step is running or due."""
    for other in state.graph.upstream[name]:
        step = state.steps[other]
        if step.running is not None and step.running.mode not in SIDE_MODES:
            return False
        if not is_settled(state, other):
            return False
        if not is_skipped(state, other) and any(_changes_soon(loop, other) for loop in state.loops.values()):
            return False
    return True


def permanently_skipped(state: RunState, name: str) -> bool:
    """Whether a step is skipped, and nothing that is running or due could change that."""
    return (
        name != HUMAN
        and is_skipped(state, name)
        and state.steps[name].running is None
        and upstream_settled(state, name)
    )
