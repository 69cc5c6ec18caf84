"""Hours in which no message is sent."""

from __future__ import annotations

from datetime import datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo


def quiet_until(quiet: str, now: float, zone: tzinfo | None = None) -> float | None:
    """When the quiet hours end that it is in now; None outside of them. `quiet` is such as "22:00-07:00 Europe/Berlin", and
    `zone` the time zone if it names none: None for that of the machine.

    Where the clock is put back, an end inside the repeated hour is the second one: no message comes early.
    """
    hours, _, named = quiet.partition(" ")
    if not hours:
        return None
    zone = ZoneInfo(named) if named else zone
    begin, end = (time.fromisoformat(each) for each in hours.split("-"))
    here = datetime.fromtimestamp(now, zone)
    clock = here.time()
    if begin <= end:
        inside, day = begin <= clock < end, here.date()
    else:
        inside, day = clock >= begin or clock < end, here.date() + timedelta(days=clock >= begin)
    if not inside:
        return None
    # Where the clock is put back, this time is there twice; where it is put forward, it is not there at all. The later
    # reading is always after now.
    ends = datetime.combine(day, end, zone)
    return max(ends.timestamp(), ends.replace(fold=1).timestamp())
