"""A look at a story file for the board: what people say in it, quickly.

Front matter of plain lines is read here; whatever is more than that is left to the parser.
"""

from __future__ import annotations

import re
from typing import Any

from backedge.adapters.stories.front_matter import StoryFileError, parsed, plain, split
from backedge.core.assessor import STATUSES, StoryStatus
from backedge.core.value import Value
from backedge.core.wording import one_line

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
MOST_REFINEMENTS = 10
_READ = ("id", "title", "status", "priority", "max_refinement_attempts", "blocked_reason")
_LINE = re.compile(
    r"""([A-Za-z_][A-Za-z0-9_-]*):(?:[ ]+(?:"([^"\\\t]*)"|'([^'\t]*)'|([^\s"'&*!|>%@`\[\]{}#,?:-](?:[^\s:#]|[ ](?=[^\s#])|:(?=\S)|-(?=\S))*|-[0-9][0-9.]*)))?[ ]*(?:[ ]\#.*)?\r?"""
)
_FLOW = re.compile(
    r"([A-Za-z_][A-Za-z0-9_-]*):[ ]+\[(?:[A-Za-z0-9_./-]+(?:,[ ]*[A-Za-z0-9_./-]+)*)?\][ ]*(?:[ ]\#.*)?\r?"
)
"""A list of plain words: nothing that is read here, and nothing that can be wrong."""
_BELOW = re.compile(r"[ ]+\S.*|-[ ].*|[ ]*(?:\#.*)?\r?")


class Glance(Value, frozen=True):
    """What people say of a story."""

    id: str
    title: str
    priority: int = 0
    status: StoryStatus = "backlog"
    """Its own word, which counts until it has a run."""
    max_refinements: int | None = None
    blocked_reason: str = ""


def glance(data: bytes, file: str, stem: str) -> Glance:
    """What a story file says. Raises StoryFileError."""
    text, start, close, _ = split(data, file)
    values = _quick(text[start:close])
    if values is None:
        values = dict(parsed(data, file).values)
    return _checked(values, data, file, stem)


def _quick(text: str) -> dict[str, Any] | None:
    """The values of plain lines; None if there is anything that takes a parser."""
    values: dict[str, Any] = {}
    nested = False
    for line in text.split("\n"):
        if not line or line[0] in " -#\r":
            # What stands below a key is read only if it is one of ours, and those are on one line.
            if not _BELOW.fullmatch(line) or (line[0:1] in ("-", " ") and line.strip() and not nested):
                return None
            continue
        match = _LINE.fullmatch(line)
        if match is None:
            words = _FLOW.fullmatch(line)
            if words is None or words[1] in values or words[1] in _READ:
                return None
            values[words[1]], nested = [], False
            continue
        name, double, single, bare = match.groups()
        if name in values:
            return None
        values[name] = double if double is not None else single if single is not None else plain(bare or "")
        nested = values[name] is None and name not in _READ
    return values


def _checked(values: dict[str, Any], data: bytes, file: str, stem: str) -> Glance:
    id = values.get("id")
    id = stem if id is None else str(id)
    problem = where = ""
    if not ID.fullmatch(id):
        problem, where = f"id is {id!r}: use letters, digits, dots, dashes and underscores, at most 100", "id"
    status: Any = values.get("status") or "backlog"
    if status not in STATUSES:
        problem, where = f"status is {status!r}: use one of {', '.join(STATUSES)}", "status"
    priority = values.get("priority")
    priority = 0 if priority is None else priority
    if not _whole(priority) or abs(priority) > 1_000_000:
        problem, where = f"priority is {priority!r}: expected a whole number, lower goes first", "priority"
    most = values.get("max_refinement_attempts")
    if most is not None and not (_whole(most) and 0 <= most <= MOST_REFINEMENTS):
        where = "max_refinement_attempts"
        problem = f"{where} is {most!r}: expected a whole number from 0 to {MOST_REFINEMENTS}"
    if problem:
        raise _misplaced(data, file, where, problem)
    title = values.get("title")
    reason = values.get("blocked_reason")
    return Glance(
        id,
        one_line(stem if title is None else str(title)),
        priority,
        status,
        most,
        one_line("" if reason is None else str(reason)),
    )


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _misplaced(data: bytes, file: str, key: str, problem: str) -> StoryFileError:
    """A value that does not fit, with its place."""
    story = parsed(data, file)
    span = story.spans.get(key)
    place = span.start if span else 0
    line = story.text.count("\n", 0, place) + 1
    return StoryFileError(file, line, place - story.text.rfind("\n", 0, place), problem)
