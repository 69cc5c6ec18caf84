"""A run in execution: load → decide → append → perform, one command at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.decide import transact
from backedge.core.errors import (
    AgentError,
    BackedgeError,
    IllegalCommand,
    JournalConflict,
    JournalDamaged,
    NotFound,
    RunLost,
)
from backedge.core.evidence.values import RestoredFiles
from backedge.core.model import Finding, Resolution
from backedge.core.scheduling.pending import (
    CheckInputs,
    RestoreFiles,
    RunOutcome,
    files_to_restore,
    next_wake,
    outcome_of,
    pending,
)
from backedge.core.scheduling.skipping import present_needs
from backedge.core.state.evolve import replay
from backedge.core.state.run import RunState
from backedge.engine.agents import RunAgents
from backedge.engine.attempts.executor import LocalExecutor, error_text
from backedge.engine.attempts.live_attempt import resolution_of
from backedge.engine.attempts.supervision import Attempts, HostEngine
from backedge.engine.facts import with_facts
from backedge.engine.store import entry_of, events_of, outputs
from backedge.engine.subscribers import Subscribers
from backedge.ports import Claim, Claims, Restorable

_TIMED = frozenset(
    {
        e.AttemptFailed,
        e.AttemptLimited,
        e.EscalationOpened,
        e.EscalationReminded,
        e.EscalationExpired,
        e.EscalationDecided,
        e.RunResumed,
    }
)
"""The events that can set a time at which something is due."""
LONGEST_SLEEP = 60.0
"""Seconds after which a run that waits looks at the clock again: the machine may have been suspended."""
T = TypeVar("T")
_Watch = tuple[Callable[[RunState], Any], "asyncio.Future[Any]"]


def resting(state: RunState) -> RunOutcome | None:
    """The outcome of a run that has ended, or in which nothing can start until a person acts; None for any other."""
    outcome = outcome_of(state)
    return None if outcome == "running" else outcome


class RunEngine(HostEngine, Protocol):
    """What a live run needs of the engine that executes it."""

    claims: Claims
    subscribers: Subscribers
    max_output: int
    closing: bool

    def evict(self, live: LiveRun) -> None:
        """Forget a run that has ended, unless something in it is still awaited."""
        ...


class LiveRun:
    """One run that this process executes. Everything that changes it goes through `submit`."""

    def __init__(self, engine: RunEngine, claim: Claim, state: RunState | None, agents: RunAgents) -> None:
        self.engine, self.claim, self.run, self.agents = engine, claim, claim.run, agents
        self.attempts = Attempts(self, engine, agents, LocalExecutor(agents, engine.clock, engine.max_output))
        self._state = state
        self._lock = asyncio.Lock()
        self._appended = state.seq if state else 0
        """The last event that we sent to the journal: later ones were written by another process."""
        self._unsure = False
        """Whether the last append may or may not have been stored."""
        self._outcome: tuple[RunState | None, RunOutcome] = (None, "running")
        """The last state that was decided, and its outcome."""
        self._watches: list[_Watch] = []
        self._alarm: tuple[float, asyncio.Task[None]] | None = None
        self._restores = False
        """Whether files of a rollback are being restored here."""
        self.broken: BaseException | None = None
        self.leaving = False
        """Whether this process is about to stop executing it: nothing more starts."""

    @property
    def begun(self) -> bool:
        """Whether there is a state: not before the first append."""
        return self._state is not None

    @property
    def stopping(self) -> bool:
        """Whether this process stops executing the run. Then the engine reports the cancelled attempts."""
        return self.engine.closing or self.broken is not None

    async def idle(self) -> None:
        """Wait until no append is under way."""
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
            self._evict_soon()

    async def _submit(self, command: c.Command, payloads: Mapping[str, bytes]) -> tuple[e.Event, ...]:
        async with self._lock:
            if self._unsure and self.broken is None:
                await self._catch_up()
            while True:
                if self.broken is not None:
                    raise self.broken
                try:
                    decided, stored = await self._with_facts(command, payloads)
                    events, state = await self._decide(decided)
                except BackedgeError:
                    raise
                except Exception as error:
                    self._break(error)
                    raise
                if not events:
                    return ()
                self._outcome = state, outcome_of(state)
                entry = entry_of(self._state, events, state, self._outcome[1], stored, self.claim.fence)
                self._appended = state.seq
                starting = state.attempts - (self._state.attempts if self._state else 0)
                self.engine.slots.reserved += starting
                try:
                    await self.engine.journal.append(entry)
                except JournalConflict:
                    if self._state is None:
                        raise  # another run has this id already
                    await self._catch_up()
                    # The events of the other process may have made something ready that this command will not start.
                    self.proceed_soon()
                    continue
                except asyncio.CancelledError:
                    # Find out whether it was stored before anything else is decided. If it is stored only later, the
                    # journal announces it like an event of another process.
                    self._unsure = True
                    self._appended = entry.after
                    self.proceed_soon()
                    raise
                except BaseException as error:
                    # What cannot be recorded must not happen: the run stops here, and can be resumed from the journal.
                    self._break(error)
                    raise
                finally:
                    self.engine.slots.reserved -= starting
                self._happened(events, state)
                return events

    @property
    def finished(self) -> bool:
        """Whether the run has ended, none of its attempts is under way here, and nothing in it is awaited."""
        return (
            self._state is not None
            and self._state.ended is not None
            and not self._state.busy
            and not self.attempts.under_way
            and not self._lock.locked()
            and not self._unsure
            and self.broken is None
            and all(future.done() for _, future in self._watches)
        )

    def _evict_soon(self) -> None:
        if self._state is not None and self._state.ended is not None:
            # After all waiters have seen the end.
            asyncio.get_running_loop().call_soon(self.engine.evict, self)

    def proceed_soon(self) -> None:
        """Start the steps that can start, in the background."""
        if not self.engine.closing:
            self.engine.spawn(self._proceed())

    async def _proceed(self) -> None:
        with suppress(BackedgeError):
            await self.submit(c.Proceed())
        self.engine.slots.offer()

    async def notice(self) -> None:
        """Read and perform what another process wrote to this run."""
        async with self._lock:
            if self.broken is None:
                await self._catch_up()
        with suppress(IllegalCommand):
            await self.submit(c.Proceed())

    def written_elsewhere(self, seq: int) -> bool:
        return seq > self._appended

    async def _decide(self, command: c.Command) -> tuple[tuple[e.Event, ...], RunState]:
        now = self.engine.clock.now()
        # First it must be known what became of the attempts that were running.
        nothing_starts = self.leaving or self.engine.closing or isinstance(command, c.Recover)
        free_slots = 0 if nothing_starts else self.engine.slots.free()
        before = self._state.attempts if self._state else 0
        events, state = transact(self._state, command, now, free_slots)
        while free_slots > state.attempts - before and state.graph.checks_inputs:
            # Checking inputs costs nothing, so it is part of the same append.
            waiting = next((each for each in pending(state, now) if isinstance(each, CheckInputs)), None)
            if waiting is None:
                break
            checked = c.ReportInputCheck(waiting.step, await self._input_errors(state, waiting.step))
            more, state = transact(state, checked, now, free_slots - (state.attempts - before))
            events += more
        self.engine.slots.used(self.run, free_slots, state.attempts - before)
        return events, state

    async def _with_facts(
        self, command: c.Command, payloads: Mapping[str, bytes]
    ) -> tuple[c.Command, Mapping[str, bytes]]:
        """A report with all facts about outputs that the rules need; a failed attempt if these cannot be found."""
        if not isinstance(command, c.FinishAttempt):
            return command, payloads
        try:
            return await with_facts(self.engine.journal, self.state, command, payloads), payloads
        except (AgentError, JournalDamaged) as error:
            step, attempt, usage, log = command.step, command.attempt, command.outcome.usage, command.log
            failed = c.FailAttempt(step, attempt, error_text(error), usage, command.seconds, log, command.session)
            return failed, {log: payloads[log]} if log else {}

    async def _input_errors(self, state: RunState, step: str) -> tuple[tuple[str, Finding], ...]:
        inputs = await outputs(self.engine.journal, state, present_needs(state, step))
        agents = self.agents.by_name
        agent = next((agents[name] for name in state.graph.steps[step].agents if name in agents), None)
        if agent is None:
            return ()  # people check their inputs themselves
        try:
            errors = agent.input_errors(inputs)
        except Exception:  # noqa: BLE001 - the attempt will meet the same error, and record it
            return ()
        return tuple(
            (producer, Finding(description=f"{pointer or 'the whole'}: {problem}", category="schema", path=pointer))
            for producer, pointer, problem in errors
        )

    async def _catch_up(self) -> None:
        state = self._state
        try:
            events = await events_of(self.engine.journal, self.run, state.seq if state else 0)
            state = replay(events, state)
            # A process that took the run over performs what it wrote. This is checked after reading, so that it covers
            # everything that was read.
            if events and not await self.engine.claims.holds(self.claim):
                raise RunLost(self.run)
        except Exception as error:
            # A run that cannot be read cannot go on: all its waiters get the error.
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
                self.agents.adopt(event, state)
        self.attempts.perform(events, start=not self.engine.closing and not self.leaving)
        self.engine.subscribers.publish(self.run, events)
        if self._watches:
            self._look()
        self.restore_soon()
        if self._alarm is not None or not _TIMED.isdisjoint(map(type, events)):
            self.set_alarm()

    def restore_soon(self) -> None:
        """Restore the files of a rollback in the background. What a process does not finish, the next one does again."""
        if self._restores or self.leaving or self.engine.closing or self.broken is not None:
            return
        effect = files_to_restore(self.state)
        if effect is not None:
            self._restores = True
            self.engine.spawn(self._restore(effect))

    async def _restore(self, effect: RestoreFiles) -> None:
        try:
            found = {name: await self._restored(effect, attempts) for name, attempts in effect.undo.items()}
        finally:
            self._restores = False
        with suppress(BackedgeError):  # another process executes the run now, or it has ended
            await self.submit(c.ReportRestored(found))

    async def _restored(self, effect: RestoreFiles, attempts: Sequence[tuple[str, int]]) -> RestoredFiles:
        """Have an agent of one of the steps undo these attempts, which all were made in its workspace."""
        names = (name for step, _ in attempts for name in self.state.graph.steps[step].agents)
        for name in names:
            able: object = self.agents.by_name.get(name)
            if isinstance(able, Restorable):
                try:
                    return await able.restore(self.run, attempts, effect.judges, effect.rule)
                except Exception as error:  # noqa: BLE001 - a person decides what to do about it
                    return RestoredFiles(problem=error_text(error))
        return RestoredFiles(problem="no agent of these steps can restore files")

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
        """Wait until the predicate returns something other than None for the state. It is called after every change."""
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
            self._evict_soon()

    async def wait_for(self, loop: str, timeout: float | None = None) -> Resolution:
        """Wait for the result of a loop. Raises NotFound."""
        if self.state.loop(loop) is None:
            raise NotFound(
                f"unknown loop {loop!r} in run {self.run!r} (open loops: {', '.join(self.state.loops) or 'none'})"
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
        # The outcome of the last state was computed when it was recorded.
        known, outcome = self._outcome
        return resting(state) if known is not state else None if outcome == "running" else outcome

    def set_alarm(self, looked_at: float | None = None) -> None:
        """Wake up when the next retry, timeout, reminder or expiry is due that the last decision, made at `looked_at`, did
        not see. By now it may be due already: storing the decision takes time, and a process can be frozen meanwhile."""
        if looked_at is None:
            looked_at = min(self.state.last_at, self.engine.clock.now())
        wake = next_wake(self.state, looked_at) if self.state.ended is None else None
        if self._alarm is not None:
            due, task = self._alarm
            if due == wake and not task.done():
                return
            task.cancel()
            self._alarm = None
        if wake is not None:
            self._alarm = (wake, asyncio.create_task(self._ring(wake)))

    async def _ring(self, wake: float) -> None:
        # A clock that counts while the machine sleeps is not the one that a long sleep is measured with.
        while (left := wake - self.engine.clock.now()) > 0:
            await self.engine.clock.sleep(min(left, LONGEST_SLEEP))
        self._alarm = None
        looked_at = self.engine.clock.now()
        with suppress(BackedgeError):
            await self.submit(c.Proceed())
        if self.broken is None:
            self.set_alarm(looked_at)

    def lose(self) -> None:
        """Stop here, because another process executes the run now."""
        if self.broken is None:
            self._break(RunLost(self.run))

    def _break(self, error: BaseException) -> None:
        self.give_up(error)
        self.stop()
        # Its slots are free as soon as its reservation has ended.
        asyncio.get_running_loop().call_soon(self.engine.slots.offer)

    def give_up(self, error: BaseException) -> None:
        """Stop executing the run. All waiters and later callers get this error; if there are several, the first."""
        if self.broken is not None:
            return
        self.broken = error
        for _, future in self._watches:
            if not future.done():
                future.set_exception(error if isinstance(error, Exception) else RuntimeError(str(error)))
                future.exception()
        self._watches = []

    def stop(self) -> list[asyncio.Task[None]]:
        """Cancel the running attempts. Returns their tasks, which still have to end."""
        stopped = self.attempts.tasks()
        if self._alarm is not None:
            stopped.append(self._alarm[1])
            self._alarm = None
        current = asyncio.current_task()
        for task in stopped:
            if task is not current:
                task.cancel()
        return [task for task in stopped if task is not current]
