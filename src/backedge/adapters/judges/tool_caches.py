"""What tools remember of files that they have looked at, so that they need not look again.

An agent could write there that its files are fine. So it is not in the room of a judge, which looks for itself.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from backedge.adapters.agents.regular_file import opened
from backedge.adapters.evidence.names import name_of
from backedge.adapters.evidence.stillness import FolderNames

NAMES = frozenset(
    {
        *(".mypy_cache", ".ruff_cache", ".pytest_cache", ".pytype", ".import_linter_cache", ".dmypy.json"),
        *(".eslintcache", ".stylelintcache", ".turbo", ".parcel-cache", ".swc", ".rubocop_cache", ".phpunit.cache"),
    }
)
ENDINGS = (".tsbuildinfo", ".phpunit.result.cache", ".php-cs-fixer.cache")
DEEPEST = 3
"""How many folders below the workspace tools are expected to work in."""
_OTHERS = frozenset({"node_modules", "__pycache__", "target", "venv", "env"})
"""Folders without such caches that may have very many files."""


_SETTINGS = (
    *("pyproject.toml", "ruff.toml", ".ruff.toml", "mypy.ini", ".mypy.ini", "setup.cfg", "tox.ini", "pytest.ini"),
    *("package.json", "jest.config.js", "jest.config.ts", "jest.config.cjs", "jest.config.mjs", "jest.config.json"),
)
"""Files at the top of a workspace that may say where a tool keeps its cache."""
_CACHE = r"cache[-_]?(?:dir(?:ectory)?|location|file)"
_SET = re.compile(rf"""\b{_CACHE}["']?\s*[=:]\s*["']?(?:<rootDir>/)?([\w./-]+)""", re.IGNORECASE)
_OPTION = re.compile(rf"--{_CACHE}")
_LARGEST = 256 * 1024
TEMPORARY = ("jest_*", "tsx-*", "v8-compile-cache-*", "ts-node-*", "node-compile-cache")
"""Folders of compiled files that tools of JavaScript share among all projects of a user."""


class ToolCaches(NamedTuple):
    """The caches in a workspace, by their paths in it."""

    folders: list[str]
    files: list[str]
    """Links too: what they lead to may be the product."""


def tool_caches(workspace: Path, names: FolderNames) -> ToolCaches:
    """The caches that are there now."""
    found = ToolCaches([], [])
    left = [("", 0)]
    while left:
        inside, depth = left.pop()
        here = names.of(f"{workspace}/{inside}")
        found.files.extend(f"{inside}{name}" for name in here.files if name in NAMES or name.endswith(ENDINGS))
        for name in here.folders:
            if name in NAMES or name.endswith(ENDINGS):
                found.folders.append(f"{inside}{name}")
            elif depth < DEEPEST and name[0] != "." and name not in _OTHERS:
                left.append((f"{inside}{name}/", depth + 1))
    return found


def configured_caches(argv: Sequence[str], workspace: Path, base: Collection[str]) -> Iterator[str]:
    """The paths in a workspace where a tool is told to keep its cache, if something is there that the run did not begin
    with."""
    said = [
        word.partition("=")[2] or after
        for word, after in zip(argv, (*argv[1:], ""), strict=True)
        if _OPTION.match(word)
    ]
    for name in _SETTINGS:
        try:
            with opened(workspace / name) as file:
                said += _SET.findall(file.read(_LARGEST).decode("utf-8", "replace"))
        except OSError:
            continue
    for path in sorted({os.path.normpath(each) for each in said}):
        name = name_of(path)
        inside = not path.startswith(("..", "/")) and path != "."
        if inside and os.path.lexists(workspace / path) and not any(f"{each}/".startswith(f"{name}/") for each in base):
            yield path


def shared_caches() -> list[Path]:
    """The folders of compiled files outside the workspace that are there now."""
    there = Path(tempfile.gettempdir())
    return sorted(
        path for pattern in TEMPORARY for path in there.glob(pattern) if path.is_dir() and os.access(path, os.W_OK)
    )
