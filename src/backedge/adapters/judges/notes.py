"""What a step may leave behind that changes nothing: notes. They are no part of what is judged.

A reviewer may only look, and so may a step with `writes: []`. But many write down what they found or did, and a file that is neither code, nor a test, nor
configuration, and that nobody else made, changes nothing that is judged. It stays a note as long as nobody else edits it.
So does data that tests write each time they run, if the `keeps` of their judge names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from backedge.adapters.agents.globs import Globs
from backedge.adapters.evidence.names import path_of
from backedge.adapters.evidence.protected import CODE, Protected
from backedge.adapters.evidence.store import RunStore
from backedge.adapters.evidence.tree import Tree

_RUNS = re.compile(
    rf"{CODE.pattern}|.*\.(?:py[cdo]|so(?:\.\d+)*|pth|node|wasm|dll|dylib|jar|class|sh|bash|zsh|fish|pl|pm|lua|sql|mk|cmake|r|jl)",
    re.I,
)
"""Files that programs load or run."""
_PLAIN = "f"
"""How the digest of an ordinary file begins; that of a link or a program begins otherwise."""


class Notes:
    """The notes of all steps of a run that only look."""

    def __init__(self, store: RunStore, protected: Protected) -> None:
        self._store, self._protected = store, protected
        self._notes = store.notes

    def among(self, names: Iterable[str], before: Tree, after: Tree, writes: Sequence[str] = ()) -> list[str]:
        """Those of the files changed by such a step that are notes: new ones, its own, or what its `writes` names."""
        declared = Globs(writes)
        return [
            name
            for name in names
            if self._protected.kind(name) is None
            and (declared.match(path_of(name)) or self._is_note(name, before.files.get(name), after.files.get(name)))
        ]

    def _is_note(self, name: str, before: str | None, after: str | None) -> bool:
        is_own = before is None or self._notes.get(name) == before
        return is_own and (after is None or after.startswith(_PLAIN)) and _RUNS.fullmatch(path_of(name)) is None

    def data_of_tests(self, names: Iterable[str], base: Tree, now: Tree) -> list[str]:
        """Those of the protected files that a judge keeps whose new content needs no answer: data, there when the run began,
        and changed since then by judges alone. What was deleted or edited by somebody else stays a question."""
        return [
            name
            for name in names
            if self._protected.kind(name) == "test"
            and _RUNS.fullmatch(path_of(name)) is None
            and base.files.get(name, "").startswith(_PLAIN)
            and (now.files.get(name) == base.files[name] or self.has(name, now.files.get(name)))
        ]

    def has(self, name: str, found: str | None) -> bool:
        """Whether a file is as it was left."""
        return found is not None and self._notes.get(name) == found

    def keep(self, names: Iterable[str], after: Tree) -> None:
        """Remember notes as they were left."""
        left = {name: after.files.get(name, "") for name in names}
        if left.items() <= self._notes.items():
            return
        self._notes = {name: digest for name, digest in {**self._notes, **left}.items() if digest}
        self._store.save_notes(self._notes)

    def without(self, tree: Tree) -> Tree:
        """The files without the notes that are as they were left."""
        if not self._notes:
            return tree
        return Tree({name: found for name, found in tree.files.items() if not self.has(name, found)})
