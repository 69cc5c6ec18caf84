"""What a journal says of a run that nobody here executes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from backedge.core.errors import NotFound
from backedge.core.state import RunState, replay
from backedge.core.value import Json
from backedge.engine.codec import decoded
from backedge.ports import Journal


async def stored_state(journal: Journal, run: str) -> RunState:
    """Where a run stands. Raises NotFound for one that does not exist."""
    state = replay(decoded(await journal.read(run)))
    if state is None:
        raise NotFound(f"run {run!r} does not exist in this journal")
    return state


async def outputs(journal: Journal, state: RunState, names: Sequence[str]) -> dict[str, Json]:
    """The current outputs of those steps that have one."""
    found: dict[str, Json] = {}
    for name in names:
        artifact = state.steps[name].artifact
        if artifact is None:
            continue
        if artifact.payload is None:
            found[name] = artifact.output
        else:
            found[name] = msgspec.json.decode(await journal.payload(artifact.payload))
    return found


async def input_of(journal: Journal, state: RunState) -> Json:
    """What the run was started with."""
    if state.input_payload is None:
        return state.input
    return msgspec.json.decode(await journal.payload(state.input_payload))
