"""What the shell has to do, computed from the state and from nothing else.

After a crash, `pending(replay(events))` is the whole recovery: there are no flags to repair.
"""

from __future__ import annotations

from typing import Literal

from backedge.core.escalation.deadlines import next_due
from backedge.core.evidence.values import RestoreRule
from backedge.core.feedback.loop import LoopState
from backedge.core.model import HUMAN, SIDE_MODES
from backedge.core.scheduling.index import index_of, is_retrying, running_attempts
from backedge.core.scheduling.scheduler import Start, passes, ready
from backedge.core.scheduling.skipping import condition_pending, is_skipped, must_repeat
from backedge.core.scheduling.staleness import is_fresh
from backedge.core.state.run import ASKED, Escalation, RunState
from backedge.core.value import Value

RunOutcome = Literal["running", "waiting", "verified", "done", "accepted", "failed", "cancelled", "imported"]


class RunAttempt(Value, frozen=True):
    """An attempt was started and has not reported: run it. If it is found after a crash, it is in doubt."""

    step: str
    attempt: int


class CheckInputs(Value, frozen=True):
    """A step can start if its inputs fit its `accepts`: check them."""

    step: str


class RestoreFiles(Value, frozen=True):
    """A rollback has to restore files before its steps start again: do it, and report it. It may be done twice."""

    undo: dict[str, tuple[tuple[str, int], ...]]
    """The attempts to undo, by workspace, the last one first."""
    judges: tuple[str, ...]
    """The judges that judged what they made."""
    rule: RestoreRule


class AskPerson(Value, frozen=True):
    """A decision packet waits in the inbox."""

    escalation: str


class WakeAt(Value, frozen=True):
    """Decide again at this time: a retry or a timeout is due then."""

    time: float


Effect = RunAttempt | Start | CheckInputs | RestoreFiles | AskPerson | WakeAt


def pending(state: RunState, now: float) -> tuple[Effect, ...]:
    """Everything to do or to wait for; empty only for a run that has ended."""
    if state.ended is not None:
        return ()
    effects: list[Effect] = [RunAttempt(name, running.attempt) for name, running in running_attempts(state)]
    restore = files_to_restore(state)
    effects += [restore] if restore is not None else []
    for start in ready(state, now):
        effects.append(CheckInputs(start.step) if needs_input_check(state, start) else start)
    wake = next_wake(state, now)
    if wake is not None:
        effects.append(WakeAt(wake))
    effects += [AskPerson(id) for id in state.escalations]
    return tuple(effects)


def files_to_restore(state: RunState) -> RestoreFiles | None:
    """The files that a rollback has to restore now; None if there are none, or if a person is asked about them first."""
    if state.restoring is None or state.ended is not None or any(each.restores for each in state.escalations.values()):
        return None
    judges = tuple(name for name in state.restoring.steps if name in state.graph.judges)
    return RestoreFiles(state.restoring.undo, judges, state.restoring.rule)


def needs_input_check(state: RunState, start: Start) -> bool:
    return (
        state.graph.steps[start.step].checked
        and start.mode not in SIDE_MODES
        and not condition_pending(state, start.step)
    )


def next_wake(state: RunState, now: float) -> float | None:
    """When the next retry, timeout, reminder or expiry is due. Retries that are already due do not count: nothing has to wake up for them."""
    steps = (state.steps[name] for name in index_of(state).erring)
    times = [step.retry_at for step in steps if is_retrying(step) and step.retry_at > now and step.running is None]
    times += [packet.opened_at + timeout for packet, timeout in _unanswered(state)]
    if state.escalations and (due := next_due(state)) is not None:
        times.append(due)
    return min(times, default=None)


def overdue(state: RunState, now: float) -> list[tuple[Escalation, float]]:
    """The questions that were not answered in time, with their timeout."""
    return [(packet, timeout) for packet, timeout in _unanswered(state) if packet.opened_at + timeout <= now]


def due_at(state: RunState, packet: Escalation) -> float | None:
    """When the answer to a question is due; None if it has no timeout, or if somebody works on it."""
    if packet.breach is not None:
        return packet.opened_at + packet.breach.bound if packet.breach.limit == "response_timeout" else None
    return next((packet.opened_at + timeout for each, timeout in _unanswered(state) if each is packet), None)


def response_due(state: RunState, loop: str) -> float | None:
    """When a person's answer to a loop is due; None if nobody has to answer in time."""
    times = (due_at(state, packet) for packet in state.escalations.values() if packet.loop == loop)
    return min((due for due in times if due is not None), default=None)


def _unanswered(state: RunState) -> list[tuple[Escalation, float]]:
    """The questions that can still time out, with their timeout. Each does so once; acknowledged ones never do."""
    found = []
    for packet in state.escalations.values():
        loop = state.loops[packet.loop] if packet.loop and packet.reason == ASKED and packet.breach is None else None
        if loop is None or loop.state is LoopState.ESCALATING or HUMAN in loop.acknowledged or HUMAN not in loop.shares:
            continue
        if loop.limits.response_timeout is not None:
            found.append((packet, loop.limits.response_timeout))
    return found


def is_complete(state: RunState) -> bool:
    """Whether every step is done on the current versions and no loop or escalation is open."""
    if state.loops or state.escalations or state.busy or state.restoring or index_of(state).unsettled:
        return False
    for name, step in state.steps.items():
        if step.skipped_by_decision or is_skipped(state, name):
            continue
        if condition_pending(state, name) or must_repeat(state, name):
            return False
        if step.results_due or not (passes if name in state.graph.judges else is_fresh)(state, name):
            return False
    return True


def outcome_of(state: RunState) -> RunOutcome:
    """The outcome of the run so far, in the words of the command line."""
    if state.ended is not None:
        return state.ended.outcome
    return "running" if _at_work(state) or ready(state, now=float("inf"), enough=1) else "waiting"


def _at_work(state: RunState) -> bool:
    """Whether an attempt is doing something other than waiting for feedback, or files are being restored. An attempt that
    waits cannot continue on its own."""
    if files_to_restore(state) is not None:
        return True
    if not state.busy or not state.loops:
        return bool(state.busy)
    return any(not attempt.awaits for _, attempt in running_attempts(state))


def is_stuck(state: RunState) -> bool:
    """Whether nothing is pending, running, escalated or finished. The rules must never lead to this state."""
    return not state.escalations and state.paused_by is None and outcome_of(state) == "waiting"
