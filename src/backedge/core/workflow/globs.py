"""Globs over paths, as `writes` gives them: `src/**/*.py`, `docs`, `*.md`. A last part without wildcards may be a folder."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

WILD = re.compile(r"[*?\[]")
_PIECE = re.compile(r"\*\*/|\*\*|\*|\?|\[!?\]?[^\]/]*\]|.", re.DOTALL)


def matches_any(globs: Iterable[str], path: str) -> bool:
    """Whether one of the globs matches a path."""
    return any(glob_regex(glob).fullmatch(path) for glob in globs)


@lru_cache(maxsize=1000)
def glob_regex(pattern: str) -> re.Pattern[str]:
    """A glob as a regular expression over whole paths."""
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    plain = "/".join(parts)
    translated = "".join(_translated(piece.group()) for piece in _PIECE.finditer(plain))
    # A last part without wildcards may be a folder: then everything in it counts.
    below = "" if parts and WILD.search(parts[-1]) else "(?:/.*)?" if parts else ".*"
    return re.compile(translated + below, re.DOTALL)


def _translated(piece: str) -> str:
    match piece:
        case "**/":
            return "(?:.*/)?"
        case "**":
            return ".*"
        case "*":
            return "[^/]*"
        case "?":
            return "[^/]"
        case _ if len(piece) > 1:
            inner = piece[1:-1].replace("\\", "\\\\")
            return f"(?!/)[{'^' + inner[1:] if inner.startswith('!') else inner}]"
        case _:
            return re.escape(piece)
