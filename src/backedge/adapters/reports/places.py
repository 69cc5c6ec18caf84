"""Locations in the workspace, as tools report them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from backedge.core.text import clean

LONGEST_EVIDENCE = 4_000
"""How many characters of evidence are stored with one finding."""
LARGEST_SOURCE = 1_000_000
"""The most bytes of a source file that are read to find its tests."""


@dataclass(frozen=True)
class FileNames:
    """The files that a report can name: those of the workspace, as the tool saw them."""

    workspace: Path
    room: Path | None = None
    """Where the tool saw the workspace, if not at its own path."""
    restored: Mapping[str, Path] = field(default_factory=dict)
    """Files that the tool saw with another content, and where that content is."""

    def of(self, name: str | None) -> str | None:
        """A file of the workspace by its path or URI, relative to it; None for anything outside."""
        for root in (self.workspace, self.room):
            found = path_in_workspace(name, root) if root is not None else None
            if found is not None:
                return found
        return None

    def has(self, path: str) -> bool:
        """Whether the tool could see a file, given by its relative path."""
        try:
            return path in self.restored or (self.workspace / path).is_file()
        except (OSError, ValueError):  # a path that is too long, or that no file can have
            return False

    def text(self, path: str) -> str:
        """The content of a file as the tool saw it; empty if it cannot be read."""
        try:
            with open(self.restored.get(path, self.workspace / path), "rb") as file:
                return file.read(LARGEST_SOURCE).decode("utf-8", "replace")
        except (OSError, ValueError):
            return ""

    def inside(self, folder: str) -> list[str]:
        """The paths of the files that are directly in a folder, in order."""
        try:
            names = {entry.name for entry in os.scandir(self.workspace / folder) if entry.is_file()}
        except (OSError, ValueError):
            names = set()
        start = f"{folder}/" if folder else ""
        found = {f"{start}{name}" for name in names}
        return sorted(found | {path for path in self.restored if path.rpartition("/")[0] == folder})


def path_in_workspace(name: str | None, folder: Path) -> str | None:
    """A file of the workspace by its path or URI, relative to it; None for anything outside."""
    if not name or "\0" in name:
        return None
    if "://" in name or name.startswith("file:"):
        try:
            uri = urlsplit(name)
        except ValueError:
            return None
        if uri.scheme != "file":
            return None
        name = unquote(uri.path)
        if "\0" in name:
            return None
    path = Path(name)
    inside = [part for part in path.parts if part != "."]
    if not path.is_absolute():
        return "/".join(inside) if inside and ".." not in inside else None
    for root in (folder.absolute(), folder.resolve()):
        if ".." not in inside and path.is_relative_to(root) and path != root:
            return path.relative_to(root).as_posix()
    return None


def line_of(value: object) -> int | None:
    """A line number, if it is one."""
    try:
        line = int(str(value))
    except ValueError:
        return None
    return line if 0 < line < 2**31 else None


def evidence_of(text: str) -> str:
    """What a tool printed about one defect; only the beginning and the end if it is long."""
    text = clean(text).strip()
    half = LONGEST_EVIDENCE // 2
    return text if len(text) <= LONGEST_EVIDENCE else f"{text[:half]}\n…\n{text[-half:]}"


def first_line(text: str, longest: int = 500) -> str:
    lines = [line.strip() for line in clean(text).splitlines()]
    return next((line for line in lines if line), "")[:longest]
