"""Reads the summary of a story file for the board, fast.

Front matter that consists of plain lines is read here; anything more complex is left to the parser.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

from backedge.core.suggestions import closest
from backedge.core.text import one_line
from backedge.core.value import Value
from backedge.stories.rules.assessor import STATUSES, StoryStatus
from backedge.stories.rules.front_matter import parse_story, split_front_matter
from backedge.stories.rules.front_matter_reader import StoryFileError, typed_value

ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
MOST_REFINEMENTS = 10
_LISTS = ("dependencies", "labels")
"""Fields with a list of words; one word stands for a list of one."""
_READ = (
    *("id", "title", "status", "priority", "max_refinement_attempts", "blocked_reason", "refinement_count", "epic"),
    *_LISTS,
)
_HEADING = re.compile(r"^#[ \t]+(.+?)[ \t#]*$")
_FENCE = re.compile(r"^ {0,3}(```|~~~)")
_ODD = re.compile(r"[^\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|\r(?!\n)")
"""What YAML does not allow, or takes for the end of a line, and tabs."""
_KEY = r"[A-Za-z_][A-Za-z0-9_-]{0,99}:"
_BARE = r"""[^\s"'&*!|>%@`\[\]{}#,?:-](?:[^\s:#]|[ ](?=[^\s#])|:(?=\S))*|-[0-9][0-9.]*"""
_WORDS = r"\[(?:[A-Za-z0-9_./-]+(?:,[ ]*[A-Za-z0-9_./-]+)*)?\]"
"""A list of plain words on one line."""
_ESCAPED = r"""(?:[^"\\\r\n]|\\["\\/bfnrt]|\\u(?!d[89a-f])[0-9a-f]{4})*"""
"""Text in double quotes that is the same in YAML and JSON."""
_QUOTED = rf"""\"{_ESCAPED}\"|'[^'\r\n]*'"""
_END = r"[ ]*(?:[ ]\#.*)?\r?\n"
_BLANK = r"[ ]*(?:\#.*)?\r?\n"
_VALUE = rf"(?:[ ]+(?:{_QUOTED}|{_BARE}|{_WORDS}))?{_END}"
_PAIR = rf"{_KEY}{_VALUE}"


def _below(one: str) -> str:
    return rf"(?:{_BLANK})*{one}(?:{one}|{_BLANK})*"


def _item(indent: str) -> str:
    """An item of a list: a scalar, or a mapping with one pair per line."""
    return rf"{indent}-[ ](?:{_PAIR}(?:{indent}[ ]{{2}}{_PAIR})*|(?:{_QUOTED}|{_BARE}){_END})"


_LINE = re.compile(
    rf"""(?P<key>{_KEY})(?:[ ]+(?:"(?P<double>{_ESCAPED})"|'(?P<single>[^'\r\n]*)'|(?P<bare>{_BARE})|(?P<words>{_WORDS})))?{_END}"""
    rf"|{_BLANK}"
)


@cache
def _block() -> re.Pattern[str]:
    """A list or a mapping below a key, one item or pair per line."""
    return re.compile("|".join(_below(one) for one in (_item(""), _item("[ ]{2}"), rf"[ ]{{2}}{_PAIR}")))


_ITEM = rf"""[ ]*-[ ](?:"({_ESCAPED})"|'([^'\r\n]*)'|({_BARE})){_END}"""


@cache
def _items() -> re.Pattern[str]:
    """A list of words below a key, one per line."""
    return re.compile("|".join(_below(_ITEM.replace("[ ]*", indent, 1)) for indent in ("", "[ ]{2}")))


@cache
def _an_item() -> re.Pattern[str]:
    return re.compile(rf"^{_ITEM}", re.MULTILINE)


def _word(double: str | None, single: str | None, bare: str | None) -> str:
    return str(json.loads(f'"{double}"')) if double is not None else single or bare or ""


class StorySummary(Value, frozen=True):
    """The fields of a story that people own."""

    id: str
    title: str
    priority: int = 0
    status: StoryStatus = "backlog"
    """The status in the file, which is used until the story has a run."""
    max_refinements: int | None = None
    blocked_reason: str = ""
    dependencies: tuple[str, ...] = ()
    """The ids of the stories that must be done first."""
    epic: str = ""
    labels: tuple[str, ...] = ()
    refinement_count: int | None = None
    """The count in the file: the journal owns it, but a person may set it to ask for more rounds."""


def read_summary(data: bytes, file: str, stem: str) -> StorySummary:
    """Read the summary of a story file. Raises StoryFileError."""
    text, start, close, body = split_front_matter(data, file)
    values = _quick(text[start:close])
    if values is None:
        values = dict(parse_story(data, file).values)
    if values.get("title") is None:
        values["title"] = first_heading(text[body:])
    return _checked(values, data, file, stem)


def first_heading(text: str) -> str | None:
    """The first heading of the highest level, outside of code; None if there is none."""
    fence = ""
    for line in text.splitlines():
        if found := _FENCE.match(line):
            fence = "" if fence == found[1] else fence or found[1]
        elif not fence and (heading := _HEADING.match(line)):
            return heading[1]
    return None


def _quick(text: str) -> dict[str, Any] | None:
    """The values of plain lines, the same as the parser gives; None if anything needs the parser.

    Lists and mappings below a key are only skipped, unless the summary has that list."""
    if _ODD.search(text):
        return None
    values: dict[str, Any] = {}
    place, last = 0, len(text)
    while place < last:
        match = _LINE.match(text, place)
        if match is None:
            return None
        place = match.end()
        key, double, single, bare, words = match.groups()
        if key is None:
            continue
        name = key[:-1]
        if name in values or (words is not None and name in _READ and name not in _LISTS):
            return None
        if bare is not None:
            values[name] = typed_value(name, bare)
        elif words is not None:
            values[name] = [word.strip() for word in words[1:-1].split(",") if word.strip()] if name in _LISTS else []
        else:
            values[name] = json.loads(f'"{double}"') if double is not None else single
            if values[name] is None and name in _LISTS and (items := _items().match(text, place)):
                values[name] = [_word(*each.groups()) for each in _an_item().finditer(items[0])]
                place = items.end()
            elif values[name] is None and name not in _READ and (below := _block().match(text, place)):
                place = below.end()
    return values


def _checked(values: dict[str, Any], data: bytes, file: str, stem: str) -> StorySummary:
    id = values.get("id")
    id = stem if id is None else str(id)
    problem = where = ""
    if not ID.fullmatch(id):
        problem, where = f"id is {id!r}: use letters, digits, dots, dashes and underscores, at most 100", "id"
    status: Any = values.get("status") or "backlog"
    if status not in STATUSES:
        meant = closest(status, STATUSES, 0.85)
        hint = f"did you mean {meant!r}?" if meant else f"use one of {', '.join(STATUSES)}"
        problem, where = f"status is {status!r}: {hint}", "status"
    priority = values.get("priority")
    priority = 0 if priority is None else priority
    if not _whole(priority) or abs(priority) > 1_000_000:
        problem, where = f"priority is {priority!r}: expected a whole number, lower goes first", "priority"
    most = values.get("max_refinement_attempts")
    if most is not None and not (_whole(most) and 0 <= most <= MOST_REFINEMENTS):
        where = "max_refinement_attempts"
        problem = f"{where} is {most!r}: expected a whole number from 0 to {MOST_REFINEMENTS}"
    title = values.get("title")
    if isinstance(title, list | dict):
        shape = "list" if isinstance(title, list) else "mapping"
        problem, where = f"title is a {shape}: write it as text, in quotes if necessary", "title"
    lists: dict[str, tuple[str, ...]] = {}
    for name in _LISTS:
        found = _words(values.get(name))
        if found is None:
            problem, where = f"{name} is {values[name]!r}: write a list of words, such as [one, two]", name
        lists[name] = found or ()
    epic = values.get("epic")
    if isinstance(epic, list | dict):
        problem, where = "epic is not one name: a story belongs to one epic; use labels for more", "epic"
    if problem:
        raise _misplaced(data, file, where, problem)
    reason = values.get("blocked_reason")
    return StorySummary(
        id,
        one_line(stem if title is None else str(title)),
        priority,
        status,
        most,
        one_line("" if reason is None else str(reason)),
        lists["dependencies"],
        one_line("" if epic is None else str(epic)),
        lists["labels"],
        count if _whole(count := values.get("refinement_count")) else None,
    )


def _words(value: Any) -> tuple[str, ...] | None:
    """A list of words, without repetitions; None if it is something else."""
    items = value if isinstance(value, list) else [] if value is None else [value]
    if any(isinstance(each, list | dict) or each is None for each in items):
        return None
    return tuple(dict.fromkeys(one_line(str(each)) for each in items))


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _misplaced(data: bytes, file: str, key: str, problem: str) -> StoryFileError:
    """An error for a wrong value, with its place."""
    story = parse_story(data, file)
    span = story.spans.get(key)
    place = span.start if span else 0
    line = story.text.count("\n", 0, place) + 1
    return StoryFileError(file, line, place - story.text.rfind("\n", 0, place), problem)
