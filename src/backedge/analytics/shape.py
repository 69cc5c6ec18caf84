"""The base of everything that `--json` prints about a run."""

from __future__ import annotations

import msgspec


class Shape(msgspec.Struct, frozen=True):
    """Part of a report: every key is always there."""
