"""Amounts: numbers, and texts that begin with one, such as "80 %" or "200 ms"."""

from __future__ import annotations

import re

from backedge.core.value import Json, Value

_WRITTEN = re.compile(r"\s*([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?![.,]?\d)\s*(.*)", re.DOTALL)
"""A number and its unit. Digits after a comma, or after a second point, could mean anything: that is no number."""


class Amount(Value, frozen=True):
    number: float
    unit: str = ""

    def fits(self, other: Amount) -> bool:
        """Whether two amounts can be held against each other: in the same unit, or one of them says none."""
        return not self.unit or not other.unit or self.unit == other.unit


def amount(value: Json) -> Amount | None:
    """The amount that a value is; None for one that is none."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Amount(value)
    written = _WRITTEN.fullmatch(value) if isinstance(value, str) else None
    return Amount(float(written[1]), written[2].strip()) if written else None
