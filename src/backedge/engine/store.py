"""Between the rules and the journal: turns decisions into journal entries, and stored events into states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from backedge.core.chain import genesis, link
from backedge.core.errors import JournalDamaged, NotFound
from backedge.core.events import Event, RunStarted, StepsChanged
from backedge.core.scheduling.pending import outcome_of
from backedge.core.state.evolve import replay
from backedge.core.state.run import RunState
from backedge.core.value import Json
from backedge.engine.codec import decode_events, encode_events, put_back, set_aside_in
from backedge.ports import Append, Journal, Record

NOTHING: Mapping[str, bytes] = {}
REMEMBERED = 8
"""How many states are cached, so that a command that needs a run several times reads it once."""


def entry_of(
    before: RunState | None,
    events: Sequence[Event],
    after: RunState,
    outcome: str | None = None,
    payloads: Mapping[str, bytes] = NOTHING,
    fence: int | None = None,
    key: str | None = None,
) -> Append:
    """The events of one decision, which lead from one state to the next, as a journal entry."""
    bodies, large = encode_events(events, key)
    was, now = open_escalations(before), open_escalations(after)
    return Append(
        after.run,
        before.seq if before else 0,
        bodies,
        after.workflow.name,
        outcome or outcome_of(after),
        {**payloads, **large} if large else payloads,
        tuple(id for id in now if id not in was),
        tuple(id for id in was if id not in now),
        fence,
        key,
    )


def open_escalations(state: RunState | None) -> Sequence[str]:
    """The escalations that wait for a decision: none in a run that has ended."""
    return tuple(state.escalations) if state is not None and state.ended is None else ()


class States:
    """The states of runs that other processes execute. They are cached: only new events are read."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._known: dict[str, RunState] = {}

    async def of(self, run: str) -> RunState:
        """The state of a run. Raises NotFound if it does not exist."""
        state = self._known.pop(run, None)
        state = replay(await events_of(self._journal, run, state.seq if state else 0), state)
        if state is None:
            raise NotFound(f"run {run!r} does not exist in this journal")
        self._known[run] = state
        if len(self._known) > REMEMBERED:
            del self._known[next(iter(self._known))]
        return state


async def events_of(journal: Journal, run: str, after: int = 0) -> list[Event]:
    """The events of a run after number `after`. Raises JournalTooNew or JournalDamaged if one cannot be read."""
    return decode_events(await records_of(journal, run, after))


async def records_of(journal: Journal, run: str, after: int = 0) -> Sequence[Record]:
    """The stored events of a run after number `after`, each with the large values that were taken out of it. Raises
    JournalDamaged, naming the event, if one was changed."""
    return [
        await whole(journal, record) if set_aside_in(record.body) else record
        for record in await sound_records(journal, run, after)
    ]


async def sound_records(journal: Journal, run: str, after: int = 0) -> Sequence[Record]:
    """The stored events of a run after number `after`, as they are. Raises JournalDamaged, naming the first one that does
    not fit the chain: what somebody changed, or a disk lost, must not be taken for what happened."""
    records, expected = await journal.read(run, max(0, after - 1)), genesis(run)
    if after and records and records[0].seq == after:
        expected, records = records[0].link, records[1:]
    for seq, record in enumerate(records, start=after + 1):
        expected = link(expected, record.body)
        if record.seq != seq or record.link != expected:
            raise JournalDamaged(f"event {seq} of run {run!r} is damaged: it does not fit the chain; restore a backup")
        if not _is_text(record.body):
            raise JournalDamaged(f"event {seq} of run {run!r} is damaged: it is not UTF-8; restore a backup")
    return records


def _is_text(body: bytes) -> bool:
    try:
        return body.isascii() or bool(body.decode())
    except UnicodeDecodeError:
        return False


async def whole(journal: Journal, record: Record) -> Record:
    """A stored event with the large values that were taken out of it."""
    names = set_aside_in(record.body)
    values = {digest: await journal.payload(digest) for digest in names.values()}
    return Record(record.seq, put_back(record.body, values), record.link) if names else record


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


async def files_of(journal: Journal, events: Iterable[Event]) -> dict[str, bytes]:
    """The workflow file of a run and the files that it and added steps name, given all events of the run; the workflow file
    first. Each is as it was when a step that names it joined. Empty for a run without a file."""
    names: dict[str, str] = {}
    for event in events:
        if isinstance(event, RunStarted | StepsChanged):
            names |= {path: digest for path, digest in event.files.items() if path not in names}
    return {path: await journal.payload(digest) for path, digest in names.items()}


async def input_of(journal: Journal, state: RunState) -> Json:
    """The input that the run was started with."""
    if state.input_payload is None:
        return state.input
    return msgspec.json.decode(await journal.payload(state.input_payload))
