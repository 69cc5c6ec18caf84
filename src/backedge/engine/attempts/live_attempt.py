"""What an agent can do while it works: raise feedback, wait for it, report usage."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Protocol

from backedge.core import commands as c
from backedge.core.errors import BackedgeError, FeedbackRefused
from backedge.core.events import Event
from backedge.core.events import RefusedFeedback as Refused
from backedge.core.feedback.loop import LoopState, result_so_far, with_chooser
from backedge.core.feedback.raising import with_targets
from backedge.core.feedback.requirements import loop_about, requirements_to_trace
from backedge.core.model import Feedback, MalformedFeedback, Resolution, Usage
from backedge.core.scheduling.skipping import present_needs
from backedge.core.state.loops import question_key
from backedge.core.state.run import RunState
from backedge.core.value import Json
from backedge.engine import protocol
from backedge.engine.codec import copied
from backedge.engine.facts import mentions_for
from backedge.engine.slots import Slot
from backedge.engine.store import outputs
from backedge.ports import Journal


class HostRun(Protocol):
    """What an attempt needs of the run that it is part of."""

    @property
    def state(self) -> RunState: ...

    @property
    def stopping(self) -> bool:
        """Whether this process stops executing the run. Then the engine reports the cancelled attempts."""
        ...

    async def submit(self, command: c.Command, payloads: Mapping[str, bytes] | None = None) -> tuple[Event, ...]:
        """Decide a command and record what follows from it. Raises IllegalCommand."""
        ...

    async def wait_for(self, loop: str, timeout: float | None = None) -> Resolution:
        """Wait for the result of a loop."""
        ...

    def give_up(self, error: BaseException) -> None:
        """Stop the run here; all its waiters get this error."""
        ...


class LiveAttempt:
    """An attempt as its agent sees it. The agent can act only as its own step, and only for this attempt."""

    def __init__(
        self,
        run: HostRun,
        journal: Journal,
        step: str,
        number: int,
        inputs: Mapping[str, Json],
        slot: Slot,
        spend: Callable[[Usage], None],
    ) -> None:
        self._run, self._journal = run, journal
        self._step, self._number = step, number
        self._inputs = inputs
        self._slot = slot
        self._spend = spend
        self._waiters: dict[str, int] = {}
        """How many waits there are for each loop. The last one that ends without a result records the end of the
        wait."""

    @property
    def inputs(self) -> Mapping[str, Json]:
        return {name: copied(each) for name, each in self._inputs.items()}

    def spend(self, usage: Usage) -> None:
        if not isinstance(usage, Usage):
            raise TypeError(f"usage is a {type(usage).__name__}: expected backedge.Usage")
        running = self._run.state.steps[self._step].running
        if running is not None and running.attempt == self._number:
            self._spend(usage)

    async def raise_feedback(self, feedback: object) -> str:
        if not isinstance(feedback, protocol.Feedback):
            raise TypeError(f"feedback is a {type(feedback).__name__}: expected backedge.Feedback")
        item = protocol.to_feedback(feedback, self._run.state.workflow.kinds)
        mentions = await mentions_for(self._journal, self._run.state, self._step, requirements_to_trace((item,)))
        events = await self._run.submit(c.RaiseFeedback(self._step, item, self._number, mentions))
        for event in events:
            if isinstance(event, Refused):
                raise FeedbackRefused(event.reason)
        assert isinstance(item, Feedback) and not isinstance(item, MalformedFeedback)
        named = [loop for event in events if (loop := getattr(event, "loop", None)) is not None]
        if named:
            return str(named[0])
        state = self._run.state
        return state.steps[self._step].loop_by_question[question_key(with_targets(state, item, self._step, mentions))]

    async def wait_for(self, loop: str, timeout: float | None = None) -> Resolution:
        about = loop_about(self._run.state, loop, self._step)
        loop = about.id if about is not None else loop
        # A waiting attempt lends its slot to others: the step that it waits for may need it.
        self._slot.lend()
        self._waiters[loop] = self._waiters.get(loop, 0) + 1
        try:
            try:
                await self._run.submit(c.BeginWait(loop, self._step, self._number))
                self._slot.offer()
                resolution = await self._run.wait_for(loop, timeout)
            finally:
                self._waiters[loop] -= 1
                self._slot.take()
        except asyncio.CancelledError:
            # The agent continues without the result, so the result must not count as delivered.
            if not self._run.stopping:
                with suppress(BackedgeError):  # the attempt may be over
                    await self._stop_waiting(loop)
            raise
        if resolution.state == "timeout":
            await self._stop_waiting(loop)
            # A result that arrived in the meantime counts.
            resolution = resolution_of(self._run.state, loop) or resolution
        if resolution.state != "timeout":
            state = self._run.state
            self._inputs = await outputs(self._journal, state, present_needs(state, self._step))
        return resolution

    async def _stop_waiting(self, loop: str) -> None:
        if not self._waiters[loop]:
            await self._run.submit(c.EndWait(loop, self._step, self._number))


def resolution_of(state: RunState, id: str) -> Resolution | None:
    """The result of a loop for a waiting attempt; None while there is none."""
    loop = state.loop(id)
    if loop is None:
        return None
    if loop.resolution is not None:
        return loop.resolution
    if loop.state is LoopState.ESCALATING and loop.breach is not None and loop.breach.limit == "response_timeout":
        return Resolution("timeout", text=f"limit {loop.breach}")
    if loop.state is LoopState.ESCALATING:
        packet = state.escalations.get(loop.escalation or "")
        return Resolution("escalated", text=packet.reason if packet else "")
    if loop.result_delivered:
        return with_chooser(loop, result_so_far(loop, "resolved"))
    return None
