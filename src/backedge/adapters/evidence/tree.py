"""All files of a workspace with their digests, in spite of whatever hides files from git.

A file counts if it was there when the run began, if the ignore rules of the start do not match it, or if it is protected.
Git is not asked whether a file changed: its index can be told not to look, and a filter can show it other content. The
time stamps that the file system keeps (ctime cannot be set) and the content itself decide.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

import msgspec

from backedge.adapters.agents.file_digests import FileDigests, Stamp, stamps_of
from backedge.adapters.agents.own_output import own_output
from backedge.adapters.agents.workspace import STATE_FOLDER
from backedge.adapters.evidence.ignore_rules import IgnoreRules, rules_of
from backedge.adapters.evidence.listing import listing
from backedge.adapters.evidence.names import name_of, path_of
from backedge.adapters.evidence.places import state_home
from backedge.adapters.evidence.stillness import FolderStamps, folders_hold, folders_of

_STORY = re.compile(r".*\.md|(?:.*/)?\.[^/]+\.md\.[0-9a-f.]+\.new", re.DOTALL)
"""Stories, and the drafts that replace them: another story may be written while an agent works."""


class Tree(msgspec.Struct, frozen=True, dict=True):
    """The files at one moment, by name: kind and hash of the content."""

    files: dict[str, str]
    """`f:` file, `x:` executable, `l:` link, `s:` neither file nor folder, `?:` cannot be read. Other permissions than that of
    the owner to execute are not part of it, as in git."""
    installed: tuple[str, ...] = ()
    """Folders of installed packages and Python environments. They are not part of the digest."""

    @cached_property
    def folders(self) -> frozenset[str]:
        """The folders in which files are; the top is empty."""
        return frozenset(name.rpartition("/")[0] for name in self.files)

    @cached_property
    def links(self) -> tuple[str, ...]:
        """The names of links."""
        return tuple(name for name, found in self.files.items() if found[0] == "l")

    @cached_property
    def digest(self) -> str:
        text = "".join([f"{name}\0{found}\0" for name, found in sorted(self.files.items())])
        return sha256(text.encode()).hexdigest()


def differing(a: Tree, b: Tree) -> list[str]:
    """The names of files that are not the same in both, in order."""
    return sorted({name for name, _ in a.files.items() ^ b.files.items()})


@dataclass(frozen=True, slots=True)
class Still:
    """A tree, and what shows without another look at everything which files have changed since. The lists are in the order of
    the tree."""

    tree: Tree
    known: Collection[str]
    paths: list[str]
    proofs: list[Stamp | None]
    """The states in which the files certainly have their digests."""
    seen: list[Stamp | None]
    """The states in which they were seen last."""
    folders: FolderStamps


class Trees:
    """Looks at the files of one workspace."""

    def __init__(
        self,
        folder: Path,
        state: Path,
        digests: FileDigests | None = None,
        rules: IgnoreRules | None = None,
        counts: Callable[[str], bool] = lambda _: False,
        stories: Path | None = None,
    ) -> None:
        """`rules` are those of the start, if the run has begun. `counts` says of a name whether the file counts although a
        rule matches it, see `Protected.counts`. Stories are not part of the work."""
        self._folder = os.path.realpath(folder)
        self._states = (".git", STATE_FOLDER, *_inside(self._folder, state, state_home(), *map(Path, own_output())))
        self._folders = tuple(f"{state}/" for state in self._states)
        self._stories = None if stories is None else _below(self._folder, stories)
        self._digests = digests or FileDigests()
        self._rules = rules
        self._counts_anyway = counts
        self._last: Still | None = None

    @property
    def rules(self) -> IgnoreRules:
        """The ignore rules that decide which files count: those of the first look, unless they were given."""
        if self._rules is None:
            self._rules = rules_of(Path(self._folder))
        return self._rules

    def now(self, known: Collection[str] = ()) -> Tree:
        """The files as they are now. `known` are names of files that count in any case: those of the start.

        Raises GitFailed if git listed the files at the start and does not answer any more.
        """
        again = self._looked_again(known)
        if again is not None:
            return again
        rules, began = self.rules, time.time_ns()
        with listing(self._folder, rules, self._skipped) as finish:
            wanted = {path_of(name) for name in (*known, *_tracked(rules))}
            digests = {path: self._digest(path) for path in wanted}
            found = finish()
        paths = found.files
        paths.update(path for path in found.ignored if self._counts(path))
        # Git never lists a file behind a link to a folder; of the other files it is not known yet.
        folders: dict[str, bool] = {"": True}
        paths.update(path for path in wanted - paths if not self._skipped(path) and self._is_inside(path, folders))
        digests.update({path: self._digest(path) for path in paths - wanted})
        # In order, since digests of trees are made from sorted names.
        files = dict(sorted((name_of(path), digest) for path in paths if (digest := digests[path]) is not None))
        tree = Tree(files, tuple(sorted(map(name_of, found.installed))))
        hidden = found.installed | found.ignored_folders
        folders_now = folders_of(self._folder, lambda path: path in hidden or self._skipped(path), paths, began)
        if folders_now is None:
            self._last = None
            return tree
        whole = [f"{self._folder}/{path_of(name)}" for name in files]
        proofs = list(map(self._digests.proof, whole, files.values()))
        self._last = Still(tree, known, whole, proofs, list(map(self._digests.stamp, whole)), folders_now)
        return tree

    def states(self, tree: Tree) -> dict[str, Stamp | None]:
        """The states in which the files of a tree were seen last."""
        last = self._last
        if last is not None and last.tree is tree:
            return dict(zip(tree.files, last.seen, strict=True))
        return {name: self._digests.stamp(f"{self._folder}/{path_of(name)}") for name in tree.files}

    def _looked_again(self, known: Collection[str]) -> Tree | None:
        """The tree, from the last one and the files that were changed in their places; None if that is not enough."""
        last = self._last
        if last is None or last.known is not known or not folders_hold(last.folders):
            return None
        now = stamps_of(last.paths)
        if now is None:
            return None
        files, proofs, seen = last.tree.files, list(last.proofs), list[Stamp | None](now)
        changed: dict[str, str] = {}
        if seen != proofs:
            for at, (name, path) in enumerate(zip(files, last.paths, strict=True)):
                if seen[at] == proofs[at]:
                    continue
                digest = self._digest(path[len(self._folder) + 1 :])
                if digest is None:
                    return None
                proofs[at], seen[at] = self._digests.proof(path, digest), self._digests.stamp(path)
                if digest != files[name]:
                    changed[name] = digest
        tree = Tree({**files, **changed}, last.tree.installed) if changed else last.tree
        self._last = Still(tree, known, last.paths, proofs, seen, last.folders)
        return tree

    def _digest(self, path: str) -> str | None:
        whole = f"{self._folder}/{path}"
        digest = self._digests.of(whole)
        if digest is None:
            try:
                mode = os.lstat(whole).st_mode
            except OSError:
                return None
            return None if stat.S_ISDIR(mode) else f"s:{stat.S_IFMT(mode):o}"
        return digest

    def _counts(self, path: str) -> bool:
        return self._counts_anyway(name_of(path)) and not self._skipped(path)

    def _is_inside(self, path: str, folders: dict[str, bool]) -> bool:
        """Whether a path leads only through folders: behind a link there are files of another place."""
        parent = path.rpartition("/")[0]
        known = folders.get(parent)
        if known is None:
            known = self._is_inside(parent, folders) and self._is_folder(parent)
            folders[parent] = known
        return known

    def _is_folder(self, path: str) -> bool:
        try:
            return stat.S_ISDIR(os.lstat(f"{self._folder}/{path}").st_mode)
        except OSError:
            return False

    def _skipped(self, path: str) -> bool:
        """The files of backedge and git are not part of the work."""
        if self._stories is not None and path.startswith(self._stories) and _STORY.fullmatch(path):
            return True
        return path.startswith(self._states) and f"{path}/".startswith(self._folders)


def links_in(folder: Path, tree: Tree) -> dict[str, str]:
    """The links among the files that lead to another place in the workspace, with the names of those places."""
    top = os.path.realpath(folder)
    links = {name: os.path.realpath(f"{top}/{path_of(name)}") for name in tree.links}
    return {name: name_of(to[len(top) + 1 :]) for name, to in links.items() if to.startswith(f"{top}/")}


def links_out(folder: Path, tree: Tree) -> list[str]:
    """The links among the files that lead out of the workspace: what is behind them is not part of the tree."""
    inside, top = links_in(folder, tree), os.path.realpath(folder)
    links = (name for name in tree.links if name not in inside)
    return sorted(name for name in links if os.path.realpath(f"{top}/{path_of(name)}") != top)


def links_to_uncounted(folder: Path, tree: Tree) -> list[str]:
    """The links among the files that lead to something in the workspace that is not part of the tree, such as what git ignores,
    or git's own folder: nobody would see it change, and it is not delivered."""
    top, found = os.path.realpath(folder), list[str]()
    for name, to in links_in(folder, tree).items():
        counted = to in tree.files or any(each.startswith(f"{to}/") for each in tree.files)
        known = any(f"{to}/".startswith(f"{root}/") for root in tree.installed)
        if not counted and not known and os.path.lexists(f"{top}/{path_of(to)}"):
            found.append(name)
    return sorted(found)


def _tracked(rules: IgnoreRules) -> list[str]:
    inner = ((place, _tracked(nested)) for place, nested in rules.nested.items())
    return [*rules.tracked, *(f"{place}/{name}" for place, names in inner for name in names)]


def _below(folder: str, inner: Path) -> str | None:
    """How the names of files in another folder begin; None if it is not in the workspace."""
    path = os.path.relpath(os.path.realpath(inner), folder)
    return None if path.partition("/")[0] == ".." else "" if path == "." else f"{path}/"


def _inside(folder: str, *states: Path) -> list[str]:
    """Folders with the state of backedge, and what it prints, as far as they are in the workspace."""
    found = (os.path.relpath(os.path.realpath(state), folder) for state in states)
    return [path for path in found if path != "." and path.partition("/")[0] != ".."]
