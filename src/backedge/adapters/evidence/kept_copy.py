"""A copy of a workspace that is kept and brought up to date for the next judge, for machines without overlays.

A file is copied again when its own state changed or that of its copy: the last change of its state (ctime) is a time that
programs cannot set. Files are never linked: what a judge writes must not reach the workspace.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from backedge.adapters.agents.file_digests import Stamp, stamp_of
from backedge.adapters.evidence.room_changes import Content, RoomChanges, files_below, heads, same_file
from backedge.core.ready_types import make_ready

_SETTLED = 100_000_000
"""Nanoseconds after which a file that changes again certainly gets another time stamp."""

Stamps = dict[bytes, tuple[Stamp, Stamp, bool]]


make_ready(Stamps)
"""The state of each file and that of its copy, by path, and whether these states prove that they are the same."""


class KeptCopy:
    """The copy of one workspace in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.files = folder / "files"
        self._record = folder / "stamps"

    def sync(self, workspace: Path, left_out: Callable[[bytes], bool]) -> None:
        """Make the copy like the workspace, without what is left out."""
        known = self._stamps()
        # Until it is complete, nothing says that a file is the same: a crash costs one full copy.
        self._record.unlink(missing_ok=True)
        self.files.mkdir(parents=True, exist_ok=True)
        walk = _Walk(known, left_out, time.time_ns() - _SETTLED)
        walk.folder(os.fsencode(workspace), os.fsencode(self.files), b"")
        self._save(walk.stamps)

    def sources(self) -> dict[bytes, Stamp]:
        """The state that each file of the workspace had when it was copied. Files that were restored since are left out."""
        return {path: source for path, (source, _, _) in self._stamps().items()}

    def is_touched(self, path: bytes) -> bool:
        """Whether a file is there that is not as the last sync left it."""
        try:
            found = stamp_of(os.lstat(os.fsencode(self.files) + b"/" + path))
        except OSError:
            return False
        known = self._stamps().get(path)
        return known is None or known[1] != found

    def forget(self, paths: Collection[bytes]) -> None:
        """These files are about to differ from the workspace, with everything that is in their place or on the way to
        them: the next sync copies them."""
        replaced = {head for path in paths for head in (path, *heads(path))}
        below = tuple(path + b"/" for path in paths)
        if paths:
            stamps = self._stamps().items()
            self._save({path: each for path, each in stamps if path not in replaced and not path.startswith(below)})

    def changes(
        self,
        workspace: Path,
        restored: Mapping[bytes, tuple[Content, Stamp]],
        left_out: Callable[[bytes], bool],
    ) -> RoomChanges:
        """What differs from the last sync and from the files that were restored since."""
        known, found = self._stamps(), RoomChanges()
        missing = {*known, *restored}
        root, original = os.fsencode(self.files), os.fsencode(workspace)
        for path, state in files_below(root, b"", left_out):
            missing.discard(path)
            if path in restored:
                expected, stamp = restored[path]
                if stamp_of(state) != stamp and not same_file(root + b"/" + path, expected):
                    found.changed.add(path)
            elif path not in known:
                found.made.add(path)
            elif stamp_of(state) != known[path][1] and not _still_same(root, original, path, known[path][0]):
                found.changed.add(path)
        found.changed |= missing
        return found

    def _stamps(self) -> Stamps:
        try:
            return msgspec.msgpack.decode(self._record.read_bytes(), type=Stamps)
        except (OSError, msgspec.DecodeError):
            return {}

    def _save(self, stamps: Stamps) -> None:
        draft = self._record.with_name("stamps.new")
        draft.write_bytes(msgspec.msgpack.encode(stamps))
        draft.replace(self._record)


