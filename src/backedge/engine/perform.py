"""Doing what the events say: attempts are started here, and their outcomes reported back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import TYPE_CHECKING

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.briefing import Briefing, brief
from backedge.core.errors import AgentError, IllegalCommand
from backedge.core.model import Outcome, Usage
from backedge.core.state import Running
from backedge.core.value import replace
from backedge.engine import protocol
from backedge.engine.attempt import LiveAttempt
from backedge.engine.codec import canonical, described, digest_of
from backedge.ports import Recovering, Result

if TYPE_CHECKING:
    from backedge.engine.live import LiveRun


SLACK = 10.0
"""Seconds that an agent which keeps its own time has to end what it started."""


def perform(live: LiveRun, events: tuple[e.Event, ...]) -> None:
    """Start the attempts that were recorded as started; stop all of them if the run has ended."""
    for event in events:
        if isinstance(event, e.AttemptStarted):
            if live.engine.closing:
                continue
            running = live.state.steps[event.step].running
            if running is not None and running.attempt == event.attempt and event.step not in live.tasks:
                _begin(live, event.step, _attempt(live, event.step, running))
        elif isinstance(event, e.RunEnded) and event.outcome in ("cancelled", "failed"):
            for task in live.tasks.values():
                task.cancel()


def recover(live: LiveRun, step: str, running: Running) -> bool:
    """Find out what became of an attempt that an earlier process started; False if its agent leaves no traces."""
    agent = live.agents[running.agent]
    if not isinstance(agent, Recovering):
        return False
    _begin(live, step, _attempt(live, step, running, agent))
    return True


def _begin(live: LiveRun, step: str, attempt: Coroutine[None, None, None]) -> None:
    live.tasks[step] = task = asyncio.create_task(attempt)
    live.engine.attempts += 1
    # A failure was told to all who wait; asyncio need not tell it once more when the task is collected.
    task.add_done_callback(lambda done: done.cancelled() or done.exception())


async def _attempt(live: LiveRun, step: str, running: Running, left_by: Recovering | None = None) -> None:
    """One attempt from its briefing to its record, after which others may have its place."""
    try:
        await _reported(live, step, running, left_by)
    finally:
        live.engine.give_room()


async def _reported(live: LiveRun, step: str, running: Running, left_by: Recovering | None) -> None:
    """One attempt and its report. Whatever the agent does, exactly one report follows."""
    clock = live.engine.clock
    started = clock.now()
    payloads: dict[str, bytes] = {}
    command: c.Command
    try:
        try:
            command, payloads = await _worked(live, step, running, started, left_by)
        except asyncio.CancelledError:
            if live.engine.closing or live.broken is not None or live.state.ended is None:
                raise
            usage = live.spent.get((step, running.attempt), Usage())
            command = c.DropAttempt(step, running.attempt, "interrupted", usage, _since(live, started))
    finally:
        # The place is free before the report is decided, so that the report can give it to the next attempt.
        live.tasks.pop(step, None)
        live.engine.attempts -= 1
    live.spent.pop((step, running.attempt), None)
    try:
        await live.submit(command, payloads)
    except IllegalCommand:
        # Somebody else settled this attempt meanwhile, through the journal: theirs stands.
        return
    except Exception as error:
        # A run that broke says so to everybody who waits for it; without a report it would wait for ever.
        if live.broken is None:
            live.give_up(error)
            raise


async def _worked(
    live: LiveRun, step: str, running: Running, started: float, left_by: Recovering | None
) -> tuple[c.Command, dict[str, bytes]]:
    key, reported = (step, running.attempt), Usage()
    result = Result(None)
    try:
        briefing = await _briefing(live, step)
        attempt = LiveAttempt(live, step, running.attempt, briefing.inputs)
        work = left_by.recovered if left_by else live.agents[running.agent].work
        said = await _in_time(work(briefing, attempt), _deadline(live, step, running))
        if said is None and left_by is not None:
            return c.DropAttempt(step, running.attempt, "in doubt", seconds=_since(live, started)), {}
        if isinstance(said, Result):
            result, said = said, said.outcome
        if not isinstance(said, protocol.Outcome):
            raise AgentError(f"the agent returned {type(said).__name__}: expected an Outcome")
        if isinstance(said.usage, Usage):
            reported = said.usage
        outcome, payloads = _translated(live, step, briefing, said, result)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        usage = live.spent.get(key, Usage())
        return c.FailAttempt(step, running.attempt, "the agent cancelled itself", usage, _since(live, started)), {}
    except (KeyboardInterrupt, GeneratorExit):
        raise  # these are for the process, not for the agent
    except BaseException as error:  # noqa: BLE001 - whatever an agent raises is its fault, and recorded as that
        words = _words(error)
        usage = live.spent.get(key, Usage()) + reported
        log, session = result.log, result.session
        if isinstance(error, AgentError):
            usage += error.usage if isinstance(error.usage, Usage) else Usage()
            log, session = error.log or log, error.session or session
        kept = digest_of(log) if log else None
        failed = c.FailAttempt(step, running.attempt, words, usage, _since(live, started), kept, session)
        return failed, {kept: log} if kept else {}
    if key in live.spent:
        outcome = replace(outcome, usage=live.spent[key] + outcome.usage)
    kept = digest_of(result.log) if result.log else None
    if kept:
        payloads[kept] = result.log
    return c.FinishAttempt(step, running.attempt, outcome, _since(live, started), kept, result.session), payloads


def _words(error: BaseException) -> str:
    try:
        text = str(error) if isinstance(error, AgentError) else f"{type(error).__name__}: {error}"
    except Exception:  # noqa: BLE001 - an exception that cannot be printed is recorded all the same
        text = f"{type(error).__name__}, which cannot be printed"
    return text.encode("utf-8", "replace").decode()[: protocol.LONGEST_TEXT]


def _deadline(live: LiveRun, step: str, running: Running) -> float | None:
    """Agents of other processes keep their own time, and bring their log when it is over; ours is the last resort."""
    timeout = live.state.graph.steps[step].timeout
    if timeout is not None and isinstance(live.agents[running.agent], Recovering):
        return timeout + SLACK
    return timeout


async def _in_time(work: Awaitable[object], seconds: float | None) -> object:
    if seconds is None:
        return await work
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            return await work
    except TimeoutError:
        if not deadline.expired():
            raise
        raise AgentError(f"timeout: no outcome after {seconds:g} s") from None


def _since(live: LiveRun, started: float) -> float:
    return round(max(0.0, live.engine.clock.now() - started), 6)


async def _briefing(live: LiveRun, step: str) -> Briefing:
    state = live.state
    names = (*state.graph.needs[step], step)
    return brief(
        state, step, live.engine.clock.now(), await live.engine.input_of(state), await live.engine.outputs(state, names)
    )


def _translated(
    live: LiveRun, step: str, briefing: Briefing, said: protocol.Outcome, result: Result
) -> tuple[Outcome, dict[str, bytes]]:
    text = canonical(said.output, live.engine.max_output)
    has_before = live.state.steps[step].artifact is not None
    made, payloads = described(text, briefing.previous, has_before, live.state.graph.pointers[step])
    if result.workspace is not None:
        made = replace(
            made,
            digest=digest_of(f"{made.digest} {result.workspace}".encode()),
            changed=(*made.changed, *result.files) if has_before else (),
        )
    return protocol.translated(protocol.checked(said, live.engine.max_output), made), payloads
