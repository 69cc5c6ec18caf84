"""Reading the records of a file: each function checks one field and says what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from backedge.core.errors import ImportRefused
from backedge.core.model import Kind, Severity, severity_of
from backedge.core.suggestions import did_you_mean
from backedge.core.value import Json

T = TypeVar("T")

KINDS = tuple(map(str, Kind))
"""The kinds of feedback that a file may contain."""
MOST_PROBLEMS = 20
"""How many problems of one file are listed."""

_TIME = re.compile(
    r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])([T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d([.,]\d+)?)?(Z|[+-]\d\d:?\d\d)?)?"
)


class RecordError(ValueError):
    """What is wrong with one record."""


def read_records(value: Json, what: str, noun: str, read: Callable[[dict[str, Any], int], T]) -> list[T]:
    """Read a list of JSON objects, each with its number from 1. Raises ImportRefused with the problems of all of them."""
    try:
        records = objects(value, what)
    except RecordError as error:
        raise ImportRefused(str(error)) from None
    found: list[T] = []
    problems: list[str] = []
    for number, record in enumerate(records, 1):
        try:
            found.append(read(record, number))
        except RecordError as error:
            problems.append(f"{noun} {number}: {error}")
    if problems:
        raise ImportRefused(tuple(problems[:MOST_PROBLEMS]))
    return found


def objects(value: Json, what: str) -> list[dict[str, Any]]:
    """A list of JSON objects. Raises RecordError."""
    if not isinstance(value, list):
        raise RecordError(f"{what} is {_type(value)}: expected a list of objects")
    for number, each in enumerate(value, 1):
        if not isinstance(each, dict):
            raise RecordError(f"item {number} of {what} is {_type(each)}: expected an object")
    return value


def text(record: Mapping[str, Any], *names: str) -> str:
    """A required text, under the first of these names that the record has. Raises RecordError."""
    value = next((record[name] for name in names if record.get(name) is not None), None)
    if value is None:
        raise RecordError(f"{names[0]} is missing: add it")
    if not isinstance(value, str):
        raise RecordError(f"{names[0]} is {_type(value)}: expected a text")
    if not value.strip():
        raise RecordError(f"{names[0]} is empty: fill it in")
    return value


def optional_text(record: Mapping[str, Any], *names: str) -> str | None:
    return text(record, *names) if any(record.get(name) is not None for name in names) else None


def requirement(record: Mapping[str, Any]) -> str | None:
    """The id of the requirement; some systems keep it in the details. Raises RecordError."""
    details = record.get("details")
    if record.get("requirement_id") is None and isinstance(details, dict):
        stated = details.get("requirement_id")
        return stated if isinstance(stated, str) and stated.strip() else None
    return optional_text(record, "requirement_id")


def texts(record: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """A list of texts; a single text counts as a list of one, and a missing one as empty. Raises RecordError."""
    value = record.get(name)
    if value is None:
        return ()
    several = [value] if isinstance(value, str) else value
    if not isinstance(several, list) or not all(isinstance(each, str) and each.strip() for each in several):
        raise RecordError(f"{name} is {_shown(value)}: expected a text or a list of texts")
    return tuple(several)


def number(record: Mapping[str, Any], *names: str, default: float = 0) -> float:
    """A number, 0 or more. Raises RecordError."""
    value = next((record[name] for name in names if record.get(name) is not None), default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise RecordError(f"{names[0]} is {_shown(value)}: expected a number, 0 or more")
    return value


def whole(record: Mapping[str, Any], name: str, default: int) -> int:
    value = number(record, name, default=default)
    if not isinstance(value, int):
        raise RecordError(f"{name} is {_shown(value)}: expected a whole number")
    return value


def word(record: Mapping[str, Any], name: str, known: Iterable[str], default: str | None = None) -> str:
    """One of some words. Raises RecordError with the nearest known one."""
    if default is not None and record.get(name) is None:
        return default
    value, words = text(record, name), tuple(known)
    if value not in words:
        raise RecordError(f"{name} {value!r} is unknown: {did_you_mean(value, words)}")
    return value


def severity(record: Mapping[str, Any], name: str) -> tuple[Severity, bool]:
    """A severity in any of the known words, and whether it blocks; high if it is missing. Raises RecordError."""
    value = optional_text(record, name)
    try:
        return severity_of(value) if value is not None else (Severity.HIGH, False)
    except ValueError as error:
        raise RecordError(f"{name}: {error}") from None


def time(record: Mapping[str, Any], name: str) -> str | None:
    """A time in ISO 8601; None if it is missing. Raises RecordError."""
    value = optional_text(record, name)
    if value is not None and not _TIME.fullmatch(value):
        raise RecordError(f"{name} {value!r} is not a time: expected one such as 2025-01-21T14:00:00Z")
    return value


def _type(value: Json) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _shown(value: Json) -> str:
    shown = msgspec.json.encode(value).decode()
    return shown if len(shown) <= 60 else shown[:59] + "…"
