"""The files of a folder that count, listed by git with the ignore rules of the start, or by a walk if git is missing."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from backedge.adapters.evidence.caches import (
    CACHE_RULES,
    ENVIRONMENTS,
    MARK,
    METADATA,
    PACKAGES,
    any_cached,
    cached,
    environments,
    searched,
)
from backedge.adapters.evidence.ignore_rules import IgnoreRules
from backedge.adapters.evidence.names import name_of
from backedge.adapters.evidence.private_git import GitQuestion, PrivateGit, private_git
from backedge.adapters.evidence.protected import is_collected


@dataclass(slots=True)
class Listing:
    """Paths relative to a folder."""

    files: set[str] = field(default_factory=set)
    ignored: set[str] = field(default_factory=set)
    """Files that a rule matches, in folders that no rule matches, and the metadata of packages in such folders."""
    installed: set[str] = field(default_factory=set)
    """Folders of installed packages and Python environments."""
    ignored_folders: set[str] = field(default_factory=set)
    """Folders that a rule matches as a whole, and in which nothing is looked for."""


@contextmanager
def listing(folder: str, rules: IgnoreRules, skipped: Callable[[str], bool]) -> Iterator[Callable[[], Listing]]:
    """Begin to list the files that are there now; call what it gives for the result. The caller can work meanwhile.

    The call raises GitFailed if git applied the rules before and now does not answer: without them, files that are
    none of the agent's would seem to be new.
    """
    if not rules.git:
        yield lambda: _walk(folder, skipped)
        return
    with private_git() as git:
        questions = _questions(git, folder, rules)
        yield lambda: _without_caches(_listed(git, folder, rules, questions), skipped)


def _without_caches(found: Listing, skipped: Callable[[str], bool]) -> Listing:
    # Git has already left out most of them: one look at all paths together is enough to see it.
    if any_cached(found.files):
        found.files = {path for path in found.files if not cached(path)}
    found.files = {path for path in found.files if not skipped(path)}
    for root in environments(found.files):
        found.installed.add(root)
        found.files = {path for path in found.files if not path.startswith(f"{root}/")}
    return found


def _questions(git: PrivateGit, folder: str, rules: IgnoreRules) -> tuple[GitQuestion, GitQuestion]:
    """What counts, and what the rules match: folders as one, else single files."""
    top = os.path.normpath(os.path.join(folder, rules.top))
    by = f"--exclude-from={git.write(rules.text)}"
    counted = git.ask(top, folder, "ls-files", "-z", "-o", by)
    return counted, git.ask(top, folder, "ls-files", "-z", "-o", "-i", "--directory", by)


def _listed(git: PrivateGit, folder: str, rules: IgnoreRules, questions: tuple[GitQuestion, GitQuestion]) -> Listing:
    found = Listing()
    for path in questions[0].answer():
        if path.endswith("/"):
            _add(found, path, _repository(git, folder, path, rules))
        else:
            found.files.add(path)
    _sort_out(found, folder, questions[1])
    return found


def _sort_out(found: Listing, folder: str, hidden: GitQuestion) -> None:
    """Look at what the rules match: packages are installed there, and single files may be protected."""
    for path in hidden.answer():
        if not path.endswith("/"):
            found.ignored.add(path)
            continue
        name = os.path.basename(path[:-1])
        if name.endswith(METADATA):
            found.ignored.update(f"{path}{each}" for each in _names(f"{folder}/{path}"))
        elif name == PACKAGES or os.path.lexists(f"{folder}/{path}{MARK}"):
            found.installed.add(path[:-1])
        elif all(map(searched, path[:-1].split("/"))):
            found.ignored.update(_collected(folder, path))
            continue
        found.ignored_folders.add(path[:-1])


def _collected(folder: str, inside: str) -> Iterator[str]:
    """The files in a folder that does not count, and below it, that pytest would load all the same."""
    left = [inside]
    while left:
        here = left.pop()
        for entry in _entries(f"{folder}/{here}"):
            if not entry.is_dir(follow_symlinks=False):
                if is_collected(name_of(entry.name)):
                    yield f"{here}{entry.name}"
            elif searched(entry.name) and not os.path.lexists(f"{entry.path}/{MARK}"):
                left.append(f"{here}{entry.name}/")


def _repository(git: PrivateGit, folder: str, path: str, rules: IgnoreRules) -> Listing:
    """A repository within this one: git names it as one folder, whose files have to be asked for."""
    inner = os.path.join(folder, path[:-1])
    own = rules.nested.get(name_of(path[:-1]))
    if own is not None:
        return _listed(git, inner, own, _questions(git, inner, own))
    # It is new: `git init` in an existing folder must neither hide its files nor reveal what was ignored there.
    only_caches = IgnoreRules(git=True, text=CACHE_RULES)
    found = _listed(git, inner, only_caches, _questions(git, inner, only_caches))
    top = os.path.normpath(os.path.join(folder, rules.top))
    place = os.path.relpath(inner, top)
    with private_git(rules.text) as names_only:
        nowhere = names_only.empty_folder()
        words = ("check-ignore", "-z", "--no-index", "--stdin")
        asked = names_only.ask(nowhere, nowhere, *words, given=[f"{place}/{each}" for each in sorted(found.files)])
        ignored = {each.removeprefix(f"{place}/") for each in asked.answer((0, 1))}
    found.files -= ignored
    found.ignored |= ignored
    return found


def _add(found: Listing, path: str, inner: Listing) -> None:
    found.files.update(f"{path}{each}" for each in inner.files)
    found.ignored.update(f"{path}{each}" for each in inner.ignored)
    found.installed.update(f"{path}{each}" for each in inner.installed)
    found.ignored_folders.update(f"{path}{each}" for each in inner.ignored_folders)


def _walk(folder: str, skipped: Callable[[str], bool]) -> Listing:
    found = Listing()
    found.files.update(_walked(folder, "", skipped, found.installed))
    return found


def _walked(folder: str, inside: str, skipped: Callable[[str], bool], installed: set[str]) -> Iterator[str]:
    entries = _entries(f"{folder}/{inside}")
    names = {entry.name for entry in entries}
    for entry in entries:
        path = f"{inside}{entry.name}"
        if not entry.is_dir(follow_symlinks=False):
            if not (cached(entry.name) or skipped(path)):
                yield path
        elif entry.name == PACKAGES or (entry.name in ENVIRONMENTS and os.path.lexists(f"{entry.path}/{MARK}")):
            installed.add(path)
        elif not (cached(entry.name) or skipped(path) or _built(entry, names)):
            yield from _walked(folder, f"{path}/", skipped, installed)
        elif cached(entry.name) and searched(entry.name) and not skipped(path):
            yield from _collected(folder, f"{path}/")


def _built(entry: os.DirEntry[str], beside: set[str]) -> bool:
    """Whether a folder is where Cargo builds. Without git, no ignore rule says so."""
    return entry.name == "target" and "Cargo.toml" in beside and os.path.lexists(f"{entry.path}/CACHEDIR.TAG")


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except OSError:
        return []  # deleted meanwhile, or not readable


def _names(folder: str) -> list[str]:
    return [entry.name for entry in _entries(folder) if not entry.is_dir(follow_symlinks=False)]
