"""What a file of another system says, in our words; and what every reader of such files needs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from backedge.analytics.defects import Defect
from backedge.analytics.progress import Progress
from backedge.core.feedback.loop import FINAL, LoopState
from backedge.core.model import Kind, Severity, severity_of
from backedge.core.suggestions import did_you_mean
from backedge.core.value import Json

KINDS = tuple(map(str, Kind))
"""The kinds of feedback that files may speak of."""

_TIME = re.compile(
    r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])([T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d([.,]\d+)?)?(Z|[+-]\d\d:?\d\d)?)?"
)

MOST_PROBLEMS = 20
"""How many problems of one file are told."""


class LoopRecord(msgspec.Struct, frozen=True):
    """One loop as files tell it: of a run of ours, or of another system."""

    id: str
    kind: str
    source: str
    targets: tuple[str, ...]
    message: str
    state: LoopState
    severity: Severity = Severity.HIGH
    blocking: bool = False
    rounds: int = 0
    suggested_fix: str | None = None
    requested_info: str | None = None
    artifacts: tuple[str, ...] = ()
    opened_at: str | None = None
    """In ISO 8601."""
    closed_at: str | None = None
    reason: str = ""
    """Why it was escalated, if it was."""
    resolution: Json = None
    details: Json = None

    @property
    def open(self) -> bool:
        return self.state not in FINAL


class Contents(msgspec.Struct, frozen=True):
    """All that a file says."""

    loops: tuple[LoopRecord, ...] = ()
    defects: tuple[Defect, ...] = ()
    progress: Progress | None = None
    """The iterations of a tight loop, if it is a file about one."""
    notes: Mapping[int, tuple[str, ...]] = {}
    """What people decided, by iteration."""


class Trouble(ValueError):
    """What is wrong with one record."""


def objects(value: Json, what: str) -> list[dict[str, Any]]:
    """A list of JSON objects. Raises Trouble."""
    if not isinstance(value, list):
        raise Trouble(f"{what} is {_type(value)}: expected a list of objects")
    for number, each in enumerate(value, 1):
        if not isinstance(each, dict):
            raise Trouble(f"item {number} of {what} is {_type(each)}: expected an object")
    return value


def text(record: Mapping[str, Any], *names: str) -> str:
    """A text that has to be there, under the first of these names that is. Raises Trouble, naming it."""
    value = next((record[name] for name in names if record.get(name) is not None), None)
    if value is None:
        raise Trouble(f"{names[0]} is missing: give it")
    if not isinstance(value, str):
        raise Trouble(f"{names[0]} is {_type(value)}: expected a text")
    if not value.strip():
        raise Trouble(f"{names[0]} is empty: give it")
    return value


def optional_text(record: Mapping[str, Any], *names: str) -> str | None:
    return text(record, *names) if any(record.get(name) is not None for name in names) else None


def texts(record: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """A list of texts; a single one is a list of one, and none an empty one. Raises Trouble."""
    value = record.get(name)
    if value is None:
        return ()
    several = [value] if isinstance(value, str) else value
    if not isinstance(several, list) or not all(isinstance(each, str) and each.strip() for each in several):
        raise Trouble(f"{name} is {_shown(value)}: expected a text or a list of texts")
    return tuple(several)


def number(record: Mapping[str, Any], *names: str, default: float = 0) -> float:
    """A number, 0 or more. Raises Trouble."""
    value = next((record[name] for name in names if record.get(name) is not None), default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise Trouble(f"{names[0]} is {_shown(value)}: expected a number, 0 or more")
    return value


def whole(record: Mapping[str, Any], name: str, default: int) -> int:
    value = number(record, name, default=default)
    if not isinstance(value, int):
        raise Trouble(f"{name} is {_shown(value)}: expected a whole number")
    return value


def word(record: Mapping[str, Any], name: str, known: Iterable[str], default: str | None = None) -> str:
    """One of some words. Raises Trouble with the nearest that is known."""
    if default is not None and record.get(name) is None:
        return default
    value, words = text(record, name), tuple(known)
    if value not in words:
        raise Trouble(f"{name} {value!r} is unknown: {did_you_mean(value, words)}")
    return value


def severity(record: Mapping[str, Any], name: str) -> tuple[Severity, bool]:
    """A severity in anybody's words, and whether it blocks; high if nothing is said. Raises Trouble."""
    said = optional_text(record, name)
    try:
        return severity_of(said) if said is not None else (Severity.HIGH, False)
    except ValueError as error:
        raise Trouble(f"{name}: {error}") from None


def time(record: Mapping[str, Any], name: str) -> str | None:
    """A time in ISO 8601; None if it is not there. Raises Trouble."""
    said = optional_text(record, name)
    if said is not None and not _TIME.fullmatch(said):
        raise Trouble(f"{name} {said!r} is no time: expected one such as 2025-01-21T14:00:00Z")
    return said


def _type(value: Json) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _shown(value: Json) -> str:
    said = msgspec.json.encode(value).decode()
    return said if len(said) <= 60 else said[:59] + "…"
