"""Globs over the files of a workspace, as `writes` gives them: `src/**/*.py`, `docs`, `*.md`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath

from backedge.core.workflow.globs import WILD, glob_regex


class Globs:
    """Files under a folder that match one of some globs. Links are not followed."""

    def __init__(self, patterns: Sequence[str]) -> None:
        for pattern in patterns:
            if PurePosixPath(pattern).is_absolute() or ".." in PurePosixPath(pattern).parts:
                raise ValueError(f"the glob {pattern!r} leaves the workspace: use one inside it")
        self._patterns = [glob_regex(pattern) for pattern in patterns]
        self._heads = [_head(pattern) for pattern in patterns]

    def files(self, folder: Path, skipped: Callable[[str], bool]) -> Iterator[str]:
        """The matching files, by their paths relative to the folder."""
        if self._patterns:
            yield from self._below(os.fspath(folder), "", skipped)

    def match(self, path: str) -> bool:
        """Whether one of the globs matches a path."""
        return any(pattern.fullmatch(path) for pattern in self._patterns)

    def _below(self, folder: str, inside: str, skipped: Callable[[str], bool]) -> Iterator[str]:
        try:
            entries = list(os.scandir(os.path.join(folder, inside)))
        except OSError:
            return  # deleted meanwhile, or not readable
        for entry in entries:
            name = f"{inside}/{entry.name}" if inside else entry.name
            if skipped(name):
                continue
            if entry.is_dir(follow_symlinks=False):
                if self._may_hold(name):
                    yield from self._below(folder, name, skipped)
            elif self.match(name):
                yield name

    def _may_hold(self, name: str) -> bool:
        parts = name.split("/")
        return any(all(a == b for a, b in zip(head, parts, strict=False)) for head in self._heads)


def _head(pattern: str) -> list[str]:
    """The parts before the first wildcard: only files below them can match."""
    head: list[str] = []
    for part in PurePosixPath(pattern).parts:
        if WILD.search(part):
            break
        head.append(part)
    return head
