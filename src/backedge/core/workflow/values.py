"""References into artifacts: `step:/json/pointer`, where `step` alone is the whole output."""

from __future__ import annotations

import re
from collections.abc import Mapping

from backedge.core.value import Json, Value

_POINTER = re.compile(r"(/([^~/]|~[01])*)*")


class Missing:
    """The one value that stands for a place where there is nothing; null is something."""

    def __repr__(self) -> str:
        return "nothing"


MISSING = Missing()


class Reference(Value, frozen=True):
    """A place in the output of a step."""

    step: str
    pointer: str = ""

    def __str__(self) -> str:
        return f"{self.step}:{self.pointer}" if self.pointer else self.step


def parse_reference(text: str) -> Reference:
    """A reference as people write it. Raises ValueError, saying how, for what is none."""
    step, _, pointer = text.strip().partition(":")
    if not step or re.search(r"\s", text.strip()):
        raise ValueError(f"{text!r} is no reference: write step:/json/pointer, such as plan:/ui")
    if not _POINTER.fullmatch(pointer):
        fixed = f"{step}:/{pointer.lstrip('/')}" if "~" not in pointer else f"{step}:/name"
        raise ValueError(f"{text!r} has no JSON pointer after the colon: write {fixed!r}")
    return Reference(step, pointer)


def value_at(value: Json, pointer: str) -> Json | Missing:
    """What a JSON pointer names in a value; MISSING where there is nothing."""
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
    """What several pointers name in a value, without those that name nothing."""
    there = ((pointer, value_at(value, pointer)) for pointer in pointers)
    return {pointer: each for pointer, each in there if not isinstance(each, Missing)}


def equal(one: Json, other: Json) -> bool:
    """Whether two JSON values are the same: 1 and 1.0 are, 1 and true are not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    return bool(one == other)


_WRITTEN = re.compile(r"\s*([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?![.,]?\d)\s*(.*)", re.DOTALL)
"""A number and its unit. Digits after a comma, or after a second point, could mean anything: that is no number."""


class Amount(Value, frozen=True):
    number: float
    unit: str = ""

    def fits(self, other: Amount) -> bool:
        """Whether two amounts can be held against each other: in the same unit, or one of them says none."""
        return not self.unit or not other.unit or self.unit == other.unit


def parse_amount(value: Json) -> Amount | None:
    """The amount that a value is; None for one that is none."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Amount(value)
    written = _WRITTEN.fullmatch(value) if isinstance(value, str) else None
    return Amount(float(written[1]), written[2].strip()) if written else None
