"""Limits of providers, as agent CLIs print them: whether a failure is one, and when it resets.

CLIs pass on the words of their provider, so this reads text: "usage limit reached … resets 5pm (Europe/Berlin)", "…|1731000000",
"try again at 10:01 AM", "Please retry in 41s". What only a payment ends is not a limit that resets, unless a time is stated.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

STATUSES = frozenset({429, 503, 529})
"""The HTTP status codes of too many requests and of overload."""

_LIMIT = re.compile(
    r"(?:status|error|code|rejected)\W{1,3}(?:429|503|529)\b|too many requests|rate.?limit|overloaded|at capacity"
    r"|(?:usage|session|hour|daily|weekly|monthly|opus|sonnet|fast) limit|hit your (?:[\w-]+ ){0,4}limit"
    r"|resource.{0,10}exhausted|exhausted your|quota (?:will reset|increase)|exceeded your current quota",
    re.IGNORECASE,
)
_PAYMENT = re.compile(r"billing|credit balance|out of (?:usage )?credits|spend limit|insufficient_quota", re.IGNORECASE)
_EPOCH = re.compile(r"\|(\d{10})\b")
_STAMP = re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?")
_LATER = re.compile(r"(?:resets?|try again|retry|available)\s+(?:again\s+)?(?:in|after)\s+", re.IGNORECASE)
_AMOUNT = re.compile(
    r"\s*(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)(?![a-z])[,\s]*(?:and )?",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"(?:resets?|try again|retry|available)(?:\s+(?:at|on|after|again))*\s+"
    r"(?:(?P<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+"
    r"(?:(?P<year>\d{4}),?\s+)?(?:at\s+)?)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s*(?P<half>[ap]\.?m\b\.?)?(?:\s*\((?P<zone>[\w/+-]+)\))?",
    re.IGNORECASE,
)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


@dataclass(frozen=True, slots=True)
class ReachedLimit:
    """A limit of a provider that a CLI reported."""

    message: str
    resets_at: float | None = None
    """When it resets, in seconds since the epoch, if the CLI reports that as a number."""
    wait: float | None = None
    """In how many seconds it resets, if the CLI reports that as a number."""

    def seconds(self, now: float | None = None) -> float | None:
        """How long it takes until the limit resets; None if nothing says that."""
        now = time.time() if now is None else now
        if self.resets_at is not None:
            return max(0.0, self.resets_at - now)
        if self.wait is not None:
            return self.wait
        return seconds_until_reset(self.message, now)


def is_limit(message: str, status: object = None) -> bool:
    """Whether the message of a failure, or its HTTP status, is about a limit that resets."""
    if _PAYMENT.search(message) and seconds_until_reset(message, 0.0) is None:
        return False
    return status in STATUSES or _LIMIT.search(message) is not None


def seconds_until_reset(text: str, now: float) -> float | None:
    """In how many seconds a limit resets, as its message says; None if it does not."""
    if epoch := _EPOCH.search(text):
        return max(0.0, float(epoch[1]) - now)
    if (later := _LATER.search(text)) and (seconds := _amount(text, later.end())) is not None:
        return seconds
    if stamp := _STAMP.search(text):
        moment = datetime.fromisoformat(stamp[0].replace(" ", "T", 1))
        return max(0.0, moment.timestamp() - now)
    clock = _CLOCK.search(text)
    return _until(clock, now) if clock else None


def _amount(text: str, start: int) -> float | None:
    """The seconds of "1 day 2 hours and 3 min" or "3h20m10s"; None if there is no such thing."""
    total, found = 0.0, False
    while part := _AMOUNT.match(text, start):
        unit = part[2].lower()
        total += float(part[1]) * _UNITS["ms" if unit.startswith(("ms", "mil")) else unit[0]]
        start, found = part.end(), True
    return total if found else None


def _until(clock: re.Match[str], now: float) -> float | None:
    hour, minute = int(clock["hour"]), int(clock["minute"] or 0)
    half = (clock["half"] or "").lower()
    if not half and clock["minute"] is None:
        return None  # a bare number is not a time
    if half:
        hour = hour % 12 + (12 if half.startswith("p") else 0)
    here = datetime.fromtimestamp(now, _zone(clock["zone"])).astimezone(_zone(clock["zone"]))
    try:
        moment = here.replace(hour=hour, minute=minute, second=0, microsecond=0)
        if clock["month"]:
            month, day = _MONTHS.index(clock["month"].lower()) + 1, int(clock["day"])
            moment = moment.replace(year=int(clock["year"] or here.year), month=month, day=day)
            if not clock["year"] and moment < here - timedelta(days=30):
                moment = moment.replace(year=here.year + 1)
        elif moment <= here:
            moment += timedelta(days=1)
    except ValueError:
        return None
    return max(0.0, moment.timestamp() - now)


def _zone(name: str | None) -> tzinfo | None:
    """The time zone of this name; None, which is that of this machine, if it is not known."""
    try:
        return ZoneInfo(name) if name else None
    except (KeyError, ValueError, OSError):  # no such zone, or no data about zones on this machine
        return None
