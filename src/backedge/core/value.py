"""The one base of everything in the core: an immutable value that reads and writes itself as plain JSON."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

Json = Any
"""A JSON value: None, bool, int, float, str, list or dict with string keys."""


class Value(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """An immutable value. Fields that hold their default are left out of the JSON, which keeps events readable.

    Values are made of older values, so that none can be part of a cycle: the collector need not look at them.
    """


__all__ = ["Json", "Value", "replace"]
