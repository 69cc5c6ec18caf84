"""References into artifacts: `step:/json/pointer`, where `step` alone is the whole output."""

from __future__ import annotations

import re
from collections.abc import Mapping

from backedge.core.value import Json, Value

_POINTER = re.compile(r"(/([^~/]|~[01])*)*")


class Missing:
    """The type of MISSING, which stands for a value that does not exist. Null exists."""

    def __repr__(self) -> str:
        return "nothing"


MISSING = Missing()


class Reference(Value, frozen=True):
    """A pointer into the output of a step."""

    step: str
    pointer: str = ""

    def __str__(self) -> str:
        return f"{self.step}:{self.pointer}" if self.pointer else self.step


def parse_reference(text: str) -> Reference:
    """Parse a reference. Raises ValueError, which shows how to write one."""
    step, _, pointer = text.strip().partition(":")
    if not step or re.search(r"\s", text.strip()):
        raise ValueError(f"{text!r} is not a reference: write step:/json/pointer, such as plan:/ui")
    if not _POINTER.fullmatch(pointer):
        fixed = f"{step}:/{pointer.lstrip('/')}" if "~" not in pointer else f"{step}:/name"
        raise ValueError(f"{text!r} has no JSON pointer after the colon: write {fixed!r}")
    return Reference(step, pointer)


def value_at(value: Json, pointer: str) -> Json | Missing:
    """The value at a JSON pointer; MISSING if there is none."""
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and key.isascii() and int(key) < len(value):
            value = value[int(key)]
        else:
            return MISSING
    return value


def values_at(value: Json, pointers: tuple[str, ...]) -> Mapping[str, Json]:
    """The values at several pointers, without the missing ones."""
    found = ((pointer, value_at(value, pointer)) for pointer in pointers)
    return {pointer: each for pointer, each in found if not isinstance(each, Missing)}


def equal(one: Json, other: Json) -> bool:
    """Whether two JSON values are the same: 1 and 1.0 are, 1 and true are not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    return bool(one == other)


_AMOUNT = re.compile(r"\s*([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?![.,]?\d)\s*(.*)", re.DOTALL)
"""A number and its unit. Digits after a comma, or after a second point, are ambiguous, so they do not match."""


class Amount(Value, frozen=True):
    """A number with or without a unit."""

    number: float
    unit: str = ""

    def fits(self, other: Amount) -> bool:
        """Whether two amounts can be compared: they have the same unit, or one of them has none."""
        return not self.unit or not other.unit or self.unit == other.unit


def parse_amount(value: Json) -> Amount | None:
    """The amount that a value stands for; None if it is not an amount."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Amount(value)
    match = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
    return Amount(float(match[1]), match[2].strip()) if match else None
