"""Finds where two versions of an artifact differ: JSON pointers for values, line ranges for text."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher

from backedge.core.model import Change
from backedge.core.value import Json

MAX_CHANGES = 200
"""If more locations than this changed, only the artifact as a whole is reported as changed."""
MAX_LINES_COMPARED = 2_000
"""Texts that differ in more lines than this are compared only from both ends, which is fast."""
MAX_DEPTH = 50
"""Values nested deeper than this are compared as a whole."""


def changes(before: Json, after: Json) -> tuple[Change, ...]:
    """The locations where the new value differs from the old one. A removed value is reported at its old location."""
    found = []
    for change in _changes(before, after, ""):
        found.append(change)
        if len(found) > MAX_CHANGES:
            return (Change(""),)
    return tuple(found)


def _changes(before: Json, after: Json, where: str, depth: int = 0) -> Iterator[Change]:
    if depth == MAX_DEPTH:
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
        for index in range(max(len(before), len(after))):
            if index < len(before) and index < len(after):
                yield from _changes(before[index], after[index], f"{where}/{index}", depth + 1)
            else:
                yield Change(f"{where}/{index}")
    elif isinstance(before, str) and isinstance(after, str):
        if before != after:
            yield Change(where, changed_lines(before, after) if "\n" in before or "\n" in after else ())
    elif before != after or type(before) is not type(after):
        yield Change(where)


def changed_lines(before: str, after: str) -> tuple[tuple[int, int], ...]:
    """The line ranges of the new text that are new or different, both ends included, counted from 1.

    Where lines were only removed, the range is the line that follows them.
    """
    old, new = before.splitlines(), after.splitlines()
    start, end = _common_ends(old, new)
    old, inner = old[start : len(old) - end], new[start : len(new) - end]
    if len(old) + len(inner) > MAX_LINES_COMPARED:
        return ((start + 1, max(start + 1, start + len(inner))),)
    ranges = []
    for tag, _, _, first, last in SequenceMatcher(None, old, inner, autojunk=False).get_opcodes():
        if tag != "equal":
            ranges.append((start + first + 1, max(start + last, start + first + 1)))
    return tuple(ranges)


def _common_ends(old: list[str], new: list[str]) -> tuple[int, int]:
    shorter = min(len(old), len(new))
    start = 0
    while start < shorter and old[start] == new[start]:
        start += 1
    end = 0
    while end < shorter - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return start, end
