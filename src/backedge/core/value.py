"""The base of all values in the core: immutable structs that are read from and written to plain JSON."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

Json = Any
"""A JSON value: None, bool, int, float, str, list or dict with string keys."""


class Value(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """An immutable value. Fields that have their default are left out of the JSON, which keeps events readable.

    A value can only contain values that existed before it, so values never form cycles. They are therefore exempt from
    garbage collection (`gc=False`), which makes large states cheaper.
    """


__all__ = ["Json", "Value", "replace"]
