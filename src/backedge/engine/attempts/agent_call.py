"""An attempt at work: from its briefing, through its agent, to the command that reports it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from backedge.core import commands as c
from backedge.core.briefing import Briefing, brief
from backedge.core.errors import AgentError
from backedge.core.feedback.requirements import requirements_of
from backedge.core.model import NO_USAGE, Outcome, Usage
from backedge.core.state.run import Running
from backedge.core.value import replace
from backedge.core.workflow.plan import Plan
from backedge.engine import protocol
from backedge.engine.attempts.engine_judge import agent_of
from backedge.engine.attempts.live_attempt import LiveAttempt
from backedge.engine.attempts.mentions import mentions_for
from backedge.engine.codec import canonical, describe_output, digest_of
from backedge.engine.dynamic_steps import graph_with, plan_of
from backedge.engine.slots import Slot
from backedge.engine.store import input_of, outputs
from backedge.ports import Recoverable, Result

if TYPE_CHECKING:
    from backedge.engine.live_run import LiveRun

_NO_RESULT = Result(None)
SLACK = 10.0
"""Seconds that an agent which keeps its own time has to end what it started."""


def time_limit(live: LiveRun, step: str, running: Running) -> float | None:
    """Agents of other processes keep their own time, and bring their log when it is over; ours is the last resort."""
    timeout = live.state.graph.steps[step].timeout
    if timeout is not None and isinstance(agent_of(live, step, running.agent), Recoverable):
        return timeout + SLACK
    return timeout


async def call_agent(
    live: LiveRun,
    step: str,
    running: Running,
    started: float,
    limit: float | None,
    place: Slot,
    left_by: Recoverable | None,
) -> tuple[c.Command, dict[str, bytes]]:
    """Let the agent work, and say what to report; with the large values that belong to it."""
    key, reported, result = (step, running.attempt), NO_USAGE, _NO_RESULT
    try:
        briefing = await _briefing(live, step)
        attempt = LiveAttempt(live, step, running.attempt, briefing.inputs, place)
        work = left_by.recover if left_by else agent_of(live, step, running.agent).work
        said = await _in_time(work(briefing, attempt), limit)
        if said is None and left_by is not None:
            usage = live.spent.get(key, Usage())
            return c.DropAttempt(step, running.attempt, "in doubt", usage, _since(live, started)), {}
        if isinstance(said, Result):
            result, said = said, said.outcome
        if not isinstance(said, protocol.Outcome):
            raise AgentError(f"the agent returned {type(said).__name__}: expected an Outcome")
        if isinstance(said.usage, Usage):
            reported = said.usage
        plan = plan_of(live, step, said)
        outcome, payloads = _translated(live, step, briefing, said, result, plan)
        mentions = await mentions_for(live.engine.journal, live.state, step, requirements_of(outcome))
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
    seconds = _since(live, started)
    finished = c.FinishAttempt(step, running.attempt, outcome, seconds, kept, result.session, plan, mentions)
    return finished, payloads


def _words(error: BaseException) -> str:
    try:
        said = str(error)
        text = said if isinstance(error, AgentError) else ": ".join(filter(None, (type(error).__name__, said)))
    except Exception:  # noqa: BLE001 - an exception that cannot be printed is recorded all the same
        text = f"{type(error).__name__}, which cannot be printed"
    return text.encode("utf-8", "replace").decode()[: protocol.LONGEST_TEXT]


async def _in_time(work: Awaitable[object], seconds: float | None) -> object:
    if seconds is None:
        return await work
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            said = await work
    except TimeoutError:
        if not deadline.expired():
            raise
        raise AgentError(f"timeout: no outcome after {seconds:g} s") from None
    if deadline.expired():
        raise AgentError(f"timeout: no outcome after {seconds:g} s; the one that came later does not count")
    return said


def _since(live: LiveRun, started: float) -> float:
    return round(max(0.0, live.engine.clock.now() - started), 6)


async def _briefing(live: LiveRun, step: str) -> Briefing:
    state = live.state
    names = (*state.graph.needs[step], step)
    journal = live.engine.journal
    return brief(
        state, step, live.engine.clock.now(), await input_of(journal, state), await outputs(journal, state, names)
    )


def _translated(
    live: LiveRun, step: str, briefing: Briefing, said: protocol.Outcome, result: Result, plan: Plan
) -> tuple[Outcome, dict[str, bytes]]:
    state = live.state
    text = canonical(said.output, live.engine.max_output)
    has_before = state.steps[step].artifact is not None
    graph = graph_with(state, plan, step)
    made, payloads = describe_output(text, briefing.previous, has_before, graph.pointers[step], graph.values[step])
    if result.workspace is not None:
        made = replace(
            made,
            digest=digest_of(f"{made.digest} {result.workspace}".encode()),
            changed=(*made.changed, *result.files) if has_before else (),
        )
    heard = protocol.checked_outcome(said, live.engine.max_output)
    return protocol.to_model(heard, made, state.workflow.kinds), payloads
