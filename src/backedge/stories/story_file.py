"""A story file brought up to date: what the journal owns is set, what people own stays, nothing is ever half written."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from backedge.stories.rules.front_matter import FrontMatter, parse_story
from backedge.stories.rules.front_matter_reader import StoryFileError

PATIENCE = 10
"""How often a file is read again that an editor is just writing."""
MOST_TRIES = 500
"""How often a file is written again that somebody else has just saved."""
_EXCHANGE = 2


def with_journal_fields(
    story: FrontMatter, ours: Mapping[str, Any], before: Mapping[str, Any] | None, notes: Sequence[str] = ()
) -> tuple[str, list[str]]:
    """The text of a story with our fields and notes, and which of our fields a person had changed.

    `before` is what we wrote last: what differs from that was changed by hand, and is put back. None if we have written
    nothing yet: what stands there then is what the story was brought with."""
    touched = [name for name in ours if before.get(name) != story.values.get(name)] if before is not None else []
    text = story.changed(ours)
    for note in notes:
        # A crash may have come between the story and what we remember of it.
        if note.strip() not in text.replace("\r\n", "\n"):
            text = _appended(text, note, story.newline)
    return text, touched


def _appended(text: str, note: str, newline: str) -> str:
    gap = "" if text.endswith(newline * 2) else newline if text.endswith("\n") else newline * 2
    return text + gap + note.replace("\n", newline)


def rewrite(path: Path, file: str, change: Callable[[FrontMatter], str]) -> bool:
    """Change a story file by a function of its contents. Whoever saves it meanwhile loses nothing: what they saved is
    taken, and changed instead. Returns whether anything was to be changed. Raises StoryFileError and OSError."""
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
    raise StoryFileError(file, 1, 1, "is being changed all the time: stop that, and try again")


def _replaced(path: Path, old: bytes, new: bytes) -> bool:
    """Put a new version in the place of the old one; False, with nothing lost, if the old one was not there any more."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
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
            # It was saved in the last moment: what was saved goes back to its place, unless it was saved once more.
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
    """The call that exchanges two files; None where there is none."""
    if not sys.platform.startswith("linux"):
        return None
    import ctypes  # it takes its time, and only those need it who write

    with suppress(OSError, AttributeError):
        return ctypes.CDLL(None, use_errno=True).renameat2
    return None


def _exchanged(one: Path, other: Path) -> bool:
    """Exchange two files in one step; False where that cannot be done."""
    call = _renameat2()
    at_folder = -100
    return call is not None and call(at_folder, os.fsencode(one), at_folder, os.fsencode(other), _EXCHANGE) == 0
