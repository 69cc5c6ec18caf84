"""Whether files were added to folders or taken away since a moment: the folders' own time stamps say so."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from backedge.adapters.evidence.caches import cached, searched

MOST_FOLDERS = 5_000
"""With more folders, listing the files again is not slower."""
_SETTLED = 100_000_000
"""Nanoseconds after which a folder that changes again certainly gets another time stamp."""


class Names(NamedTuple):
    """What is in a folder."""

    folders: tuple[str, ...]
    files: tuple[str, ...]
    """Links too, and whatever else is not a folder."""


FolderStamps = dict[str, tuple[int, int, int]]
"""The state of folders by path: it changes whenever a file in them is added, removed or renamed."""


def folders_of(top: str, skipped: Callable[[str], bool], files: Iterable[str], moment: int) -> FolderStamps | None:
    """The folders below `top`, except skipped ones and caches, and those of some files wherever they are. None if one of
    them was changed shortly before a moment, in nanoseconds, or later: then its time stamp shows nothing."""
    found: FolderStamps = {}
    places = {"", *(path.rpartition("/")[0] for path in files)}
    open_ends = ["", *places]
    while open_ends:
        path = open_ends.pop()
        whole = f"{top}/{path}" if path else top
        if whole in found:
            continue
        stamp = _stamp(whole)
        if stamp is None or max(stamp[:2]) > moment - _SETTLED or len(found) > MOST_FOLDERS:
            return None
        found[whole] = stamp
        try:
            with os.scandir(whole) as entries:
                inner = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return None
        below = (f"{path}/{name}" if path else name for name in inner if searched(name) or not cached(name))
        open_ends += [each for each in below if not skipped(each)]
    return found


def folders_hold(folders: FolderStamps) -> bool:
    """Whether nothing was added to these folders or taken away."""
    return all(_stamp(path) == stamp for path, stamp in folders.items())


class FolderNames:
    """The names in folders, read again only if a folder's time stamps say that something was added or taken away."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[tuple[int, int, int], Names]] = {}

    def of(self, path: str) -> Names:
        """The names in a folder now. None at all if it was deleted meanwhile, or cannot be read."""
        stamp, known = _stamp(path), self._known.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        began = time.time_ns()
        try:
            with os.scandir(path) as entries:
                found = list(entries)
        except OSError:
            return Names((), ())
        folders = [entry.name for entry in found if entry.is_dir(follow_symlinks=False)]
        files = {entry.name for entry in found}.difference(folders)
        names = Names(tuple(sorted(folders)), tuple(sorted(files)))
        if stamp is not None and max(stamp[:2]) < began - _SETTLED:
            self._known[path] = stamp, names
        return names


def _stamp(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_ino
