"""The decision packet: all that a person needs to answer an escalation. Why it was opened, the numbers, the history of
its loop, and each option with what it costs, what it means and what happens next. Showing it changes nothing."""

from __future__ import annotations

from collections.abc import Iterable

from backedge.core.breaches import limit_counts
from backedge.core.briefing import BriefedFinding, Request, briefed_finding, briefed_findings, request_of
from backedge.core.errors import NotFound
from backedge.core.escalation.options import PacketOption, packet_options
from backedge.core.feedback.loop import Loop
from backedge.core.model import Breach, Position, Question, Severity
from backedge.core.state.run import ASKED, Escalation, RunState
from backedge.core.value import Json, Value, replace


class Round(Value, frozen=True):
    """One round of a loop: who was asked for what. The findings are told with the status they have now."""

    number: int
    targets: tuple[str, ...]
    findings: tuple[BriefedFinding, ...] = ()
    message: str = ""
    """What was raised, in the words of that round."""
    state: str = "done"
    """done, under way, or next: routed, and delivered only if the decision lets it."""


class Material(Value, frozen=True):
    """An artifact that a question is about."""

    step: str
    """Who made it."""
    version: int
    summary: str = ""
    output: Json = None
    payload: str | None = None
    """The digest of the output, where that is too large to stand here."""


class Packet(Value, frozen=True):
    """What one escalation asks."""

    run: str
    escalation: str
    reason: str
    opened_at: float
    options: tuple[PacketOption, ...]
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
    inputs: tuple[Material, ...] = ()
    """What a person who does, judges or approves a step has to look at."""
    findings: tuple[BriefedFinding, ...] = ()
    """What is open for that step: what a judge has to answer for, or what a rework has to address."""
    requests: tuple[Request, ...] = ()
    """Feedback that a rework has to address."""
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
    if found.about is not None and found.step is not None and found.decided is None:
        told = _with_material(state, told, found.step, found.about)
    return told if loop is None else _with_loop(state, told, loop)


def _plain(state: RunState, found: Escalation, loop: Loop | None) -> Packet:
    return Packet(
        run=state.run,
        escalation=found.id,
        reason=found.reason,
        opened_at=found.opened_at,
        options=packet_options(state, found, loop),
        breach=found.breach,
        numbers=limit_counts(state, state.last_at, loop, found.step),
        loop=found.loop,
        step=found.step,
        message=state.graph.steps[found.step].question if found.step and found.reason == ASKED else "",
        last_error=state.steps[found.step].last_error if found.step else "",
        decided=found.decided.choice if found.decided else "",
        by=found.decided.by if found.decided else "",
    )


def _with_material(state: RunState, told: Packet, step: str, about: Question) -> Packet:
    """What a person needs to know to do the step, to judge or to approve."""
    raised = (loop for id in about.loops if (loop := state.loop(id)) is not None)
    return replace(
        told,
        inputs=tuple(
            Material(name, made.version, made.summary, made.output, made.payload)
            for name in about.inputs
            if (made := state.steps[name].artifact) is not None
        ),
        findings=briefed_findings(state, (*about.findings, *state.steps[step].open_findings)),
        requests=tuple(request for loop in raised if (request := request_of(loop)) is not None),
    )


def _with_loop(state: RunState, told: Packet, loop: Loop) -> Packet:
    return replace(
        told,
        kind=loop.kind_name,
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
    past = [Round(turn.round, turn.targets, _issues(state, turn.findings), turn.message) for turn in loop.past_rounds]
    message = loop.feedback.message if loop.feedback else ""
    done = all(share.done for share in loop.shares.values()) or not loop.open
    now = Round(
        loop.round if loop.delivered else loop.round + 1,
        loop.targets,
        _issues(state, loop.finding_ids),
        message,
        "done" if done else "under way" if loop.delivered else "next",
    )
    return (*past, now)


def _issues(state: RunState, ids: Iterable[int]) -> tuple[BriefedFinding, ...]:
    return tuple(briefed_finding(state.findings[id]) for id in ids)


__all__ = ["Material", "Packet", "Round", "packet"]
