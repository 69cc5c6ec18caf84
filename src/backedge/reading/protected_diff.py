"""How a protected file differs from the start of the run, from what the run keeps outside the workspace."""

from __future__ import annotations

from collections.abc import Iterable

from backedge.adapters.evidence.names import path_of
from backedge.adapters.evidence.patch import Version, patch_of
from backedge.adapters.evidence.places import state_home
from backedge.adapters.evidence.store import RunStore, StoreDamaged
from backedge.analytics.changes import ProtectedDiff
from backedge.core.evidence.values import ProtectedFile
from backedge.core.text import clean
from backedge.project import Project, secrets_in

WIDEST = 300
_MODES = {"x": "100755", "l": "120000"}
_FILE = "100644"
_HEAD = ("diff --git ", "index ")
"""Lines of a patch that say nothing to people. A line of a file begins with a blank, a plus or a minus."""


class RunDiffs:
    """The differences of one run's protected files."""

    def __init__(self, project: Project, run: str) -> None:
        self._project, self._run, self._secrets = project, run, secrets_in(project, run)

    def all_of(self, changed: Iterable[ProtectedFile]) -> dict[str, ProtectedDiff]:
        """The differences by the ids of the changes, such as P-1."""
        return {each.name: self.of(each) for each in changed}

    def of(self, changed: ProtectedFile) -> ProtectedDiff:
        store = RunStore(state_home(), self._project.journal, self._run, changed.workspace)
        try:
            base = store.base
            if base is None:
                return ProtectedDiff(changed.file, (), "the files of the start are no longer kept")
            if changed.file not in base.tree.files and changed.digest[1:2] != ":":
                return ProtectedDiff(changed.file, (), "it is part of what the judge runs with: look at it yourself")
            before, after = base.tree.files.get(changed.file, ""), changed.digest
            patch = patch_of(path_of(changed.file), _version(store, before), _version(store, after))
        except StoreDamaged:
            return ProtectedDiff(changed.file, (), "its content was not kept")
        if b"\nGIT binary patch\n" in patch:
            return ProtectedDiff(changed.file, (), "it is not text, or very long")
        lines = self._secrets.text(_text(patch)).splitlines()
        return ProtectedDiff(changed.file, tuple(line[:WIDEST] for line in lines if not line.startswith(_HEAD)))


def _version(store: RunStore, digest: str) -> Version | None:
    """A file as a tree names it: a letter for its kind, and the digest of its content."""
    if not digest:
        return None
    return Version(store.get(digest[2:]), _MODES.get(digest[0], _FILE))


def _text(patch: bytes) -> str:
    return clean(patch.decode("utf-8", "replace"))
