"""What tools keep of files that they compiled, and would use again without comparing it with the files.

An agent could put other code there, or build a fix and take it back. So it is not in the room of a judge, which compiles
again. For Python, the room has bytecode of its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from backedge.adapters.agents.regular_file import opened
from backedge.adapters.evidence.caches import ENVIRONMENTS, MARK, cached
from backedge.adapters.evidence.names import name_of
from backedge.adapters.evidence.stillness import FolderNames

MODULES = ("node_modules/.vitest-cache", "node_modules/.vite", "node_modules/.cache")
"""Compiled JavaScript."""
_BUILDS = ("target/*/.fingerprint", "target/*/*/.fingerprint")
_NAME = re.compile(rb"""^\s*name\s*=\s*["']([\w-]+)["']""", re.MULTILINE)
_BUILD = re.compile(r"(?P<package>.+)-[0-9a-f]+")
_LEFT_OUT = ("target", "node_modules")
_INSTALLED = (".git", "node_modules", *ENVIRONMENTS)
_BUILD_TOOLS = re.compile(r"(?:^|[\s/;&|])(?:g?make|ninja|cmake|ctest|meson|scons)(?:$|[\s;&|])")
_COMPILED = re.compile(r".*\.(?:o|obj|a|so|dylib|class|gcno|gcda)")
_BYTECODE = "__pycache__"
_ISOLATED = re.compile(r"-[bBdisSuvxO]*[IE][bBdisSuvxO]*")
"""Options of Python without its environment."""
_LIBRARIES = (".so", ".pyd")
"""How the names of compiled modules of Python end, such as `cart.cpython-312-x86_64-linux-gnu.so`."""
_MAGIC = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"!<ar")
"""How programs and libraries of Linux, macOS and Java begin."""


def compiled(workspace: Path) -> list[str]:
    """The paths to leave out of a room over a workspace."""
    return [*MODULES, *_cargo_builds(workspace)]


def compiled_python(workspace: Path, names: FolderNames, counts: Callable[[str], bool], moment: int) -> list[str]:
    """Python that was compiled beside its source and would be loaded instead of it: bytecode, which an interpreter that
    ignores its environment looks for there, and libraries that are younger than a moment, in nanoseconds, and are not
    among the files that count."""
    found, left = [], [""]
    while left:
        inside = left.pop()
        here = names.of(f"{workspace}/{inside}")
        found += [f"{inside}{_BYTECODE}"] if _BYTECODE in here.folders else []
        left += [f"{inside}{name}/" for name in here.folders if name not in _INSTALLED and not cached(name)]
        for name in here.files:
            if name.endswith(_LIBRARIES) and f"{name.partition('.')[0]}.py" in here.files:
                path = f"{inside}{name}"
                if _changed_since(f"{workspace}/{path}", moment) and not counts(name_of(path)):
                    found.append(path)
    return sorted(found)


def compiled_packages(argv: Sequence[str], workspace: Path, moment: int) -> list[str]:
    """Bytecode of installed packages that is younger than a moment, in nanoseconds, if a judge's Python looks for it beside
    the packages, because it is told to ignore its environment."""
    if not any(_ISOLATED.fullmatch(word) for word in argv):
        return []
    tops = (workspace / name for name in ENVIRONMENTS if os.path.lexists(workspace / name / MARK))
    files = (f"{place}/{name}" for top in tops for place, _, names in os.walk(top) for name in names)
    return sorted(
        os.path.relpath(path, workspace) for path in files if path.endswith(".pyc") and _changed_since(path, moment)
    )


def built_since(argv: Sequence[str], workspace: Path, counted: Collection[str], moment: int) -> list[str]:
    """The programs and libraries that were compiled after a moment, in nanoseconds, and are not among the files that count,
    if a judge starts a tool that compiles them itself. Such a tool only looks at times, which can be set at will."""
    if not _BUILD_TOOLS.search(" ".join(argv)):
        return []
    found, top = [], os.path.realpath(workspace)
    for place, folders, files in os.walk(top):
        folders[:] = [name for name in folders if name not in _INSTALLED and not cached(name)]
        for name in files:
            whole = f"{place}/{name}"
            path = whole[len(top) + 1 :]
            if name_of(path) not in counted and _is_compiled(whole, moment):
                found.append(path)
    return sorted(found)


def _is_compiled(path: str, moment: int) -> bool:
    if not _changed_since(path, moment):
        return False
    try:
        with opened(path, follow=False) as file:
            return _COMPILED.fullmatch(path) is not None or file.read(4) in _MAGIC
    except OSError:
        return False


def _changed_since(path: str, moment: int) -> bool:
    try:
        return os.lstat(path).st_ctime_ns >= moment
    except OSError:
        return False


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
