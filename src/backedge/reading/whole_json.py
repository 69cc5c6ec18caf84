"""A value with all its fields, as `--json` and the HTTP API give it."""

from __future__ import annotations

from typing import Any

import msgspec

_PLAIN = frozenset({str, int, float, bool, type(None)})


def whole_json(value: Any) -> Any:
    """A value with all its fields. Its own JSON leaves out defaults; readers of --json can rely on every key."""
    if isinstance(value, msgspec.Struct):
        value = {name: getattr(value, name) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return {key: each if type(each) in _PLAIN else whole_json(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [each if type(each) in _PLAIN else whole_json(each) for each in value]
    return value
