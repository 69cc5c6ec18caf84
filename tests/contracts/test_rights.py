"""The journal and its folder are for their user only, unless somebody shares them."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from backedge.adapters.journals.sqlite import SqliteJournal
from backedge.ports import Append

NAMES = ("journal.db", "journal.db-wal", "journal.db-shm")


@pytest.fixture(params=[0o022, 0o002, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def modes(folder: Path) -> set[int]:
    """The rights of the files of a journal in this folder while it is in use."""

    async def scenario() -> set[int]:
        journal = SqliteJournal(folder / "journal.db")
        await journal.append(Append("r", len(await journal.read("r")), (b"{}",)))
        found = {mode(folder / name) for name in NAMES}
        await journal.close()
        return found

    return asyncio.run(scenario())


@pytest.mark.usefixtures("umask")
def test_the_journal_and_a_folder_that_is_made_for_it_are_for_their_user_only(tmp_path: Path) -> None:
    folder = tmp_path / "new" / ".backedge"
    assert modes(folder) == {0o600}
    assert mode(folder) == 0o700


@pytest.mark.usefixtures("umask")
def test_a_folder_that_exists_keeps_its_rights(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    assert modes(tmp_path) == {0o600}
    assert mode(tmp_path) == 0o755


def test_a_journal_that_exists_keeps_its_rights(tmp_path: Path) -> None:
    modes(tmp_path)
    (tmp_path / "journal.db").chmod(0o664)
    assert modes(tmp_path) == {0o664}


def test_in_a_folder_that_a_group_may_write_the_journal_is_for_the_group(tmp_path: Path, umask: int) -> None:
    tmp_path.chmod(0o2775)
    assert modes(tmp_path) == {0o660 & ~umask}


def test_below_a_folder_that_a_group_shares_the_new_folder_is_for_the_group(tmp_path: Path) -> None:
    tmp_path.chmod(0o2775)
    before = os.umask(0o002)
    try:
        assert modes(tmp_path / ".backedge") == {0o660}
    finally:
        os.umask(before)
    assert mode(tmp_path / ".backedge") & 0o777 == 0o770


def test_in_a_folder_that_everybody_may_write_the_journal_is_for_its_user_only(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    assert modes(tmp_path) == {0o600}