class _Walk:
    """One walk through the workspace and its copy."""

    def __init__(self, known: Stamps, left_out: Callable[[bytes], bool], settled: int) -> None:
        self._known, self._left_out, self._settled = known, left_out, settled
        self.stamps: Stamps = {}

    def folder(self, source: bytes, target: bytes, inside: bytes) -> None:
        there = {entry.name: entry for entry in os.scandir(target)}
        try:
            entries = list(os.scandir(source))
        except OSError:
            entries = []  # removed meanwhile, or not readable: then a judge cannot read it either
        for entry in entries:
            path = inside + b"/" + entry.name if inside else entry.name
            if self._left_out(path):
                continue
            try:
                state = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            other = there.get(entry.name)
            copy = target + b"/" + entry.name
            if stat.S_ISDIR(state.st_mode):
                if other is None or not other.is_dir(follow_symlinks=False):
                    _remove(copy, other)
                    os.mkdir(copy)
                if os.stat(copy).st_mode != state.st_mode | 0o700:
                    os.chmod(copy, stat.S_IMODE(state.st_mode) | 0o700)
                self.folder(entry.path, copy, path)
            elif stat.S_ISREG(state.st_mode) or stat.S_ISLNK(state.st_mode):
                if not self._file(entry.path, state, copy, other, path):
                    continue
            else:
                continue  # a socket, a pipe or a device: it cannot be copied
            there.pop(entry.name, None)
        for name, gone in there.items():
            _remove(target + b"/" + name, gone)

    def _file(
        self, source: bytes, state: os.stat_result, copy: bytes, other: os.DirEntry[bytes] | None, path: bytes
    ) -> bool:
        """Copy a file unless the copy is the same; False if there is nothing to copy after all."""
        stamp = stamp_of(state)
        known = self._known.get(path)
        if other is not None and known == (stamp, stamp_of(other.stat(follow_symlinks=False)), True):
            self.stamps[path] = known
            return True
        _remove(copy, other)
        try:
            if stat.S_ISLNK(state.st_mode):
                os.symlink(os.readlink(source), copy)
            else:
                _copy(source, copy, state)
            after = stamp_of(os.lstat(source))
        except (FileNotFoundError, PermissionError):
            _remove(copy, None)
            return False
        # The clock of the file system ticks slowly: a file as young as this may change again within the same tick.
        proven = state.st_ctime_ns < self._settled and after == stamp
        self.stamps[path] = stamp, stamp_of(os.lstat(copy)), proven
        return True


def remove_tree(path: Path) -> None:
    """Remove a file or folder, whatever rights were taken from it. An overlay's own folder has none at all."""
    try:
        state = path.lstat()
        if not stat.S_ISDIR(state.st_mode):
            path.unlink()
            return
        if state.st_mode & 0o700 != 0o700:
            path.chmod(0o700)
        for entry in list(os.scandir(path)):
            if entry.is_dir(follow_symlinks=False):
                remove_tree(Path(entry.path))
            else:
                os.unlink(entry.path)
        path.rmdir()
    except FileNotFoundError:
        pass  # another process removed it


def _still_same(root: bytes, original: bytes, path: bytes, stamp: Stamp) -> bool:
    """Whether a file that was touched has the same content. Only the workspace can tell, if it is still as it was."""
    source = original + b"/" + path
    with suppress(OSError):
        state = os.lstat(source)
        return stamp_of(state) == stamp and same_file(root + b"/" + path, (source, state.st_mode))
    return False


def _copy(source: bytes, copy: bytes, state: os.stat_result) -> None:
    flags = os.O_RDONLY | os.O_NOFOLLOW
    with open(os.open(source, flags), "rb") as file, open(copy, "xb") as made:
        shutil.copyfileobj(file, made, 1 << 20)
        os.fchmod(made.fileno(), stat.S_IMODE(state.st_mode))
    os.utime(copy, ns=(state.st_atime_ns, state.st_mtime_ns))


def _remove(path: bytes, entry: os.DirEntry[bytes] | None) -> None:
    if entry is not None and entry.is_dir(follow_symlinks=False):
        remove_tree(Path(os.fsdecode(path)))
    else:
        with suppress(FileNotFoundError):
            os.unlink(path)
