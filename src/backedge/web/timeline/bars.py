"""The attempts of a run as bars, the verdicts that caused them, and why nothing happened in between."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from backedge.core import events as e
from backedge.core.text import shortened

WINDOW = 120
"""How many attempts to show at once."""


@dataclass
class Bar:
    """One attempt."""

    step: str
    attempt: int
    kind: str
    """work, rework, cascade, answer, pass, fail, error, dropped or limited."""
    start: float
    end: float | None = None
    """None while it runs."""
    loops: tuple[str, ...] = ()
    cause: tuple[str, ...] = ()
    said: str = ""
    """What it reported: a summary, or the text of the error."""
    cost_usd: float = 0.0
    retry_at: float = 0.0
    judges: bool = False
    caused_by: list[tuple[int, str]] = field(default_factory=list)
    """The failing verdicts that it answers: the index of their bars, and the loops."""


@dataclass(frozen=True)
class Wait:
    """Why a run did nothing for a while."""

    since: float
    reason: str


@dataclass(frozen=True)
class Bars:
    """All attempts of a run, in the order in which they started."""

    bars: list[Bar]
    waits: list[Wait]
    """When the reasons to wait began, in order."""
    last_at: float


def bars_of(events: Iterable[e.Event], judges: Collection[str]) -> Bars:
    """Fold the events of a run. `judges` are the names of its judges."""
    bars: list[Bar] = []
    waits: list[Wait] = []
    running: dict[tuple[str, int], int] = {}
    failed: dict[str, int] = {}
    """The last failing verdict of each judge."""
    raised: dict[str, int] = {}
    """The bar that raised or kept open each loop."""
    by_judge: dict[str, str] = {}
    asked: set[str] = set()
    last_at = 0.0
    for event in events:
        last_at = event.at
        match event:
            case e.AttemptStarted():
                judge = event.step in judges
                bar = Bar(event.step, event.attempt, _kind(event, judge), event.at, judges=judge)
                bar.loops, bar.cause = event.loops, event.cause
                if not judge:
                    bar.caused_by = [(raised[loop], loop) for loop in event.loops if loop in raised]
                running[event.step, event.attempt] = len(bars)
                bars.append(bar)
            case e.AttemptSucceeded() | e.AttemptFailed() | e.AttemptLimited() | e.AttemptDropped():
                index = running.pop((event.step, event.attempt), None)
                if index is not None:
                    _end(bars[index], event)
                    if isinstance(event, e.AttemptLimited):
                        waits.append(Wait(event.at, "provider"))
                    elif isinstance(event, e.AttemptFailed):
                        waits.append(Wait(event.at, "retry"))
                    # The verdict of an attempt is recorded next to its end: its bar is still the last one of its judge.
                    failed[event.step] = index
            case e.VerdictGiven():
                index = failed.get(event.judge)
                if index is not None and bars[index].attempt == event.attempt:
                    bars[index].kind = "fail" if event.word == "fail" else "pass"
                    if event.word == "fail" and event.judge in by_judge:
                        raised[by_judge[event.judge]] = index
            case e.LoopOpened():
                index = failed.get(event.source)
                if index is not None:
                    raised[event.loop] = index
                if event.feedback is None:
                    by_judge[event.source] = event.loop
            case e.LoopClosed():
                for name in [name for name, loop in by_judge.items() if loop == event.loop]:
                    del by_judge[name]
            case e.EscalationOpened():
                asked.add(event.escalation)
                waits.append(Wait(event.at, "you"))
            case e.EscalationDecided():
                asked.discard(event.escalation)
                waits.append(Wait(event.at, "you" if asked else ""))
            case e.RunPaused():
                waits.append(Wait(event.at, "paused"))
            case e.RunResumed() | e.RunRecovered():
                waits.append(Wait(event.at, "you" if asked else ""))
            case _:
                pass
    return Bars(bars, waits, last_at)


def _kind(event: e.AttemptStarted, judge: bool) -> str:
    if judge:
        return "judging"
    if event.mode in ("answer", "decide"):
        return "answer"
    if event.mode == "rework" or event.loops:
        return "rework"
    return "cascade" if event.cause else "work"


_End = e.AttemptSucceeded | e.AttemptFailed | e.AttemptLimited | e.AttemptDropped


def _end(bar: Bar, event: _End) -> None:
    bar.end, bar.cost_usd = event.at, event.usage.cost_usd
    match event:
        case e.AttemptSucceeded():
            bar.said = event.summary
            bar.kind = "pass" if bar.judges else bar.kind
        case e.AttemptFailed():
            bar.kind, bar.said = "error", event.error
        case e.AttemptLimited():
            bar.kind, bar.said, bar.retry_at = "limited", event.message, event.retry_at
        case e.AttemptDropped():
            bar.kind, bar.said = "dropped", event.reason


def window_of(bars: Sequence[Bar], before: int | None = None) -> tuple[int, int]:
    """The first and last index (excluded) of the attempts to show: the last ones, or those before an index."""
    end = len(bars) if before is None else max(1, min(before, len(bars)))
    return max(0, end - WINDOW), end


def bar_words(bar: Bar) -> str:
    """A bar in words, for its title."""
    why = {
        "rework": f"reworks {', '.join(bar.loops)}",
        "cascade": "runs because its input changed",
        "pass": "passes it",
        "fail": "fails it",
        "error": "broke",
        "dropped": "was interrupted",
        "limited": "its provider has reached a limit",
        "judging": "judges",
        "answer": f"answers {', '.join(bar.loops)}",
    }.get(bar.kind, "works")
    seconds = "" if bar.end is None else f", {seconds_words(bar.end - bar.start)}"
    cost = f", ${bar.cost_usd:.2f}" if bar.cost_usd else ""
    said = f": {shortened(bar.said, 300)}" if bar.said else ""
    return f"{bar.step}, attempt {bar.attempt}, {why}{seconds}{cost}{said}"


def seconds_words(seconds: float) -> str:
    """A length of time on an axis: 45 s, 12 min, 1 h 30 min."""
    if seconds < 10:
        return f"{seconds:.1f}".rstrip("0").rstrip(".") + " s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        minutes, rest = divmod(whole, 60)
        return f"{minutes} min" + (f" {rest} s" if rest and minutes < 5 else "")
    if whole < 86_400:
        hours, rest = divmod(round(whole / 60), 60)
        return f"{hours} h" + (f" {rest} min" if rest else "")
    days, rest = divmod(round(whole / 3600), 24)
    return f"{days} d" + (f" {rest} h" if rest else "")
