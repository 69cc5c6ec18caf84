"""Attempts under way: started, stopped, and reported exactly once.

An agent that does not stop within the grace period is abandoned: the engine reports for it, frees its slot, and ignores
its later result. It may still be running, so its attempt is in doubt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Protocol

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.errors import IllegalCommand
from backedge.core.model import NO_USAGE, Usage
from backedge.core.state.run import Running
from backedge.core.value import replace
from backedge.engine.agents import RunAgents
from backedge.engine.attempts.engine_judge import agent_for
from backedge.engine.attempts.executor import failed_report, task_for
from backedge.engine.attempts.live_attempt import HostRun, LiveAttempt
from backedge.engine.slots import Slot, Slots
from backedge.ports import AttemptCommand, AttemptReport, Clock, Executor, Journal, Recoverable

DID_NOT_STOP = "the agent did not stop when it was told to"
SLACK = 10.0
"""Extra seconds for an agent that enforces its own timeout, to end what it started."""


class HostEngine(Protocol):
    """What attempts need of the engine."""

    journal: Journal
    clock: Clock
    slots: Slots
    grace: float

    def spawn(self, work: Coroutine[object, object, None]) -> None:
        """Do something in the background, until the engine closes."""
        ...


class Attempts:
    """The attempts of one run that are under way in this process."""

    def __init__(self, run: HostRun, engine: HostEngine, agents: RunAgents, executor: Executor) -> None:
        self.run, self.engine, self.executor = run, engine, executor
        self._agents = agents
        self.under_way: dict[str, SupervisedAttempt] = {}
        """By step."""
        self.spent: dict[tuple[str, int], Usage] = {}
        """The usage that running attempts have reported so far, by step and number."""
        self.left_behind: set[tuple[str, int]] = set()
        """Attempts whose agents did not stop, by step and number. These agents may still be running."""

    def perform(self, events: tuple[e.Event, ...], *, start: bool) -> None:
        """Start the attempts that were recorded as started, unless `start` is false; stop all if the run has ended."""
        for event in events:
            if isinstance(event, e.AttemptStarted):
                running = self.run.state.steps[event.step].running if start else None
                if running is not None and running.attempt == event.attempt:
                    self._start(event.step, running)
            elif isinstance(event, e.RunEnded) and event.outcome in ("cancelled", "failed"):
                for attempt in tuple(self.under_way.values()):
                    attempt.stop()

    def recover(self, step: str, running: Running) -> bool:
        """Recover an attempt that an earlier process started; False if its agent cannot do that."""
        if not isinstance(self._agent(step, running), Recoverable):
            return False
        self._start(step, running, recover=True)
        return True

    def _start(self, step: str, running: Running, recover: bool = False) -> None:
        if step not in self.under_way:
            self.under_way[step] = SupervisedAttempt(self, step, running, self._time_limit(step, running), recover)

    def _time_limit(self, step: str, running: Running) -> float | None:
        """The timeout of an attempt. Agents that are processes enforce it themselves and return their log, so they get
        extra time."""
        timeout = self.run.state.graph.steps[step].timeout
        if timeout is not None and isinstance(self._agent(step, running), Recoverable):
            return timeout + SLACK
        return timeout

    def _agent(self, step: str, running: Running) -> object:
        return agent_for(self._agents.by_name, self.run.state.graph.engine_judges.get(step), running.agent)

    def tasks(self) -> list[asyncio.Task[None]]:
        return [attempt.task for attempt in self.under_way.values()]

    def leave_all_behind(self) -> None:
        """Abandon the agents that do not stop. The caller reports for them."""
        for attempt in tuple(self.under_way.values()):
            attempt.leave_behind()

    def dropped(self, step: str, running: Running) -> c.DropAttempt:
        """The report of an attempt that ends because its run is no longer executed here."""
        key, seconds = (step, running.attempt), self.seconds_since(running.started)
        usage = self.spent.get(key, NO_USAGE)
        if key not in self.left_behind:
            return c.DropAttempt(step, running.attempt, "interrupted", usage, seconds)
        why = f"its engine was closed, and {DID_NOT_STOP}: it may still be running"
        return c.DropAttempt(step, running.attempt, "in doubt", usage, seconds, why)

    def seconds_since(self, started: float) -> float:
        return round(max(0.0, self.engine.clock.now() - started), 6)


class SupervisedAttempt:
    """One attempt under way. Whatever its agent does, exactly one report follows."""

    __slots__ = (
        "_attempts",
        "_key",
        "_limit",
        "_over",
        "_recover",
        "_running",
        "_slot",
        "_started",
        "_step",
        "_timer",
        "task",
    )

    def __init__(self, attempts: Attempts, step: str, running: Running, limit: float | None, recover: bool) -> None:
        self._attempts, self._step, self._running = attempts, step, running
        self._key = step, running.attempt
        self._limit, self._recover = limit, recover
        self._started = attempts.engine.clock.now()
        self._timer: asyncio.TimerHandle | None = None
        self._over = False
        self._slot = Slot(attempts.engine.slots)
        if limit is not None:
            self._leave_behind_after(limit + attempts.engine.grace, f"timeout: no outcome after {limit:g} s")
        self.task = asyncio.create_task(self._supervise())

    def stop(self) -> None:
        """Tell the agent to stop, because the run ended. If it does not, the attempt is recorded as in doubt."""
        self.task.cancel()
        self._leave_behind_after(self._attempts.engine.grace, "the run ended")

    def leave_behind(self) -> bool:
        """Abandon the agent if it does not stop; False if it has stopped. The caller reports for it."""
        if self._over:
            return False
        self._end()
        if not self.task.done():  # else it was stopped before it began
            self._attempts.left_behind.add(self._key)
        _forget(self.task)
        return True

    def _leave_behind_after(self, seconds: float, why: str) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._give_up_on_agent, why)

    def _give_up_on_agent(self, why: str) -> None:
        if self.leave_behind():
            self._attempts.engine.spawn(self._report_late(self._without_agent(why)))

    def _without_agent(self, why: str) -> AttemptReport:
        step, attempt, state = self._step, self._running.attempt, self._attempts.run.state
        seconds, words = self._attempts.seconds_since(self._started), f"{why}, and {DID_NOT_STOP}"
        if self.task.done():
            return AttemptReport(c.DropAttempt(step, attempt, "interrupted", seconds=seconds))
        if state.ended is None and state.graph.steps[step].on_doubt == "rerun":
            # The old agent may still run while the next one works. That cannot repeat for ever, because errors are
            # counted.
            return AttemptReport(c.FailAttempt(step, attempt, words, seconds=seconds))
        why = f"{words}: it may still be running"
        return AttemptReport(c.DropAttempt(step, attempt, "in doubt", seconds=seconds, why=why))

    async def _report_late(self, report: AttemptReport) -> None:
        try:
            await self._submit(report)
        except Exception as error:  # noqa: BLE001 - the run cannot go on without the report: its waiters get the error
            self._attempts.run.give_up(error)
        finally:
            self._attempts.engine.slots.offer()

    async def _supervise(self) -> None:
        """Run the attempt from its briefing to its recorded report, then free its slot."""
        try:
            report = await self._reported()
            if report is not None:
                await self._submit(report)
        except Exception as error:  # noqa: BLE001 - the run cannot go on without the report: its waiters get the error
            self._attempts.run.give_up(error)
        except BaseException:
            # An interrupt stops the process: asyncio need not print it again when the task is collected.
            self.task.add_done_callback(lambda done: done.cancelled() or done.exception())
            raise
        finally:
            self._attempts.engine.slots.offer()

    async def _reported(self) -> AttemptReport | None:
        """The report of the attempt; None if the engine has reported for it meanwhile."""
        try:
            report = await self._execute()
        except asyncio.CancelledError:
            run = self._attempts.run
            if run.stopping or run.state.ended is None:
                raise
            seconds = self._attempts.seconds_since(self._started)
            report = AttemptReport(c.DropAttempt(self._step, self._running.attempt, "interrupted", seconds=seconds))
        finally:
            left_behind = self._over
            # The slot is free before the report is decided, so that the next attempt can have it.
            self._end()
        return None if left_behind else report

    async def _execute(self) -> AttemptReport:
        attempts, step, number = self._attempts, self._step, self._running.attempt
        engine, now = attempts.engine, attempts.engine.clock.now
        try:
            state = attempts.run.state
            task = await task_for(engine.journal, state, step, self._running, now(), self._limit, self._recover)
        except Exception as error:  # noqa: BLE001 - an attempt that cannot be briefed has failed
            return failed_report(step, number, error, attempts.seconds_since(self._started))
        inputs = task.briefing.inputs
        attempt = LiveAttempt(attempts.run, engine.journal, step, number, inputs, self._slot, self._spend)
        return self._counted(await attempts.executor.execute(task, attempt))

    def _counted(self, report: AttemptReport) -> AttemptReport:
        """A doubt about an attempt that was started here is an error if its step simply runs again: errors are counted, so
        it does not run again for ever."""
        command, state = report.command, self._attempts.run.state
        if self._recover or not isinstance(command, c.DropAttempt) or state.ended is not None:
            return report
        if state.graph.steps[self._step].on_doubt == "ask":
            return report
        return AttemptReport(
            c.FailAttempt(command.step, command.attempt, command.why, command.usage, command.seconds), report.payloads
        )

    def _end(self) -> None:
        self._over = True
        if self._timer is not None:
            self._timer.cancel()
        if self._attempts.under_way.get(self._step) is self:
            del self._attempts.under_way[self._step]
        self._slot.give_back()

    async def _submit(self, report: AttemptReport) -> None:
        spent, command = self._attempts.spent.pop(self._key, None), report.command
        if spent is not None:
            command = _with_usage(command, spent)
        try:
            await self._attempts.run.submit(command, report.payloads)
        except IllegalCommand:
            return  # another process has already recorded the end of this attempt

    def _spend(self, usage: Usage) -> None:
        self._attempts.spent[self._key] = self._attempts.spent.get(self._key, NO_USAGE) + usage


def _with_usage(command: AttemptCommand, usage: Usage) -> AttemptCommand:
    """The report with the usage that the attempt reported while it worked."""
    if isinstance(command, c.FinishAttempt):
        return replace(command, outcome=replace(command.outcome, usage=usage + command.outcome.usage))
    return replace(command, usage=usage + command.usage)


def _forget(task: asyncio.Task[None]) -> None:
    """Make sure that the event loop neither waits for a task when it ends nor warns about it.

    `asyncio.run` waits for every task that it knows, and no public function removes one. These two are the functions
    that asyncio offers for custom task types. A Python without them waits for the agent, which is slower but safe.
    """
    unregister = getattr(asyncio, "_unregister_task", None)
    if unregister is not None:
        unregister(task)
    with suppress(AttributeError):
        setattr(task, "_log_destroy_pending", False)  # noqa: B010 - unknown to the types of asyncio
