"""Values that are kept under paths of words with dots between them."""

from __future__ import annotations

from backedge.core.value import Json


def with_value(values: Json, path: str, value: Json) -> Json:
    """The values with one more; those on the way to it are made as needed."""
    part, _, rest = path.partition(".")
    inside = values.get(part, {}) if rest else None
    return {**values, part: with_value(inside, rest, value) if rest else value}
