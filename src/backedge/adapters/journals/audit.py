"""Does the history add up? Recomputes the hash chain of a run over any journal, and the digests of its large values."""

from __future__ import annotations

from collections.abc import Sequence

from backedge.adapters.journals.payloads import payloads_of
from backedge.core.chain import genesis, link
from backedge.core.errors import JournalDamaged, PayloadPruned
from backedge.ports import Journal, Record, RunHead


async def verify(journal: Journal, run: str, head: str | None = None) -> None:
    """Return if every event of the run fits the chain, and every large value its digest; raise JournalDamaged naming the
    first one that does not. What was pruned is not missed.

    A `head` kept elsewhere may be the link of any event, so that it stays useful while the run goes on: it proves
    everything up to that event, also against somebody who recomputed the whole chain.
    """
    # The listing comes first: a run that grows meanwhile then has more events than listed, never fewer.
    listed = next((known for known in await journal.runs() if known.run == run), None)
    await _check(journal, run, listed, head, set())


async def verify_all(journal: Journal) -> int:
    """Verify every run, listing them once; returns how many there are."""
    heads = await journal.runs()
    looked_at: set[str] = set()
    for known in heads:
        await _check(journal, known.run, known, None, looked_at)
    return len(heads)


async def _check(journal: Journal, run: str, listed: RunHead | None, head: str | None, looked_at: set[str]) -> None:
    records = await journal.read(run)
    _check_chain(run, records, listed, head)
    for record in records:
        for digest in payloads_of(record.body):
            if digest not in looked_at:
                looked_at.add(digest)
                await _check_payload(journal, run, record.seq, digest)


async def _check_payload(journal: Journal, run: str, seq: int, digest: str) -> None:
    try:
        await journal.payload(digest)
    except PayloadPruned:
        return  # somebody wanted the space back, and said so
    except JournalDamaged as error:
        raise JournalDamaged(f"event {seq} of run {run!r} names a large value that does not add up: {error}") from error


def _check_chain(run: str, records: Sequence[Record], listed: RunHead | None, head: str | None) -> None:
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
