"""The engine: starts, resumes and answers runs over the ports. It knows no adapter."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from secrets import token_hex
from types import TracebackType
from typing import Self, TypeVar

import msgspec

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.decide import transact
from backedge.core.errors import (
    AgentError,
    BackedgeError,
    IllegalCommand,
    JournalConflict,
    NotFound,
    RunHeld,
    WorkflowError,
)
from backedge.core.model import HUMAN, Usage
from backedge.core.pending import outcome_of
from backedge.core.state import RunState, replay
from backedge.core.value import Json
from backedge.core.workflow import Workflow
from backedge.engine.codec import INLINE, canonical, decoded, digest_of, encoded
from backedge.engine.live import LiveRun
from backedge.engine.perform import recover
from backedge.ports import Agent, Append, Claims, Clock, Journal, RunHead

MAX_OUTPUT = 16 * 1024 * 1024
T = TypeVar("T")
Subscriber = Callable[[str, e.Event], None]


def new_run_id(now: float) -> str:
    """An id that nobody else has, and that sorts by time."""
    return f"r-{int(now * 1000):011x}{token_hex(3)}"


class SystemClock:
    """The time of this machine."""

    def now(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


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
    ) -> None:
        if max_parallel < 1:
            raise ValueError(f"max_parallel is {max_parallel}: expected 1 or more")
        self.journal, self.claims = journal, claims
        self.clock: Clock = clock or SystemClock()
        self.max_parallel, self.max_output = max_parallel, max_output
        self.attempts = 0
        self.reserved = 0
        """Attempts that are being recorded as started."""
        self.closing = False
        self._live: dict[str, LiveRun] = {}
        self._starved: dict[str, None] = {}
        self._subscribers: dict[object, Subscriber] = {}
        self._notices: set[asyncio.Task[None]] = set()
        self._unsubscribe: Callable[[], None] | None = None

    async def __aenter__(self) -> Self:
        self._unsubscribe = self.journal.subscribe(self._written)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop what runs and record it as interrupted: a later resume does it again. Work that is recorded stays."""
        self.closing = True
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        for task in self._notices:
            task.cancel()
        stopping = [task for live in self._live.values() for task in live.stop()]
        await asyncio.gather(*stopping, *self._notices, return_exceptions=True)
        errors: list[BackedgeError] = []
        for live in list(self._live.values()):
            try:
                await self._let_go(live)
            except BackedgeError as error:
                errors.append(error)  # the others must not suffer for it
        if errors:
            raise errors[0]

    async def _let_go(self, live: LiveRun) -> None:
        try:
            await live.idle()
            await asyncio.gather(*live.stop(), return_exceptions=True)
            if live.broken is None and live.begun:
                for name in live.state.steps:
                    running = live.state.steps[name].running
                    if running is not None:
                        seconds = round(max(0.0, self.clock.now() - running.started), 6)
                        usage = live.spent.get((name, running.attempt), Usage())
                        with suppress(IllegalCommand):  # it came to its end meanwhile
                            await live.submit(c.DropAttempt(name, running.attempt, "interrupted", usage, seconds))
        finally:
            if live.broken is None:
                live.give_up(IllegalCommand(f"run {live.run!r} is no longer executed here: resume it"))
            self._live.pop(live.run, None)
            self.claims.release(live.run)

    # Running

    async def start(
        self, workflow: Workflow, agents: Mapping[str, Agent], input: Json = None, run: str | None = None
    ) -> LiveRun:
        """Start a run. Raises WorkflowError for a definition that cannot run, naming everything that is wrong."""
        _require_agents(workflow, agents)
        run = run or new_run_id(self.clock.now())
        try:
            run.encode()
            text = canonical(input, self.max_output, "the input")
        except (AgentError, AttributeError, UnicodeEncodeError) as error:
            # What is wrong here was given by the caller, not by an agent.
            wrong = str(error) if isinstance(error, AgentError) else f"the id of the run is {run!r}: expected text"
            raise IllegalCommand(wrong) from error
        large = len(text) > INLINE
        command = c.StartRun(
            run, workflow, None if large else msgspec.json.decode(text), digest_of(text) if large else None
        )
        self.claims.claim(run)
        live = LiveRun(self, run, None, agents)
        self._live[run] = live
        try:
            await live.submit(command, {digest_of(text): text} if large else {})
        except BaseException as error:
            await self._abandon(live, error)
            if isinstance(error, JournalConflict | IllegalCommand):
                raise IllegalCommand(f"run {run!r} exists: resume it, or choose another id") from error
            raise
        return live

    async def resume(self, run: str, agents: Mapping[str, Agent]) -> LiveRun:
        """Go on with a run where its journal ends. Attempts found running are in doubt: re-run, or asked about.

        Raises RunHeld, naming the holder, if another process executes it.
        """
        if run in self._live:
            if self._live[run].broken is None:
                return self._live[run]
            await self._let_go(self._live[run])
        self.claims.claim(run)
        try:
            state = await self.state_of(run)
            _require_agents(state.workflow, agents)
        except BaseException:
            self.claims.release(run)
            raise
        live = LiveRun(self, run, state, agents)
        self._live[run] = live
        try:
            for name, step in state.steps.items():
                if step.running is not None and not recover(live, name, step.running):
                    await live.submit(c.DropAttempt(name, step.running.attempt, "in doubt"))
            if state.paused_by is not None:
                await live.submit(c.Resume())
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
            await asyncio.gather(*live.stop(), return_exceptions=True)
        finally:
            self._live.pop(live.run, None)
            self.claims.release(live.run)

    async def release(self, live: LiveRun) -> None:
        """Stop executing a run that is at rest, so that others can."""
        stopping = live.stop()
        await asyncio.gather(*stopping, return_exceptions=True)
        await self._let_go(live)

    # Asking and answering

    async def runs(self) -> Sequence[RunHead]:
        return await self.journal.runs()

    async def state_of(self, run: str) -> RunState:
        """Where a run stands. Raises NotFound for one that does not exist."""
        if run in self._live:
            return self._live[run].state
        state = replay(decoded(await self.journal.read(run)))
        if state is None:
            raise NotFound(f"run {run!r} does not exist in this journal")
        return state

    def live(self, run: str) -> LiveRun | None:
        """The run as this engine executes it; None if it does not."""
        return self._live.get(run)

    async def outputs(self, state: RunState, names: Sequence[str]) -> dict[str, Json]:
        """The current outputs of those steps that have one."""
        found: dict[str, Json] = {}
        for name in names:
            artifact = state.steps[name].artifact
            if artifact is None:
                continue
            if artifact.payload is None:
                found[name] = artifact.output
            else:
                found[name] = msgspec.json.decode(await self.journal.payload(artifact.payload))
        return found

    async def follow(self, run: str, look: Callable[[RunState], T | None]) -> T:
        """Wait until `look` says something of a run that somebody else executes; it is asked after every change."""
        changed = asyncio.Event()
        unsubscribe = self.journal.subscribe(lambda which, _: changed.set() if which == run else None)
        try:
            while True:
                changed.clear()
                found = look(await self.state_of(run))
                if found is not None:
                    return found
                await changed.wait()
        finally:
            unsubscribe()

    async def events_of(self, run: str) -> list[e.Event]:
        return decoded(await self.journal.read(run))

    async def submit(self, run: str, command: c.Command) -> tuple[e.Event, ...]:
        """Record a command for a run, whoever executes it; that process goes on at once.

        Where nobody does, what becomes ready starts with the next resume.
        """
        live = self._live.get(run)
        if live is not None:
            return await live.submit(command)
        while True:
            state = await self.state_of(run)
            events, after = transact(state, command, self.clock.now())
            if not events:
                return ()
            entry = Append(run, state.seq, encoded(events), after.workflow.name, outcome_of(after))
            try:
                await self.journal.append(entry)
            except JournalConflict:
                continue
            self.tell(run, events)
            return events

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Tell the subscriber of every event of the runs executed here; returns what ends that."""
        token = object()
        self._subscribers[token] = subscriber

        def unsubscribe() -> None:
            self._subscribers.pop(token, None)

        return unsubscribe

    # For live runs

    def room(self) -> int:
        """How many more attempts may start."""
        return 0 if self.closing else self.max_parallel - self.attempts - self.reserved

    def tell(self, run: str, events: tuple[e.Event, ...]) -> None:
        for subscriber in tuple(self._subscribers.values()):
            for event in events:
                try:
                    subscriber(run, event)
                except Exception as error:  # noqa: BLE001 - who listens cannot undo what happened
                    asyncio.get_running_loop().call_exception_handler(
                        {"message": f"a subscriber failed at {type(event).__name__} of {run!r}", "exception": error}
                    )

    def had_room(self, run: str, room: int, used: int) -> None:
        """A run decided with room for so many attempts: if it used all, it may want more, after those who wait."""
        if used < room:
            self._starved.pop(run, None)
        elif used:
            self._starved.pop(run, None)
            self._starved[run] = None
        else:
            self._starved.setdefault(run)

    def give_room(self) -> None:
        """A place is free: those who found none may have it, the one who has waited longest first."""
        while self._starved and self.room() > 0:
            run = next(iter(self._starved))
            live = self._live.get(run)
            if live is not None and live.broken is None:
                self.proceed_soon(live)
                return
            del self._starved[run]

    def proceed_soon(self, live: LiveRun) -> None:
        """Start what can start in a run."""
        if not self.closing:
            self._spawn(self._proceed(live))

    async def _proceed(self, live: LiveRun) -> None:
        with suppress(BackedgeError):
            await live.submit(c.Proceed())
        self.give_room()

    async def input_of(self, state: RunState) -> Json:
        if state.input_payload is None:
            return state.input
        return msgspec.json.decode(await self.journal.payload(state.input_payload))

    def _written(self, run: str, seq: int) -> None:
        live = self._live.get(run)
        if live is not None and live.written_elsewhere(seq):
            self._spawn(self._notice(live))

    async def _notice(self, live: LiveRun) -> None:
        with suppress(BackedgeError):
            await live.notice()

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._notices.add(task)
        task.add_done_callback(self._notices.discard)


def _require_agents(workflow: Workflow, agents: Mapping[str, Agent]) -> None:
    missing = [
        f"step {step.name!r} has no agent {name!r}: give one"
        for step in workflow.steps
        for name in step.agents or ("",)
        if name not in agents and name != HUMAN
    ]
    if missing:
        raise WorkflowError(tuple(missing))


__all__ = ["Engine", "RunHeld", "SystemClock"]
