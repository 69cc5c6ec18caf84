"""Undoes what attempts of a run changed in a workspace, as a rollback needs it: all of it, or nothing.

A file is restored only if it is as the last of these attempts left it. What somebody has edited since, or between two of
the attempts, is named instead. Everything may be done again after a crash: a file that is as it was before is done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from backedge.adapters.evidence.store import Before, ChangedFile, RunStore
from backedge.adapters.evidence.tree import Tree


@dataclass(frozen=True)
class UndoPlan:
    """What undoing some attempts means for the files as they are now."""

    before: Mapping[str, ChangedFile] = field(default_factory=dict)
    """How the files were before the first of the attempts, by name."""
    restore: Sequence[str] = ()
    """Those that are as the last attempt left them."""
    edited: Sequence[str] = ()
    """Those that somebody else has changed."""

    def kept(self, tree: Tree, store: RunStore) -> Before:
        """Where the contents are, as `restore` of `writes.py` needs it. `tree` is how the files are now."""
        files = {**tree.files, **{name: each.before for name, each in self.before.items() if each.before is not None}}
        made = [name for name, each in self.before.items() if each.before is None]
        found = {name: each.before for name, each in self.before.items() if each.before is not None}
        return Before(
            Tree({name: digest for name, digest in files.items() if name not in made}),
            {name: self.before[name].mode for name in found if self.before[name].mode},
            {name: digest[2:] for name, digest in found.items() if store.has(digest[2:])},
            {name: self.before[name].blob for name in found if self.before[name].blob},
        )


def undo_plan(attempts: Iterable[Mapping[str, ChangedFile]], tree: Tree) -> UndoPlan:
    """What undoing these attempts, the last one first, means for the files as they are now."""
    last: dict[str, ChangedFile] = {}
    first: dict[str, ChangedFile] = {}
    edited: set[str] = set()
    for changed in attempts:
        for name, each in changed.items():
            later = first.get(name)
            if each.shared or (later is not None and later.before != each.after):
                edited.add(name)
            last.setdefault(name, each)
            first[name] = each
    wanted = [name for name in first if tree.files.get(name) != first[name].before]
    edited = {name for name in wanted if name in edited or tree.files.get(name) != last[name].after}
    return UndoPlan(first, sorted(set(wanted) - edited), sorted(edited))
