"""How a workspace was when a run began, recorded once and the same after every crash."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from backedge.adapters.agents.file_digests import Stamp
from backedge.adapters.evidence.around import places_around
from backedge.adapters.evidence.behind import files_behind
from backedge.adapters.evidence.contents import content_at, hash_of, mode_at
from backedge.adapters.evidence.environment import fingerprint
from backedge.adapters.evidence.folder_looks import FolderLooks
from backedge.adapters.evidence.judge_files import files_outside
from backedge.adapters.evidence.names import path_of
from backedge.adapters.evidence.protected import Protected, Protects
from backedge.adapters.evidence.store import Base, Kept, RunStore
from backedge.adapters.evidence.told_tests import told_tests
from backedge.adapters.evidence.tree import Tree, Trees, links_in, links_out, links_to_uncounted


@dataclass(frozen=True, slots=True)
class Judging:
    """What the workflow file says about the judges of a workspace."""

    argvs: tuple[tuple[str, ...], ...] = ()
    protects: Protects = field(default_factory=Protects)
    named: tuple[str, ...] = ()
    """Other files that the workflow names, such as prompts."""
    stories: Path | None = None
    """The folder with the stories: backedge and people write them while agents work, so they are not judged."""

    @property
    def programs(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(argv[0] for argv in self.argvs if argv))


class RunStart:
    """The start of one run in one workspace, and the eyes that look at it with what held then."""

    def __init__(
        self, folder: Path, state: Path, judging: Judging, base: Base, looks: FolderLooks, digest: str
    ) -> None:
        """`digest` is that of the record of the start."""
        self._folder, self._judging, self._looks = folder, judging, looks
        self.base, self.digest = base, digest
        self.protected = _protected(folder, judging, base.tree, base.links, base.behind, base.told)
        self._trees = Trees(folder, state, looks.digests, base.rules, self.protected.counts, judging.stories)
        self._known = (*base.tree.files, *self.protected.judges)

    def tree(self) -> Tree:
        """The files as they are now. Those of the start and of the judges count whatever hides them."""
        return self._trees.now(self._known)

    def states(self, tree: Tree) -> dict[str, Stamp | None]:
        """The states in which the files of a tree were seen last."""
        return self._trees.states(tree)

    def environment(self, tree: Tree, env: Mapping[str, str]) -> dict[str, str]:
        """The environment as it is now. What a new link leads to is part of it, if it does not count as a file."""
        base = self.base.tree.files
        new = [name for name in links_to_uncounted(self._folder, tree) if base.get(name) != tree.files[name]]
        return _environment(self._folder, tree, self._judging, env, self._looks, new)


def begin(
    folder: Path, state: Path, store: RunStore, judging: Judging, env: Mapping[str, str], looks: FolderLooks
) -> RunStart:
    """The start of a run: recorded now, or before the crash."""
    base = store.base
    if base is None:
        base = _taken(folder, state, store, judging, env, looks)
        store.save_base(base)
    return RunStart(folder, state, judging, base, looks, store.base_digest)


def _taken(
    folder: Path, state: Path, store: RunStore, judging: Judging, env: Mapping[str, str], looks: FolderLooks
) -> Base:
    first = Protected(judging.protects, judging.argvs, folder, named=judging.named)
    trees = Trees(folder, state, looks.digests, counts=first.counts, stories=judging.stories)
    tree = trees.now(first.judges)
    links = links_in(folder, tree)
    top = os.path.realpath(folder)

    def read(name: str) -> bytes | None:
        return content_at(f"{top}/{path_of(name)}")

    behind = sorted(files_behind(first.judges, tree.files, read))
    told = sorted(told_tests(judging.argvs, tree.files, read))
    protected = _protected(folder, judging, tree, links, behind, told)
    kept = {name: each for name in tree.files if protected.kind(name) and (each := _kept(folder, name, tree, store))}
    return Base(
        tree, kept, _environment(folder, tree, judging, env, looks), trees.rules, links, tuple(behind), tuple(told)
    )


def _protected(
    folder: Path, judging: Judging, tree: Tree, links: Mapping[str, str], behind: Sequence[str], told: Sequence[str]
) -> Protected:
    named = (*judging.named, *behind)
    found = Protected(judging.protects, judging.argvs, folder, tree.files, links, named)
    found.add_tests(told)
    return found


def _kept(folder: Path, name: str, tree: Tree, store: RunStore) -> Kept | None:
    """Keep one protected file as the tree has it; None if it is not a file, or too large."""
    path = f"{os.path.realpath(folder)}/{path_of(name)}"
    content, mode = content_at(path), mode_at(path)
    if content is None or mode is None or hash_of(content) != tree.files[name][2:]:
        return None
    return Kept(store.put(content), mode)


def _environment(
    folder: Path,
    tree: Tree,
    judging: Judging,
    env: Mapping[str, str],
    looks: FolderLooks,
    links: Sequence[str] = (),
) -> dict[str, str]:
    roots = [*tree.installed, *links_out(folder, tree), *links]
    top = os.path.realpath(folder)
    outside = [*files_outside(judging.argvs, top), *places_around(top, judging.argvs, env)]
    return fingerprint(folder, judging.programs, env, roots, looks, outside)
