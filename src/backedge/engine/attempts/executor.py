"""One attempt as a pipeline over one value: brief → call → translate → report.

`task_for` briefs it. `LocalExecutor` does the rest over an `Execution`, and is the only code that turns errors of an
agent into the report of a failed attempt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from backedge.core import commands as c
from backedge.core.briefing import basis_of, brief
from backedge.core.errors import AgentError, ProviderLimit
from backedge.core.model import NO_USAGE, Outcome, Usage
from backedge.core.state.run import Running, RunState
from backedge.core.value import replace
from backedge.core.workflow.checks import Check
from backedge.core.workflow.plan import Plan
from backedge.engine import protocol
from backedge.engine.agents import RunAgents
from backedge.engine.attempts.engine_judge import agent_for
from backedge.engine.codec import canonical, describe_output, digest_of
from backedge.engine.store import input_of, outputs
from backedge.ports import Agent, Attempt, AttemptReport, Clock, Journal, Recoverable, Result, Task

UNKNOWN_END = "nothing shows how the attempt ended: its supervisor was killed"
_NO_OUTCOME = protocol.Outcome()
_NO_RESULT = Result(_NO_OUTCOME)
_NO_PLAN = Plan()


async def task_for(
    journal: Journal, state: RunState, step: str, running: Running, now: float, timeout: float | None, recover: bool
) -> Task:
    """Everything that an executor needs to make the running attempt. Reads large inputs from the journal."""
    known, measure = (
        await outputs(journal, state, (*state.graph.needs[step], *basis_of(state, step), step)),
        state.graph.engine_judges.get(step),
    )
    return Task(
        running.agent,
        brief(state, step, now, await input_of(journal, state), known),
        timeout,
        recover,
        check=measure if isinstance(measure, Check) else None,
        gate=None if isinstance(measure, Check) else measure,
        has_previous=state.steps[step].artifact is not None,
        kinds=state.workflow.kinds,
        plans=state.graph.steps[step].plans,
    )


class Execution:
    """What is known about an attempt in the pipeline: each stage fills in its part.

    A failed attempt is reported with what is known so far, so that usage, log and session are not lost.
    """

    __slots__ = ("outcome", "payloads", "plan", "result", "started", "task")

    def __init__(self, task: Task, started: float) -> None:
        self.task, self.started = task, started
        self.result: Result = _NO_RESULT
        """What the agent returned."""
        self.outcome: protocol.Outcome = _NO_OUTCOME
        """Its outcome, as the agent protocol defines it."""
        self.plan: Plan = _NO_PLAN
        """The changes that it makes to the steps of the run."""
        self.payloads: dict[str, bytes] = {}


class LocalExecutor:
    """Makes attempts in this process, with the agents of one run."""

    def __init__(self, agents: RunAgents, clock: Clock, max_output: int) -> None:
        self._agents, self._clock, self._max_output = agents, clock, max_output

    async def execute(self, task: Task, attempt: Attempt) -> AttemptReport:
        """Make one attempt and report it, whatever its agent does. Raises only if this call is cancelled."""
        execution = Execution(task, self._clock.now())
        try:
            agent = agent_for(self._agents.by_name, task.check or task.gate, task.agent)
            returned = await self._call(agent, task, attempt)
            if returned is None and (task.recover or isinstance(agent, Recoverable)):
                doubt = c.DropAttempt(task.step, task.attempt, "in doubt", seconds=self._seconds(execution))
                return AttemptReport(doubt if task.recover else replace(doubt, why=UNKNOWN_END))
            self._read(execution, returned)
            return self._finished(execution, self._translate(execution))
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is None or current.cancelling():
                raise
            return self._failed(execution, AgentError("the agent cancelled itself"))
        except (KeyboardInterrupt, GeneratorExit):
            raise  # these are meant for the process, not for the agent
        except BaseException as error:  # noqa: BLE001 - whatever an agent raises is recorded as its error
            return self._failed(execution, error)

    async def _call(self, agent: Agent, task: Task, attempt: Attempt) -> object:
        """Call the agent, or recover an attempt that an earlier process started."""
        if not task.recover:
            return await _in_time(agent.work(task.briefing, attempt), task.timeout)
        able: object = agent
        if not isinstance(able, Recoverable):
            return None
        return await _in_time(able.recover(task.briefing, attempt), task.timeout)

    def _read(self, execution: Execution, returned: object) -> None:
        """Separate the outcome from the rest of the result. Raises AgentError if there is no outcome."""
        outcome = returned
        if isinstance(returned, Result):
            execution.result, outcome = returned, returned.outcome
        if not isinstance(outcome, protocol.Outcome):
            raise AgentError(f"the agent returned {type(outcome).__name__}: expected an Outcome")
        execution.outcome = outcome

    def _translate(self, execution: Execution) -> Outcome:
        """The outcome as the rules define it. Raises AgentError if it cannot be translated."""
        task, outcome, result = execution.task, execution.outcome, execution.result
        execution.plan, files = self._agents.plan_of(task, outcome, self._max_output)
        text = canonical(outcome.output, self._max_output)
        made, large = describe_output(text, task.briefing.previous, task.has_previous)
        if result.workspace is not None:
            made = replace(
                made,
                digest=digest_of(f"{made.digest} {result.workspace}".encode()),
                changed=(*made.changed, *result.files) if task.has_previous else (),
            )
        execution.payloads |= {**files, **large}
        return protocol.to_model(protocol.checked_outcome(outcome, self._max_output), made, task.kinds)

    def _finished(self, execution: Execution, outcome: Outcome) -> AttemptReport:
        task, result, payloads = execution.task, execution.result, execution.payloads
        log = digest_of(result.log) if result.log else None
        if log:
            payloads[log] = result.log
        seconds = self._seconds(execution)
        payloads |= result.payloads
        command = c.FinishAttempt(
            task.step, task.attempt, outcome, seconds, log, result.session, execution.plan, evidence=result.evidence
        )
        return AttemptReport(command, payloads)

    def _failed(self, execution: Execution, error: BaseException) -> AttemptReport:
        task, usage = execution.task, _usage(execution.outcome.usage)
        return failed_report(task.step, task.attempt, error, self._seconds(execution), usage, execution.result)

    def _seconds(self, execution: Execution) -> float:
        return round(max(0.0, self._clock.now() - execution.started), 6)


def failed_report(
    step: str, attempt: int, error: BaseException, seconds: float, usage: Usage = NO_USAGE, result: Result = _NO_RESULT
) -> AttemptReport:
    """The report of an attempt that an error ended, with what it had used and printed until then."""
    log, session, seen, lasting = result.log, result.session, result.evidence, False
    if isinstance(error, AgentError):
        lasting = error.lasting
        usage += _usage(error.usage)
        log, session = error.log or log, error.session or session
        seen = replace(seen, ended=error.ended) if error.ended else seen
    digest = digest_of(log) if log else None
    text, payloads = error_text(error), {digest: log} if digest else {}
    if isinstance(error, ProviderLimit):
        limited = c.LimitAttempt(step, attempt, text, error.wait, usage, seconds, digest, session, seen)
        return AttemptReport(limited, payloads)
    return AttemptReport(c.FailAttempt(step, attempt, text, usage, seconds, digest, session, seen, lasting), payloads)


def _usage(given: object) -> Usage:
    """The usage that an agent returned; none if it has the wrong type."""
    return given if isinstance(given, Usage) else NO_USAGE


def error_text(error: BaseException) -> str:
    """The text of an error. For anything but an AgentError it includes the type."""
    try:
        message = str(error)
        text = message if isinstance(error, AgentError) else ": ".join(filter(None, (type(error).__name__, message)))
    except Exception:  # noqa: BLE001 - an exception that cannot be printed is still recorded
        text = f"{type(error).__name__}, which cannot be printed"
    return text.encode("utf-8", "replace").decode()[: protocol.LONGEST_TEXT]


async def _in_time(work: Awaitable[object], seconds: float | None) -> object:
    if seconds is None:
        return await work
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            returned = await work
    except TimeoutError:
        if not deadline.expired():
            raise
        raise AgentError(f"timeout: no outcome after {seconds:g} s") from None
    if deadline.expired():
        raise AgentError(f"timeout: no outcome after {seconds:g} s; a later outcome was ignored")
    return returned
