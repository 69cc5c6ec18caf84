"""The hash chain finds what was changed behind the journal's back."""

from __future__ import annotations

import asyncio
from hashlib import sha256
from pathlib import Path
from typing import get_args

import apsw
import pytest

from backedge import Engine, Step, Workflow
from backedge.adapters.journals.audit import verify, verify_all
from backedge.adapters.journals.memory import MemoryJournal
from backedge.adapters.journals.payloads import payloads_of
from backedge.adapters.journals.pruning import Pruned, prune_payloads
from backedge.adapters.journals.sqlite import SqliteJournal
from backedge.core.chain import genesis, link
from backedge.core.errors import JournalDamaged, PayloadPruned
from backedge.core.events import Event
from backedge.core.model import OutputDigest
from backedge.ports import Append

TAMPERING = [
    ("UPDATE events SET body = '{\"n\":9}' WHERE seq = 2", "event 2 of run 'r' was changed"),
    ("UPDATE events SET link = zeroblob(32) WHERE seq = 3", "event 3 of run 'r' was changed"),
    ("UPDATE events SET seq = 9 WHERE seq = 1", "event 1 of run 'r' is missing"),
    ("DELETE FROM events WHERE seq = 2", "event 2 of run 'r' is missing"),
    ("DELETE FROM events WHERE seq >= 4", "event 4 of run 'r' is missing"),
    ("DELETE FROM events", "event 1 of run 'r' is missing"),
    (
        "UPDATE events SET seq = -seq WHERE seq IN (2, 3); UPDATE events SET seq = 5 + seq WHERE seq < 0",
        "event 2 of run",
    ),
    ("UPDATE runs SET run = 'stolen'", "event 1 of run 'stolen' was changed"),
    ("UPDATE runs SET link = zeroblob(32)", "event 5 of run 'r' was changed"),
]


async def fill(journal: MemoryJournal | SqliteJournal) -> None:
    await journal.append(Append("r", 0, tuple(b'{"n":%d}' % number for number in range(1, 6))))


@pytest.mark.parametrize(("statement", "finding"), TAMPERING)
def test_tampering_is_found_and_the_first_event_named(tmp_path: Path, statement: str, finding: str) -> None:
    journal = SqliteJournal(tmp_path / "journal.db")
    asyncio.run(fill(journal))
    assert asyncio.run(verify_all(journal)) == 1
    other = apsw.Connection(str(tmp_path / "journal.db"))
    other.execute(statement)
    with pytest.raises(JournalDamaged, match=finding):
        asyncio.run(verify_all(journal))
    with pytest.raises(JournalDamaged, match=finding):
        asyncio.run(verify(journal, "stolen" if "stolen" in statement else "r"))
    asyncio.run(journal.close())


def test_a_head_kept_elsewhere_proves_what_came_before_it() -> None:
    async def scenario() -> None:
        journal = MemoryJournal()
        await fill(journal)
        for record in await journal.read("r"):
            await verify(journal, "r", head=record.link)
        await verify(journal, "r", head=genesis("r"))
        recomputed = link(genesis("r"), b'{"n":9}')
        with pytest.raises(JournalDamaged, match=f"no event of run 'r' has the link {recomputed}"):
            await verify(journal, "r", head=recomputed)

    asyncio.run(scenario())


def test_a_run_that_was_deleted_whole_is_found_by_its_head() -> None:
    async def scenario() -> None:
        await verify(MemoryJournal(), "r")
        with pytest.raises(JournalDamaged, match="after 0 events"):
            await verify(MemoryJournal(), "r", head=link(genesis("r"), b"{}"))

    asyncio.run(scenario())


# Large values

LARGE = [f"{number:05d}".encode() * 2_000 for number in range(4)]
DIGESTS = [sha256(body).hexdigest() for body in LARGE]
NAMING = (
    b'{"type":"run_started","input_payload":"%s"}' % DIGESTS[0].encode(),
    b'{"type":"attempt_succeeded","made":{"digest":"x","payload":"%s"},"log":"%s"}'
    % (DIGESTS[1].encode(), DIGESTS[2].encode()),
    b'{"type":"attempt_failed","log":"%s"}' % DIGESTS[3].encode(),
)


