"""A time as people read it."""

from __future__ import annotations

import time


def clock_time(at: float, now: float | None = None) -> str:
    """A time as a person here reads it: 17:00, with the date if it is not today."""
    moment, today = time.localtime(at), time.localtime(now)
    return time.strftime("%H:%M" if moment[:3] == today[:3] else "%Y-%m-%d %H:%M", moment)
