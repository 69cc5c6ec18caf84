"""What tools remember of files that they have looked at, so that they need not look again.

An agent could write there that its files are fine. So it is not in the room of a judge, which looks for itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

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


class ToolCaches(NamedTuple):
    """The caches in a workspace, by their paths in it."""

    folders: list[str]
    files: list[str]
    """Links too: what they lead to may be the product."""


def tool_caches(workspace: Path) -> ToolCaches:
    """The caches that are there now."""
    found = ToolCaches([], [])
    for entry, path in _entries(os.fspath(workspace), "", DEEPEST):
        (found.folders if entry.is_dir(follow_symlinks=False) else found.files).append(path)
    return found


def _entries(folder: str, inside: str, deep: int) -> Iterator[tuple[os.DirEntry[str], str]]:
    try:
        with os.scandir(folder) as entries:
            here = list(entries)
    except OSError:
        return  # removed meanwhile, or not readable: then no judge can read it either
    for entry in here:
        if entry.name in NAMES or entry.name.endswith(ENDINGS):
            yield entry, inside + entry.name
        elif deep and entry.is_dir(follow_symlinks=False) and entry.name[0] != "." and entry.name not in _OTHERS:
            yield from _entries(entry.path, f"{inside}{entry.name}/", deep - 1)
