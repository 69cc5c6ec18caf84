"""Why attempts did not count, folded from the events: they stay visible after a later attempt has succeeded."""

from __future__ import annotations

from collections.abc import Iterable

from backedge.analytics.shape import Shape
from backedge.core import events as e
from backedge.core.state.run import RunState


class AttemptError(Shape, frozen=True):
    """Why one attempt did not count."""

    attempt: int
    error: str


def may_have_errors(state: RunState) -> bool:
    """Whether an attempt of the run can have ended with an error: if not, its events need not be read."""
    return any(step.attempts > 1 or step.last_error for step in state.steps.values())


def errors_by_step(events: Iterable[e.Event]) -> dict[str, tuple[AttemptError, ...]]:
    """Why attempts of each step did not count, oldest first."""
    found: dict[str, tuple[AttemptError, ...]] = {}
    for event in events:
        if isinstance(event, e.AttemptFailed | e.AttemptDropped):
            why = event.error if isinstance(event, e.AttemptFailed) else event.reason
            found[event.step] = (*found.get(event.step, ()), AttemptError(event.attempt, why))
    return found


def last_errors(events: Iterable[e.Event], step: str) -> tuple[AttemptError, ...]:
    """Why the attempts of a step did not count, since the last one that did."""
    events = list(events)
    done = max(
        (each.attempt for each in events if isinstance(each, e.AttemptSucceeded) and each.step == step), default=0
    )
    return tuple(each for each in errors_by_step(events).get(step, ()) if each.attempt > done)
