"""The engine: starts, resumes and answers runs through the ports. It knows no adapter."""

from __future__ import annotations

import asyncio
import time
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
from backedge.core.evidence.values import Baseline
from backedge.core.state.run import RunState
from backedge.core.value import Json, replace
from backedge.core.workflow.definition import Workflow
from backedge.engine.agents import RunAgents, agents_for, require_agents
from backedge.engine.live_run import LiveRun
from backedge.engine.slots import Slots
from backedge.engine.starting import new_run_id, start_command
from backedge.engine.store import States, entry_of, events_of
from backedge.engine.subscribers import Subscriber, Subscribers
from backedge.ports import Agent, Claim, Claims, Clock, Journal, RunHead, StepResolver

MAX_OUTPUT = 16 * 1024 * 1024
GRACE = 10.0
"""Seconds that an agent has to stop. After that it is abandoned."""
LAST_MOMENT = 1.0
"""Seconds that killed agents have to end."""
HOLDER_INTERVAL = 1.0
"""Seconds between two checks whether any process still executes a run that is followed."""
NO_FILES: Mapping[str, bytes] = {}
T = TypeVar("T")


class SystemClock:
    """The time of this machine."""

    def now(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class LiveEngine:
    """Executes runs, and answers questions about runs of other processes. Use it as an async context manager."""

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
        self.slots = Slots(max_parallel, self.start_waiting_runs)
        self.subscribers = Subscribers()
        self.max_output, self.grace = max_output, grace
        self._kill_now = asyncio.Event()
        self.closing = False
        self._live: dict[str, LiveRun] = {}
        self._ended: dict[str, RunAgents] = {}
        """The agents of runs that have ended here, because late feedback can reopen such a run."""
        self._followers: set[asyncio.Event] = set()
        self._background: set[asyncio.Task[None]] = set()
        self._states = States(journal)
        self._releases: dict[str, asyncio.Task[None]] = {}
        """Claims that are being released, by run."""
        self._subscriptions: list[Callable[[], None]] = []

    async def __aenter__(self) -> Self:
        self._subscriptions = [self.journal.subscribe(self._written), self.claims.on_lost(self._lost)]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop running attempts and record them as interrupted: a later resume runs them again. Recorded work is not
        lost.

        An agent that does not stop is abandoned, so that closing takes no longer than the grace period. Its attempt is
        then in doubt.
        """
        self.closing = True
        for follower in self._followers:
            follower.set()
        while self._subscriptions:
            self._subscriptions.pop()()
        for task in self._background:
            task.cancel()
        await self._wait_stopped([*(task for live in self._live.values() for task in live.stop()), *self._background])
        errors: list[BackedgeError] = []
        for live in list(self._live.values()):
            live.attempts.leave_all_behind()
            try:
                await self._let_go(live)
            except BackedgeError as error:
                errors.append(error)  # the other runs are still closed
        await asyncio.gather(*self._releases.values())
        if errors:
            raise errors[0]

    def kill_now(self) -> None:
        """End the grace period now: agents that do not stop at once are abandoned."""
        self._kill_now.set()

    async def _wait_stopped(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """Wait for tasks that were told to stop, but not longer than the grace period."""
        if not tasks:
            return
        killed = asyncio.create_task(self._kill_now.wait())
        stopping = asyncio.gather(*tasks, return_exceptions=True)  # the waiters of the run have received the errors
        try:
            awaited: set[asyncio.Future[Any]] = {stopping, killed}
            await asyncio.wait(awaited, timeout=self.grace, return_when=asyncio.FIRST_COMPLETED)
            if self._kill_now.is_set():
                # Killed processes end in a moment: wait for that, so that their end is known.
                await asyncio.wait([stopping], timeout=LAST_MOMENT)
        finally:
            killed.cancel()

    def require_open(self) -> None:
        """Raises EngineClosed."""
        if self.closing:
            raise EngineClosed("this engine was closed: open another one on the same journal")

    async def _stopped(self, live: LiveRun) -> None:
        """Stop the attempts of a run, and abandon those that do not stop."""
        await self._wait_stopped(live.stop())
        live.attempts.leave_all_behind()

    async def _let_go(self, live: LiveRun) -> None:
        live.leaving = True
        try:
            await live.idle()
            await self._stopped(live)
            if live.broken is None and live.begun:
                for name in live.state.steps:
                    running = live.state.steps[name].running
                    if running is not None:
                        with suppress(IllegalCommand, RunLost):  # it has ended, or is no longer ours
                            await live.submit(live.attempts.dropped(name, running))
        finally:
            if live.broken is None:
                live.give_up(NotExecuted(f"run {live.run!r} is no longer executed here: resume it"))
            self._live.pop(live.run, None)
            await self.claims.release(live.claim)

    # Running

    async def start(
        self,
        workflow: Workflow,
        agents: Mapping[str, Agent],
        input: Json = None,
        run: str | None = None,
        resolver: StepResolver | None = None,
        files: Mapping[str, bytes] = NO_FILES,
        baselines: Sequence[Baseline] = (),
        stored: Mapping[str, bytes] = NO_FILES,
    ) -> LiveRun:
        """Start a run. `files` are stored with it: the workflow file and the files it names; so are the `baselines` of its
        tool judges, with the large values that they name. Raises WorkflowError, with all
        problems, for a definition that cannot run."""
        self.require_open()
        require_agents(workflow, agents)
        run = run or new_run_id(self.clock.now())
        command, payloads = start_command(run, workflow, input, self.max_output, files)
        command, payloads = replace(command, baselines=tuple(baselines)), {**payloads, **stored}
        live = LiveRun(self, await self._claim(run), None, RunAgents(agents, resolver, workflow))
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
        """Record a file of another system as a separate run. Raises AlreadyClosed if it was imported before."""
        self.require_open()
        events, after = transact(None, command, self.clock.now())
        try:
            await self.journal.append(entry_of(None, events, after))
        except JournalConflict:
            transact(await self.state_of(command.run), command, self.clock.now())
            raise

    async def resume(self, run: str, agents: Mapping[str, Agent], resolver: StepResolver | None = None) -> LiveRun:
        """Continue a run where its journal ends, even if it was paused. Attempts that were running are recovered if their
        agent can do that; otherwise they are in doubt, and the step's `on_doubt` decides whether they run again or a
        person is asked.

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
        live = LiveRun(self, claim, state, RunAgents(agents, resolver, state.workflow))
        self._live[run] = live
        try:
            await live.submit(c.Recover())
            for name, step in state.steps.items():
                if step.running is not None and not live.attempts.recover(name, step.running):
                    await live.submit(c.DropAttempt(name, step.running.attempt, "in doubt"))
            await _lift_pause(live)
            await live.submit(c.Proceed())
            live.set_alarm()
            live.restore_soon()
        except BaseException as error:
            await self._abandon(live, error)
            raise
        return live

    async def _abandon(self, live: LiveRun, error: BaseException) -> None:
        """Clean up after a run that could not be started or resumed, so that it does not look as if it were executed
        here."""
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
        """Wait until the claim of an evicted run is released."""
        if run in self._releases:
            await self._releases[run]

    async def release(self, run: str) -> None:
        """Stop executing a run that is at rest, so that another process can execute it."""
        self.require_open()
        self._ended.pop(run, None)
        live = self._live.get(run)
        if live is not None:
            live.leaving = True
            await self._stopped(live)
            await self._let_go(live)

    def evict(self, live: LiveRun) -> None:
        """Forget a run that has ended, except its agents, which late feedback may need. The journal has the rest."""
        if self._live.get(live.run) is live and live.finished and not self.closing:
            del self._live[live.run]
            self._ended[live.run] = live.agents
            task = self._releases[live.run] = asyncio.create_task(self._give_back(live.claim))
            task.add_done_callback(lambda _: self._releases.pop(live.run, None))

    async def _give_back(self, claim: Claim) -> None:
        with suppress(BackedgeError):  # the run has ended, and all of it is recorded
            await self.claims.release(claim)

    async def _resume_ended(self, run: str) -> LiveRun | None:
        """Continue a run that had ended here; None if another process executes it now."""
        agents = self._ended[run]
        with suppress(BackedgeError):
            return await self.resume(run, agents.by_name, agents.resolver)
        return None

    # Asking and answering

    async def runs(self, limit: int | None = None, after: str | None = None) -> Sequence[RunHead]:
        self.require_open()
        return await self.journal.runs(limit, after)

    async def state_of(self, run: str) -> RunState:
        """The state of a run. Raises NotFound if there is no such run."""
        self.require_open()
        live = self._live.get(run)
        return live.state if live is not None and live.begun else await self._states.of(run)

    def live(self, run: str) -> LiveRun | None:
        """The run, if this engine executes it."""
        return self._live.get(run)

    async def events_of(self, run: str, after: int = 0) -> list[e.Event]:
        self.require_open()
        return await events_of(self.journal, run, after)

    async def follow(self, run: str, look: Callable[[RunState], T | None], executed: bool = False) -> T:
        """Wait until `look` returns something other than None for a run that another process executes. It is called after
        every change.

        With `executed`, raises NotExecuted when no process executes the run: then there is nothing to wait for.
        """
        changed = asyncio.Event()
        unsubscribe = self.journal.subscribe(lambda which, _: changed.set() if which == run else None)
        self._followers.add(changed)
        try:
            while True:
                changed.clear()
                # Checked before the state is read: a process that ends the run in between has recorded the end.
                orphaned = executed and await self.claims.holder(run) is None
                found = look(await self.state_of(run))
                if found is not None:
                    return found
                if orphaned:
                    raise NotExecuted(f"run {run!r} has not ended, but no process executes it: resume it")
                with suppress(TimeoutError):
                    # A process that dies does not announce it: check from time to time.
                    await asyncio.wait_for(changed.wait(), HOLDER_INTERVAL if executed else None)
        finally:
            self._followers.discard(changed)
            unsubscribe()

    async def submit(self, run: str, command: c.Command) -> tuple[e.Event, ...]:
        """Record a command for a run, whichever process executes it; that process continues at once.

        If none does, what becomes ready starts with the next resume.
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
            self.subscribers.publish(run, events)
            return events

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call the subscriber with every event of the runs executed here. Returns a function that ends this."""
        self.require_open()
        return self.subscribers.add(subscriber)

    # Slots and background work

    def allow(self, attempts: int | None) -> None:
        """Let this many more attempts start, and then none; None removes the limit."""
        self.require_open()
        self.slots.left = attempts
        self.start_waiting_runs()

    def start_waiting_runs(self) -> None:
        """A slot is free: give it to the run that has waited longest."""
        while not self.closing and (run := self.slots.next_in_queue()) is not None:
            live = self._live.get(run)
            if live is not None and live.broken is None:
                live.proceed_soon()
                return
            self.slots.leave_queue(run)

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
        """Do something in the background, until this engine closes."""
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)


async def _lift_pause(live: LiveRun) -> None:
    if live.state.paused_by is not None and live.state.ended is None:
        await live.submit(c.Resume())
