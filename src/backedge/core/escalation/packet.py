"""The decision packet: everything a person needs to answer an escalation.

It has the reason, the numbers, the history of the loop, and each option with its effort, its impact and what happens
next. Showing it changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from backedge.core.breaches import limit_counts
from backedge.core.briefing import (
    BriefedChange,
    BriefedFinding,
    Request,
    RolledBackRound,
    basis_of,
    briefed_change,
    briefed_finding,
    briefed_findings,
    request_of,
    rolled_back_round,
)
from backedge.core.errors import NotFound
from backedge.core.escalation.deadlines import expires_at, expiry_choice
from backedge.core.escalation.options import PacketOption, packet_options
from backedge.core.events import RefusedFeedback
from backedge.core.evidence.protected import may_approve
from backedge.core.evidence.values import ProtectedFile
from backedge.core.feedback.loop import Loop
from backedge.core.model import SIDE_MODES, Breach, Feedback, Option, Position, Question, Severity
from backedge.core.scheduling.pending import due_at
from backedge.core.state.run import ASKED, Escalation, RunState
from backedge.core.value import Json, Value, replace


class PacketRound(Value, frozen=True):
    """One round of a loop: its targets and findings. Each finding has its current status."""

    number: int
    targets: tuple[str, ...]
    findings: tuple[BriefedFinding, ...] = ()
    message: str = ""
    """The message of the feedback in that round."""
    state: str = "done"
    """`done`, `under way`, or `next`: routed, and delivered only if the decision allows it."""


class Material(Value, frozen=True):
    """An artifact that a question is about."""

    step: str
    """The step that made it."""
    version: int
    summary: str = ""
    output: Json = None
    payload: str | None = None
    """The digest of the output, if it is too large to be included."""


class Packet(Value, frozen=True):
    """What one escalation asks."""

    run: str
    escalation: str
    reason: str
    opened_at: float
    options: tuple[PacketOption, ...]
    breach: Breach | None = None
    numbers: tuple[Breach, ...] = ()
    """Each limit that applies, with its count and bound, reached or not."""
    loop: str | None = None
    step: str | None = None
    """The step whose agent fails, or that a person has to do."""
    kind: str = ""
    source: str = ""
    targets: tuple[str, ...] = ()
    severity: Severity | None = None
    blocking: bool = False
    message: str = ""
    """The message of the feedback, or the question of a step that a person does, judges or approves. Empty if findings say it."""
    suggested_fix: str | None = None
    requested_info: str | None = None
    artifacts: tuple[str, ...] = ()
    requirement_id: str | None = None
    details: Json = None
    offers: tuple[Option, ...] = ()
    """The options of the feedback."""
    rounds: int = 0
    """How many rounds were delivered so far."""
    inputs: tuple[Material, ...] = ()
    """The artifacts that a person who does, judges or approves a step has to look at."""
    findings: tuple[BriefedFinding, ...] = ()
    """The open findings of that step: a judge has to answer for them, a rework has to address them."""
    requests: tuple[Request, ...] = ()
    """Feedback that a rework has to address."""
    history: tuple[PacketRound, ...] = ()
    """The last rounds, oldest first, including the one that is under way or next."""
    rolled_back: tuple[RolledBackRound, ...] = ()
    """The rounds that were rolled back, oldest first."""
    positions: tuple[Position, ...] = ()
    """The positions that the targets of a choice have taken so far."""
    advice: str = ""
    """The approach that a person gave in an earlier decision."""
    last_error: str = ""
    """The last error of the step's agent."""
    changes: tuple[BriefedChange, ...] = ()
    """The changes of protected files that it asks about."""
    decided: str = ""
    """The choice that was made; empty while the escalation is open."""
    by: str = ""
    due_at: float | None = None
    """When the answer is due by `response_timeout`; None if it has no timeout or was acknowledged."""
    for_roles: tuple[str, ...] = ()
    """The roles of the people who are asked; empty for everybody."""
    expires_at: float | None = None
    """When `default` is chosen if no person has answered; None if only people can answer."""
    default: str = ""
    """The choice that `expire` makes."""


def packet(state: RunState, escalation: str) -> Packet:
    """The decision packet of an escalation, open or decided. Raises NotFound."""
    found = state.escalation(escalation)
    if found is None:
        raise unknown_escalation(state, escalation)
    loop = state.loop(found.loop) if found.loop else None
    basic = _basic(state, found, loop)
    if found.about is not None and found.step is not None and found.decided is None:
        basic = _with_material(state, basic, found.step, found.about)
    elif found.step is not None and found.vote is None and found.decided is None:
        basic = _with_share(state, basic, found.step)
    elif found.breach is not None and found.step is None and loop is None:
        basic = replace(basic, findings=briefed_findings(state, _unfinished(state)))
    if found.refused:
        basic = _with_refused(basic, state.refused[found.refused - 1])
    loop = loop or (state.loop(found.vote) if found.vote else None)
    return basic if loop is None else _with_loop(state, basic, loop)


def _unfinished(state: RunState) -> Iterable[int]:
    """The findings that are still to be fixed when a budget is used up: they say whether more of it is worth its price."""
    return (id for loop in state.loops.values() for id in loop.finding_ids)


