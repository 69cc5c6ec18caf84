"""What protected files are compared with: as somebody approved them, else as they were at the start."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from backedge.adapters.evidence.protected import Protected
from backedge.adapters.evidence.store import Kept
from backedge.adapters.evidence.tree import Tree
from backedge.adapters.judges.runs import Difference
from backedge.core.evidence.values import FileChange


@dataclass(frozen=True)
class ReferenceFiles:
    """The protected files as they should be, by what the tree has for them."""

    protected: Protected
    base: Mapping[str, str]
    """All files of the start."""
    approved: Mapping[str, str] = field(default_factory=dict)
    """Changes that somebody approved, or made as their owner; empty for a file that was removed."""
    failing: Mapping[str, str] = field(default_factory=dict)
    """Files of tests as they were when they failed. One that is younger than the start has no other reference."""

    def wanted(self, name: str) -> str | None:
        """What a file should be; None if it should not be there."""
        if name in self.approved:
            return self.approved[name] or None
        return self.base.get(name) or self.failing.get(name)

    def differences(self, tree: Tree) -> dict[str, Difference]:
        """The protected files that are not as they should be."""
        since_start = {name for name, _ in self.base.items() ^ tree.files.items()}
        found = {}
        for name in sorted({*since_start, *self.approved, *self.failing}):
            kind, wanted, now = self.protected.kind(name), self.wanted(name), tree.files.get(name)
            if kind is not None and wanted != now:
                found[name] = Difference(kind, change_of(wanted, now), now or "")
        return found

    def others_as_failed(self, names: Iterable[str], tree: Tree) -> dict[str, str]:
        """Of these files of failing tests, those that were neither as they should be nor as they are when they failed."""
        found = {name: self.failing[name] for name in names if name in self.failing}
        return {name: was for name, was in found.items() if was not in (self.wanted(name), tree.files.get(name))}


def change_of(before: str | None, now: str | None) -> FileChange:
    return "added" if before is None else "removed" if now is None else "changed"


def text_of(kept: Kept) -> str:
    """What a tree has for a content that was kept."""
    kind = kept.mode & 0o170000
    letter = "l" if kind == 0o120000 else "x" if kept.mode & 0o100 else "f"
    return f"{letter}:{kept.digest}"
