"""One digest for all files of a folder of installed packages, and one for a program.

Files are compared by what the file system says about them, which is fast: nobody can set ctime back. Small files with which
tools begin (programs, announcements of plugins) are compared by content, so that installing the same again changes nothing.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import time
from collections.abc import Collection, Iterator
from hashlib import sha256
from typing import NamedTuple

from backedge.adapters.agents.file_digests import FileDigests, Stamp, stamp_of, stamps_of
from backedge.adapters.evidence.caches import ENTRY_POINTS, METADATA, PACKAGES, cached

_TRANSIENT = frozenset(
    {
        *(".cache", ".vite", ".vite-temp", ".vitest", ".vitest-cache", ".lock"),
        *(".yarn-state.yml", ".modules.yaml"),
    }
)
"""Files and folders that tools write while they only run."""
_PROGRAMS = frozenset({"bin", ".bin", "Scripts"})
_VERSIONED = re.compile(r"-[^-/]+(?=\.(?:dist|egg)-info/)")
_SMALL = 1024 * 1024
_SETTLED = 100_000_000
"""Nanoseconds after which a file or folder that changes again certainly gets another time stamp."""
_UNKNOWN: Stamp = (sys.maxsize, 0, 0, 0, 0)
"""The state of a folder that could not be looked at: too young to be remembered."""


class _Seen(NamedTuple):
    """What a look saw. It holds while no file or folder has another state: a new name changes that of its folder."""

    paths: list[str]
    states: list[Stamp]
    digest: str


class FolderLooks:
    """Looks at folders outside the tree, and remembers them: the next look asks only whether anything changed."""

    def __init__(self, digests: FileDigests | None = None) -> None:
        self.digests = digests or FileDigests()
        self._seen: dict[tuple[str, str, tuple[str, ...]], _Seen] = {}

    def at(self, root: str, leave_out: Collection[str] = ()) -> str:
        """A digest of all files below a folder that is followed if it is a link, or of one file. Folders in it with some names
        can be left out."""
        real = os.path.realpath(root)
        if not os.path.isdir(real):
            return _digest(real, [self._line("", root, _lstat(real))])
        key = root, real, tuple(leave_out)
        seen = self._seen.get(key)
        if seen is not None and stamps_of(seen.paths) == seen.states:
            return seen.digest
        began, states = time.time_ns(), dict[str, Stamp]()
        digest = _digest(real, sorted(self._lines(root, leave_out, states)))
        if max(max(state[:2]) for state in states.values()) < began - _SETTLED:
            self._seen[key] = _Seen(list(states), list(states.values()), digest)
        return digest

    def program(self, path: str) -> str:
        """Which file a program is."""
        real = os.path.realpath(path)
        return self.named(path, self._line("", real, _lstat(real)))

    def named(self, path: str, line: str = "") -> str:
        """Which file a program is that is compared elsewhere."""
        return sha256(f"{path}\0{line}".encode("utf-8", "surrogateescape")).hexdigest()

    def _lines(self, root: str, leave_out: Collection[str], states: dict[str, Stamp]) -> Iterator[str]:
        """A line for each file. What was looked at goes to `states`."""
        start = len(root) + 1
        folders = [(root, False)]
        while folders:
            folder, in_metadata = folders.pop()
            has_programs = folder != root and os.path.basename(folder) in _PROGRAMS
            try:
                states[f"{folder}/."] = stamp_of(os.lstat(f"{folder}/."))
                with os.scandir(folder) as entries:
                    for entry in entries:
                        name = entry.name
                        if name in _TRANSIENT:
                            continue
                        if entry.is_dir(follow_symlinks=False):
                            is_cache = cached(name) and name != PACKAGES
                            if not is_cache and name not in leave_out:
                                folders.append((entry.path, in_metadata or name.endswith(METADATA)))
                        elif not in_metadata or name == ENTRY_POINTS:
                            found = entry.stat(follow_symlinks=False)
                            states[entry.path] = stamp_of(found)
                            if in_metadata:  # the rest of it says nothing that a program obeys
                                yield f"{_VERSIONED.sub('', entry.path[start:])}\0{self.digests.of(entry.path)}"
                                continue
                            yield self._line(
                                entry.path[start:], entry.path, found, has_programs or _begins_python(name)
                            )
            except OSError:
                # Removed meanwhile, or not readable: not readable for a judge either. Next time it is looked at again.
                states[folder] = _UNKNOWN

    def _line(self, path: str, whole: str, found: os.stat_result | None, by_content: bool = False) -> str:
        if found is None:
            return f"{path}\0"
        if stat.S_ISLNK(found.st_mode):
            return f"{path}\0{_target(whole)}"
        # Installers share files between projects by hard links, and each new link moves ctime: the content decides.
        if found.st_nlink > 1 or (by_content and found.st_size < _SMALL):
            return f"{path}\0{self.digests.of(whole)}"
        return f"{path}\0{found.st_mode:o} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino}"


def _digest(real: str, lines: list[str]) -> str:
    text = f"{real}{chr(10).join(lines)}"
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _begins_python(name: str) -> bool:
    """Whether Python runs a file of this name when it begins."""
    return name.endswith(".pth") or (name.startswith("__editable__") and name.endswith(".py"))


def _lstat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _target(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
