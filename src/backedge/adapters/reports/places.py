"""Locations in the workspace, as tools report them."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from backedge.core.text import clean

LONGEST_EVIDENCE = 4_000
"""How many characters of evidence are stored with one finding."""


def path_in_workspace(name: str | None, folder: Path) -> str | None:
    """A file of the workspace by its path or URI, relative to it; None for anything outside."""
    if not name or "\0" in name:
        return None
    if "://" in name or name.startswith("file:"):
        uri = urlsplit(name)
        if uri.scheme != "file":
            return None
        name = unquote(uri.path)
    path = Path(name)
    inside = [part for part in path.parts if part != "."]
    if not path.is_absolute():
        return "/".join(inside) if inside and ".." not in inside else None
    for root in (folder.absolute(), folder.resolve()):
        if ".." not in inside and path.is_relative_to(root):
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
