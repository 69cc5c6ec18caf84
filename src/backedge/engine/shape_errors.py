"""All problems of a JSON object of a declared type. The decoder reports only the first one, so each part is decoded by
itself, and again without the field that was reported."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from backedge.core.value import Json

MOST = 20
"""Problems that are reported at once."""
_FIELD = re.compile(r"field `([^`]*)`")


def shape_errors(given: Json, kind: type[Any]) -> list[str]:
    """All problems with their paths, at most MOST of them; empty for a valid value."""
    if not isinstance(given, dict):
        return [problem for problem in [_problem(given, kind)] if problem]
    found: dict[str, None] = {}
    for key, value in given.items():
        if not isinstance(value, list) or not value:
            found |= dict.fromkeys(_of_part(value, lambda part, key=key: {key: part}, f"$.{key}", kind))
        for index, item in enumerate(value if isinstance(value, list) else ()):
            for problem in _of_part(item, lambda part, key=key: {key: [part]}, f"$.{key}[0]", kind):
                found[problem.replace(f"$.{key}[0]", f"$.{key}[{index}]")] = None
    return list(found)[:MOST]


def _of_part(part: Json, whole: Any, path: str, kind: type[Any]) -> Iterator[str]:
    """The problems of one part of an object, field by field if it has fields."""
    left = dict(part) if isinstance(part, dict) else part
    taken = set[str]()
    while problem := _problem(whole(left), kind):
        field = _field(problem, path)
        if "missing required" in problem and field in taken:
            return  # it was there, and has been reported
        yield problem
        if not isinstance(left, dict) or field not in left:
            return
        taken.add(field)
        del left[field]


def _field(problem: str, path: str) -> str:
    """The field of a part that a problem is about: the field that it names, or the first field on its path."""
    named = _FIELD.search(problem)
    _, found, inside = problem.partition(f"`{path}.")
    if found:
        return re.split(r"[.\[`]", inside, maxsplit=1)[0]
    return named[1] if named else ""


def _problem(given: Json, kind: type[Any]) -> str:
    try:
        msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        return str(error)
    return ""