def stored(path: Path) -> SqliteJournal:
    journal = SqliteJournal(path)
    asyncio.run(journal.append(Append("r", 0, NAMING, payloads=dict(zip(DIGESTS, LARGE, strict=True)))))
    return journal


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("DELETE FROM payloads WHERE digest = ?", "is not in"),
        ("UPDATE payloads SET body = substr(body, 1, 100) WHERE digest = ?", "has other contents"),
        ("UPDATE payloads SET body = zeroblob(length(body)) WHERE digest = ?", "has other contents"),
        ("UPDATE payloads SET body = x'' WHERE digest = ?", "has other contents"),
    ],
    ids=["missing", "truncated", "changed", "empty"],
)
@pytest.mark.parametrize(("large", "event"), [(0, 1), (1, 2), (2, 2), (3, 3)])
def test_a_large_value_that_does_not_add_up_is_found_and_named(
    tmp_path: Path, change: str, problem: str, large: int, event: int
) -> None:
    journal = stored(tmp_path / "journal.db")
    assert asyncio.run(verify_all(journal)) == 1
    asyncio.run(verify(journal, "r"))
    apsw.Connection(str(tmp_path / "journal.db")).execute(change, (DIGESTS[large],))
    found = rf"event {event} of run 'r' names a large value .* payload {DIGESTS[large]} .*{problem}"
    for look in (lambda: verify_all(journal), lambda: verify(journal, "r")):
        with pytest.raises(JournalDamaged, match=found):
            asyncio.run(look())
    asyncio.run(journal.close())


def test_what_was_pruned_is_not_missed_but_what_is_missing_besides_is(tmp_path: Path) -> None:
    journal = stored(tmp_path / "journal.db")

    asyncio.run(journal.append(Append("needs the last", 0, NAMING[2:])))
    assert prune_payloads(tmp_path / "journal.db", {"r"}) == Pruned(3, 30_000, frozenset({"r"}))
    asyncio.run(verify(journal, "r"))
    with pytest.raises(PayloadPruned, match=f"payload {DIGESTS[0]} is no longer in .*: it was pruned"):
        asyncio.run(journal.payload(DIGESTS[0]))
    apsw.Connection(str(tmp_path / "journal.db")).execute("DELETE FROM payloads")
    with pytest.raises(JournalDamaged, match=f"event 3 of run 'r' names .* payload {DIGESTS[3]} is not in"):
        asyncio.run(verify(journal, "r"))
    asyncio.run(journal.close())


def test_a_large_value_that_many_events_name_is_looked_at_once() -> None:
    looked: list[str] = []

    class Counting(MemoryJournal):
        async def payload(self, digest: str) -> bytes:
            looked.append(digest)
            return await super().payload(digest)

    async def scenario() -> None:
        journal = Counting()
        for run in ("a", "b", "c"):
            await journal.append(Append(run, 0, NAMING * 3, payloads=dict(zip(DIGESTS, LARGE, strict=True))))
        await verify_all(journal)

    asyncio.run(scenario())
    assert sorted(looked) == sorted(DIGESTS)


def test_every_large_value_that_a_run_stores_is_named_by_its_events() -> None:
    """If a new event names one in a new way, `payloads_of` has to know it."""

    async def scenario() -> None:
        async with Engine() as engine:
            work = Workflow("w", [Step("a", lambda briefing: "x" * 10_000)])
            run = await engine.start(work, {"large": "y" * 10_000})
            await run.result()
            records = await engine.journal.read(run.id)
            assert isinstance(engine.journal, MemoryJournal)
            assert {digest for record in records for digest in payloads_of(record.body)} == set(
                engine.journal._memory.payloads
            )

    asyncio.run(scenario())


def test_the_fields_of_events_that_name_a_large_value_are_known() -> None:
    fields = {
        field
        for event in get_args(Event)
        for field in event.__struct_fields__
        if field == "log" or field.endswith("payload")
    }
    assert fields == {"input_payload", "log"}
    assert {field for field in OutputDigest.__struct_fields__ if field.endswith("payload")} == {"payload"}


# What stands beside the events


