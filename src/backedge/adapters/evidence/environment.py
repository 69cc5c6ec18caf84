"""What judges run with beside the workspace's files: installed packages, programs, git's own settings, and settings around
the workspace.

Packages are compared by what the file system says about their files, which is fast: nobody can set ctime back. Small files
with which tools begin (programs, announcements of plugins) are compared by content, so that installing the same again
changes nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from backedge.adapters.agents.file_digests import FileDigests
from backedge.adapters.agents.git_tree import common_folder, repository_of
from backedge.adapters.evidence.around import settings_around
from backedge.adapters.evidence.caches import ENTRY_POINTS, ENVIRONMENTS, MARK, METADATA, PACKAGES, cached
from backedge.adapters.evidence.git_settings import git_settings
from backedge.adapters.evidence.names import name_of, path_of
from backedge.adapters.evidence.protected import TEXT_TOOLS

USUAL = (
    "python",
    "python3",
    "pytest",
    "node",
    "npm",
    "npx",
    "make",
    "sh",
    "bash",
    "git",
    "go",
    "cargo",
    "ruff",
    "mypy",
)
"""Programs that scripts of judges start without naming them in the command line."""
_TRANSIENT = frozenset(
    {
        *(".cache", ".vite", ".vite-temp", ".vitest", ".vitest-cache", ".lock"),
        *(".yarn-state.yml", ".modules.yaml"),
    }
)
"""Files and folders that tools write while they only run."""
_PROGRAMS = frozenset({"bin", ".bin", "Scripts"})
_VERSIONED = re.compile(r"-[^-/]+(?=\.(?:dist|egg)-info/)")
_SMALL = 1024 * 1024
_PACKAGES = ("site-packages", "dist-packages")
"""Folders of Python packages, which are a part of their own."""


def fingerprint(
    folder: Path,
    programs: Collection[str],
    env: Mapping[str, str],
    roots: Iterable[str] = (),
    digests: FileDigests | None = None,
    outside: Iterable[str] = (),
) -> dict[str, str]:
    """One digest for each part of the environment, by a name such as `.venv`, `program pytest` or `.git/config`.

    `roots` are names of folders of the workspace with installed packages, as `Tree.installed` has them, and of links that
    lead out of it. `outside` are paths of other places that are part of judges.
    """
    top = os.path.realpath(folder)
    look = _Look(digests or FileDigests())
    inside = {*roots, *(name for name in (PACKAGES, *ENVIRONMENTS) if _is_environment(f"{top}/{name}"))}
    places = {name: f"{top}/{path_of(name)}" for name in inside}
    parts = {name: look.at(path) for name, path in sorted(places.items()) if os.path.lexists(path)}
    others = (path for path in outside if os.path.lexists(path) and not _is_inside(path, places.values()))
    parts |= {_from(top, path): look.at(path) for path in sorted(others)}
    resolved = {
        name: path for name in {*programs, *USUAL, *TEXT_TOOLS} if (path := _resolved(name, top, env)) is not None
    }
    found = {
        f"program {name_of(name)}": look.program(path, places.values())
        for name, path in resolved.items()
        if not _is_file_of(path, top, places.values())  # it is in the tree
    }
    apart = [name for name in programs if not _is_inside(resolved.get(name, ""), places.values())]
    # A program outside every environment, such as make, may start any other that is on the PATH.
    for name in (*apart, "python3", "pytest") if apart else ():
        for packages in _packages_of(resolved.get(name, "")):
            if not _is_inside(os.path.realpath(packages), map(os.path.realpath, places.values())):
                parts.setdefault(f"packages {name_of(packages)}", look.at(packages))
    interpreters = {os.path.realpath(f"{path}/bin/python") for path in places.values()}
    interpreters |= {os.path.realpath(resolved[name]) for name in (*apart, "python3") if name in resolved}
    for library in sorted({each for program in interpreters for each in standard_libraries(program)}):
        if os.access(library, os.W_OK):
            parts[f"library {name_of(library)}"] = look.at(library, leave_out=(*_PACKAGES, "test", "idlelib"))
    repository = repository_of(folder)
    settings = git_settings(common_folder(repository)) if repository is not None else {}
    return {**parts, **found, **settings, **settings_around(top, env)}


def changed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The parts of the environment that are not as they were, in order."""
    return sorted({name for name, _ in before.items() ^ now.items()})


