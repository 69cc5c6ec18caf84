"""One attempt under way: what its agent can do in mid-work."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from backedge.core import commands as c
from backedge.core.errors import BackedgeError, FeedbackRefused
from backedge.core.events import FeedbackRefused as Refused
from backedge.core.feedback.loop import LoopState, result_so_far, with_chooser
from backedge.core.feedback.raising import with_targets
from backedge.core.feedback.requirements import loop_about, requirements_to_trace
from backedge.core.model import Feedback, MalformedFeedback, Resolution, Usage
from backedge.core.state.loops import asked_key
from backedge.core.state.run import RunState
from backedge.core.value import Json
from backedge.engine import protocol
from backedge.engine.attempts.mentions import mentions_for
from backedge.engine.codec import copied
from backedge.engine.slots import Slot

if TYPE_CHECKING:
    from backedge.engine.live_run import LiveRun


class LiveAttempt:
    """The hands of an agent: it speaks as its own step, for its own attempt, and as nobody else."""

    def __init__(self, live: LiveRun, step: str, number: int, inputs: Mapping[str, Json], place: Slot) -> None:
        self._live, self._step, self._number = live, step, number
        self._inputs = inputs
        self._place = place
        self._waiters: dict[str, int] = {}
        """How many wait for each loop: the last one who gives up records that nobody does."""

    @property
    def inputs(self) -> Mapping[str, Json]:
        return {name: copied(each) for name, each in self._inputs.items()}

    def spend(self, usage: Usage) -> None:
        if not isinstance(usage, Usage):
            raise TypeError(f"usage is a {type(usage).__name__}: expected backedge.Usage")
        running = self._live.state.steps[self._step].running
        if running is not None and running.attempt == self._number:
            key = self._step, self._number
            self._live.spent[key] = self._live.spent.get(key, Usage()) + usage

    async def raise_feedback(self, feedback: object) -> str:
        if not isinstance(feedback, protocol.Feedback):
            raise TypeError(f"feedback is a {type(feedback).__name__}: expected backedge.Feedback")
        item = protocol.to_feedback(feedback, self._live.state.workflow.kinds)
        mentions = await mentions_for(
            self._live.engine.journal, self._live.state, self._step, requirements_to_trace((item,))
        )
        events = await self._live.submit(c.RaiseFeedback(self._step, item, self._number, mentions))
        for event in events:
            if isinstance(event, Refused):
                raise FeedbackRefused(event.reason)
        assert isinstance(item, Feedback) and not isinstance(item, MalformedFeedback)
        named = [loop for event in events if (loop := getattr(event, "loop", None)) is not None]
        if named:
            return str(named[0])
        state = self._live.state
        return state.steps[self._step].asked_loops[asked_key(with_targets(state, item, self._step, mentions))]

    async def wait_for(self, loop: str, timeout: float | None = None) -> Resolution:
        about = loop_about(self._live.state, loop, self._step)
        loop = about.id if about is not None else loop
        # Who waits leaves its place to others: what it waits for may need it.
        self._place.lend()
        self._waiters[loop] = self._waiters.get(loop, 0) + 1
        try:
            try:
                await self._live.submit(c.BeginWait(loop, self._step, self._number))
                self._live.engine.start_waiting_runs()
                resolution = await self._live.wait_for(loop, timeout)
            finally:
                self._waiters[loop] -= 1
                self._place.take()
        except asyncio.CancelledError:
            # Whoever cancelled the wait goes on with what it had; it must not be taken for told.
            if self._live.broken is None and not self._live.engine.closing:
                with suppress(BackedgeError):  # the attempt may be over
                    await self._stop_waiting(loop)
            raise
        if resolution.state == "timeout":
            await self._stop_waiting(loop)
            # The answer may have come while we gave up: then it counts.
            resolution = resolution_of(self._live.state, loop) or resolution
        if resolution.state != "timeout":
            self._inputs = await self._live.inputs_of(self._step)
        return resolution

    async def _stop_waiting(self, loop: str) -> None:
        if not self._waiters[loop]:
            await self._live.submit(c.EndWait(loop, self._step, self._number))


def resolution_of(state: RunState, id: str) -> Resolution | None:
    """What a waiter is told about a loop; None while there is nothing to tell."""
    loop = state.loop(id)
    if loop is None:
        return None
    if loop.resolution is not None:
        return loop.resolution
    if loop.state is LoopState.ESCALATING:
        packet = state.escalations.get(loop.escalation or "")
        return Resolution("escalated", text=packet.reason if packet else "")
    if loop.result_delivered:
        return with_chooser(loop, result_so_far(loop, "resolved"))
    return None
