"""What is kept before an attempt, so that its changes can be undone."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from backedge.adapters.agents.git_tree import ask
from backedge.adapters.agents.globs import Globs
from backedge.adapters.evidence.contents import blob_of, content_at, hash_of, mode_at
from backedge.adapters.evidence.names import name_of, path_of
from backedge.adapters.evidence.store import Before, RunStore
from backedge.adapters.evidence.tree import Tree

MOST_KEPT = 64 * 1024 * 1024
"""The most bytes of files that an attempt may change and that git does not have, for each run."""
FEW = 100
"""How many files are read, rather than asking git which of them differ from its index."""


class KeptContents:
    """The contents of a workspace's files that would be missed. Each is read once: all attempts of a run share this."""

    def __init__(self, folder: Path, store: RunStore) -> None:
        self._folder = os.path.realpath(folder)
        self._store = store
        self._objects: dict[str, str] = {}
        """Git's names of contents, by our hashes."""
        self._kept: set[str] = set()
        """Hashes of contents in the store."""
        self._assumed: dict[str, str] = {}
        """Git's names of contents that git takes for unchanged. They are compared with our hashes before they are used."""
        self._room = MOST_KEPT

    def before(self, tree: Tree, globs: Sequence[str]) -> Before:
        """Keep what git does not have exactly as it is on the disk. Of files that the globs match, which the attempt may
        change, only as much as there is room for, and without a look at what git takes for unchanged."""
        allowed, tracked = Globs(globs), self._tracked()
        modes, kept, objects = {}, {}, {}
        inside: list[str] = []
        for name, found in tree.files.items():
            path = path_of(name)
            if allowed.match(path):
                inside.append(name)
                continue
            mode = mode_at(f"{self._folder}/{path}")
            if mode is None or found[0] not in "fxl":
                continue
            modes[name] = mode
            if self._git_has(name, found[2:], tracked):
                objects[name] = tracked[name]
            elif found[2:] in self._kept or self._keep(path, found[2:]):
                kept[name] = found[2:]
        if globs:
            self._keep_inside(tree, inside, tracked)
        return Before(tree, modes, kept, objects)

    def _keep_inside(self, tree: Tree, names: Sequence[str], tracked: dict[str, str]) -> None:
        """Know where the contents of files are that the attempt may change."""
        unknown = [name for name in names if tree.files[name][0] in "fxl" and not self._is_known(tree.files[name][2:])]
        same = set(unknown) & tracked.keys() - self._touched() if len(unknown) > FEW else set[str]()
        contents: dict[str, bytes] = {}
        for name in unknown:
            hashed = tree.files[name][2:]
            if name in same:
                self._assumed[hashed] = tracked[name]
            elif self._store.has(hashed):
                self._kept.add(hashed)
            elif hashed not in contents and not self._git_has(name, hashed, tracked) and self._room > 0:
                content = self._content(path_of(name), hashed)
                if content is not None:
                    contents[hashed] = content
                    self._room -= len(content)
        self._store.put_all(list(contents.values()))
        self._kept |= contents.keys()

    def _is_known(self, hashed: str) -> bool:
        return hashed in self._kept or hashed in self._assumed or hashed in self._objects

    def _touched(self) -> set[str]:
        """The files that git takes for changed."""
        listing = ask(Path(self._folder), "ls-files", "-z", "-m") or b""
        return {name_of(os.fsdecode(path)) for path in listing.split(b"\0")[:-1]}

    def with_sources(self, before: Before, names: Iterable[str]) -> Before:
        """What was kept before an attempt, with where the contents of some files are that it could change."""
        tracked: dict[str, str] | None = None
        kept, blobs, modes = dict(before.kept), dict(before.blobs), dict(before.modes)
        for name in names:
            found = before.tree.files.get(name, "")
            if found[:1] not in ("f", "x", "l") or name in kept or name in blobs:
                continue
            hashed = found[2:]
            blob = self._objects.get(hashed) or self._assumed.get(hashed)
            if self._store.has(hashed):
                kept[name] = hashed
            elif blob is not None:
                blobs[name] = blob
            else:
                tracked = self._tracked() if tracked is None else tracked
                blobs |= {name: tracked[name]} if name in tracked else {}
            modes.setdefault(name, _mode(f"{self._folder}/{path_of(name)}", found[0]))
        return Before(before.tree, modes, kept, blobs)

    def _git_has(self, name: str, hashed: str, tracked: dict[str, str]) -> bool:
        if name not in tracked:
            return False
        if hashed not in self._objects:
            content = content_at(f"{self._folder}/{path_of(name)}")
            if content is None or hash_of(content) != hashed:
                return False
            self._objects[hashed] = blob_of(content)
        return self._objects[hashed] == tracked[name]

    def _keep(self, path: str, hashed: str) -> bool:
        content = self._content(path, hashed)
        if content is None:
            return False
        self._store.put(content)
        self._kept.add(hashed)
        return True

    def _content(self, path: str, hashed: str) -> bytes | None:
        """The content of a file; None if it is too large, or was changed meanwhile."""
        content = content_at(f"{self._folder}/{path}")
        return content if content is not None and hash_of(content) == hashed else None

    def _tracked(self) -> dict[str, str]:
        """The objects that git's index names. An index may lie: contents are compared before use."""
        listing = ask(Path(self._folder), "ls-files", "-z", "-s") or b""
        found = {}
        for entry in listing.split(b"\0")[:-1]:
            head, _, path = entry.partition(b"\t")
            found[name_of(os.fsdecode(path))] = head.split()[1].decode()
        return found


def _mode(path: str, kind: str) -> int:
    """The mode of a file before: that of the file now if it is still of this kind, else the usual one."""
    now, usual = mode_at(path), _USUAL[kind]
    if now is None or stat.S_IFMT(now) != stat.S_IFMT(usual) or kind == "l":
        return usual
    return now | 0o111 if kind == "x" else now & ~0o111


_USUAL = {"f": 0o100644, "x": 0o100755, "l": 0o120777}
