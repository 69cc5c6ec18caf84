"""Does the history add up? Recomputes the hash chain of a run over any journal."""

from __future__ import annotations

from collections.abc import Sequence

from backedge.core.chain import genesis, link
from backedge.core.errors import JournalDamaged
from backedge.ports import Journal, Record, RunHead


async def verify(journal: Journal, run: str, head: str | None = None) -> None:
    """Return if every event of the run fits the chain; raise JournalDamaged naming the first one that does not.

    A `head` kept elsewhere may be the link of any event, so that it stays useful while the run goes on: it proves
    everything up to that event, also against somebody who recomputed the whole chain.
    """
    # The listing comes first: a run that grows meanwhile then has more events than listed, never fewer.
    listed = next((known for known in await journal.runs() if known.run == run), None)
    _check(run, await journal.read(run), listed, head)


async def verify_all(journal: Journal) -> int:
    """Verify every run, listing them once; returns how many there are."""
    heads = await journal.runs()
    for known in heads:
        _check(known.run, await journal.read(known.run), known, None)
    return len(heads)


def _check(run: str, records: Sequence[Record], listed: RunHead | None, head: str | None) -> None:
    chain = [genesis(run)]
    for position, record in enumerate(records, start=1):
        if record.seq != position:
            raise JournalDamaged(
                f"event {position} of run {run!r} is missing: got event {record.seq} in its place; restore a backup"
            )
        chain.append(link(chain[-1], record.body))
        if record.link != chain[-1]:
            raise JournalDamaged(
                f"event {position} of run {run!r} was changed: its link is {record.link}, "
                f"its contents give {chain[-1]}; restore a backup"
            )
    if listed and listed.seq >= len(chain):
        raise JournalDamaged(
            f"event {len(chain)} of run {run!r} is missing: the run is listed with {listed.seq} events; restore a backup"
        )
    if listed and listed.link != chain[listed.seq]:
        raise JournalDamaged(
            f"event {listed.seq} of run {run!r} was changed: the run is listed with link {listed.link}, "
            f"its event has {chain[listed.seq]}; restore a backup"
        )
    if head is not None and head.lower() not in chain:
        raise JournalDamaged(
            f"no event of run {run!r} has the link {head}: the chain ends at {chain[-1]} after {len(records)} events, "
            "so its history is not the one the head was taken from; restore a backup"
        )
