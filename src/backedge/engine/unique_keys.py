"""Finds keys that a JSON object has twice: readers disagree about which of the two values counts, so none does."""

from __future__ import annotations

import json
from typing import Any


class _Found(Exception):
    """A key was found twice."""


def duplicate_key(text: str | bytes) -> str | None:
    """The first key that one of the objects in a JSON text has twice, however deep; None if all are unique, and for text
    that is not JSON."""
    readable = text.decode("utf-8-sig", "replace") if isinstance(text, bytes) else text
    try:
        json.loads(readable, strict=False, object_pairs_hook=_unique, parse_int=str, parse_float=str)
    except _Found as found:
        return str(found)
    except (ValueError, RecursionError):
        pass  # the reader of the text says what is wrong with it
    return None


def _unique(pairs: list[tuple[str, Any]]) -> None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise _Found(key)
        seen.add(key)
