"""Verifies the history of a run in any journal: its hash chain, the digests of its large values, and its entry in the
listings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from backedge.adapters.journals.payloads import payloads_of
from backedge.core.chain import genesis, link
from backedge.core.errors import JournalDamaged, JournalTooNew, PayloadPruned
from backedge.core.events import Event, RunEnded
from backedge.core.scheduling.pending import outcome_of
from backedge.core.state.evolve import replay
from backedge.core.state.run import RunState
from backedge.core.text import counted
from backedge.engine.codec import decode_events, set_aside_in
from backedge.engine.store import open_escalations, whole
from backedge.ports import Audited, Journal, Record, RunHead


async def verify(journal: Journal, run: str, head: str | None = None) -> None:
    """Verify that every event of the run matches the chain, every large value its digest, and the listing the events.
    Raises JournalDamaged, which names the first mismatch. Values that were pruned after the run had ended may be
    missing.

    A `head` kept elsewhere may be the link of any event, so that it stays useful while the run continues. It proves
    everything up to that event, even if the whole chain was recomputed.
    """
    # The listing comes first: a run that grows meanwhile then has more events than listed, never fewer.
    listed = next((known for known in await journal.runs() if known.run == run), None)
    await _check(journal, run, listed, head, _Seen())


async def verify_all(journal: Journal, head: str | None = None) -> int:
    """Verify every run, listing them once, that no run is missing and that what was pruned belonged to runs that had ended;
    returns how many there are.

    Where the journal is `Audited`, it says itself whether a run was deleted, and a `head` of the whole journal that was
    kept elsewhere proves all that had happened by then.
    """
    heads = await journal.runs()
    seen = _Seen()
    for known in heads:
        await _check(journal, known.run, known, None, seen)
    await _check_index(journal, seen)
    if isinstance(journal, Audited):
        if (missing := await journal.missing()) is not None:
            raise JournalDamaged(f"{missing}: a run, or a part of one, was deleted; restore a backup")
        for digest in await journal.pruned():
            if digest not in seen.prunable:
                raise JournalDamaged(
                    f"the large value {digest} is listed as pruned, but no run that has ended names it: the list "
                    "of pruned values was changed; restore a backup"
                )
    if head is not None:
        if not isinstance(journal, Audited):
            raise JournalDamaged(f"this journal has no head to compare with {head!r}: verify its runs one by one")
        if (why := await journal.disproof(head)) is not None:
            raise JournalDamaged(why)
    return len(heads)


async def _check_index(journal: Journal, seen: _Seen) -> None:
    """Compare the index of open escalations with what the events say."""
    listed = await _listed(journal)
    for run in {**listed, **seen.waiting}:
        before = await journal.read(run)
        if listed.get(run, set()) == seen.waiting.get(run, set()):
            continue
        # The run may have continued since: the difference counts only if the run has not changed.
        now = (await _listed(journal)).get(run, set())
        if len(await journal.read(run)) == len(before) and now != (
            right := set(open_escalations(replay(await _events(journal, before))))
        ):
            raise JournalDamaged(
                f"run {run!r} is listed with the open escalations {_names(now)}, but its events say {_names(right)}: the "
                "index was changed; restore a backup"
            )


async def _listed(journal: Journal) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for each in await journal.open_escalations():
        found.setdefault(each.run, set()).add(each.escalation)
    return found


def _names(escalations: set[str]) -> str:
    return ", ".join(sorted(escalations)) or "none"


@dataclass(slots=True)
class _Seen:
    """What is known about large values and open escalations."""

    pruned: dict[str, bool] = field(default_factory=dict)
    """For each value that was checked, whether it was pruned."""
    prunable: set[str] = field(default_factory=set)
    """Those that a run that has ended names as its input, its outputs or its logs."""
    waiting: dict[str, set[str]] = field(default_factory=dict)
    """The open escalations of each run that has some."""


async def _check(journal: Journal, run: str, listed: RunHead | None, head: str | None, seen: _Seen) -> None:
    records = await journal.read(run)
    _check_chain(run, records, listed, head)
    for record in records:
        for digest in set_aside_in(record.body).values():
            if await _was_pruned(journal, run, record.seq, digest, seen):
                raise _wrongly_pruned(run, record.seq, digest, "no part of an event ever is")
    events = await _events(journal, records)
    state = replay(events)
    if waiting := set(open_escalations(state)):
        seen.waiting[run] = waiting
    if listed is not None and state is not None:
        _check_listing(run, listed, state if listed.seq == len(events) else replay(events[: listed.seq]))
    unfinished = events and not any(isinstance(event, RunEnded) for event in events)
    for record in records:
        for digest in payloads_of(record.body):
            if await _was_pruned(journal, run, record.seq, digest, seen) and unfinished:
                raise _wrongly_pruned(run, record.seq, digest, "only runs that have ended are pruned")
            if not unfinished:
                seen.prunable.add(digest)


async def _events(journal: Journal, records: Sequence[Record]) -> list[Event]:
    """What the records say; nothing if only a newer version knows."""
    try:
        return decode_events([await whole(journal, record) for record in records])
    except (JournalTooNew, JournalDamaged):
        return []  # the chain is whole, but only a newer version can say what it means


def _check_listing(run: str, listed: RunHead, state: RunState | None) -> None:
    assert state is not None
    listed_as = (listed.workflow, listed.outcome)
    right = (state.workflow.name, outcome_of(state))
    if listed_as != right:
        raise JournalDamaged(
            f"run {run!r} is listed as {listed_as[1]} in workflow {listed_as[0]!r}, but its events say {right[1]} in workflow "
            f"{right[0]!r}: the listing was changed; restore a backup"
        )


def _wrongly_pruned(run: str, seq: int, digest: str, rule: str) -> JournalDamaged:
    return JournalDamaged(
        f"event {seq} of run {run!r} names the large value {digest}, which is listed as pruned, but {rule}: restore a backup"
    )


async def _was_pruned(journal: Journal, run: str, seq: int, digest: str, seen: _Seen) -> bool:
    if digest not in seen.pruned:
        try:
            await journal.payload(digest)
            seen.pruned[digest] = False
        except PayloadPruned:
            seen.pruned[digest] = True  # it was pruned on purpose
        except JournalDamaged as error:
            raise JournalDamaged(f"event {seq} of run {run!r} names a large value that is damaged: {error}") from error
    return seen.pruned[digest]


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
            f"no event of run {run!r} has the link {head}: the chain ends at {chain[-1]} after {counted(len(records), 'event')}, "
            "so its history is not the one the head was taken from; restore a backup"
        )
