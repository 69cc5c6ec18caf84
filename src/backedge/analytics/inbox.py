"""One open escalation, as `inbox --json` prints it: everything that a person needs to decide."""

from __future__ import annotations

from collections.abc import Iterable

from backedge.analytics.attempt_errors import AttemptError
from backedge.analytics.blast import Blast
from backedge.analytics.changes import AttemptChange
from backedge.analytics.report import EscalationReport, RollbackReport, escalation_report, rollbacks_of
from backedge.analytics.rounds import LoopHistory, RoundReport, VerdictReport
from backedge.analytics.sentence import sentence
from backedge.analytics.shape import Shape
from backedge.core import events as e
from backedge.core.briefing import BriefedFinding, Request, briefed_findings
from backedge.core.escalation.options import HISTORY, PacketOption
from backedge.core.escalation.packet import Packet
from backedge.core.model import Breach
from backedge.core.state.run import Escalation, RunState
from backedge.core.value import Json


class InboxRound(RoundReport, frozen=True):
    """One round of the loop behind an escalation."""

    findings: tuple[BriefedFinding, ...] = ()
    """The findings of that round, each with its current status."""


class InboxInput(Shape, frozen=True):
    """An artifact that a question is about."""

    step: str
    version: int
    summary: str
    output: Json
    payload: str | None
    whole: str
    """The command that prints all of it."""


class InboxChange(Shape, frozen=True):
    """A change of a protected file that a question is about."""

    id: str
    file: str
    change: str
    step: str
    lines: str
    question: str
    """Why a judge cannot count it without an answer."""
    passed_by: tuple[str, ...]
    """Reviewers whose pass was not enough, because the change hides a failure of the start of the run."""
    tests: tuple[str, ...]
    diff: tuple[str, ...]
    """How it differs from the start of the run, as unified diff lines."""
    note: str
    """Why there is no difference to show."""


class Estimate(Shape, frozen=True):
    """What one more round is likely to take, from the attempts so far."""

    attempts: int
    """How many attempts it makes if everything that can become stale does."""
    cost_usd: float
    seconds: float


class StepSpent(Shape, frozen=True):
    """What the attempts of one step have used of a budget."""

    step: str
    attempts: int
    cost_usd: float
    tokens: int
    seconds: float


class InboxItem(EscalationReport, frozen=True):
    """One open escalation."""

    run: str = ""
    workflow: str = ""
    opened_at: float = 0.0
    """Seconds since the epoch."""
    due_at: float | None = None
    """When the answer is due by `response_timeout`, in seconds since the epoch."""
    expires_at: float | None = None
    """When `default` is chosen if no person has answered; None if only people can answer."""
    default: str = ""
    """The choice that `expire` makes."""
    overdue: bool = False
    """Whether that time has passed, whether or not a process executes the run."""
    choices: tuple[PacketOption, ...] = ()
    """What each word for `decide` does, the recommended one first."""
    numbers: tuple[Breach, ...] = ()
    """Each limit that applies, with its count and bound, reached or not."""
    estimate: Estimate | None = None
    """What one more round of the loop is likely to take."""
    kind: str = ""
    source: str = ""
    targets: tuple[str, ...] = ()
    severity: str | None = None
    blocking: bool = False
    suggested_fix: str | None = None
    requested_info: str | None = None
    artifacts: tuple[str, ...] = ()
    requirement_id: str | None = None
    details: Json = None
    rounds: int = 0
    """How many rounds were delivered so far."""
    findings: tuple[BriefedFinding, ...] = ()
    """The findings of the current round, or the open ones of the step that a person judges or does."""
    requests: tuple[Request, ...] = ()
    """Feedback that a person who does a step has to address."""
    inputs: tuple[InboxInput, ...] = ()
    """The artifacts that a person who does, judges or approves a step has to look at."""
    history: tuple[InboxRound, ...] = ()
    """Every round, oldest first, including the one that is under way or next."""
    verdicts: tuple[VerdictReport, ...] = ()
    """Every verdict about the loop, oldest first. The first one started it."""
    last_changes: tuple[AttemptChange, ...] = ()
    """What is to be judged, or what the last fix changed."""
    changes: tuple[InboxChange, ...] = ()
    """The changes of protected files that it asks about."""
    advice: str = ""
    """The approach that a person gave in an earlier decision."""
    last_error: str = ""
    """The last error of the step's agent."""
    errors: tuple[AttemptError, ...] = ()
    """Why its attempts did not count since the last one that did, oldest first."""
    rolled_back: tuple[RollbackReport, ...] = ()
    """The rounds that were rolled back, oldest first."""
    spent: tuple[StepSpent, ...] = ()
    """For a budget that is used up: what each step has used of it, the largest part first."""
    responses: dict[str, Json] = {}
    """How its targets acknowledged the feedback: message, action and eta, by target."""


