"""What is to be done: everything the shell has to perform is computed here from the state, and from nothing else.

After a crash, `pending(replay(events))` is the whole recovery: there are no flags to repair.
"""

from __future__ import annotations

from typing import Literal

from backedge.core.feedback.loop import LoopState
from backedge.core.model import HUMAN, SIDE_MODES
from backedge.core.scheduling.index import index_of, running_attempts
from backedge.core.scheduling.scheduler import Start, passes, ready
from backedge.core.scheduling.skipping import condition_pending, is_skipped, must_repeat
from backedge.core.scheduling.staleness import is_fresh
from backedge.core.state.run import ASKED, Escalation, RunState
from backedge.core.value import Value

RunOutcome = Literal["running", "waiting", "verified", "done", "accepted", "failed", "cancelled", "imported"]


class RunAttempt(Value, frozen=True):
    """An attempt was started and has not reported: run it. Found after a crash, it is in doubt."""

    step: str
    attempt: int


class CheckInputs(Value, frozen=True):
    """A step could start if its inputs fit what it accepts: check them."""

    step: str


class AskPerson(Value, frozen=True):
    """A decision packet lies in the inbox."""

    escalation: str


class WakeAt(Value, frozen=True):
    """Nothing has to be done before this time; something has to be decided then."""

    time: float


Effect = RunAttempt | Start | CheckInputs | AskPerson | WakeAt


def pending(state: RunState, now: float) -> tuple[Effect, ...]:
    """All that is to be done or waited for; empty only for a run that has ended."""
    if state.ended is not None:
        return ()
    effects: list[Effect] = [RunAttempt(name, running.attempt) for name, running in running_attempts(state)]
    for start in ready(state, now):
        effects.append(CheckInputs(start.step) if needs_input_check(state, start) else start)
    wake = next_wake(state, now)
    if wake is not None:
        effects.append(WakeAt(wake))
    effects += [AskPerson(id) for id in state.escalations]
    return tuple(effects)


def needs_input_check(state: RunState, start: Start) -> bool:
    return (
        state.graph.steps[start.step].checked
        and start.mode not in SIDE_MODES
        and not condition_pending(state, start.step)
    )


def next_wake(state: RunState, now: float) -> float | None:
    """When the next retry or timeout is due; a time that has passed already is of no use to a sleeper."""
    steps = (state.steps[name] for name in index_of(state).erring)
    times = [step.retry_at for step in steps if step.errors and step.retry_at > now and step.running is None]
    times += [packet.opened_at + timeout for packet, timeout in _unanswered(state)]
    return min(times, default=None)


def overdue(state: RunState, now: float) -> list[tuple[Escalation, float]]:
    """The questions that no person answered in time, with the time they had."""
    return [(packet, timeout) for packet, timeout in _unanswered(state) if packet.opened_at + timeout <= now]


def _unanswered(state: RunState) -> list[tuple[Escalation, float]]:
    """The questions to people that can still become late: each does so once, and none that somebody acknowledged."""
    found = []
    for packet in state.escalations.values():
        loop = state.loops[packet.loop] if packet.loop and packet.reason == ASKED and packet.breach is None else None
        if loop is None or loop.state is LoopState.ESCALATING or HUMAN in loop.acknowledged:
            continue
        if loop.limits.response_timeout is not None:
            found.append((packet, loop.limits.response_timeout))
    return found


def is_complete(state: RunState) -> bool:
    """Whether all is done: every step, on the current versions, with no loop and no question open."""
    if state.loops or state.escalations or state.busy or index_of(state).unsettled:
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
    """Where the run stands, in the words of the command line."""
    if state.ended is not None:
        return state.ended.outcome
    return "running" if _at_work(state) or ready(state, now=float("inf"), most=1) else "waiting"


def _at_work(state: RunState) -> bool:
    """Whether an attempt does something else than wait in mid-work: one that waits goes on when something else does."""
    if not state.busy or not state.loops:
        return bool(state.busy)
    return any(not attempt.awaits for _, attempt in running_attempts(state))


def is_stuck(state: RunState) -> bool:
    """Whether nothing is pending, running, escalated or finished: the state that the rules must never lead to."""
    return not state.escalations and state.paused_by is None and outcome_of(state) == "waiting"
