"""Digests of files, computed again only if a file may have changed.

A file is known to be unchanged by its time stamps, or by git, which compares it with its index. One git process answers
for all files, so that no file is examined twice.
"""

from __future__ import annotations

import os
import stat
import threading
import time
from collections.abc import Callable, Iterable
from hashlib import sha256
from operator import attrgetter
from pathlib import Path

from backedge.adapters.agents.git_tree import GitFolder, GitIndex, GitTree
from backedge.adapters.agents.regular_file import opened

_SETTLED = 100_000_000
"""Nanoseconds after which a file that changes again certainly gets another time stamp."""

Stamp = tuple[int, int, int, int, int]
"""What the file system says about the state of a file; ctime is part of it, which cannot be set."""
FoundFiles = tuple[dict[str, str], dict[str, str], list[str]]
"""Digests by printable path, the git objects of files that are as the index has them, and the paths of the others."""


class FileDigests:
    """The digests of files; all steps of a process share them."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Stamp, str]] = {}
        self._stamps: dict[str, Stamp] = {}
        self._git: dict[tuple[str, str], GitDigests] = {}

    def of(self, path: str) -> str | None:
        """Kind and hash of a file: `f` file, `x` executable, `l` link; None for anything else."""
        try:
            found = os.lstat(path)
            stamp = self._stamps[path] = stamp_of(found)
            if stat.S_ISLNK(found.st_mode):
                return f"l:{sha256(os.fsencode(os.readlink(path))).hexdigest()}"
            if not stat.S_ISREG(found.st_mode):
                return None
            known = self._known.get(path)
            if known is not None and known[0] == stamp:
                return known[1]
            digest = f"{'x' if found.st_mode & stat.S_IXUSR else 'f'}:{_hash(path)}"
        except FileNotFoundError:
            self._stamps.pop(path, None)
            return None
        except OSError as error:
            return f"?:{error.errno}"
        # The clock of the file system ticks slowly: a file as young as this may change again within the same tick.
        if time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns) > _SETTLED:
            self._known[path] = stamp, digest
        return digest

    def stamp(self, path: str) -> Stamp | None:
        """The state in which a file was last seen here; None if it was not there."""
        return self._stamps.get(path)

    def proof(self, path: str, digest: str) -> Stamp | None:
        """The state that proves that a file still has an earlier result of `of`; None if only its content does."""
        known = self._known.get(path)
        return known[0] if known is not None and known[1] == digest else None

    def unchanged_since(self, path: str, moment: int) -> bool:
        """Whether the last digest of a file is of content that was there well before a moment, in nanoseconds."""
        known = self._known.get(path)
        return known is not None and max(known[0][:2]) < moment - _SETTLED

    def by_git(self, folder: Path, state: str, skipped: Callable[[str], bool]) -> GitDigests:
        """The files of a folder that git follows; `skipped` leaves out those of the state folder."""
        return self._git.setdefault((os.fspath(folder), state), GitDigests(folder, skipped, self))


class GitDigests:
    """The files of one folder that git follows, with their digests."""

    def __init__(self, folder: Path, skipped: Callable[[str], bool], digests: FileDigests) -> None:
        self._folder, self._skipped, self._digests = folder, skipped, digests
        self._git = GitFolder(folder)
        self._lock = threading.Lock()
        self._index: GitIndex | None = None
        self._clean: dict[str, str] = {}
        """Digests of files as the index has them: they hold for as long as git says so, and this is the index."""
        self._blobs: dict[str, str] = {}
        """Their git objects."""
        self._unread: set[str] = set()
        """Files of the index whose digests are not known yet."""

    def files(self) -> FoundFiles | None:
        """The files as they are now; None if git does not follow the folder."""
        asked_at = time.time_ns()
        tree = self._git.tree()
        if tree is None:
            return None
        with self._lock:
            if tree.index is not self._index:
                self._index, self._clean, self._blobs = tree.index, {}, {}
                self._unread = {path for path in tree.index.files if not self._skipped(path)}
            files, blobs, unread = dict(self._clean), dict(self._blobs), set(self._unread)
        for path in tree.touched:
            files.pop(printable(path), None)
            blobs.pop(printable(path), None)
        others = self._read(tree, asked_at, unread, files, blobs)
        return files, blobs, others

    def _read(
        self, tree: GitTree, asked_at: int, unread: set[str], files: dict[str, str], blobs: dict[str, str]
    ) -> list[str]:
        """Add the files whose digests git does not confirm, and remember those that it confirms from now on."""
        clean, objects, others = {}, {}, []
        looked_at = unread.union(tree.touched, tree.others)
        for path in sorted(path for path in looked_at if not self._skipped(path)):
            whole = f"{self._folder}/{path}"
            digest = self._digests.of(whole)
            if digest is None:
                continue
            name = printable(path)
            files[name] = digest
            blob = "" if path in tree.touched else tree.index.files.get(path, "")
            if not blob:
                others.append(path)
                continue
            blobs[name] = blob
            if self._digests.unchanged_since(whole, asked_at):
                clean[path], objects[name] = digest, blob
        with self._lock:
            if self._index is tree.index:
                self._clean.update({printable(path): digest for path, digest in clean.items()})
                self._blobs.update(objects)
                self._unread.difference_update(clean)
        return others


def printable(name: str) -> str:
    return os.fsencode(name).decode("utf-8", "backslashreplace")


_STATE: Callable[[os.stat_result], Stamp] = attrgetter("st_ctime_ns", "st_mtime_ns", "st_size", "st_ino", "st_mode")


def stamp_of(state: os.stat_result) -> Stamp:
    return _STATE(state)


def stamps_of(paths: Iterable[str]) -> list[Stamp] | None:
    """The states of many files, fast; None if one of them is not there any more."""
    try:
        return list(map(_STATE, map(os.lstat, paths)))
    except OSError:
        return None


def _hash(path: str) -> str:
    digest = sha256()
    with opened(path, follow=False) as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
