"""What is kept before an attempt, so that changes outside its `writes` can be undone."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from backedge.adapters.agents.git_tree import ask
from backedge.adapters.agents.globs import Globs
from backedge.adapters.evidence.contents import blob_of, content_at, hash_of, mode_at
from backedge.adapters.evidence.names import name_of, path_of
from backedge.adapters.evidence.store import Before, RunStore
from backedge.adapters.evidence.tree import Tree


class KeptContents:
    """The contents of a workspace's files that would be missed. Each is read once: all attempts of a run share this."""

    def __init__(self, folder: Path, store: RunStore) -> None:
        self._folder = os.path.realpath(folder)
        self._store = store
        self._objects: dict[str, str] = {}
        """Git's names of contents, by our hashes."""
        self._kept: set[str] = set()
        """Hashes of contents in the store."""

    def before(self, tree: Tree, globs: Sequence[str]) -> Before:
        """Keep what git does not have exactly as it is on the disk, except files that the globs match."""
        allowed, tracked = Globs(globs), self._tracked()
        modes, kept, objects = {}, {}, {}
        for name, found in tree.files.items():
            path = path_of(name)
            mode = None if allowed.match(path) else mode_at(f"{self._folder}/{path}")
            if mode is None or found[0] not in "fxl":
                continue
            modes[name] = mode
            if self._git_has(name, found[2:], tracked):
                objects[name] = tracked[name]
            elif found[2:] in self._kept or self._keep(path, found[2:]):
                kept[name] = found[2:]
        return Before(tree, modes, kept, objects)

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
        content = content_at(f"{self._folder}/{path}")
        if content is None or hash_of(content) != hashed:
            return False  # too large, or changed meanwhile
        self._store.put(content)
        self._kept.add(hashed)
        return True

    def _tracked(self) -> dict[str, str]:
        """The objects that git's index names. An index may lie: contents are compared before use."""
        listing = ask(Path(self._folder), "ls-files", "-z", "-s") or b""
        found = {}
        for entry in listing.split(b"\0")[:-1]:
            head, _, path = entry.partition(b"\t")
            found[name_of(os.fsdecode(path))] = head.split()[1].decode()
        return found
