"""When people are reminded of a question, and when it is decided without them: what is due, and what comes next.

Every due time counts from the moment at which the question was opened. What is recorded as done is never due again, so a
process that was down for days reminds once, not once for each time that it has missed.
"""

from __future__ import annotations

from collections.abc import Iterable

from backedge.core.feedback.loop import Loop
from backedge.core.model import HUMAN, Severity
from backedge.core.state.run import Escalation, RunState
from backedge.core.value import Value
from backedge.core.workflow.notify import Channel


class Due(Value, frozen=True):
    """What is due for one question."""

    escalation: str
    after: tuple[float, ...] = ()
    """The times of the reminder, in seconds after the question was opened; empty for an expiry."""
    expires: bool = False


def first_due(state: RunState, now: float) -> Due | None:
    """The first thing that is due for an open question; None if nothing is."""
    for packet in _timed(state):
        expires = _expires_at(state, packet)
        if expires is not None and expires <= now:
            return Due(packet.id, expires=True)
        after = tuple(each for each in _reminders(state, packet) if packet.opened_at + each <= now)
        if after:
            return Due(packet.id, after)
    return None


def next_due(state: RunState) -> float | None:
    """When the next reminder or expiry is due."""
    times = [
        time
        for packet in _timed(state)
        for time in (_expires_at(state, packet), *(packet.opened_at + each for each in _reminders(state, packet)))
        if time is not None
    ]
    return min(times, default=None)


def expires_at(state: RunState, packet: Escalation) -> float | None:
    """When a question is decided without people; None if it never is."""
    return _expires_at(state, packet) if expiry_choice(state, packet) and packet in _timed(state) else None


def expiry_choice(state: RunState, packet: Escalation) -> str:
    """The choice that is made if no person answers. Empty if people are only reminded: something else is offered, the
    severity is none of those that the workflow names, or the choice would accept or cancel something critical."""
    rule, loop = state.workflow.expire, state.loops.get(packet.loop or "")
    if rule is None or loop is None or rule.choice not in packet.options:
        return ""
    severities = _severities(state, loop)
    if not severities.issubset(rule.only) or (rule.choice == "accept" and Severity.CRITICAL in severities):
        return ""
    return "" if rule.choice == "cancel" and _critical_in_run(state) else rule.choice


def _severities(state: RunState, loop: Loop) -> set[Severity]:
    """The severities of everything that a decision about a loop settles."""
    source = state.steps.get(loop.source)
    own = (*source.open_findings, *source.unmentioned) if source is not None else ()
    related = [each for each in state.loops.values() if each.id == loop.id or each.source == loop.source != HUMAN]
    ids = {*own, *(id for each in related for id in each.finding_ids)}
    return {_severity_of(state, id) for id in ids} | {each.severity for each in related if not each.finding_ids}


def _severity_of(state: RunState, finding: int) -> Severity:
    return state.findings[finding].finding.severity


def _critical_in_run(state: RunState) -> bool:
    """Whether anything that cancelling the run would leave undone is critical."""
    if any(loop.severity is Severity.CRITICAL for loop in state.loops.values()):
        return True
    return any(each.needs_answer and each.finding.severity is Severity.CRITICAL for each in state.findings.values())


def _timed(state: RunState) -> Iterable[Escalation]:
    """The questions whose time counts: none of a run that has ended or is paused, and none that somebody works on."""
    work = state.workflow
    if state.ended is not None or state.paused_by is not None or not (work.notify or work.expire):
        return ()
    return tuple(packet for packet in state.escalations.values() if not _acknowledged(state, packet))


def _acknowledged(state: RunState, packet: Escalation) -> bool:
    loop = state.loops.get(packet.loop or "")
    return loop is not None and HUMAN in loop.acknowledged


def _expires_at(state: RunState, packet: Escalation) -> float | None:
    rule = state.workflow.expire
    return None if rule is None or packet.expired else packet.opened_at + rule.after


def _reminders(state: RunState, packet: Escalation) -> list[float]:
    times = {
        after for channel in state.workflow.notify if is_for(channel, packet.for_roles) for after in channel.remind
    }
    return sorted(times.difference(packet.reminded))


def is_for(channel: Channel, roles: Iterable[str]) -> bool:
    """Whether a channel is told about questions to these roles."""
    return not channel.role or channel.role in roles
