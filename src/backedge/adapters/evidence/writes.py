"""Holds a step to its `writes`: names what it changed elsewhere, and undoes that without losing anything.

Undoing is exact: content, permissions, links, removed and new files. What is undone is kept first, as a patch and, where
a patch cannot hold it, as the files themselves. A file whose old content is nowhere to be found is left alone and named.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from backedge.adapters.agents.git_tree import blobs
from backedge.adapters.agents.globs import Globs
from backedge.adapters.evidence.contents import LARGEST, content_at, hash_of, mode_at, version_of
from backedge.adapters.evidence.names import path_of
from backedge.adapters.evidence.patch import patch_of
from backedge.adapters.evidence.store import Before, RunStore, StoreDamaged
from backedge.adapters.evidence.tree import Tree, differing
from backedge.adapters.evidence.undoing import OldContent, Undoing

PATCH = "undone.diff"
ASIDE = "undone"
"""The folder for what a patch cannot hold, beside the patch."""


@dataclass(frozen=True, slots=True)
class Undone:
    """What became of changes outside `writes`."""

    files: tuple[str, ...]
    """As they were before."""
    left: tuple[str, ...] = ()
    """Still changed: nothing has their old content."""
    patch: Path | None = None
    aside: Path | None = None
    """A folder with what the patch does not hold, if there was something."""


def outside(before: Tree, after: Tree, globs: Sequence[str], others: Iterable[Sequence[str]] = ()) -> list[str]:
    """The changed files that neither the step's globs match, nor those of other steps that were running."""
    allowed = [Globs(globs), *(Globs(each) for each in others)]
    return [name for name in differing(before, after) if not any(each.match(path_of(name)) for each in allowed)]


def restore(
    folder: Path, names: Collection[str], before: Before, after: Tree, store: RunStore, attempt_folder: Path
) -> Undone:
    """Make some files what they were before an attempt. The change goes into the attempt's folder as a patch.

    May be called again after a crash: it continues with what still differs, and writes a second patch.
    """
    top = os.path.realpath(folder)
    by_hash = {found[2:]: name for name, found in after.files.items() if found[0] in "fxl"}
    sources = {name: _source(top, name, before, by_hash, store) for name in names if name in before.tree.files}
    sources = {**sources, **_from_git(top, [name for name, found in sources.items() if found is None], before)}
    left = tuple(sorted(name for name in names if name in before.tree.files and sources[name] is None))
    undone = sorted(set(names) - set(left))
    undoing = Undoing(top, _unused(attempt_folder / ASIDE))
    patch = _unused(attempt_folder / PATCH)
    draft = patch.with_name(f".{patch.name}")
    with draft.open("wb") as file:
        for name in undone:
            content = content_at(f"{top}/{path_of(name)}") if name in after.files else None
            if name in after.files and content is None:
                undoing.too_large.add(name)
                continue
            source = sources.get(name)
            old = (
                version_of(source.content, before.modes.get(name, 0)) if source and source.content is not None else None
            )
            new = version_of(content, mode_at(f"{top}/{path_of(name)}") or 0) if content is not None else None
            file.write(patch_of(path_of(name), old, new))
    draft.replace(patch)
    undoing.undo({name: sources.get(name) for name in undone})
    return Undone(tuple(undone), left, patch, undoing.aside if undoing.aside.exists() else None)


def _source(top: str, name: str, before: Before, by_hash: Mapping[str, str], store: RunStore) -> OldContent | None:
    """Where the old content of a file is: in the store, or in a file that has it now, such as one that was moved."""
    wanted, mode = before.tree.files[name], before.modes.get(name)
    mode = mode if mode is not None else (0o100755 if wanted[0] == "x" else 0o100644)
    if wanted[0] not in "fxl":
        return None
    if name in before.kept:
        try:
            return OldContent(mode, store.get(before.kept[name]))
        except StoreDamaged:
            pass  # another copy may be found
    if wanted[2:] not in by_hash:
        return None
    path = f"{top}/{path_of(by_hash[wanted[2:]])}"
    content = content_at(path)
    if content is None:
        return OldContent(mode, None, path)
    return OldContent(mode, content) if hash_of(content) == wanted[2:] else None


def _from_git(top: str, names: Sequence[str], before: Before) -> dict[str, OldContent | None]:
    """The old contents that git has. They count only if they are the ones that were there."""
    found = blobs(Path(top), (before.blobs[name] for name in names if name in before.blobs), LARGEST)
    contents = {name: found.get(before.blobs.get(name, "")) for name in names}
    return {
        name: OldContent(before.modes.get(name, 0o100644), content)
        if content is not None and hash_of(content) == before.tree.files[name][2:]
        else None
        for name, content in contents.items()
    }


def _unused(path: Path) -> Path:
    """The path, or one with a number if a restore before a crash has used it."""
    number, found = 2, path
    while os.path.lexists(found):
        found, number = path.with_name(f"{path.stem}-{number}{path.suffix}"), number + 1
    return found
