"""The head of a run page: how it is doing, its budgets, what it waits for, and which limits were hit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from backedge.analytics.report import wait_of
from backedge.analytics.rounds import Histories, LoopHistory
from backedge.analytics.sentence import breach_words, limit_amount, limit_words, sentence
from backedge.core.breaches import limit_counts
from backedge.core.model import Breach
from backedge.core.scheduling.pending import outcome_of
from backedge.core.state.run import RunState
from backedge.core.text import counted, duration, shown

MOST_QUESTIONS = 8


@dataclass(frozen=True)
class Gauge:
    """How much of a limit of the run is used."""

    name: str
    said: str
    part: float
    """From 0 to 100."""
    tone: str


@dataclass(frozen=True)
class AskedQuestion:
    """An open escalation."""

    id: str
    sentence: str
    breach: str
    href: str
    pauses: bool


@dataclass(frozen=True)
class Head:
    run: str
    workflow: str
    outcome: str
    facts: tuple[str, ...]
    reason: str
    gauges: tuple[Gauge, ...]
    questions: tuple[AskedQuestion, ...]
    breaches: tuple[str, ...]
    """Limits that were hit, open questions first: a breach is always visible."""
    waits: tuple[tuple[str, float, str], ...]
    """The steps that wait for their provider: name, until when, what it said."""
    paused_by: str | None


def head_of(state: RunState, histories: Histories) -> Head:
    """The head of a run as it is in this state."""
    outcome = outcome_of(state)
    word = "paused" if state.paused_by is not None and state.ended is None else outcome
    return Head(
        state.run,
        state.workflow.name,
        word,
        _facts(state),
        shown(state.ended.reason, 300) if state.ended is not None else "",
        tuple(map(_gauge, _limits(state))),
        tuple(_questions(state, histories)),
        tuple(_breaches(state)),
        tuple(
            (name, wait.until, shown(wait.message, 160))
            for name in state.steps
            if (wait := wait_of(state, name)) is not None
        ),
        state.paused_by if state.ended is None else None,
    )


def _facts(state: RunState) -> tuple[str, ...]:
    tokens = state.usage.tokens_in + state.usage.tokens_out
    found = [counted(state.attempts, "attempt"), f"${state.usage.cost_usd:.2f}"]
    found += [f"{tokens:,} tokens"] if tokens else []
    found += [f"{duration(state.seconds_at_work(state.last_at))} at work", counted(state.seq, "event")]
    return tuple(found)


def _limits(state: RunState) -> Iterator[Breach]:
    """The limits of the run: its budgets, and its rounds if there were any."""
    yield from limit_counts(state, state.last_at, None, None)
    most = state.workflow.limits.rounds_total
    if most is not None and state.rounds:
        yield Breach("rounds_total", state.rounds, most + state.grants.get("rounds_total", 0))


def _gauge(limit: Breach) -> Gauge:
    part = min(100.0, 100 * limit.count / limit.bound) if limit.bound else 100.0
    tone = "bad" if part >= 100 else "warn" if part >= 75 else "ok"
    said = f"{limit_amount(limit.limit, limit.count)} of {limit_amount(limit.limit, limit.bound)}"
    return Gauge(limit_words(limit.limit), said, part, tone)


def _questions(state: RunState, histories: Histories) -> Sequence[AskedQuestion]:
    found = []
    for each in list(state.escalations.values())[:MOST_QUESTIONS]:
        loop = state.loop(each.loop) if each.loop else None
        found.append(
            AskedQuestion(
                each.id,
                sentence(state, each, histories.get(each.loop or "", LoopHistory())),
                f"limit reached: {breach_words(each.breach)}" if each.breach is not None else "",
                f"/?run={quote(state.run, safe='')}#{quote(state.run, safe='')}:{each.id}",
                loop is None or loop.pauses,
            )
        )
    return found


def _breaches(state: RunState) -> Sequence[str]:
    asked = {each.loop for each in state.escalations.values()}
    found = [
        f"{loop.id} has reached a limit: {breach_words(loop.breach)}"
        for loop in state.loops.values()
        if loop.breach is not None and loop.id not in asked
    ]
    return found[:MOST_QUESTIONS]