def spent_by_step(events: Iterable[e.Event], limit: str) -> tuple[StepSpent, ...]:
    """What each step has used so far, the largest part of a budget first. Attempts that failed count too."""
    found: dict[str, StepSpent] = {}
    for event in events:
        if isinstance(event, e.AttemptSucceeded | e.AttemptFailed | e.AttemptDropped | e.AttemptLimited):
            before, usage = found.get(event.step, StepSpent(event.step, 0, 0.0, 0, 0.0)), event.usage
            found[event.step] = StepSpent(
                event.step,
                before.attempts + 1,
                round(before.cost_usd + usage.cost_usd, 6),
                before.tokens + usage.tokens_in + usage.tokens_out,
                round(before.seconds + event.seconds, 3),
            )
    part = {"wall_clock": "seconds"}.get(limit, limit)
    return tuple(sorted(found.values(), key=lambda each: getattr(each, part), reverse=True))


def inbox_item(
    state: RunState,
    packet: Escalation,
    told: Packet,
    history: LoopHistory,
    now: float,
    blast: Blast | None = None,
    last_changes: tuple[AttemptChange, ...] = (),
    inputs: tuple[InboxInput, ...] = (),
    changes: tuple[InboxChange, ...] = (),
    errors: tuple[AttemptError, ...] = (),
    spent: tuple[StepSpent, ...] = (),
) -> InboxItem:
    """An open escalation with its whole packet. What has to be read from disk is given."""
    known = escalation_report(state, packet, history)
    plain = {name: getattr(known, name) for name in known.__struct_fields__}
    plain["message"] = known.message or told.message
    plain["sentence"] = sentence(state, packet, history)  # also of a decided one: `history` prints it
    loop = state.loop(packet.loop) if packet.loop else None
    current = briefed_findings(state, loop.finding_ids) if loop is not None else ()
    return InboxItem(
        **plain,
        run=state.run,
        workflow=state.workflow.name,
        opened_at=packet.opened_at,
        due_at=told.due_at,
        expires_at=told.expires_at,
        default=told.default,
        overdue=told.due_at is not None and told.due_at <= now,
        choices=(*told.options, HISTORY),
        numbers=told.numbers,
        estimate=_estimate(blast) if blast is not None else None,
        kind=told.kind,
        source=told.source,
        targets=told.targets,
        severity=told.severity,
        blocking=told.blocking,
        suggested_fix=told.suggested_fix,
        requested_info=told.requested_info,
        artifacts=told.artifacts,
        requirement_id=told.requirement_id,
        details=told.details,
        rounds=told.rounds,
        findings=told.findings or current,
        requests=told.requests,
        inputs=inputs,
        history=tuple(_round(state, each) for each in history.rounds),
        verdicts=history.verdicts,
        last_changes=last_changes,
        changes=changes,
        advice=told.advice,
        last_error=told.last_error,
        errors=errors,
        rolled_back=rollbacks_of(state, loop) if loop is not None else (),
        spent=spent,
        responses=loop.acknowledged if loop is not None else {},
    )


def _round(state: RunState, turn: RoundReport) -> InboxRound:
    ids = dict.fromkeys(int(id.partition("-")[2]) for given in turn.shares.values() for id in given)
    fields = {name: getattr(turn, name) for name in turn.__struct_fields__}
    return InboxRound(**fields, findings=briefed_findings(state, ids))


def _estimate(blast: Blast) -> Estimate:
    return Estimate(len({*blast.reworks, *blast.cascades, *blast.verifies}), blast.cost_usd, blast.seconds)