def worked(path: Path) -> SqliteJournal:
    """Two runs that have ended, and one that waits for a person."""

    def breaks(briefing: object) -> None:
        raise OSError("no")

    async def scenario() -> None:
        async with Engine(path) as engine:
            for run, agent in (("first", lambda b: "x" * 10_000), ("second", lambda b: 1), ("waits", breaks)):
                work = Workflow("flow", [Step("a", agent)], limits={"errors_in_a_row": 1})
                await (await engine.start(work, "y" * 9_000 + run, run=run)).result()

    asyncio.run(scenario())
    return SqliteJournal(path)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            "UPDATE runs SET outcome = 'verified' WHERE run = 'waits'",
            "run 'waits' is listed as verified in workflow 'flow', but its events say waiting",
        ),
        ("UPDATE runs SET workflow = 'other' WHERE run = 'first'", "run 'first' is listed as done in workflow 'other'"),
        ("DELETE FROM escalations", "run 'waits' is listed with the open escalations none, but its events say E-1"),
        (
            "INSERT INTO escalations (run, escalation) VALUES (1, 'E-7')",
            "run 'first' is listed with the open escalations E-7, but its events say none",
        ),
        (
            "CREATE TABLE pruned (digest TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;"
            "INSERT INTO pruned SELECT digest FROM payloads; DELETE FROM payloads",
            "event 1 of run 'waits' names the large value .*, which is listed as pruned, but only runs that have ended are",
        ),
        (
            "CREATE TABLE pruned (digest TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;"
            "INSERT INTO pruned VALUES ('" + "0" * 64 + "')",
            "the large value 0{64} is listed as pruned, but no run that has ended names it",
        ),
        (
            # Its large value is still there: nothing is missing yet, but it could be taken away unnoticed.
            "CREATE TABLE pruned (digest TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;"
            "INSERT INTO pruned SELECT json_extract(body, '$.input_payload') FROM events JOIN runs ON runs.id = events.run "
            "WHERE runs.run = 'waits' AND events.seq = 1",
            "is listed as pruned, but no run that has ended names it",
        ),
        (
            "DELETE FROM events WHERE run = (SELECT id FROM runs WHERE run = 'second');"
            "DELETE FROM runs WHERE run = 'second'",
            "of .* events are missing: a run, or a part of one, was deleted",
        ),
        ("DELETE FROM runs WHERE run = 'first'", "1 of 3 runs are missing"),
        ("DELETE FROM runs WHERE run = 'waits'", "events belong to no run"),
    ],
    ids=[
        "outcome",
        "workflow",
        "hidden question",
        "invented question",
        "pruned",
        "pruned that never was",
        "pruned that is needed",
        "deleted",
        "hidden",
        "the last hidden",
    ],
)
def test_what_is_changed_beside_the_events_is_found(tmp_path: Path, change: str, problem: str) -> None:
    journal = worked(tmp_path / "journal.db")
    assert asyncio.run(verify_all(journal)) == 3
    apsw.Connection(str(tmp_path / "journal.db")).execute(change)
    with pytest.raises(JournalDamaged, match=problem):
        asyncio.run(verify_all(journal))
    asyncio.run(journal.close())


def test_the_head_of_a_journal_that_was_kept_elsewhere_finds_what_was_deleted(tmp_path: Path) -> None:
    journal = worked(tmp_path / "journal.db")
    head = asyncio.run(journal.head())
    asyncio.run(fill(journal))
    assert asyncio.run(verify_all(journal, head)) == 4
    assert asyncio.run(verify_all(journal, head.upper())) == 4
    for wrong in ("", "x", "12", "x:y", ":y", "3:"):
        with pytest.raises(JournalDamaged, match="is not the head of a journal"):
            asyncio.run(verify_all(journal, wrong))
    apsw.Connection(str(tmp_path / "journal.db")).execute(
        "DELETE FROM events WHERE run >= 3; DELETE FROM runs WHERE id >= 3"
    )
    assert asyncio.run(verify_all(journal)) == 2, "a journal without its end looks like one that is shorter"
    with pytest.raises(JournalDamaged, match=f"the first .* events of the journal give the head .*, not {head}"):
        asyncio.run(verify_all(journal, head))
    asyncio.run(journal.close())


@pytest.mark.parametrize("which", range(3))
def test_a_changed_byte_in_the_key_of_a_large_value_is_found_wherever_it_is(tmp_path: Path, which: int) -> None:
    """The key is in the table and in its index, and an event names it."""
    path, value = tmp_path / "journal.db", b"large" * 1000
    digest = sha256(value).hexdigest()

    async def fill_with_payload() -> None:
        journal = SqliteJournal(path)
        body = b'{"type":"x","log":"%s"}' % digest.encode()
        await journal.append(Append("r", 0, (body,), payloads={digest: value}))
        await journal.close()

    asyncio.run(fill_with_payload())
    data = bytearray(path.read_bytes())
    places = [at for at in range(len(data)) if data.startswith(digest.encode(), at)]
    assert len(places) == 3
    data[places[which]] ^= 0x01
    path.write_bytes(data)

    async def verified() -> None:
        journal = SqliteJournal(path)
        try:
            await verify_all(journal)
        finally:
            await journal.close()

    with pytest.raises(JournalDamaged):
        asyncio.run(verified())
