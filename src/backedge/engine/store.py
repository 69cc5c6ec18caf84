"""What a journal says of a run that nobody here executes."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from backedge.core.errors import NotFound
from backedge.core.events import Event
from backedge.core.state.evolve import replay
from backedge.core.state.run import RunState
from backedge.core.value import Json
from backedge.engine.codec import decode_events, put_back, set_aside_in
from backedge.ports import Journal, Record


async def events_of(journal: Journal, run: str, after: int = 0) -> list[Event]:
    """The events of a run after number `after`. Raises JournalTooNew or JournalDamaged for what is no event."""
    return decode_events(await records_of(journal, run, after))


async def records_of(journal: Journal, run: str, after: int = 0) -> Sequence[Record]:
    """The stored events of a run after number `after`, each with the large values that were taken out of it."""
    return [
        await whole(journal, record) if set_aside_in(record.body) else record
        for record in await journal.read(run, after)
    ]


async def whole(journal: Journal, record: Record) -> Record:
    """A stored event with the large values that were taken out of it."""
    names = set_aside_in(record.body)
    values = {digest: await journal.payload(digest) for digest in names.values()}
    return Record(record.seq, put_back(record.body, values), record.link) if names else record


async def stored_state(journal: Journal, run: str) -> RunState:
    """Where a run stands. Raises NotFound for one that does not exist."""
    state = replay(await events_of(journal, run))
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
