"""The decision packet: all that a person needs to answer an escalation. Why it was opened, the numbers, the history of
its loop, and each option with what it costs, what it means and what happens next. Showing it changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from backedge.core.briefing import Issue, issue
from backedge.core.choices import Choice, choices
from backedge.core.errors import NotFound
from backedge.core.limits import numbers
from backedge.core.model import Breach, Position, Severity
from backedge.core.run_state import ASKED
from backedge.core.value import Value, replace

if TYPE_CHECKING:
    from backedge.core.loops import Loop
    from backedge.core.state import Escalation, RunState


class Round(Value, frozen=True):
    """One round of a loop: who was asked for what. The findings are told with the status they have now."""

    number: int
    targets: tuple[str, ...]
    findings: tuple[Issue, ...] = ()
    message: str = ""
    """What was raised, in the words of that round."""
    state: str = "done"
    """done, under way, or next: routed, and delivered only if the decision lets it."""


class Packet(Value, frozen=True):
    """What one escalation asks."""

    run: str
    escalation: str
    reason: str
    opened_at: float
    options: tuple[Choice, ...]
    breach: Breach | None = None
    numbers: tuple[Breach, ...] = ()
    """Each limit that applies, as count and bound, hit or not."""
    loop: str | None = None
    step: str | None = None
    """The step whose agent breaks, or that a person has to do."""
    kind: str = ""
    source: str = ""
    targets: tuple[str, ...] = ()
    severity: Severity | None = None
    blocking: bool = False
    message: str = ""
    """What the feedback says, or what a person who does a step is asked; empty where findings say it."""
    rounds: int = 0
    """Rounds delivered so far."""
    history: tuple[Round, ...] = ()
    """The last rounds, oldest first, with the one that is under way or next."""
    positions: tuple[Position, ...] = ()
    """What the targets of a choice have said so far."""
    advice: str = ""
    """What a person said of the approach before."""
    last_error: str = ""
    """What the step's agent broke with."""
    decided: str = ""
    """The choice that was made, if one was."""
    by: str = ""


def packet(state: RunState, escalation: str) -> Packet:
    """The decision packet of an escalation, open or decided. Raises NotFound."""
    found = state.escalation(escalation)
    if found is None:
        opened = ", ".join(state.escalations) or "none"
        raise NotFound(f"escalation {escalation!r} is unknown in run {state.run!r}: open are {opened}")
    loop = state.loop(found.loop) if found.loop else None
    told = _plain(state, found, loop)
    return told if loop is None else _with_loop(state, told, loop)


def _plain(state: RunState, found: Escalation, loop: Loop | None) -> Packet:
    return Packet(
        run=state.run,
        escalation=found.id,
        reason=found.reason,
        opened_at=found.opened_at,
        options=choices(state, found, loop),
        breach=found.breach,
        numbers=numbers(state, state.last_at, loop, found.step),
        loop=found.loop,
        step=found.step,
        message=state.graph.steps[found.step].question if found.step and found.reason == ASKED else "",
        last_error=state.steps[found.step].last_error if found.step else "",
        decided=found.decided.choice if found.decided else "",
        by=found.decided.by if found.decided else "",
    )


def _with_loop(state: RunState, told: Packet, loop: Loop) -> Packet:
    return replace(
        told,
        kind=loop.word,
        source=loop.source,
        targets=loop.targets,
        severity=loop.severity,
        blocking=loop.blocking,
        message=loop.feedback.message if loop.feedback else "",
        rounds=loop.round,
        history=_history(state, loop),
        positions=loop.positions,
        advice=loop.advice,
    )


def _history(state: RunState, loop: Loop) -> tuple[Round, ...]:
    """The rounds that the loop remembers, and the one it stands in."""
    past = [Round(turn.round, turn.targets, _issues(state, turn.findings), turn.message) for turn in loop.recent]
    message = loop.feedback.message if loop.feedback else ""
    done = all(share.done for share in loop.shares.values()) or not loop.open
    now = Round(
        loop.round if loop.delivered else loop.round + 1,
        loop.targets,
        _issues(state, loop.given),
        message,
        "done" if done else "under way" if loop.delivered else "next",
    )
    return (*past, now)


def _issues(state: RunState, ids: Iterable[int]) -> tuple[Issue, ...]:
    return tuple(issue(state.findings[id]) for id in ids)


__all__ = ["Packet", "Round", "packet"]
