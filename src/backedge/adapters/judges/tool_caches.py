"""What tools remember of files that they have looked at, so that they need not look again.

An agent could write there that its files are fine. So it is not in the room of a judge, which looks for itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

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
