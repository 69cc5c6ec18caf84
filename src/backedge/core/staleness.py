"""Who has to run again: content digests, what a step consumed, and whether that is still what there is.

As in a build system, a step is stale only if what it consumed changed, not because something ran again.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from backedge.core.value import Json

if TYPE_CHECKING:
    from backedge.core.state import RunState

NOTHING = ""
"""What is consumed of a step that was passed over without an artifact, or is skipped."""


def judged_digest(made: str, consumed: dict[str, str]) -> str:
    """The digest of a judge's artifact: what it said, and the versions it said it of."""
    seen = "\n".join(f"{name} {digest}" for name, digest in consumed.items())
    return sha256(f"{made}\n{seen}".encode()).hexdigest()


def consumed_by(state: RunState, step: str) -> dict[str, str]:
    """The digests of what a step would consume if it started now."""
    return {need: _consumed(state, step, need) for need in state.graph.needs[step]}


def _consumed(state: RunState, step: str, need: str) -> str:
    of_need = state.steps[need]
    artifact = of_need.artifact
    if artifact is None or of_need.absent:
        return NOTHING
    pointers = state.graph.reads.get((step, need))
    if pointers is None:
        return artifact.digest
    return " ".join(artifact.parts.get(pointer, NOTHING) for pointer in pointers)


def fresh(state: RunState, step: str) -> bool:
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
