"""Folds the events of waiting: a running attempt waits for loops that it raised, gets their results, or gives up."""

from __future__ import annotations

from backedge.core import events as e
from backedge.core.feedback.loop import Loop
from backedge.core.state import version_0_1
from backedge.core.state.run import RunState, with_loop, with_step
from backedge.core.value import replace


def wait_began(state: RunState, event: e.WaitBegan) -> RunState:
    return _with_running(state, event.step, awaits=(*_awaited_by(state, event.step), event.loop))


def wait_ended(state: RunState, event: e.WaitEnded) -> RunState:
    return _with_running(state, event.step, awaits=_awaited_by(state, event.step, without=event.loop))


def result_delivered(state: RunState, event: e.ResultDelivered) -> RunState:
    """The attempt continues with the current versions of its inputs."""
    others = _awaited_by(state, event.step, without=event.loop)
    consumed = version_0_1.consumed(state, event.step) if event.consumed is None else event.consumed
    state = _with_running(state, event.step, awaits=others, consumed=consumed, input_versions=event.inputs)
    return with_loop(state, replace(state.loops[event.loop], result_delivered=True))


def feedback_rejoined(state: RunState, event: e.FeedbackRejoined) -> RunState:
    running = state.steps[event.step].running
    assert running is not None
    return _with_running(state, event.step, raised_loops=(*running.raised_loops, event.loop))


def is_awaited(state: RunState, loop: Loop) -> bool:
    """Whether a running attempt of the source of a loop waits for its result."""
    source = state.steps.get(loop.source)
    return source is not None and source.running is not None and loop.id in source.running.awaits


def without_waiter(state: RunState, loop: Loop) -> RunState:
    """The run in which no attempt waits for this loop any more: it is closed, or a person has to decide about it."""
    if not is_awaited(state, loop):
        return state
    return _with_running(state, loop.source, awaits=_awaited_by(state, loop.source, without=loop.id))


def _awaited_by(state: RunState, name: str, without: str | None = None) -> tuple[str, ...]:
    """The loops that a running attempt waits for, leaving out one."""
    running = state.steps[name].running
    assert running is not None
    return tuple(loop for loop in running.awaits if loop != without)


def _with_running(state: RunState, name: str, **changes: object) -> RunState:
    step = state.steps[name]
    assert step.running is not None
    return with_step(state, name, replace(step, running=replace(step.running, **changes)))
