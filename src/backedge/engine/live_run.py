"""A run in execution: load → decide → append → perform, one command at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.decide import transact
from backedge.core.errors import AgentError, BackedgeError, IllegalCommand, JournalConflict, NotFound, RunLost
from backedge.core.model import Finding, Resolution, Usage
from backedge.core.scheduling.pending import CheckInputs, RunOutcome, next_wake, outcome_of, pending
from backedge.core.scheduling.skipping import present_needs
from backedge.core.state.evolve import evolve
from backedge.core.state.run import RunState
from backedge.core.value import Json
from backedge.engine.attempts.execution import Execution, perform
from backedge.engine.attempts.live_attempt import resolution_of
from backedge.engine.dynamic_steps import adopt_steps, with_noted_values
from backedge.engine.store import entry_of, events_of, outputs
from backedge.ports import Agent, Claim, ResolvedSteps, StepResolver

if TYPE_CHECKING:
    from backedge.engine.engine import Engine

_TIMED = frozenset({e.AttemptFailed, e.EscalationOpened, e.EscalationDecided, e.RunResumed})
"""What can set a time at which something is due."""
T = TypeVar("T")
_Watch = tuple[Callable[[RunState], Any], "asyncio.Future[Any]"]


def resting(state: RunState) -> RunOutcome | None:
    """How a run stands that has ended, or in which nothing can start until a person acts; None for any other."""
    outcome = outcome_of(state)
    return None if outcome == "running" else outcome


class LiveRun:
    """One run that this process executes. Everything that changes it goes through `submit`."""

    def __init__(
        self,
        engine: Engine,
        claim: Claim,
        state: RunState | None,
        agents: Mapping[str, Agent],
        resolver: StepResolver | None = None,
    ) -> None:
        self.engine, self.claim, self.agents, self.step_resolver = engine, claim, dict(agents), resolver
        self.run = claim.run
        self.resolved_steps: dict[str, ResolvedSteps] = {}
        """Agents of the steps that a planner wants to add, until that is decided."""
        self._state = state
        self._lock = asyncio.Lock()
        self._appended = state.seq if state else 0
        """The last event that we sent to the journal: what comes after it was written by somebody else."""
        self._unsure = False
        self.executions: dict[str, Execution] = {}
        self.spent: dict[tuple[str, int], Usage] = {}
        """What attempts under way say they have used so far, by step and attempt."""
        self.left_behind: set[tuple[str, int]] = set()
        """Attempts whose agents did not stop, by step and number: they may still be at work."""
        self._outcome: tuple[RunState | None, RunOutcome] = (None, "running")
        """What the last state that was decided comes to."""
        self._watches: list[_Watch] = []
        self._alarm: tuple[float, asyncio.Task[None]] | None = None
        self.broken: BaseException | None = None
        self.leaving = False
        """Whether it is about to be executed here no longer: nothing more starts."""

    @property
    def begun(self) -> bool:
        """Whether there is a state: not before the first append."""
        return self._state is not None

    async def idle(self) -> None:
        """Wait until nothing is on its way to the journal."""
        async with self._lock:
            if self._unsure and self.broken is None:
                await self._catch_up()

    @property
    def state(self) -> RunState:
        assert self._state is not None
        return self._state

    async def submit(self, command: c.Command, payloads: Mapping[str, bytes] | None = None) -> tuple[e.Event, ...]:
        """Decide a command, append what follows from it and perform that. Raises IllegalCommand."""
        try:
            return await self._submit(command, payloads or {})
        finally:
            self._retire_soon()

    async def _submit(self, command: c.Command, payloads: Mapping[str, bytes]) -> tuple[e.Event, ...]:
        async with self._lock:
            if self._unsure and self.broken is None:
                await self._catch_up()
            while True:
                if self.broken is not None:
                    raise self.broken
                try:
                    events, state = await self._decide(command)
                except BackedgeError:
                    raise
                except Exception as error:
                    self._break(error)
                    raise
                if not events:
                    return ()
                self._outcome = state, outcome_of(state)
                entry = entry_of(self._state, events, state, self._outcome[1], payloads, self.claim.fence)
                self._appended = state.seq
                starting = state.attempts - (self._state.attempts if self._state else 0)
                self.engine.slots.reserved += starting
                try:
                    await self.engine.journal.append(entry)
                except JournalConflict:
                    if self._state is None:
                        raise  # a run of this name is there already, and not ours
                    await self._catch_up()
                    # What the quicker one wrote may have made something ready that this command will not start.
                    self.engine.proceed_soon(self)
                    continue
                except asyncio.CancelledError:
                    # Whether it was stored is found out before anything else is decided. If it is stored only later,
                    # the journal tells of it as of what somebody else writes.
                    self._unsure = True
                    self._appended = entry.after
                    self.engine.proceed_soon(self)
                    raise
                except BaseException as error:
                    # What cannot be recorded must not happen: the run stops here, and resumes from the journal.
                    self._break(error)
                    raise
                finally:
                    self.engine.slots.reserved -= starting
                self._happened(events, state)
                return events

    @property
    def finished(self) -> bool:
        """Whether the run has ended, nothing of it is under way here, and nobody waits for anything in it."""
        return (
            self._state is not None
            and self._state.ended is not None
            and not self._state.busy
            and not self.executions
            and not self._lock.locked()
            and not self._unsure
            and self.broken is None
            and all(future.done() for _, future in self._watches)
        )

    def _retire_soon(self) -> None:
        if self._state is not None and self._state.ended is not None:
            # After those who wait for the end have seen it.
            asyncio.get_running_loop().call_soon(self.engine.evict, self)

    async def notice(self) -> None:
        """Somebody else wrote to this run: learn what, and do what follows."""
        async with self._lock:
            if self.broken is None:
                await self._catch_up()
        with suppress(IllegalCommand):
            await self.submit(c.Proceed())

    def written_elsewhere(self, seq: int) -> bool:
        return seq > self._appended

    async def _decide(self, command: c.Command) -> tuple[tuple[e.Event, ...], RunState]:
        now, room = self.engine.clock.now(), 0 if self.leaving else self.engine.free_slots()
        before = self._state.attempts if self._state else 0
        if isinstance(command, c.FinishAttempt) and command.plan.add:
            command = await self._noted(command)
        events, state = transact(self._state, command, now, room)
        while room > state.attempts - before and state.graph.checks_inputs:
            # Checking inputs costs nothing, so it is part of the same append.
            waiting = next((each for each in pending(state, now) if isinstance(each, CheckInputs)), None)
            if waiting is None:
                break
            checked = c.ReportInputCheck(waiting.step, await self._input_errors(state, waiting.step))
            more, state = transact(state, checked, now, room - (state.attempts - before))
            events += more
        self.engine.slots.used(self.run, room, state.attempts - before)
        return events, state

    async def _noted(self, command: c.FinishAttempt) -> c.Command:
        """A planner's report, with what its steps need to know; an error of the planner if they ask for too much."""
        try:
            return await with_noted_values(self.engine.journal, self.state, command)
        except AgentError as error:
            usage, seconds = command.outcome.usage, command.seconds
            return c.FailAttempt(
                command.step, command.attempt, str(error), usage, seconds, command.log, command.session
            )

    async def _input_errors(self, state: RunState, step: str) -> tuple[tuple[str, Finding], ...]:
        inputs = await outputs(self.engine.journal, state, present_needs(state, step))
        agent = next((self.agents[name] for name in state.graph.steps[step].agents if name in self.agents), None)
        if agent is None:
            return ()  # a person sees for herself
        try:
            errors = agent.input_errors(inputs)
        except Exception:  # noqa: BLE001 - the agent cannot say: its attempt meets the same fault, and records it
            return ()
        return tuple(
            (producer, Finding(description=f"{pointer or 'the whole'}: {problem}", category="schema", path=pointer))
            for producer, pointer, problem in errors
        )

    async def _catch_up(self) -> None:
        state = self._state
        try:
            events = await events_of(self.engine.journal, self.run, state.seq if state else 0)
            for event in events:
                state = evolve(state, event)
            # Whoever has taken the run over performs what it wrote. Checked after the reading: a check before it would
            # say nothing of what was written since.
            if events and not await self.engine.claims.holds(self.claim):
                raise RunLost(self.run)
        except Exception as error:
            # What cannot be read cannot be followed: everybody who waits is told, instead of waiting for ever.
            self._break(error)
            raise
        self._unsure = False
        self._appended = state.seq if state is not None else 0
        if state is not None and events:
            self._happened(tuple(events), state)

    def _happened(self, events: tuple[e.Event, ...], state: RunState) -> None:
        self._state = state
        for event in events:
            if isinstance(event, e.StepsChanged):
                adopt_steps(self, event)
        perform(self, events)
        self.engine.notify(self.run, events)
        if self._watches:
            self._look()
        if self._alarm is not None or not _TIMED.isdisjoint(map(type, events)):
            self.set_alarm()

    def _look(self) -> None:
        still: list[_Watch] = []
        for predicate, future in self._watches:
            if future.done():
                continue
            found = predicate(self.state)
            if found is None:
                still.append((predicate, future))
            else:
                future.set_result(found)
        self._watches = still

    async def watch(self, predicate: Callable[[RunState], T | None]) -> T:
        """Wait until the predicate says something else than None of the state; it is asked after every change."""
        found = predicate(self.state)
        if found is not None:
            return found
        if self.broken is not None:
            raise self.broken
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._watches.append((predicate, future))
        try:
            return await future
        finally:
            self._retire_soon()

    async def wait_for(self, loop: str, timeout: float | None = None) -> Resolution:
        """How a loop came out, the moment it does."""
        if self.state.loop(loop) is None:
            raise NotFound(
                f"loop {loop!r} is unknown in run {self.run!r}: open are {', '.join(self.state.loops) or 'none'}"
            )
        try:
            async with asyncio.timeout(timeout):
                return await self.watch(lambda state: resolution_of(state, loop))
        except TimeoutError:
            return Resolution("timeout")

    async def at_rest(self) -> RunOutcome:
        """Wait until the run has ended, or nothing can start until a person acts."""
        return await self.watch(lambda state: self._resting(state))

    def _resting(self, state: RunState) -> RunOutcome | None:
        # What a run comes to was worked out when it was recorded.
        known, outcome = self._outcome
        return resting(state) if known is not state else None if outcome == "running" else outcome

    async def inputs_of(self, step: str) -> dict[str, Json]:
        return await outputs(self.engine.journal, self.state, present_needs(self.state, step))

    def set_alarm(self) -> None:
        """Wake up when the next retry or timeout is due."""
        wake = next_wake(self.state, self.engine.clock.now()) if self.state.ended is None else None
        if self._alarm is not None:
            due, task = self._alarm
            if due == wake and not task.done():
                return
            task.cancel()
            self._alarm = None
        if wake is not None:
            self._alarm = (wake, asyncio.create_task(self._ring(wake)))

    async def _ring(self, wake: float) -> None:
        await self.engine.clock.sleep(max(0.0, wake - self.engine.clock.now()))
        self._alarm = None
        with suppress(BackedgeError):
            await self.submit(c.Proceed())
        if self.broken is None:
            self.set_alarm()

    def lose(self) -> None:
        """Somebody else executes the run now: do nothing more here."""
        if self.broken is None:
            self._break(RunLost(self.run))

    def _break(self, error: BaseException) -> None:
        self.give_up(error)
        self.stop()
        # Its places are free, once whoever reserved them has noticed.
        asyncio.get_running_loop().call_soon(self.engine.start_waiting_runs)

    def give_up(self, error: BaseException) -> None:
        """Do nothing more, and say why to everybody who waits or comes later."""
        self.broken = error
        for _, future in self._watches:
            if not future.done():
                future.set_exception(error if isinstance(error, Exception) else RuntimeError(str(error)))
                future.exception()
        self._watches = []

    def stop(self) -> list[asyncio.Task[None]]:
        """Cancel what runs; returns the tasks that have to end."""
        stopped = [execution.task for execution in self.executions.values()]
        if self._alarm is not None:
            stopped.append(self._alarm[1])
            self._alarm = None
        current = asyncio.current_task()
        for task in stopped:
            if task is not current:
                task.cancel()
        return [task for task in stopped if task is not current]

    def leave_behind(self) -> None:
        """Go on without the agents that do not stop."""
        for execution in tuple(self.executions.values()):
            execution.leave_behind()
