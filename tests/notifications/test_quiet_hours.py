"""Hours in which nobody is disturbed: across midnight, and where the clock changes."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backedge.adapters.notifications.quiet_hours import quiet_until

BERLIN = ZoneInfo("Europe/Berlin")


def berlin(text: str, fold: int = 0) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN, fold=fold).timestamp()


@pytest.mark.parametrize(
    ("quiet", "now", "until"),
    [
        ("22:00-07:00", "2026-03-01 21:59:59", None),
        ("22:00-07:00", "2026-03-01 22:00", "2026-03-02 07:00"),
        ("22:00-07:00", "2026-03-01 23:59:59", "2026-03-02 07:00"),
        ("22:00-07:00", "2026-03-02 00:00", "2026-03-02 07:00"),
        ("22:00-07:00", "2026-03-02 06:59:59", "2026-03-02 07:00"),
        ("22:00-07:00", "2026-03-02 07:00", None),
        ("12:00-13:30", "2026-03-01 12:30", "2026-03-01 13:30"),
        ("12:00-13:30", "2026-03-01 11:00", None),
        ("08:00-08:00", "2026-03-01 08:00", None),
        # The night in which an hour is missing, and the one that has an hour twice.
        ("22:00-07:00", "2026-03-28 23:00", "2026-03-29 07:00"),
        ("22:00-07:00", "2026-10-24 23:00", "2026-10-25 07:00"),
        ("22:00-02:30", "2026-03-29 01:59", "2026-03-29 03:30"),
    ],
)
def test_they_end_when_the_clock_says_so(quiet: str, now: str, until: str | None) -> None:
    expected = berlin(until) if until else None
    assert quiet_until(quiet, berlin(now), BERLIN) == expected
    assert quiet_until(f"{quiet} Europe/Berlin", berlin(now), UTC) == expected


def test_an_end_in_the_hour_that_is_there_twice_is_the_second_one() -> None:
    end = berlin("2026-10-25 02:30", fold=1)
    for fold in (0, 1):
        assert quiet_until("22:00-02:30", berlin("2026-10-25 02:10", fold), BERLIN) == end


def test_without_quiet_hours_every_time_is_fine() -> None:
    assert quiet_until("", 0.0, BERLIN) is None


@given(
    st.integers(0, 24 * 60 - 1),
    st.integers(0, 24 * 60 - 1),
    st.integers(1_767_225_600, 1_798_761_600),
)
def test_the_end_is_always_after_now_and_within_a_day(begin: int, end: int, now: int) -> None:
    quiet = f"{begin // 60:02}:{begin % 60:02}-{end // 60:02}:{end % 60:02}"
    until = quiet_until(quiet, now, BERLIN)
    if until is not None:
        assert now < until <= now + 25 * 3600
