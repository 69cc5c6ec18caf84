"""Did you mean …? The nearest valid word for one that is not, whatever its capitals."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_LONGEST = 200
"""Nobody mistypes a longer word: comparing it would only take time."""


def closest(word: object, known: Iterable[str], alike: float = 0.6) -> str:
    """The valid word that another one is probably a slip of; empty if none is near."""
    if not isinstance(word, str) or len(word) > _LONGEST:
        return ""
    folded: dict[str, str] = {}
    for each in known:
        folded.setdefault(str(each).casefold(), str(each))
    found = get_close_matches(word.casefold(), folded, 1, alike)
    return folded[found[0]] if found else ""


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """A hint at the nearest valid word; at all of them, if none is near."""
    known = tuple(map(str, known))
    meant = closest(word, known)
    return f"did you mean {meant!r}?" if meant else f"use one of: {', '.join(known)}"
