"""The events of a run in words, page by page, and the moments that matter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from backedge.core import events as e
from backedge.core.state.evolve import replay
from backedge.core.state.run import RunState
from backedge.core.text import shown
from backedge.reading.event_words import lines_of
from backedge.web.timeline.bars import seconds_words

PAGE = 60
"""How many events to show at once."""
LONGEST = 400
MOST_STOPS = 400


@dataclass(frozen=True)
class EventInWords:
    """One event in words."""

    seq: int
    clock: str
    """The time at work."""
    lines: tuple[str, ...]
    tone: str
    time: str


@dataclass(frozen=True)
class ShownEvents:
    lines: tuple[EventInWords, ...]
    """The newest first."""
    first: int
    last: int
    total: int


TONES = {
    "✗": "bad",
    "!": "bad",
    "✓": "ok",
    "●": "ok",
    "?": "asks",
    "↩": "warn",
    "⤺": "warn",
    "▸": "live",
    "■": "strong",
}


def first_of(total: int, before: int | None) -> tuple[int, int]:
    """The numbers of the events of a page: after the first number, up to the second."""
    last = total if before is None else max(1, min(before - 1, total))
    return max(0, last - PAGE), last


def event_page(earlier: RunState | None, events: Sequence[e.Event], first: int, total: int) -> ShownEvents:
    """A page of events. `earlier` is the state before the first of them, whose number is `first` + 1."""
    state, found = earlier, list[EventInWords]()
    for seq, event in enumerate(events, first + 1):
        state = replay([event], state)
        assert state is not None
        lines = tuple(shown(line.strip(), LONGEST) for line in _lines(event, state))
        if lines:
            tone = TONES.get(lines[0][:1], "")
            found.append(
                EventInWords(seq, seconds_words(state.seconds_at_work(event.at)), lines, tone, moment_words(event.at))
            )
    return ShownEvents(tuple(reversed(found)), first + 1, first + len(events), total)


def _lines(event: e.Event, state: RunState) -> Iterable[str]:
    if isinstance(event, e.RunStarted):
        return [f"■ {event.workflow.name} started"]
    return lines_of(event, state)


def moment_words(at: float) -> str:
    """A moment for people anywhere: 2026-11-18 20:51:07 UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


@dataclass(frozen=True)
class Stop:
    """A moment that matters."""

    seq: int
    kind: str
    told: str


_RANK = {"ask": 0, "end": 0, "decision": 0, "back": 1, "fail": 2, "closed": 3, "broke": 3}


def stops_of(events: Sequence[e.Event]) -> tuple[Stop, ...]:
    """The moments that matter in a run, in order: failing verdicts, questions, decisions, errors, the ends of loops."""
    found = list(_stops(events))
    if len(found) > MOST_STOPS:
        found.sort(key=lambda each: (_RANK[each.kind], -each.seq))
        found = sorted(found[:MOST_STOPS], key=lambda each: each.seq)
    return tuple(found)


def _stops(events: Iterable[e.Event]) -> Iterator[Stop]:
    for seq, event in enumerate(events, 1):
        match event:
            case e.VerdictGiven(word="fail"):
                yield Stop(seq, "fail", f"{event.judge} fails it")
            case e.EscalationOpened():
                yield Stop(seq, "ask", f"{event.escalation} asks a person")
            case e.EscalationDecided():
                yield Stop(seq, "decision", f"{event.escalation} decided: {event.choice}")
            case e.RolledBack():
                yield Stop(seq, "back", f"round {event.round} of {event.loop} rolled back")
            case e.LoopClosed():
                yield Stop(seq, "closed", f"{event.loop} {event.state}")
            case e.AttemptFailed():
                yield Stop(seq, "broke", f"{event.step} broke")
            case e.RunEnded():
                yield Stop(seq, "end", event.outcome)
            case _:
                pass
