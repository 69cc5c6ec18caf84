"""Writes a story file: sets the fields that the journal owns, keeps what people own, and never leaves half a file."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from backedge.stories.left_over import draft_name
from backedge.stories.rules.front_matter import FrontMatter, parse_story
from backedge.stories.rules.front_matter_reader import StoryFileError

PATIENCE = 10
"""How often to read a file again that an editor may be writing."""
MOST_TRIES = 500
"""How often to try again if another program has just saved the file."""
_EXCHANGE = 2


def with_journal_fields(
    story: FrontMatter, ours: Mapping[str, Any], before: Mapping[str, Any] | None, notes: Sequence[str] = ()
) -> tuple[str, list[str]]:
    """The text of a story with the journal's fields and notes, and which of these fields a person had changed.

    `before` has the fields that were last written. A field that differs was changed by hand, and is restored. Before the
    first write, `before` is None, and the file has the original fields."""
    known = story.values
    touched = (
        [name for name in ours if known.get(name) not in (before.get(name), ours[name])] if before is not None else []
    )
    text = story.changed(ours)
    for note in notes:
        # After a crash, the file may already have a note that the record does not know.
        if note.strip() not in text.replace("\r\n", "\n"):
            text = _appended(text, note, story.newline)
    return text, touched


def _appended(text: str, note: str, newline: str) -> str:
    gap = "" if text.endswith(newline * 2) else newline if text.endswith("\n") else newline * 2
    return text + gap + note.replace("\n", newline)


def rewrite(path: Path, file: str, change: Callable[[FrontMatter], str]) -> bool:
    """Change a story file with a function of its contents. If another program saves the file in the meantime, nothing is
    lost: the change is applied to the saved version. Returns whether anything changed. Raises StoryFileError and OSError."""
    patience = PATIENCE
    for _ in range(MOST_TRIES):
        data = path.read_bytes()
        try:
            text = change(parse_story(data, file)).encode("utf-8")
        except StoryFileError:
            patience -= 1
            if not patience:
                raise
            time.sleep(0.02)  # an editor may be in the middle of saving it
            continue
        if text == data:
            return False
        if _replaced(path, data, text):
            return True
    raise StoryFileError(file, 1, 1, "another program keeps changing it: stop that program and try again")


def _replaced(path: Path, old: bytes, new: bytes) -> bool:
    """Replace the old version with the new one. If the file has changed in the meantime, keep it and return False."""
    draft = path.with_name(draft_name(path.name, old, new))
    try:
        with draft.open("wb") as file:
            file.write(new)
            os.fchmod(file.fileno(), path.stat().st_mode & 0o7777)
            file.flush()
            os.fsync(file.fileno())
        if path.read_bytes() != old:
            return False
        exchanged = _exchanged(draft, path)
        if not exchanged:
            draft.replace(path)
        _synced(path.parent)
        if exchanged and draft.read_bytes() != old:
            # It was saved at the last moment: restore that version, unless it was saved once more.
            if path.read_bytes() == new:
                draft.replace(path)
            return False
    finally:
        draft.unlink(missing_ok=True)
    return True


def _synced(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@cache
def _renameat2() -> Any:
    """The system call that exchanges two files; None if the system does not have it."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes  # slow to import, and only needed for writing

    with suppress(OSError, AttributeError):
        return ctypes.CDLL(None, use_errno=True).renameat2
    return None


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two files atomically; False if that is not possible."""
    call = _renameat2()
    at_folder = -100
    return call is not None and call(at_folder, os.fsencode(one), at_folder, os.fsencode(other), _EXCHANGE) == 0
