"""The files of an attempt's artifact: their digest, and where they changed."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from backedge.adapters.agents.attempt_folder import AttemptFolder
from backedge.adapters.agents.file_digests import FileDigests
from backedge.adapters.agents.workspace import NO_FILES, Snapshot, Workspace
from backedge.core.briefing import Briefing
from backedge.core.model import Change


class ArtifactFiles:
    """The files of one producer's artifact. A judge has none."""

    def __init__(
        self, folder: Path, state: Path, writes: Sequence[str] | None, digests: FileDigests | None, judges: bool
    ) -> None:
        self._workspace = None if judges else Workspace(folder, state, writes, digests)
        self._writes_nothing = writes is not None and not writes

    def before(self) -> Snapshot | None:
        return None if self._workspace is None or self._writes_nothing else self._workspace.snapshot(keep=True)

    def after(
        self, briefing: Briefing, before: Snapshot | None, folder: AttemptFolder
    ) -> tuple[str | None, tuple[Change, ...]]:
        """Their digest, and where they differ from before. The difference itself goes to the attempt's folder."""
        if self._workspace is None:
            return None, ()
        if self._writes_nothing:
            return NO_FILES, ()
        found = self._workspace.snapshot()
        if found is None:
            # It is unknown which files belong to the artifact, so an attempt that ran a program counts as a change.
            name = f"{briefing.run}\0{briefing.step}\0{briefing.attempt}"
            return sha256(name.encode("utf-8", "surrogatepass")).hexdigest(), ()
        if before is None or before.files == found.files:
            return found.digest, ()
        folder.write(folder.files, self._workspace.difference(before, found))
        return found.digest, self._workspace.changes(before, found)