def unknown_escalation(state: RunState, escalation: str) -> NotFound:
    known = f"open escalations: {', '.join(state.escalations)}" if state.escalations else "no escalations are open"
    return NotFound(f"unknown escalation {escalation!r} in run {state.run!r} ({known}); `backedge inbox` lists all")


def _basic(state: RunState, found: Escalation, loop: Loop | None) -> Packet:
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
        message=state.graph.steps[found.step].question
        if found.step and (found.reason == ASKED or found.asks_approval)
        else "",
        last_error=state.steps[found.step].last_error if found.step else "",
        changes=tuple(_asked(state, each) for each in state.protected.values() if each.id in found.protected),
        decided=found.decided.choice if found.decided else "",
        by=found.decided.by if found.decided else "",
        due_at=due_at(state, found) if found.decided is None else None,
        for_roles=found.for_roles,
        expires_at=expires_at(state, found) if found.decided is None else None,
        default=expiry_choice(state, found) if found.decided is None else "",
    )


def _asked(state: RunState, changed: ProtectedFile) -> BriefedChange:
    """A change that a person is asked about. If it hides a failure of the start, with the reviewers who passed the work and
    could have approved it."""
    if not changed.red:
        return briefed_change(changed)
    judges = state.graph.judges_of.get(changed.step, ())
    reviewers = [name for name in judges if not state.graph.steps[name].tool and may_approve(state, name)]
    verdicts = {name: state.steps[name].verdict for name in reviewers}
    passed = tuple(name for name, verdict in verdicts.items() if verdict is not None and verdict.word != "fail")
    return replace(briefed_change(changed), passed_by=passed)


def _with_material(state: RunState, basic: Packet, step: str, about: Question) -> Packet:
    """Add what a person needs to do, judge or approve the step."""
    basis = basis_of(state, step) if about.mode not in SIDE_MODES else ()
    raised = (loop for id in about.loops if (loop := state.loop(id)) is not None)
    return replace(
        basic,
        inputs=tuple(
            Material(name, made.version, made.summary, made.output, made.payload)
            for name in (*about.inputs, *basis)
            if (made := state.steps[name].artifact) is not None
        ),
        findings=briefed_findings(state, (*about.findings, *state.steps[step].open_findings)),
        requests=tuple(request for loop in raised if (request := request_of(state, loop)) is not None),
    )


def _with_share(state: RunState, basic: Packet, step: str) -> Packet:
    """Add what a step that broke was to address: its agent was told that too."""
    open_shares = [
        (loop, share)
        for loop in state.loops.values()
        if (share := loop.shares.get(step)) is not None and not share.done
    ]
    return replace(
        basic,
        findings=briefed_findings(state, (id for _, share in open_shares for id in share.findings)),
        requests=tuple(request for loop, _ in open_shares if (request := request_of(state, loop)) is not None),
    )


def _with_refused(basic: Packet, refused: RefusedFeedback) -> Packet:
    """Add everything that the feedback said which could not be delivered."""
    basic = replace(basic, source=refused.source, targets=refused.targets, message=refused.message)
    return _with_feedback(basic, refused.feedback) if refused.feedback is not None else basic


def _with_feedback(basic: Packet, raised: Feedback) -> Packet:
    return replace(
        basic,
        kind=raised.word,
        severity=raised.severity,
        blocking=raised.blocking,
        message=raised.message,
        suggested_fix=raised.suggested_fix,
        requested_info=raised.requested_info,
        artifacts=raised.artifacts,
        requirement_id=raised.requirement_id,
        details=raised.details,
        offers=raised.options,
    )


def _with_loop(state: RunState, basic: Packet, loop: Loop) -> Packet:
    if loop.feedback is not None:
        basic = _with_feedback(basic, loop.feedback)
    return replace(
        basic,
        kind=loop.kind_name,
        source=loop.source,
        targets=loop.targets,
        severity=loop.severity,
        blocking=loop.blocking,
        rounds=loop.round,
        history=_history(state, loop),
        rolled_back=tuple(rolled_back_round(state, number) for number in loop.rollbacks),
        positions=loop.positions,
        advice=loop.advice,
    )


def _history(state: RunState, loop: Loop) -> tuple[PacketRound, ...]:
    """The past rounds that the loop keeps, and the current one."""
    past = [
        PacketRound(each.round, each.targets, _findings(state, each.findings), each.message)
        for each in loop.past_rounds
    ]
    message = loop.feedback.message if loop.feedback else ""
    done = all(share.done for share in loop.shares.values()) or not loop.open
    current = PacketRound(
        loop.round if loop.delivered else loop.round + 1,
        loop.targets,
        _findings(state, loop.finding_ids),
        message,
        "done" if done else "under way" if loop.delivered else "next",
    )
    return (*past, current)


def _findings(state: RunState, ids: Iterable[int]) -> tuple[BriefedFinding, ...]:
    return tuple(briefed_finding(state.findings[id], state.graph) for id in ids)


__all__ = ["Material", "Packet", "PacketRound", "packet"]
