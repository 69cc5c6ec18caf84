"""What judges run with beside the workspace's files: installed packages, programs, git's own settings, and settings around
the workspace."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from backedge.adapters.agents.git_tree import common_folder, repository_of
from backedge.adapters.evidence.around import settings_around
from backedge.adapters.evidence.caches import ENVIRONMENTS, MARK, PACKAGES
from backedge.adapters.evidence.folder_looks import FolderLooks
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
_PACKAGES = ("site-packages", "dist-packages")
"""Folders of Python packages, which are a part of their own."""


def fingerprint(
    folder: Path,
    programs: Collection[str],
    env: Mapping[str, str],
    roots: Iterable[str] = (),
    looks: FolderLooks | None = None,
    outside: Iterable[str] = (),
) -> dict[str, str]:
    """One digest for each part of the environment, by a name such as `.venv`, `program pytest` or `.git/config`.

    `roots` are names of folders of the workspace with installed packages, as `Tree.installed` has them, and of links that
    lead out of it. `outside` are paths of other places that are part of judges.
    """
    top = os.path.realpath(folder)
    look = looks or FolderLooks()
    inside = {*roots, *(name for name in (PACKAGES, *ENVIRONMENTS) if _is_environment(f"{top}/{name}"))}
    places = {name: f"{top}/{path_of(name)}" for name in inside}
    parts = {name: look.at(path) for name, path in sorted(places.items()) if os.path.lexists(path)}
    others = (path for path in outside if os.path.lexists(path) and not _is_inside(path, places.values()))
    parts |= {_from(top, path): look.at(path) for path in sorted(others)}
    # A relative folder of the PATH is one of the workspace.
    folders = [os.path.join(top, each) for each in env.get("PATH", os.defpath).split(os.pathsep)]
    resolved = {
        name: path for name in {*programs, *USUAL, *TEXT_TOOLS} if (path := _resolved(name, top, folders)) is not None
    }
    found = {
        f"program {name_of(name)}": look.named(path) if _is_inside(path, places.values()) else look.program(path)
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


def _from(top: str, path: str) -> str:
    """The name of a path outside the workspace: from there if both are near, else the whole path."""
    relative = os.path.relpath(path, top)
    return name_of(path if relative.startswith("../../..") else relative)


def _is_environment(path: str) -> bool:
    return os.path.isdir(path) and (path.endswith(PACKAGES) or os.path.lexists(f"{path}/{MARK}"))


def _resolved(program: str, top: str, folders: Iterable[str]) -> str | None:
    """The path of a program that is started by this name."""
    if "/" in program:
        return os.path.normpath(os.path.join(top, program))
    for folder in folders:
        path = f"{folder}/{program}"
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return os.path.normpath(path)
    return None


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
