"""The engine: starts, resumes and answers runs over the ports. It knows no adapter."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.decide import transact
from backedge.core.errors import (
    BackedgeError,
    EngineClosed,
    IllegalCommand,
    JournalConflict,
    NotExecuted,
    RunLost,
)
from backedge.core.model import Usage
from backedge.core.state.run import Running, RunState
from backedge.core.value import Json
from backedge.core.workflow.definition import Workflow
from backedge.engine.attempts.execution import DID_NOT_STOP, recover
from backedge.engine.clock import SystemClock
from backedge.engine.dynamic_steps import agents_for
from backedge.engine.live_run import LiveRun
from backedge.engine.slots import Slots
from backedge.engine.starting import new_run_id, require_agents, start_command
from backedge.engine.store import States, entry_of, events_of
from backedge.engine.subscribers import Subscriber, Subscribers
from backedge.ports import Agent, Claim, Claims, Clock, Journal, RunHead, StepResolver

MAX_OUTPUT = 16 * 1024 * 1024
GRACE = 10.0
"""Seconds that an agent has to stop when it is told to; then it is left behind."""
LAST_MOMENT = 1.0
"""Seconds that agents have to be gone when there is no more time."""
HOLDER_INTERVAL = 1.0
"""Seconds between looks at whether a run that is followed is still executed by anybody."""
T = TypeVar("T")


class Engine:
    """Executes runs, and answers for those that others execute. Use it as an async context manager."""

    def __init__(
        self,
        journal: Journal,
        claims: Claims,
        *,
        clock: Clock | None = None,
        max_parallel: int = 256,
        max_output: int = MAX_OUTPUT,
        grace: float = GRACE,
    ) -> None:
        if not 0 <= grace < float("inf"):
            raise ValueError(f"grace is {grace}: expected seconds, 0 or more")
        for name, most in (("max_parallel", max_parallel), ("max_output", max_output)):
            if type(most) is not int or most < 1:
                raise ValueError(f"{name} is {most!r}: expected a whole number, 1 or more")
        self.journal, self.claims = journal, claims
        self.clock: Clock = clock or SystemClock()
        self.slots = Slots(max_parallel)
        self.max_output, self.grace = max_output, grace
        self._hurry = asyncio.Event()
        self.closing = False
        self._live: dict[str, LiveRun] = {}
        self._ended: dict[str, tuple[Mapping[str, Agent], StepResolver | None]] = {}
        """Who did the runs that have ended here: late feedback sends them back to work."""
        self._followers: set[asyncio.Event] = set()
        self._subscribers = Subscribers()
        self._notices: set[asyncio.Task[None]] = set()
        self._states = States(journal)
        self._releases: dict[str, asyncio.Task[None]] = {}
        """Claims that are on their way back, by run."""
        self._subscriptions: list[Callable[[], None]] = []

    async def __aenter__(self) -> Self:
        self._subscriptions = [self.journal.subscribe(self._written), self.claims.on_lost(self._lost)]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop what runs and record it as interrupted: a later resume does it again. Work that is recorded stays.

        An agent that does not stop is left behind, so that closing takes no longer than the grace that agents have. Its
        attempt is in doubt.
        """
        self.closing = True
        for follower in self._followers:
            follower.set()
        while self._subscriptions:
            self._subscriptions.pop()()
        for task in self._notices:
            task.cancel()
        await self._wait_stopped([*(task for live in self._live.values() for task in live.stop()), *self._notices])
        errors: list[BackedgeError] = []
        for live in list(self._live.values()):
            live.leave_behind()
            try:
                await self._let_go(live)
            except BackedgeError as error:
                errors.append(error)  # the others must not suffer for it
        await asyncio.gather(*self._releases.values())
        if errors:
            raise errors[0]

    def kill_now(self) -> None:
        """Give agents that are told to stop no more time than it takes to kill them."""
        self._hurry.set()

    async def _wait_stopped(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """Wait for tasks that were told to stop, but not longer than the grace that agents have."""
        if not tasks:
            return
        hurried = asyncio.create_task(self._hurry.wait())
        stopping = asyncio.gather(*tasks, return_exceptions=True)  # what failed was told to those who wait for the run
        try:
            awaited: set[asyncio.Future[Any]] = {stopping, hurried}
            await asyncio.wait(awaited, timeout=self.grace, return_when=asyncio.FIRST_COMPLETED)
            if self._hurry.is_set():
                # Processes that are killed now are gone in a moment, and are then known to be.
                await asyncio.wait([stopping], timeout=LAST_MOMENT)
        finally:
            hurried.cancel()

    def require_open(self) -> None:
        """Raises EngineClosed."""
        if self.closing:
            raise EngineClosed("this engine was closed: open another one on the same journal")

    async def _stopped(self, live: LiveRun) -> None:
        """Stop all that runs of a run, and leave behind what does not."""
        await self._wait_stopped(live.stop())
        live.leave_behind()

    async def _let_go(self, live: LiveRun) -> None:
        live.leaving = True
        try:
            await live.idle()
            await self._stopped(live)
            if live.broken is None and live.begun:
                for name in live.state.steps:
                    running = live.state.steps[name].running
                    if running is not None:
                        with suppress(IllegalCommand, RunLost):  # it came to its end meanwhile, or is no longer ours
                            await live.submit(self._dropped(live, name, running))
        finally:
            if live.broken is None:
                live.give_up(NotExecuted(f"run {live.run!r} is no longer executed here: resume it"))
            self._live.pop(live.run, None)
            await self.claims.release(live.claim)

    def _dropped(self, live: LiveRun, step: str, running: Running) -> c.Command:
        attempt, seconds = running.attempt, round(max(0.0, self.clock.now() - running.started), 6)
        usage = live.spent.get((step, attempt), Usage())
        if (step, attempt) not in live.left_behind:
            return c.DropAttempt(step, attempt, "interrupted", usage, seconds)
        why = f"its engine was closed, and {DID_NOT_STOP}: it may still be at work"
        return c.DropAttempt(step, attempt, "in doubt", usage, seconds, why)

    # Running

    async def start(
        self,
        workflow: Workflow,
        agents: Mapping[str, Agent],
        input: Json = None,
        run: str | None = None,
        resolver: StepResolver | None = None,
    ) -> LiveRun:
        """Start a run. Raises WorkflowError for a definition that cannot run, naming everything that is wrong."""
        self.require_open()
        require_agents(workflow, agents)
        run = run or new_run_id(self.clock.now())
        command, payloads = start_command(run, workflow, input, self.max_output)
        live = LiveRun(self, await self._claim(run), None, agents, resolver)
        self._live[run] = live
        try:
            await live.submit(command, payloads)
        except BaseException as error:
            await self._abandon(live, error)
            if isinstance(error, JournalConflict | IllegalCommand):
                raise IllegalCommand(f"run {run!r} exists: resume it, or choose another id") from error
            raise
        return live

    async def import_file(self, command: c.ImportFile) -> None:
        """Record a file of another system as a run of its own. Raises AlreadyClosed if it was imported before."""
        self.require_open()
        events, after = transact(None, command, self.clock.now())
        try:
            await self.journal.append(entry_of(None, events, after))
        except JournalConflict:
            transact(await self.state_of(command.run), command, self.clock.now())
            raise

    async def resume(self, run: str, agents: Mapping[str, Agent], resolver: StepResolver | None = None) -> LiveRun:
        """Go on with a run where its journal ends, also if somebody paused it. Attempts found running are in doubt:
        re-run, or asked about.

        Raises RunHeld, naming the holder, if another process executes it.
        """
        self.require_open()
        known = self._live.get(run)
        if known is not None:
            if known.broken is None:
                await _lift_pause(known)
                return known
            await self._let_go(known)
        claim = await self._claim(run)
        self._ended.pop(run, None)
        try:
            state = await self.state_of(run)
            agents = {**agents, **agents_for(resolver, state.specs, state)}
            require_agents(state.workflow, agents)
        except BaseException:
            await self.claims.release(claim)
            raise
        live = LiveRun(self, claim, state, agents, resolver)
        self._live[run] = live
        try:
            for name, step in state.steps.items():
                if step.running is not None and not recover(live, name, step.running):
                    await live.submit(c.DropAttempt(name, step.running.attempt, "in doubt"))
            await _lift_pause(live)
            await live.submit(c.Proceed())
            live.set_alarm()
        except BaseException as error:
            await self._abandon(live, error)
            raise
        return live

    async def _abandon(self, live: LiveRun, error: BaseException) -> None:
        """Whoever started or resumed a run has not got it: nobody may find it executed here without holding it."""
        live.give_up(error)
        try:
            await self._stopped(live)
        finally:
            self._live.pop(live.run, None)
            await self.claims.release(live.claim)

    async def _claim(self, run: str) -> Claim:
        await self.released(run)
        return await self.claims.claim(run)

    async def released(self, run: str) -> None:
        """Wait until the claim of a run that was evicted is back."""
        if run in self._releases:
            await self._releases[run]

    async def release(self, run: str) -> None:
        """Stop executing a run that is at rest, so that others can."""
        self.require_open()
        self._ended.pop(run, None)
        live = self._live.get(run)
        if live is not None:
            live.leaving = True
            await self._stopped(live)
            await self._let_go(live)

    def evict(self, live: LiveRun) -> None:
        """Keep no more of a run that has ended than it takes to go on with it: the journal has the rest."""
        if self._live.get(live.run) is live and live.finished and not self.closing:
            del self._live[live.run]
            self._ended[live.run] = live.agents, live.step_resolver
            task = self._releases[live.run] = asyncio.create_task(self._give_back(live.claim))
            task.add_done_callback(lambda _: self._releases.pop(live.run, None))

    async def _give_back(self, claim: Claim) -> None:
        with suppress(BackedgeError):  # the run has ended, and all of it is recorded
            await self.claims.release(claim)

    async def _resume_ended(self, run: str) -> LiveRun | None:
        """A run that had ended here, to go on with; None if somebody else has it now."""
        agents, resolver = self._ended[run]
        with suppress(BackedgeError):
            return await self.resume(run, agents, resolver)
        return None

    # Asking and answering

    async def runs(self, limit: int | None = None, after: str | None = None) -> Sequence[RunHead]:
        self.require_open()
        return await self.journal.runs(limit, after)

    async def state_of(self, run: str) -> RunState:
        """Where a run stands. Raises NotFound for one that does not exist."""
        self.require_open()
        live = self._live.get(run)
        return live.state if live is not None and live.begun else await self._states.of(run)

    def live(self, run: str) -> LiveRun | None:
        """The run as this engine executes it; None if it does not."""
        return self._live.get(run)

    async def events_of(self, run: str) -> list[e.Event]:
        self.require_open()
        return await events_of(self.journal, run)

    async def follow(self, run: str, look: Callable[[RunState], T | None], executed: bool = False) -> T:
        """Wait until `look` says something of a run that somebody else executes; it is asked after every change.

        With `executed`, raises NotExecuted when nobody does: then there is nothing to wait for.
        """
        changed = asyncio.Event()
        unsubscribe = self.journal.subscribe(lambda which, _: changed.set() if which == run else None)
        self._followers.add(changed)
        try:
            while True:
                changed.clear()
                # Asked before the state: whoever ended the run in between has written that it did.
                nobody = executed and await self.claims.holder(run) is None
                found = look(await self.state_of(run))
                if found is not None:
                    return found
                if nobody:
                    raise NotExecuted(f"run {run!r} has not ended, but nobody executes it: resume it")
                with suppress(TimeoutError):
                    # A process that dies tells nobody: somebody has to look.
                    await asyncio.wait_for(changed.wait(), HOLDER_INTERVAL if executed else None)
        finally:
            self._followers.discard(changed)
            unsubscribe()

    async def submit(self, run: str, command: c.Command) -> tuple[e.Event, ...]:
        """Record a command for a run, whoever executes it; that process goes on at once.

        Where nobody does, what becomes ready starts with the next resume.
        """
        self.require_open()
        live = self._live.get(run)
        if live is None and run in self._ended:
            live = await self._resume_ended(run)
        if live is not None:
            return await live.submit(command)
        while True:
            state = await self.state_of(run)
            events, after = transact(state, command, self.clock.now())
            if not events:
                return ()
            try:
                await self.journal.append(entry_of(state, events, after))
            except JournalConflict:
                continue
            self.notify(run, events)
            return events

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Tell the subscriber of every event of the runs executed here; returns what ends that."""
        self.require_open()
        return self._subscribers.add(subscriber)

    # For live runs

    def free_slots(self) -> int:
        """How many more attempts may start."""
        return 0 if self.closing else self.slots.free()

    def notify(self, run: str, events: tuple[e.Event, ...]) -> None:
        self._subscribers.tell(run, events)

    def allow(self, attempts: int | None) -> None:
        """Let so many more attempts start, and then none; None lets all start that can."""
        self.require_open()
        self.slots.left = attempts
        self.start_waiting_runs()

    def start_waiting_runs(self) -> None:
        """A place is free: those who found none may have it, the one who has waited longest first."""
        while not self.closing and (run := self.slots.next_in_queue()) is not None:
            live = self._live.get(run)
            if live is not None and live.broken is None:
                self.proceed_soon(live)
                return
            self.slots.leave_queue(run)

    def proceed_soon(self, live: LiveRun) -> None:
        """Start what can start in a run."""
        if not self.closing:
            self.spawn(self._proceed(live))

    async def _proceed(self, live: LiveRun) -> None:
        with suppress(BackedgeError):
            await live.submit(c.Proceed())
        self.start_waiting_runs()

    def _written(self, run: str, seq: int) -> None:
        live = self._live.get(run)
        if live is not None and live.written_elsewhere(seq):
            self.spawn(self._notice(live))
        elif live is None and run in self._ended:
            self.spawn(self._look_again(run))

    def _lost(self, claim: Claim) -> None:
        live = self._live.get(claim.run)
        if live is not None and live.claim == claim:
            live.lose()

    async def _look_again(self, run: str) -> None:
        if run in self._ended:
            await self._resume_ended(run)

    async def _notice(self, live: LiveRun) -> None:
        with suppress(BackedgeError):
            await live.notice()

    def spawn(self, work: Coroutine[object, object, None]) -> None:
        """Do something beside, until this engine closes."""
        task = asyncio.create_task(work)
        self._notices.add(task)
        task.add_done_callback(self._notices.discard)


async def _lift_pause(live: LiveRun) -> None:
    if live.state.paused_by is not None and live.state.ended is None:
        await live.submit(c.Resume())
