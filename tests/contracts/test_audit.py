"""The hash chain finds what was changed behind the journal's back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import apsw
import pytest

from backedge.adapters.journals.audit import verify, verify_all
from backedge.adapters.journals.memory import MemoryJournal
from backedge.adapters.journals.sqlite import SqliteJournal
from backedge.core.chain import genesis, link
from backedge.core.errors import JournalDamaged
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
    journal.close()


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
