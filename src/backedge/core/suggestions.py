"""Did you mean …? Finds the valid word that is most similar to a mistyped one, ignoring case."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_LONGEST = 200
"""A longer text is not a mistyped word, and comparing it would take long."""


def closest(word: object, known: Iterable[str], alike: float = 0.6) -> str:
    """The known word that is most similar to `word`; empty if none is similar enough."""
    if not isinstance(word, str) or len(word) > _LONGEST:
        return ""
    folded: dict[str, str] = {}
    for each in known:
        folded.setdefault(str(each).casefold(), str(each))
    found = get_close_matches(word.casefold(), folded, 1, alike)
    return folded[found[0]] if found else ""


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """A hint that names the most similar known word, or all known words if none is similar."""
    known = tuple(map(str, known))
    suggestion = closest(word, known)
    return f"did you mean {suggestion!r}?" if suggestion else f"use one of: {', '.join(known)}"
