"""An axis of time at work: where nothing ran for a while, there is a break of a fixed width that says why."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from backedge.web.timeline.bars import Bar, Wait, seconds_words

BREAK = 100.0
"""The width of a break."""
SHORTEST = 0.02
"""From which part of the time at work on a gap is a break."""
STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200, 86_400, 604_800)
REASONS = {"you": "waits for you", "provider": "provider limit", "retry": "retries", "paused": "paused"}


@dataclass(frozen=True)
class Break:
    start: float
    """When nothing ran any more."""
    x: float
    label: str
    reason: str


@dataclass(frozen=True)
class Tick:
    x: float
    label: str


@dataclass(frozen=True)
class Axis:
    """From moments to places."""

    starts: list[float]
    """When each stretch of work began."""
    ends: list[float]
    places: list[float]
    """Where each stretch begins."""
    scale: float
    breaks: tuple[Break, ...]
    ticks: tuple[Tick, ...]
    right: float

    def x(self, at: float) -> float:
        index = max(0, bisect_right(self.starts, at) - 1)
        inside = min(max(at, self.starts[index]), self.ends[index])
        return round(self.places[index] + (inside - self.starts[index]) * self.scale, 1)


def stretches(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """When anything ran, without overlaps."""
    found: list[tuple[float, float]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def axis_of(
    shown: Sequence[Bar], earlier: Sequence[Bar], waits: Sequence[Wait], now: float, left: float, width: float
) -> Axis:
    """The axis for these bars. `earlier` are the bars before them: they say how much work came before."""
    spans = stretches([(bar.start, now if bar.end is None else bar.end) for bar in shown])
    before = sum(end - start for start, end in stretches([(bar.start, bar.end or bar.start) for bar in earlier]))
    work = sum(end - start for start, end in spans) or 1.0
    joined: list[tuple[float, float]] = []
    for start, end in spans:
        if joined and start - joined[-1][1] < work * SHORTEST:
            joined[-1] = joined[-1][0], end
        else:
            joined.append((start, end))
    length = sum(end - start for start, end in joined) or 1.0
    room = max(width - BREAK * (len(joined) - 1), 40.0 * len(shown) ** 0.5, 320.0)
    scale = room / length
    x, places, breaks = left, list[float](), list[Break]()
    moments = [wait.since for wait in waits]
    for index, (start, end) in enumerate(joined):
        if index:
            since = joined[index - 1][1]
            reason = _reason(waits, moments, since, start)
            breaks.append(Break(since, round(x, 1), seconds_words(start - since), REASONS.get(reason, "stopped")))
            x += BREAK
        places.append(round(x, 1))
        x += (end - start) * scale
    ticks = _ticks(joined, places, scale, before, length)
    return Axis([each[0] for each in joined], [each[1] for each in joined], places, scale, tuple(breaks), ticks, x)


def _reason(waits: Sequence[Wait], moments: list[float], since: float, until: float) -> str:
    """Why nothing ran: the reason that began last before, or just as the gap began."""
    index = bisect_right(moments, since + min(1.0, (until - since) / 2)) - 1
    return waits[index].reason if index >= 0 else ""


def _ticks(
    joined: Sequence[tuple[float, float]], places: Sequence[float], scale: float, before: float, length: float
) -> tuple[Tick, ...]:
    step = next((each for each in STEPS if each * scale >= 88), STEPS[-1])
    step = max(step, length / 40)
    found = []
    worked = before
    tick = -(-before // step) * step
    for (start, end), place in zip(joined, places, strict=True):
        while tick <= worked + (end - start) + 1e-9:
            x = round(place + (tick - worked) * scale, 1)
            # The label of a break needs the room beside it.
            said = "0" if not tick else "" if x - place < BREAK / 2 and place != places[0] else seconds_words(tick)
            found.append(Tick(x, said))
            tick += step
        worked += end - start
    return tuple(found)
