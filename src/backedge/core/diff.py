"""Where two versions of an artifact differ: JSON pointers for values, line ranges for text."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher

from backedge.core.model import Change
from backedge.core.value import Json

MOST = 200
"""More places than this say no more than the place that holds them."""
LONGEST_TEXT = 2_000
"""Lines beyond which two texts are only compared from both ends."""
DEEPEST = 50
"""Below this depth a value is compared as a whole."""


def changes(before: Json, after: Json) -> tuple[Change, ...]:
    """The places of the new value that differ from the old one; what vanished counts at its old place."""
    found = []
    for change in _changes(before, after, ""):
        found.append(change)
        if len(found) > MOST:
            return (Change(""),)
    return tuple(found)


def _changes(before: Json, after: Json, where: str, depth: int = 0) -> Iterator[Change]:
    if depth == DEEPEST:
        if before != after:
            yield Change(where)
    elif isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys((*after, *before)):
            below = f"{where}/{key.replace('~', '~0').replace('/', '~1')}"
            if key in before and key in after:
                yield from _changes(before[key], after[key], below, depth + 1)
            else:
                yield Change(below)
    elif isinstance(before, list) and isinstance(after, list):
        for place in range(max(len(before), len(after))):
            if place < len(before) and place < len(after):
                yield from _changes(before[place], after[place], f"{where}/{place}", depth + 1)
            else:
                yield Change(f"{where}/{place}")
    elif isinstance(before, str) and isinstance(after, str):
        if before != after:
            yield Change(where, changed_lines(before, after) if "\n" in before or "\n" in after else ())
    elif before != after or type(before) is not type(after):
        yield Change(where)


def changed_lines(before: str, after: str) -> tuple[tuple[int, int], ...]:
    """The line ranges of the new text that are new or different, first and last included, counted from 1.

    Where lines were only removed, the range is the line that now stands in their place.
    """
    old, new = before.splitlines(), after.splitlines()
    start, end = _common_ends(old, new)
    old, inner = old[start : len(old) - end], new[start : len(new) - end]
    if len(old) + len(inner) > LONGEST_TEXT:
        return ((start + 1, max(start + 1, start + len(inner))),)
    ranges = []
    for tag, _, _, first, last in SequenceMatcher(None, old, inner, autojunk=False).get_opcodes():
        if tag != "equal":
            ranges.append((start + first + 1, max(start + last, start + first + 1)))
    return tuple(ranges)


def _common_ends(old: list[str], new: list[str]) -> tuple[int, int]:
    most = min(len(old), len(new))
    start = 0
    while start < most and old[start] == new[start]:
        start += 1
    end = 0
    while end < most - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return start, end
