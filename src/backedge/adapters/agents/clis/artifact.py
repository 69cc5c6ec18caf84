"""The files that are part of what an attempt made: one digest of them, and where they changed."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from backedge.adapters.agents.workspace import NO_FILES, FileDigests, Snapshot, Workspace
from backedge.core.briefing import Briefing
from backedge.core.model import Change


class ArtifactFiles:
    """The files of one producer's artifact."""

    def __init__(self, folder: Path, state: Path, writes: Sequence[str] | None, digests: FileDigests | None) -> None:
        self._workspace = Workspace(folder, state, writes, digests)
        self._writes_nothing = writes is not None and not writes

    def before(self) -> Snapshot | None:
        return None if self._writes_nothing else self._workspace.snapshot(keep=True)

    def after(self, briefing: Briefing, before: Snapshot | None) -> tuple[str, tuple[Change, ...]]:
        """Their digest, and where they differ from before."""
        if self._writes_nothing:
            return NO_FILES, ()
        found = self._workspace.snapshot()
        if found is None:
            # Nothing tells which files count: an attempt that ran a program counts as changed.
            name = f"{briefing.run}\0{briefing.step}\0{briefing.attempt}"
            return sha256(name.encode("utf-8", "surrogatepass")).hexdigest(), ()
        return found.digest, self._workspace.changes(before, found) if before else ()
