"""Copies a journal with all its large values, as it is at one moment, while other processes go on writing."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import TypeVar

import apsw

from backedge.adapters.journals.private_files import private_file, private_folder
from backedge.adapters.journals.sqlite_errors import BUSY_TIMEOUT, StorageError, translated
from backedge.adapters.journals.sqlite_format import APPLICATION_ID
from backedge.core.errors import JournalDamaged, JournalUnavailable

T = TypeVar("T")
ABANDONED = 3600.0
"""Seconds after which nobody is writing a draft any more."""


def copy_journal(source: Path, target: Path, check: Callable[[Path], T]) -> T:
    """Copy a journal to a new file that gets its name only when `check` has accepted it and it is on the disk. The source is
    only read, and the copy is one file that can be read from anywhere. Returns what `check` returned.

    Raises a JournalError if the source is not a journal, or if there is a file of that name already.
    """
    _refuse_existing(target)
    try:
        with _draft(target) as draft:
            _copy(source, draft)
            found = check(draft)
            _make_one_file(draft)
            _flush(draft)
            _name(draft, target)
    except StorageError as error:
        raise translated(error, str(source)) from error
    except OSError as error:
        raise JournalUnavailable(f"cannot write {target}: {error.strerror}; choose another place") from error
    return found


def _copy(source: Path, draft: Path) -> None:
    connection = apsw.Connection(os.path.abspath(source), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        connection.set_busy_timeout(int(BUSY_TIMEOUT * 1000))
        if connection.execute("PRAGMA application_id").get != APPLICATION_ID:
            raise JournalDamaged(f"{source} is not a journal of backedge: choose another file")
        connection.execute("VACUUM INTO ?", (os.fspath(draft),))
    finally:
        connection.close()


def _make_one_file(draft: Path) -> None:
    """Leave no log beside it, and need none: a backup may be read where nothing can be written."""
    connection = apsw.Connection(os.fspath(draft))
    try:
        connection.execute("PRAGMA journal_mode = DELETE")
    finally:
        connection.close()


@contextmanager
def _draft(target: Path) -> Iterator[Path]:
    """A file beside the target that is gone afterwards."""
    private_folder(target.parent)
    _remove_old_drafts(target.parent)
    draft = target.with_name(f".{target.name}.{token_hex(4)}.draft")
    private_file(draft)
    try:
        yield draft
    finally:
        for ending in ("", "-wal", "-shm"):
            with suppress(OSError):
                draft.with_name(draft.name + ending).unlink()


def _remove_old_drafts(folder: Path) -> None:
    """Remove what a killed backup left behind. One that is being written is changed all the time."""
    for path in folder.glob(".*.draft*"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > ABANDONED:
                path.unlink()


def _flush(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _name(draft: Path, target: Path) -> None:
    """Give the draft its name, unless another process was quicker."""
    try:
        os.link(draft, target)
    except FileExistsError:
        _refuse_existing(target)
    except OSError:  # this file system has no hard links
        _refuse_existing(target)
        os.rename(draft, target)
    _flush(target.parent)


def _refuse_existing(target: Path) -> None:
    if os.path.lexists(target):
        raise JournalUnavailable(
            f"{target} exists already and is not overwritten: choose another name, or move it away"
        )
