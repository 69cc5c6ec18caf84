"""What a program changed in its room: read from the upper layer of an overlay, or found by comparing a copy."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

CACHE_FOLDERS = frozenset(
    {
        *(b"__pycache__", b".pytest_cache", b".mypy_cache", b".ruff_cache", b".hypothesis", b".tox", b".nox"),
        *(b".cache", b".vite", b".vite-temp", b".nyc_output", b".gradle", b".turbo"),
    }
)
CACHE_FILES = (b".pyc", b".pyo", b".coverage", b".eslintcache", b".tsbuildinfo", b".stylelintcache")

Content = tuple[bytes, int]
"""A file with some content, and the mode that belongs to it."""


@dataclass(slots=True)
class RoomChanges:
    """Files by their paths relative to the workspace."""

    changed: set[bytes] = field(default_factory=set)
    """Files of the workspace that were changed, replaced or removed."""
    made: set[bytes] = field(default_factory=set)


def is_cache(path: bytes) -> bool:
    """Whether a tool keeps a file only to be faster next time."""
    return path.endswith(CACHE_FILES) or not CACHE_FOLDERS.isdisjoint(path.split(b"/"))


def same_file(path: bytes, expected: Content) -> bool:
    """Whether a file has the expected kind and content, and can be executed if that one can."""
    source, mode = expected
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            return stat.S_ISLNK(mode) and os.readlink(path) == _target(source)
        executable = found.st_mode & stat.S_IXUSR == mode & stat.S_IXUSR
        if not (stat.S_ISREG(found.st_mode) and not stat.S_ISLNK(mode) and executable):
            return False
        if found.st_size != os.stat(source).st_size:
            return False
        with open(path, "rb") as one, open(source, "rb") as other:
            while chunk := one.read(1 << 20):
                if chunk != other.read(1 << 20):
                    return False
    except OSError:
        return False  # it cannot be read any more, or something else is there by now
    return True


class LayerReader:
    """Reads the upper layer of an overlay: what the program wrote, and marks for what it removed."""

    def __init__(
        self,
        restored: Mapping[bytes, Content],
        removed: frozenset[bytes],
        left_out: Callable[[bytes], bool],
    ) -> None:
        self._restored, self._removed, self._left_out = restored, removed, left_out
        self._ours = {head for path in restored for head in heads(path)}
        """Folders that restoring may have put in the place of something else."""
        self.found = RoomChanges()

    def read(self, upper: bytes, lower: bytes, inside: bytes = b"") -> None:
        """Add what one layer says; `inside` is where it lies in the workspace."""
        self._folder(upper, lower if _kind(lower) == stat.S_IFDIR else None, inside)
        if not inside:
            gone = {path for path in self._restored if not os.path.lexists(os.path.join(upper, path))}
            self.found.changed |= gone

    def _folder(self, upper: bytes, lower: bytes | None, inside: bytes) -> None:
        """`lower` is the folder below this one; None if there is none, or something else."""
        seen = set()
        for entry in os.scandir(upper):
            seen.add(entry.name)
            path = inside + b"/" + entry.name if inside else entry.name
            if self._left_out(path):
                continue
            below = os.path.join(lower, entry.name) if lower is not None else None
            found = entry.stat(follow_symlinks=False)
            if stat.S_ISCHR(found.st_mode) and found.st_rdev == 0:
                self._was_removed(below, path)
            elif stat.S_ISDIR(found.st_mode):
                self._is_folder(entry.path, below, path)
            else:
                self._is_file(entry.path, below, path)
        if lower is not None and _is_opaque(upper):
            for entry in os.scandir(lower):
                if entry.name not in seen:
                    self._was_removed(entry.path, inside + b"/" + entry.name if inside else entry.name)

    def _is_folder(self, upper: bytes, lower: bytes | None, path: bytes) -> None:
        kind = _kind(lower) if lower is not None else 0
        if kind not in (0, stat.S_IFDIR) and path not in self._ours and path not in self._removed:
            self.found.changed.add(path)
        _make_readable(upper)
        self._folder(upper, lower if kind == stat.S_IFDIR else None, path)

    def _is_file(self, upper: bytes, lower: bytes | None, path: bytes) -> None:
        expected = self._restored.get(path)
        kind = _kind(lower) if lower is not None else 0
        if expected is None and lower is not None and kind and path not in self._removed:
            if kind == stat.S_IFDIR:
                self._was_removed(lower, path)
                self.found.made.add(path)
                return
            expected = lower, os.lstat(lower).st_mode
        if expected is None:
            self.found.made.add(path)
        elif not same_file(upper, expected):
            self.found.changed.add(path)

    def _was_removed(self, lower: bytes | None, path: bytes) -> None:
        if lower is None or self._left_out(path) or path in self._removed:
            return
        if _kind(lower) != stat.S_IFDIR:
            if path not in self._ours:
                self.found.changed.add(path)
            return
        with suppress(OSError):
            for entry in os.scandir(lower):
                self._was_removed(entry.path, path + b"/" + entry.name)


def heads(path: bytes) -> Iterator[bytes]:
    """The folders on the way to a path."""
    while b"/" in path:
        path = path.rpartition(b"/")[0]
        yield path


def files_below(
    folder: bytes, inside: bytes, left_out: Callable[[bytes], bool]
) -> Iterator[tuple[bytes, os.stat_result]]:
    """Every file below a folder, with its state, but not what is left out. Links are not followed."""
    with suppress(OSError):
        for entry in os.scandir(folder):
            path = inside + b"/" + entry.name if inside else entry.name
            if left_out(path):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from files_below(entry.path, path, left_out)
            else:
                yield path, entry.stat(follow_symlinks=False)


def _target(source: bytes) -> bytes:
    """The target of a link: of a real one, or kept as the content of a file."""
    if stat.S_ISLNK(os.lstat(source).st_mode):
        return os.readlink(source)
    with open(source, "rb") as file:
        return file.read()


def _kind(path: bytes) -> int:
    try:
        return stat.S_IFMT(os.lstat(path).st_mode)
    except OSError:
        return 0


def _is_opaque(folder: bytes) -> bool:
    for name in ("trusted.overlay.opaque", "user.overlay.opaque"):
        with suppress(OSError):
            if os.getxattr(folder, name, follow_symlinks=False) == b"y":
                return True
    return False


def _make_readable(folder: bytes) -> None:
    """The program may have taken our right to read its folder."""
    with suppress(OSError):
        mode = os.lstat(folder).st_mode
        if mode & 0o700 != 0o700:
            os.chmod(folder, stat.S_IMODE(mode) | 0o700)
