"""Doing what the events say: attempts are started here, stopped, and reported exactly once."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.errors import IllegalCommand
from backedge.core.model import Usage
from backedge.core.state.run import Running
from backedge.engine.attempts.agent_call import call_agent, time_limit
from backedge.engine.attempts.engine_judge import agent_of
from backedge.engine.slots import Slot
from backedge.ports import Recoverable

if TYPE_CHECKING:
    from backedge.engine.live_run import LiveRun

DID_NOT_STOP = "the agent did not stop when it was told to"


def perform(live: LiveRun, events: tuple[e.Event, ...]) -> None:
    """Start the attempts that were recorded as started; stop all of them if the run has ended."""
    for event in events:
        if isinstance(event, e.AttemptStarted):
            if live.engine.closing or live.leaving:
                continue
            running = live.state.steps[event.step].running
            if running is not None and running.attempt == event.attempt and event.step not in live.executions:
                Execution(live, event.step, running)
        elif isinstance(event, e.RunEnded) and event.outcome in ("cancelled", "failed"):
            for execution in tuple(live.executions.values()):
                execution.stop()


def recover(live: LiveRun, step: str, running: Running) -> bool:
    """Find out what became of an attempt that an earlier process started; False if its agent leaves no traces."""
    agent = agent_of(live, step, running.agent)
    if not isinstance(agent, Recoverable):
        return False
    Execution(live, step, running, agent)
    return True


class Execution:
    """One attempt under way here. Whatever its agent does, exactly one report follows.

    An agent that does not stop when it is told to is left behind after a while: the engine reports for it, gives its
    place to others, and hears nothing of what it says later. It may still be at work, so its attempt is in doubt.
    """

    __slots__ = ("_left_by", "_limit", "_live", "_running", "_started", "_step", "_timer", "over", "slot", "task")

    def __init__(self, live: LiveRun, step: str, running: Running, left_by: Recoverable | None = None) -> None:
        self._live, self._step, self._running, self._left_by = live, step, running, left_by
        self._started = live.engine.clock.now()
        self._timer: asyncio.TimerHandle | None = None
        self.over = False
        self.slot = Slot(live.engine.slots)
        live.executions[step] = self
        self._limit = limit = time_limit(live, step, running)
        if limit is not None:
            self._leave_behind_after(limit + live.engine.grace, f"timeout: no outcome after {limit:g} s")
        self.task = asyncio.create_task(self._execute())

    def stop(self) -> None:
        """Tell the agent to stop; if it does not, the attempt is recorded as in doubt without it."""
        self.task.cancel()
        self._leave_behind_after(self._live.engine.grace, "the run ended")

    def leave_behind(self) -> bool:
        """Go on without an agent that does not stop; False if it has. Whoever calls this reports for it."""
        if self.over:
            return False
        self._end()
        if not self.task.done():  # else it was stopped before it began
            self._live.left_behind.add((self._step, self._running.attempt))
        _forget(self.task)
        return True

    def _leave_behind_after(self, seconds: float, why: str) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._give_up_on_agent, why)

    def _give_up_on_agent(self, why: str) -> None:
        usage = self._usage()
        if self.leave_behind():
            self._live.engine.spawn(self._report_late(self._without_agent(why, usage)))

    def _without_agent(self, why: str, usage: Usage) -> c.Command:
        step, attempt, seconds = self._step, self._running.attempt, self._seconds()
        words = f"{why}, and {DID_NOT_STOP}"
        if self.task.done():
            return c.DropAttempt(step, attempt, "interrupted", usage, seconds)
        if self._live.state.ended is None and self._live.state.graph.steps[step].on_doubt == "rerun":
            # It may run beside itself, but not for ever: errors are counted.
            return c.FailAttempt(step, attempt, words, usage, seconds)
        return c.DropAttempt(step, attempt, "in doubt", usage, seconds, f"{words}: it may still be at work")

    async def _report_late(self, command: c.Command) -> None:
        try:
            await self._report(command, {})
        except Exception as error:  # noqa: BLE001 - without a report the run cannot go on: who waits for it is told
            self._broke(error)
        finally:
            self._live.engine.start_waiting_runs()

    async def _execute(self) -> None:
        """One attempt from its briefing to its record, after which others may have its place."""
        try:
            await self._work()
        except Exception as error:  # noqa: BLE001 - without a report the run cannot go on: who waits for it is told
            self._broke(error)
        except BaseException:
            # An interrupt stops the process; asyncio need not tell it once more when the task is collected.
            self.task.add_done_callback(lambda done: done.cancelled() or done.exception())
            raise
        finally:
            self._live.engine.start_waiting_runs()

    async def _work(self) -> None:
        live, payloads = self._live, dict[str, bytes]()
        command: c.Command
        try:
            try:
                command, payloads = await call_agent(
                    live, self._step, self._running, self._started, self._limit, self.slot, self._left_by
                )
            except asyncio.CancelledError:
                if live.engine.closing or live.broken is not None or live.state.ended is None:
                    raise
                command = c.DropAttempt(
                    self._step, self._running.attempt, "interrupted", self._usage(), self._seconds()
                )
        finally:
            reported = self.over
            # The place is free before the report is decided, so that the report can give it to the next attempt.
            self._end()
        if not reported:
            await self._report(command, payloads)

    def _end(self) -> None:
        self.over = True
        if self._timer is not None:
            self._timer.cancel()
        if self._live.executions.get(self._step) is self:
            del self._live.executions[self._step]
        self.slot.give_back()

    async def _report(self, command: c.Command, payloads: dict[str, bytes]) -> None:
        live = self._live
        live.spent.pop((self._step, self._running.attempt), None)
        try:
            await live.submit(command, payloads)
        except IllegalCommand:
            # Somebody else settled this attempt meanwhile, through the journal: theirs stands.
            return

    def _broke(self, error: Exception) -> None:
        if self._live.broken is None:
            self._live.give_up(error)

    def _usage(self) -> Usage:
        return self._live.spent.get((self._step, self._running.attempt), Usage())

    def _seconds(self) -> float:
        return round(max(0.0, self._live.engine.clock.now() - self._started), 6)


def _forget(task: asyncio.Task[None]) -> None:
    """Not even the end of the event loop waits for a task, or complains about it.

    `asyncio.run` waits for every task that it knows, and no public name takes one away. These two are what asyncio tells
    those who write tasks of their own; a Python without them waits for the agent, which is slower and loses nothing.
    """
    unregister = getattr(asyncio, "_unregister_task", None)
    if unregister is not None:
        unregister(task)
    with suppress(AttributeError):
        setattr(task, "_log_destroy_pending", False)  # noqa: B010 - unknown to the types of asyncio
