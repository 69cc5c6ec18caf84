"""What tools keep of files that they compiled, and would use again without comparing it with the files.

An agent could put other code there, or build a fix and take it back. So it is not in the room of a judge, which compiles
again. For Python, the room has bytecode of its own.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

MODULES = ("node_modules/.vitest-cache", "node_modules/.vite", "node_modules/.cache")
"""Compiled JavaScript."""
_BUILDS = ("target/*/.fingerprint", "target/*/*/.fingerprint")
_NAME = re.compile(rb"""^\s*name\s*=\s*["']([\w-]+)["']""", re.MULTILINE)
_BUILD = re.compile(r"(?P<package>.+)-[0-9a-f]+")
_LEFT_OUT = ("target", "node_modules")


def compiled(workspace: Path) -> list[str]:
    """The paths to leave out of a room over a workspace."""
    return [*MODULES, *_cargo_builds(workspace)]


def _cargo_builds(workspace: Path) -> list[str]:
    """What cargo keeps about its builds of the packages of a workspace. It builds them again only if a file is newer;
    without these records, it builds them in any case. Other packages it knows by their version."""
    builds = [build for pattern in _BUILDS for folder in workspace.glob(pattern) for build in _inside(folder)]
    if not builds:
        return []
    own = _packages(workspace)
    named = ((build, _BUILD.fullmatch(build.name)) for build in builds)
    return sorted(build.relative_to(workspace).as_posix() for build, name in named if name and name["package"] in own)


def _packages(workspace: Path) -> set[str]:
    """The names of the packages whose source is in a workspace."""
    found: set[str] = set()
    for place, folders, files in os.walk(workspace):
        folders[:] = [name for name in folders if name not in _LEFT_OUT and not name.startswith(".")]
        if "Cargo.toml" in files:
            try:
                text = Path(place, "Cargo.toml").read_bytes()
            except OSError:
                continue
            found |= {name.decode() for name in _NAME.findall(text)}
    return found


def _inside(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []
