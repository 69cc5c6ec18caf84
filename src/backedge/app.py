"""Connects the engine to its adapters: the entry points of the Python API."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from hashlib import sha256
from types import TracebackType
from typing import Protocol, Self

import msgspec

from backedge.adapters.journals.opening import open_journal
from backedge.analytics.attempt_errors import errors_by_step, may_have_errors
from backedge.analytics.report import Report, report
from backedge.analytics.rounds import loop_histories
from backedge.compat import format_of, read
from backedge.context import Context
from backedge.core import commands as c
from backedge.core.briefing import Notice, notices
from backedge.core.errors import AgentError, BackedgeError, FeedbackRefused, IllegalCommand, NotFound, RunHeld
from backedge.core.escalation.deadlines import next_due
from backedge.core.escalation.packet import Packet, packet
from backedge.core.events import Event, LoopOpened
from backedge.core.events import RefusedFeedback as Refused
from backedge.core.feedback.requirements import loop_about, requirements_to_trace
from backedge.core.model import HUMAN, Resolution
from backedge.core.scheduling.pending import RunOutcome, response_due
from backedge.core.state.run import RunState
from backedge.core.value import Json
from backedge.core.workflow.definition import Workflow as Definition
from backedge.definition import Workflow
from backedge.engine import engine as inner
from backedge.engine.attempts.live_attempt import resolution_of
from backedge.engine.codec import canonical
from backedge.engine.facts import mentions_for
from backedge.engine.live_run import LiveRun, resting
from backedge.engine.protocol import Feedback, to_feedback
from backedge.engine.starting import new_run_id
from backedge.engine.store import input_of, outputs
from backedge.ports import Agent, Clock, JournalWithClaims, RunHead, StepResolver


class Runnable(Protocol):
    """A definition with its agents: a Workflow of Python functions, or one from a file."""

    @property
    def definition(self) -> Definition: ...
    @property
    def agents(self) -> Mapping[str, Agent]: ...


class Engine:
    """Runs workflows on a journal: the path or URL of one (`sqlite:///backedge.db`, `memory:`), a journal object, or None
    for memory only.

    Use it as an async context manager. Leaving it stops running attempts and records that, so that a later resume
    continues. `grace` is how many seconds an agent gets to stop; one that does not stop in time is abandoned.
    """

    def __init__(
        self,
        journal: str | os.PathLike[str] | JournalWithClaims | None = None,
        *,
        clock: Clock | None = None,
        max_parallel: int = 256,
        max_output: int = inner.MAX_OUTPUT,
        grace: float = inner.GRACE,
    ) -> None:
        self._owned = journal is None or isinstance(journal, str | os.PathLike)
        self.journal: JournalWithClaims
        if journal is None or isinstance(journal, str | os.PathLike):
            self.journal = open_journal("memory:" if journal is None else journal)
        elif hasattr(journal, "append") and hasattr(journal, "claim"):
            self.journal = journal
        else:
            raise TypeError(f"journal is {journal!r}: expected a path, a URL, a journal, or None for memory only")
        self._inner = inner.LiveEngine(
            self.journal, self.journal, clock=clock, max_parallel=max_parallel, max_output=max_output, grace=grace
        )

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop running attempts, record them as interrupted, and close the journal if this engine opened it."""
        try:
            await self._inner.close()
        finally:
            if self._owned:
                await self.journal.close()

    def kill_now(self) -> None:
        """Give stopping agents no more time: closing abandons those that still run."""
        self._inner.kill_now()

    async def start(self, workflow: Runnable, input: Json = None, run: str | None = None) -> Run:
        """Start a run of a workflow in the background."""
        _require_workflow(workflow)
        # A workflow from a file is stored with its run, so that another machine can continue it.
        files = getattr(workflow, "files", inner.NO_FILES)
        run = run or new_run_id(self._inner.clock.now())
        if await self.journal.read(run):  # what was recorded when it began stays
            raise IllegalCommand(f"run {run!r} exists: resume it, or choose another id")
        begin = getattr(workflow, "begin", None)
        baselines, payloads = await begin(run) if begin is not None else ((), {})
        live = await self._inner.start(
            workflow.definition, workflow.agents, input, run, _resolver(workflow), files, baselines, payloads
        )
        return Run(self._inner, live.run)

    async def import_file(self, name: str, text: str, form: str | None = None) -> Run:
        """Import a file of another system as a separate run: its loops and defects appear in reports and statistics,
        and an export gives the same file again. `form` is its format: loops, feedback-jsonl, defects, progress or
        scratchpad; None recognises it by its contents.

        Raises ImportRefused, with all problems and their locations, and AlreadyClosed if the file was imported
        before."""
        kind = form or format_of(text)
        read(kind, text)
        run = f"i-{sha256(f'{kind}/{text}'.encode()).hexdigest()[:12]}"
        await self._inner.import_file(c.ImportFile(run, kind, name, text))
        return Run(self._inner, run)

    async def resume(self, run: str, workflow: Runnable) -> Run:
        """Continue a run from its journal; a manual pause is lifted. The run keeps the definition it started
        with; `workflow` provides its functions.

        A paused run that another process executes goes on there, and this is the way to follow it; one that is not
        paused raises RunHeld.
        """
        _require_workflow(workflow)
        try:
            await self._inner.resume(run, workflow.agents, _resolver(workflow))
        except RunHeld:
            if (await self._inner.state_of(run)).paused_by is None:
                raise
            # Another process executes the paused run: it continues as soon as it reads this command.
            await self._inner.submit(run, c.Resume())
        return Run(self._inner, run)

    async def find(self, run: str) -> Run:
        """A run to inspect and to send commands to, whichever process executes it. Raises NotFound."""
        await self._inner.state_of(run)
        return Run(self._inner, run)

    async def runs(self, limit: int | None = None, after: str | None = None) -> Sequence[RunHead]:
        """The runs of the journal, newest first: all, or at most `limit` from the one that follows the run `after`."""
        return await self._inner.runs(limit, after)

    async def inbox(self) -> list[Packet]:
        """The decision packet of every open escalation of all runs, whichever process executes them, oldest run first.

        `(await engine.find(packet.run)).decide(packet.escalation, choice)` answers one.
        """
        return [packet(state, id) for state in await self.waiting_runs() for id in state.escalations]

    async def waiting_runs(self) -> list[RunState]:
        """The state of every run with an open escalation, whichever process executes it, oldest first."""
        self._inner.require_open()
        runs = dict.fromkeys(each.run for each in await self.journal.open_escalations())
        return [await self._inner.state_of(run) for run in runs]

    @property
    def clock(self) -> Clock:
        """The clock by which questions become due."""
        return self._inner.clock

    async def keep_deadlines(self) -> float | None:
        """Remind people of open questions, and let those expire that no person answers, in runs that no process executes: one
        that executes a run does this itself. Returns when this has to be called again; None if nothing becomes due."""
        self._inner.require_open()
        times, now = [], self.clock.now()
        for run in dict.fromkeys(each.run for each in await self.journal.open_escalations()):
            due: float | None = None
            with suppress(BackedgeError):  # a run that cannot be read, or that another process changes now
                due = next_due(await self._inner.state_of(run))
                if due is not None and due <= now and await self.journal.holder(run) is None:
                    await self._inner.submit(run, c.Proceed())
                    due = next_due(await self._inner.state_of(run))
            if due is not None:
                # What is still due is up to the process that executes the run. It may end before it has done it.
                times.append(due if due > now else now + inner.HOLDER_INTERVAL)
        return min(times, default=None)

    def allow(self, attempts: int | None) -> None:
        """Let this many more attempts start, to go step by step; None removes the restriction."""
        self._inner.allow(attempts)

    def subscribe(self, subscriber: Callable[[str, Event], None]) -> Callable[[], None]:
        """Subscribe to the events of the runs that this engine executes; call the returned function to unsubscribe."""
        return self._inner.subscribe(subscriber)


LARGEST_COMMAND = 65_536
"""The most bytes of one command: it is stored in events."""


class Run:
    """One run: inspect it, answer its questions, wait for it."""

    def __init__(self, engine: inner.LiveEngine, id: str) -> None:
        self._engine, self.id = engine, id

    @property
    def _live(self) -> LiveRun | None:
        return self._engine.live(self.id)

    @property
    def executed_here(self) -> bool:
        """Whether this engine executes the run; false if the run has ended."""
        return self._live is not None

    async def result(self) -> Report:
        """Wait until the run has ended or only a person can continue it, and return its report. Raises NotExecuted if

        the run could continue but no process executes it: resume it."""
        live = self._live
        await self.at_rest()
        report = await self.report()
        if live is not None:
            self._engine.evict(live)
            await self._engine.released(self.id)
        return report

    async def at_rest(self) -> RunOutcome:
        """Wait until the run has ended or only a person can continue it, whichever process executes it. Raises

        NotExecuted if the run could continue but no process executes it: resume it."""
        self._engine.require_open()
        if (live := self._live) is not None:
            return await live.at_rest()
        return await self._engine.follow(self.id, resting, executed=True)

    async def changed(self, since: int | None = None) -> None:
        """Wait until something happens in the run, or has happened after event number `since`."""
        self._engine.require_open()
        seq = (await self.state()).seq if since is None else since
        if (live := self._live) is not None:
            await live.watch(lambda state: True if state.seq > seq else None)
        else:
            await self._engine.follow(self.id, lambda state: True if state.seq > seq else None)

    async def release(self) -> None:
        """Stop executing the run here, so that its memory is freed and another process can continue it."""
        self._engine.require_open()
        await self._engine.release(self.id)

    async def report(self) -> Report:
        """The current state of the run, for people and programs."""
        state = await self._engine.state_of(self.id)
        large = [name for name, step in state.steps.items() if step.artifact and step.artifact.payload]
        # Only loops and errors have a history: most runs have none, and then the events need not be read.
        events = await self.events() if state.opened_loops or may_have_errors(state) else ()
        found = await outputs(self._engine.journal, state, large)
        return report(state, found, loop_histories(events), errors_by_step(events))

    async def state(self) -> RunState:
        """The state that the rules work on; `report` is easier to read."""
        return await self._engine.state_of(self.id)

    async def events(self, after: int = 0) -> list[Event]:
        """Everything that happened, in order; or only what happened after event number `after`."""
        return await self._engine.events_of(self.id, after)

    @property
    def context(self) -> Context:
        """The run as a tree that you read by path, with your own values in it."""
        return Context(self._engine, self.id)

    async def notices(self, step: str) -> tuple[Notice, ...]:
        """All feedback that was addressed to a step."""
        return notices(await self.state(), step)

    async def wait_for(self, loop: str, timeout: float | None = None) -> Resolution:
        """Wait for the result of a loop: resolved, accepted, cancelled, failed, escalated or timeout. The id of a
        requirement means the newest loop about it."""
        self._engine.require_open()
        about = loop_about(await self.state(), loop)
        loop = about.id if about is not None else loop
        if (live := self._live) is not None:
            return await live.wait_for(loop, timeout)
        if (await self.state()).loop(loop) is None:
            raise NotFound(f"unknown loop {loop!r} in run {self.id!r}")
        try:
            async with asyncio.timeout(timeout):
                return await self._followed(loop)
        except TimeoutError:
            return Resolution("timeout")

    async def _followed(self, loop: str) -> Resolution:
        """The result of a loop of a run that is not executed here. If no process executes the run, none records that the
        answer of a person is overdue: it is overdue all the same."""
        while True:
            due = response_due(await self.state(), loop)
            left = max(0.0, due - self._engine.clock.now()) if due is not None else None
            try:
                async with asyncio.timeout(left):
                    return await self._engine.follow(self.id, lambda state: resolution_of(state, loop))
            except TimeoutError:
                due = response_due(await self.state(), loop)
                if due is not None and due <= self._engine.clock.now():
                    return Resolution("timeout", text="the answer is overdue")

    async def decide(
        self,
        escalation: str,
        choice: str,
        *,
        by: str = "",
        note: str = "",
        rounds: int = c.DEFAULT_ROUNDS,
        amount: float | None = None,
        option: str | None = None,
        target: str | None = None,
        phase: str | None = None,
    ) -> None:
        """Answer an escalation: resolve, continue, revise, reassign, reclassify, rollback, accept, skip or cancel."""
        await self._submit(c.Decide(escalation, choice, by, note, rounds, amount, option, target, phase))

    async def raise_feedback(self, feedback: Feedback, source: str = HUMAN) -> str:
        """Send feedback as a person, or on behalf of a step; returns its loop. Raises FeedbackRefused."""
        if not isinstance(feedback, Feedback):
            raise TypeError(f"feedback is a {type(feedback).__name__}: expected backedge.Feedback")
        state = await self.state()
        item = to_feedback(feedback, state.workflow.kinds)
        known = source == HUMAN or source in state.steps
        mentions = await mentions_for(
            self._engine.journal, state, source, requirements_to_trace((item,)) if known else ()
        )
        events = await self._engine.submit(self.id, c.RaiseFeedback(source, item, mentions=mentions))
        for event in events:
            if isinstance(event, Refused):
                raise FeedbackRefused(event.reason)
        opened = [event.loop for event in events if isinstance(event, LoopOpened)]
        if opened:
            return opened[0]
        routed = [loop for event in events if (loop := getattr(event, "loop", None)) is not None]
        return str(routed[0])

    async def acknowledge(self, loop: str, target: str, message: str = "", action: str = "", eta: str = "") -> None:
        """Confirm for a target that feedback was received and is being worked on."""
        await self._submit(c.Acknowledge(loop, target, message, action, eta))

    async def resolve_feedback(self, loop: str, *, note: str = "", option: str | None = None, by: str = "") -> None:
        """Resolve an open loop as a person, escalated or not, with one of its options or a text."""
        await self._submit(c.ResolveLoop(loop, by, note, option))

    async def escalate_feedback(self, loop: str, *, note: str = "", by: str = "") -> None:
        """Hand an open loop to a person now, who decides about it like about any escalation."""
        await self._submit(c.EscalateLoop(loop, by, note))

    async def withdraw_feedback(self, loop: str, *, note: str = "", by: str = "") -> None:
        """Take an open loop back. Its findings are withdrawn, and its source runs once more."""
        await self._submit(c.WithdrawLoop(loop, by, note))

    async def reclassify(self, finding: str, phase: str, by: str = "") -> None:
        """Correct which phase injected a finding. Routing uses it from now on."""
        await self._submit(c.Reclassify(finding, phase, by))

    async def change_input(self, input: Json) -> None:
        """Change the input for later attempts; finished work is not repeated. Raises IllegalCommand."""
        try:
            canonical(input, self._engine.max_output, "the input")
        except AgentError as error:
            raise IllegalCommand(str(error)) from error
        await self._engine.submit(self.id, c.ChangeInput(input))

    async def input(self) -> Json:
        """The input of the run."""
        return await input_of(self._engine.journal, await self.state())

    async def pause(self, by: str = "") -> None:
        """Start nothing more; running attempts finish."""
        await self._submit(c.Pause(by))

    async def resume(self, by: str = "") -> None:
        """Continue after a manual pause."""
        await self._submit(c.Resume(by))

    async def cancel(self, by: str = "", reason: str = "") -> None:
        """End the run; the work so far is kept."""
        await self._submit(c.Cancel(by, reason))

    async def end_attempts(self, end: Callable[[str, str, int], Awaitable[None]]) -> None:
        """End the attempts that a dead process left running in a cancelled or failed run: `end` gets the run, the step
        and the attempt. Raises RunHeld if another process executes the run: that process does it."""
        state = await self._engine.state_of(self.id)
        left = {name: step.running.attempt for name, step in state.steps.items() if step.running is not None}
        if not left or state.ended is None or state.ended.outcome not in ("cancelled", "failed"):
            return
        claim = await self._engine.claims.claim(self.id)
        try:
            for step, attempt in left.items():
                await end(self.id, step, attempt)
                await self._submit(c.DropAttempt(step, attempt, "interrupted"))
        finally:
            await self._engine.claims.release(claim)

    async def _submit(self, command: c.Command) -> tuple[Event, ...]:
        """Record a command. One that could not be read back is refused: a value of the wrong type, or too many
        bytes."""
        try:
            size = len(msgspec.json.encode(command))
            checked = msgspec.convert(msgspec.to_builtins(command), type(command))
        except (msgspec.ValidationError, TypeError, ValueError) as error:
            raise IllegalCommand(f"{type(command).__name__} cannot be recorded: {error}; correct its fields") from error
        if size > LARGEST_COMMAND:
            raise IllegalCommand(
                f"{type(command).__name__} has {size:,} bytes, at most {LARGEST_COMMAND:,} are allowed: write "
                "the text to a file and name the file"
            )
        return await self._engine.submit(self.id, checked)


def _require_workflow(given: object) -> None:
    if not hasattr(given, "definition") or not hasattr(given, "agents"):
        raise TypeError(f"the workflow is a {type(given).__name__}: expected backedge.Workflow")


def _resolver(workflow: Runnable) -> StepResolver | None:
    # Checked first, because checking an object against a protocol is slow.
    return workflow if isinstance(workflow, Workflow | StepResolver) else None


def run(
    workflow: Workflow,
    input: Json = None,
    *,
    journal: str | os.PathLike[str] | None = None,
    run: str | None = None,
    on_event: Callable[[str, Event], None] | None = None,
) -> Report:
    """Run a workflow synchronously, for scripts and notebooks, until it ends or only a person can continue it.

    With a journal and the id of an existing run, it continues that run.
    """

    async def go() -> Report:
        async with Engine(journal) as engine:
            if on_event is not None:
                engine.subscribe(on_event)
            known = run is not None and any(head.run == run for head in await engine.runs())
            going = await (engine.resume(str(run), workflow) if known else engine.start(workflow, input, run))
            return await going.result()

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(go())
    # A notebook already runs an event loop: ours runs on a separate thread.
    outcome: Future[Report] = Future()
    stops: list[Callable[[], object]] = []

    async def stoppable() -> Report:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        stops.append(lambda: loop.call_soon_threadsafe(task.cancel))
        return await go()

    def beside() -> None:
        try:
            outcome.set_result(asyncio.run(stoppable()))
        except BaseException as error:  # noqa: BLE001 - it is raised again where `run` was called
            outcome.set_exception(error)

    thread = threading.Thread(target=beside, name="backedge-run")
    try:
        thread.start()
        while not outcome.done():
            # A Ctrl-C just before a wait begins is noticed only when the wait ends.
            wait([outcome], timeout=0.2)
        return outcome.result()
    finally:
        if thread.ident is not None and not outcome.done():
            # Interrupted: running attempts are stopped and recorded before the caller continues.
            while not stops and not outcome.done():
                time.sleep(0.001)
            for stop in stops:
                with suppress(RuntimeError):  # it has already ended
                    stop()
            wait([outcome])
        if outcome.done():
            thread.join()


__all__ = ["Engine", "Run", "Runnable", "run"]
