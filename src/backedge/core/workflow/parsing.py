"""Words, mappings and numbers as users write them. Each error names the field, what was got and what was expected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from backedge.core.errors import WorkflowError

LONGEST = 80
"""How many characters of a wrong value an error shows."""


def words(field: str, given: object) -> tuple[str, ...]:
    """One word or several."""
    if isinstance(given, str):
        return (given,)
    if isinstance(given, Iterable) and not isinstance(given, Mapping | bytes):
        found = tuple(given)
        if all(isinstance(word, str) for word in found):
            return found
    raise WorkflowError(f"{field} is {shown(given)}: expected text, or a list of texts")


def mapping(field: str, given: object) -> dict[str, object]:
    """Values by name; none at all for None."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
        raise WorkflowError(f"{field} is {shown(given)}: expected a mapping from names to values")
    return dict(given)


def whole(given: Any) -> Any:
    """A whole number that is written as a decimal, such as 3.0, as an int; anything else as it is."""
    return int(given) if isinstance(given, float) and given.is_integer() else given


def shown(given: object) -> str:
    """A value for an error, cut short."""
    try:
        text = repr(given)
    except ValueError:  # a number with more digits than Python writes
        text = f"a very large {type(given).__name__}"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