class _Look:
    def __init__(self, digests: FileDigests) -> None:
        self._digests = digests

    def at(self, root: str, leave_out: Collection[str] = ()) -> str:
        """A digest of all files below a folder that is followed if it is a link, or of one file. Folders in it with some names
        can be left out."""
        digest = sha256(os.fsencode(os.path.realpath(root)))
        lines = (
            sorted(self._lines(root, leave_out))
            if os.path.isdir(root)
            else [self._line("", root, _lstat(os.path.realpath(root)))]
        )
        digest.update("\n".join(lines).encode("utf-8", "surrogateescape"))
        return digest.hexdigest()

    def program(self, path: str, places: Iterable[str]) -> str:
        """Which file a program is. One of an environment is compared there."""
        line = (
            "" if _is_inside(path, places) else self._line("", os.path.realpath(path), _lstat(os.path.realpath(path)))
        )
        return sha256(f"{path}\0{line}".encode("utf-8", "surrogateescape")).hexdigest()

    def _lines(self, root: str, leave_out: Collection[str]) -> Iterator[str]:
        start = len(root) + 1
        folders = [(root, False)]
        while folders:
            folder, in_metadata = folders.pop()
            has_programs = folder != root and os.path.basename(folder) in _PROGRAMS
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        name = entry.name
                        if name in _TRANSIENT:
                            continue
                        if entry.is_dir(follow_symlinks=False):
                            is_cache = cached(name) and name != PACKAGES
                            if not is_cache and name not in leave_out:
                                folders.append((entry.path, in_metadata or name.endswith(METADATA)))
                        elif not in_metadata:
                            by_content = has_programs or _begins_python(name)
                            found = entry.stat(follow_symlinks=False)
                            yield self._line(entry.path[start:], entry.path, found, by_content)
                        elif name == ENTRY_POINTS:  # the rest of them says nothing that a program obeys
                            yield f"{_VERSIONED.sub('', entry.path[start:])}\0{self._digests.of(entry.path)}"
            except OSError:
                continue  # removed meanwhile, or not readable: not readable for a judge either

    def _line(self, path: str, whole: str, found: os.stat_result | None, by_content: bool = False) -> str:
        if found is None:
            return f"{path}\0"
        if stat.S_ISLNK(found.st_mode):
            return f"{path}\0{_target(whole)}"
        # Installers share files between projects by hard links, and each new link moves ctime: the content decides.
        if found.st_nlink > 1 or (by_content and found.st_size < _SMALL):
            return f"{path}\0{self._digests.of(whole)}"
        return f"{path}\0{found.st_mode:o} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {found.st_ino}"


def _begins_python(name: str) -> bool:
    """Whether Python runs a file of this name when it begins."""
    return name.endswith(".pth") or (name.startswith("__editable__") and name.endswith(".py"))


def _from(top: str, path: str) -> str:
    """The name of a path outside the workspace: from there if both are near, else the whole path."""
    relative = os.path.relpath(path, top)
    return name_of(path if relative.startswith("../../..") else relative)


def _is_environment(path: str) -> bool:
    return os.path.isdir(path) and (path.endswith(PACKAGES) or os.path.lexists(f"{path}/{MARK}"))


def _resolved(program: str, top: str, env: Mapping[str, str]) -> str | None:
    if "/" in program:
        return os.path.normpath(os.path.join(top, program))
    # A relative folder of the PATH is one of the workspace.
    folders = [os.path.join(top, each) for each in env.get("PATH", os.defpath).split(os.pathsep)]
    found = shutil.which(program, path=os.pathsep.join(folders))
    return None if found is None else os.path.normpath(found)


def _is_file_of(path: str, top: str, places: Iterable[str]) -> bool:
    return path.startswith(f"{top}/") and not _is_inside(path, places)


def _is_inside(path: str, places: Iterable[str]) -> bool:
    return any(path.startswith(f"{place}/") for place in places)


def _packages_of(program: str) -> list[str]:
    """Folders of Python packages that belong to a program, if this user could change them."""
    if not program:
        return []
    prefixes = {os.path.dirname(os.path.dirname(path)) for path in (program, os.path.realpath(program))}
    found = (
        path
        for prefix in sorted(prefixes)
        for kind in _PACKAGES
        for path in sorted(map(str, Path(prefix).glob(f"lib/python3*/{kind}")))
    )
    return [path for path in found if os.access(path, os.W_OK)]


def standard_libraries(interpreter: str) -> list[str]:
    """The folders of modules that come with a Python interpreter, given by its own path and not by a link to it: an
    environment has no standard library of its own."""
    prefix = os.path.dirname(os.path.dirname(interpreter))
    return [os.fspath(path) for path in sorted(Path(prefix).glob("lib/python3.*")) if (path / "os.py").is_file()]


def _lstat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _target(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
