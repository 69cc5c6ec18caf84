"""The files that are part of a reviewer: its script, what its command line names, and the modules beside the script.

A tool judge runs with its files as they were. A reviewer has to see the files as they are, except these: a reviewer that an
agent has rewritten says what the agent wants.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import PurePosixPath

from backedge.adapters.evidence.judge_files import judge_files
from backedge.adapters.evidence.protected import CODE, SHADOWING
from backedge.adapters.evidence.tree import Tree
from backedge.adapters.judges.run_evidence import Restoration, RunEvidence

_PRODUCT_FOLDERS = frozenset({"", "src", "lib", "app", "pkg", "packages"})
"""Folders whose modules are the product, even if a reviewer's script lies among them."""


_MODULE = re.compile(rf"{CODE.pattern}|.*\.(?:py[cdo]|so|json)")


class ReviewerFiles:
    """The files of one reviewer."""

    def __init__(self, argv: Sequence[str], folder: str) -> None:
        self._named = judge_files([argv], folder)

    def keep(self, run: RunEvidence) -> None:
        """Keep them as they are at the start of the run."""
        base = run.start.base.tree
        run.keep_protected(base, self._own(base.files, base.files))

    def restoration(self, run: RunEvidence, tree: Tree) -> Restoration:
        """How to make them what they were."""
        base = run.start.base.tree.files
        differing = {name for name, _ in base.items() ^ tree.files.items()}
        return run.restored({name: base.get(name) for name in sorted(self._own(base, differing))})

    def _own(self, base: Collection[str], files: Collection[str]) -> set[str]:
        """Those of some files that are part of the reviewer, with the files that the run began with."""
        scripts = (name.rpartition("/")[0] for name in self._named if name in base and _is_script(name))
        folders = tuple(f"{folder}/" for folder in scripts if _is_apart(folder, base))
        beside = {name for name in files if name.startswith(folders) and _MODULE.fullmatch(name)} if folders else set()
        return {*(self._named & set(files)), *beside, *_shadowing(files)}


def _is_script(name: str) -> bool:
    """A file with code in it, or one without an ending, such as `tools/review`."""
    return CODE.fullmatch(name) is not None or "." not in name.rpartition("/")[2]


def _is_apart(folder: str, files: Collection[str]) -> bool:
    """Whether a folder has scripts that are not the product."""
    return folder not in _PRODUCT_FOLDERS and f"{folder}/__init__.py" not in files


def _shadowing(files: Iterable[str]) -> Iterable[str]:
    """Modules at the top that Python would import instead of its own."""
    for name in files:
        first, _, rest = name.partition("/")
        if PurePosixPath(first).stem in SHADOWING and rest in ("", "__init__.py") and CODE.fullmatch(rest or first):
            yield name
