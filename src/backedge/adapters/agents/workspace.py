"""The files of an artifact: one digest of them all, and where they differ from before the attempt.

These are the files that `writes` names, else all files that git does not ignore. Links are not followed; nothing outside
the workspace is ever read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from difflib import unified_diff
from hashlib import sha256
from itertools import islice
from pathlib import Path

import msgspec

from backedge.adapters.agents.file_digests import FileDigests, FoundFiles, printable
from backedge.adapters.agents.git_tree import blobs
from backedge.adapters.agents.globs import Globs
from backedge.adapters.agents.own_output import own_output
from backedge.adapters.agents.regular_file import opened
from backedge.core.diff import changed_lines
from backedge.core.model import Change
from backedge.core.ready_types import make_ready

LARGEST = 1024 * 1024
"""Bytes of the largest text whose lines are compared."""
MOST_COMPARED = 200
"""Files whose lines are compared; others are only reported as changed."""
MOST_NAMED = 1_000
"""The most files that are reported, and whose contents are stored for the comparison."""
MOST_KEPT = 32 * 1024 * 1024
"""The most bytes of files unknown to git that are held in memory during an attempt."""
MOST_STORED = 2 * 1024 * 1024
"""The most bytes of them that are stored, to show the changes of an attempt that outlives backedge."""
MOST_SHOWN, LARGEST_SHOWN = 50, 100_000
"""How many files a diff for people has, and how many bytes each file and the whole diff may have."""
STATE_FOLDER = ".backedge"


class Snapshot(msgspec.Struct, frozen=True):
    """The files of a workspace at one moment, by their paths: kind and hash of the content."""

    files: dict[str, str]
    blobs: dict[str, str] = {}
    """The git objects of files that were as the index has them."""
    texts: dict[str, bytes] = {}
    """The contents of other files, within the limits above."""

    @property
    def digest(self) -> str:
        text = "".join([f"{name}\0{found}\0" for name, found in sorted(self.files.items())])
        return sha256(text.encode()).hexdigest()

    def stored(self, without_secrets: Callable[[bytes], bytes]) -> Snapshot:
        """The same for the disk: of the contents, as many as fit, the smallest first."""
        texts: dict[str, bytes] = {}
        room = MOST_STORED
        for name, text in sorted(self.texts.items(), key=lambda each: len(each[1])):
            room -= len(text)
            if room < 0:
                break
            texts[name] = without_secrets(text)
        return msgspec.structs.replace(self, texts=texts)


make_ready(Snapshot)


NO_FILES = Snapshot({}).digest
"""The digest of an artifact that has no files."""


class Workspace:
    """The files of one step's artifact."""

    def __init__(
        self, folder: Path, state: Path, writes: Sequence[str] | None = None, digests: FileDigests | None = None
    ) -> None:
        self._folder = folder.absolute()
        self._state = os.path.relpath(state.absolute(), self._folder).replace(os.sep, "/")
        real = os.path.realpath(self._folder)
        self._printed = frozenset(os.path.relpath(path, real).replace(os.sep, "/") for path in own_output())
        self._globs = None if writes is None else Globs(writes)
        self._digests = digests or FileDigests()

    def snapshot(self, keep: bool = False) -> Snapshot | None:
        """The files as they are now; None if it is unknown which files belong to the artifact. With `keep`, contents
        that git does not have are kept within limits, to compare lines later."""
        found = self._matching() if self._globs is not None else self._by_git()
        if found is None:
            return None
        files, blobs, others = found
        return Snapshot(files, blobs, self._kept(others) if keep else {})

    def _matching(self) -> FoundFiles:
        names = sorted(self._globs.files(self._folder, self._skipped)) if self._globs is not None else []
        read = {name: found for name in names if (found := self._digests.of(self._path(name))) is not None}
        return {printable(name): found for name, found in read.items()}, {}, list(read)

    def _by_git(self) -> FoundFiles | None:
        return self._digests.by_git(self._folder, self._state, self._skipped).files()

    def changes(self, before: Snapshot, after: Snapshot) -> tuple[Change, ...]:
        """Where the files differ. A change without lines: the whole file changed, is new or was removed."""
        differing = _differing(before, after)
        compared = [name for name in differing if name in before.files and name in after.files][:MOST_COMPARED]
        old = blobs(self._folder, (before.blobs[name] for name in compared if name in before.blobs), LARGEST)
        lines = {}
        for name in compared:
            first = before.texts.get(name, old.get(before.blobs.get(name, "")))
            second = self._text(name) if first is not None and after.files[name][0] in "fx" else None
            if first is not None and second is not None and b"\0" not in first and b"\0" not in second:
                lines[name] = changed_lines(first.decode("utf-8", "replace"), second.decode("utf-8", "replace"))
        return tuple(Change(name, lines.get(name, ())) for name in differing[:MOST_NAMED])

    def difference(self, before: Snapshot, after: Snapshot) -> bytes:
        """The same for people: a unified diff of the texts, within limits."""
        shown = _differing(before, after)[:MOST_SHOWN]
        old = blobs(self._folder, (before.blobs[name] for name in shown if name in before.blobs), LARGEST_SHOWN)
        parts: list[bytes] = []
        room = LARGEST_SHOWN
        for name in shown:
            first = before.texts.get(name, old.get(before.blobs.get(name, ""))) if name in before.files else b""
            second = self._text(name) if name in after.files else b""
            made = _unified(name, first, second) if first is not None and second is not None else b""
            if made and len(made) <= room:
                parts.append(made)
                room -= len(made)
        return b"".join(parts)

    def _kept(self, names: Iterable[str]) -> dict[str, bytes]:
        contents: dict[str, bytes] = {}
        room = MOST_KEPT
        for name in islice(names, MOST_NAMED):
            text = self._text(name)
            if text is not None and len(text) <= room:
                contents[printable(name)] = text
                room -= len(text)
        return contents

    def _text(self, name: str) -> bytes | None:
        """The content of a file; None if it is too large to compare."""
        try:
            with opened(self._path(name), follow=False) as file:
                text = file.read(LARGEST + 1)
        except OSError:
            return None
        return text if len(text) <= LARGEST else None

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}"

    def _skipped(self, name: str) -> bool:
        """The files of backedge and git are not part of the work."""
        first = name.partition("/")[0]
        is_state = name == self._state or name.startswith(f"{self._state}/")
        return first in (STATE_FOLDER, ".git") or is_state or name in self._printed


def _unified(name: str, first: bytes, second: bytes) -> bytes:
    """How a text changed; empty if it is not text, or too long to compare quickly."""
    if max(len(first), len(second)) > LARGEST_SHOWN or b"\0" in first or b"\0" in second:
        return b""
    old, new = (text.decode("utf-8", "replace").splitlines() for text in (first, second))
    safe = "".join(each if each.isprintable() else f"\\u{{{ord(each):x}}}" for each in name)
    names = f"a/{safe}" if first else "/dev/null", f"b/{safe}" if second else "/dev/null"
    return "".join(f"{line}\n" for line in unified_diff(old, new, *names, lineterm="")).encode()


def _differing(before: Snapshot, after: Snapshot) -> list[str]:
    names = sorted({**before.files, **after.files})
    return [name for name in names if before.files.get(name) != after.files.get(name)]
