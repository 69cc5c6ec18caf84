"""One attempt from a Task to an AttemptReport, without an engine, a live run or a journal."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from backedge import Briefing, Engine, Finding, MemoryJournal, Outcome, Step, Usage, Workflow, failed
from backedge.core.commands import DropAttempt, FailAttempt, FinishAttempt
from backedge.core.errors import AgentError
from backedge.core.events import AttemptFailed
from backedge.core.model import Resolution
from backedge.core.workflow.checks import Check
from backedge.core.workflow.definition import Workflow as Definition
from backedge.engine.agents import RunAgents
from backedge.engine.attempts.executor import LocalExecutor
from backedge.engine.codec import digest_of
from backedge.ports import AttemptReport, Result, Task
from backedge.testing import FakeClock
from tests.engine.parts import only, play, until

BRIEFING = Briefing(run="r", step="code", phase="code", attempt=3, mode="work", input="build it", inputs={"plan": "p"})
TASK = Task("coder", BRIEFING)


class Alone:
    """An attempt with no run behind it."""

    inputs: Mapping[str, Any] = {}

    def spend(self, usage: Usage) -> None: ...

    async def raise_feedback(self, feedback: object) -> str:
        raise NotImplementedError

    async def wait_for(self, loop: str, timeout: float | None = None) -> Resolution:
        raise NotImplementedError


class Agent:
    """Returns its argument, raises it if it is an error, or awaits it."""

    def __init__(self, result: object) -> None:
        self._result = result

    async def work(self, briefing: Briefing, attempt: object) -> object:
        if isinstance(self._result, BaseException):
            raise self._result
        return await self._result(briefing) if callable(self._result) else self._result

    def input_errors(self, inputs: Mapping[str, Any]) -> Sequence[tuple[str, str, str]]:
        return ()


class Survivor(Agent):
    """An agent that can recover an attempt of an earlier process."""

    async def recover(self, briefing: Briefing, attempt: object) -> object | None:
        return await self.work(briefing, attempt)


def executor(agent: Agent) -> LocalExecutor:
    return LocalExecutor(RunAgents({"coder": agent}, None, Definition("flow", ())), FakeClock(), 100_000)


def execute(result: object, task: Task = TASK, agent: type[Agent] = Agent) -> AttemptReport:
    return play(executor(agent(result)).execute(task, Alone()))


def test_a_task_can_be_sent_to_another_process_and_executed_there() -> None:
    async def agent(briefing: Briefing) -> Outcome:
        return Outcome(f"{briefing.input} from {briefing.inputs['plan']}")

    sent = msgspec.json.decode(msgspec.json.encode(TASK), type=Task)
    assert sent == TASK
    report = execute(agent, sent)
    assert msgspec.json.decode(msgspec.json.encode(report), type=AttemptReport) == report
    command = report.command
    assert isinstance(command, FinishAttempt)
    assert (command.step, command.attempt, command.outcome.made.output) == ("code", 3, "build it from p")


def test_a_large_output_and_the_log_come_as_payloads() -> None:
    report = execute(Result(Outcome("x" * 5_000), log=b"said much", session="s-1"))
    command = report.command
    assert isinstance(command, FinishAttempt)
    assert (command.outcome.made.output, command.session) == (None, "s-1")
    assert report.payloads == {
        command.outcome.made.payload: b'"' + b"x" * 5_000 + b'"',
        digest_of(b"said much"): b"said much",
    }


def test_findings_are_translated_into_the_words_of_the_engine() -> None:
    command = execute(failed(Finding("no login", "blocker"))).command
    assert isinstance(command, FinishAttempt)
    [finding] = command.outcome.findings
    assert (finding.severity, finding.blocking) == ("critical", True)


def test_the_log_of_a_report_survives_the_way_back() -> None:
    report = execute(AgentError("crashed", log=b"\x00\xff"))
    assert msgspec.json.decode(msgspec.json.encode(report), type=AttemptReport) == report


@pytest.mark.parametrize(
    ("result", "error"),
    [
        (ValueError("wrong"), "ValueError: wrong"),
        (AgentError("no luck"), "no luck"),
        (SystemExit(3), "SystemExit: 3"),
        ("a word", "the agent returned str: expected an Outcome"),
        (None, "the agent returned NoneType: expected an Outcome"),
        (Outcome(object()), "the output is not JSON"),
        (Outcome(add_steps={"more": {}}), "only a step with `plans: true` may"),
        (asyncio.CancelledError(), "the agent cancelled itself"),
    ],
)
def test_whatever_the_agent_does_wrong_is_a_report(result: object, error: str) -> None:
    command = execute(result).command
    assert isinstance(command, FailAttempt)
    assert error in command.error


def test_a_failure_has_the_usage_and_output_so_far() -> None:
    report = execute(Result(Outcome("x" * 200_000, usage=Usage(0.5)), log=b"long", session="s-1"))
    command = report.command
    assert isinstance(command, FailAttempt)
    assert "at most 100,000 are allowed" in command.error
    assert (command.usage, command.session, report.payloads) == (Usage(0.5), "s-1", {digest_of(b"long"): b"long"})
    report = execute(AgentError("crashed", usage=Usage(0.25), log=b"trace", session="s-2"))
    command = report.command
    assert isinstance(command, FailAttempt)
    assert (command.usage, command.session, report.payloads) == (Usage(0.25), "s-2", {digest_of(b"trace"): b"trace"})


def test_a_task_has_a_timeout_of_its_own() -> None:
    async def slow(briefing: Briefing) -> Outcome:
        await asyncio.sleep(60)
        raise AssertionError("it was not stopped")

    command = execute(slow, Task("coder", BRIEFING, timeout=0.01)).command
    assert isinstance(command, FailAttempt)
    assert command.error == "timeout: no outcome after 0.01 s"


def test_a_cancelled_agent_reports_nothing() -> None:
    async def slow(briefing: Briefing) -> Outcome:
        await asyncio.sleep(60)
        raise AssertionError("it was not stopped")

    async def scenario() -> None:
        task = asyncio.create_task(executor(Agent(slow)).execute(TASK, Alone()))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    play(scenario())


@pytest.mark.parametrize(
    ("agent", "result", "kind"),
    [(Survivor, Outcome("made"), FinishAttempt), (Survivor, None, DropAttempt), (Agent, Outcome("made"), DropAttempt)],
)
def test_recovery_reports_the_known_outcome_or_doubt(agent: type[Agent], result: object, kind: type) -> None:
    command = execute(result, Task("coder", BRIEFING, recover=True), agent).command
    assert type(command) is kind
    if isinstance(command, DropAttempt):
        assert command.reason == "in doubt"


def test_a_check_needs_only_its_task() -> None:
    same = Check("same", compare=("a", "b"))
    briefing = Briefing(run="r", step="same", phase="code", attempt=1, mode="work", inputs={"a": 1, "b": 2})
    command = execute(None, Task("same", briefing, check=same)).command
    assert isinstance(command, FinishAttempt)
    assert command.outcome.made.output["positions"] == {"a": 1, "b": 2}


def test_a_step_that_joins_while_an_attempt_runs_gets_the_parts_that_it_reads() -> None:
    """When the attempt started, no step read a part of its output. The facts for the rules are looked up when it reports."""
    engine = Engine()

    async def plan(briefing: Briefing) -> Outcome:
        use = {"agent": "use", "needs": "code", "reads": {"code": ["/api"]}, "when": "code:/size > 1"}
        return Outcome("p", add_steps={"use": use})

    async def code(briefing: Briefing) -> dict[str, Any]:
        live = engine._inner.live("r")
        await until(lambda: live is not None and "use" in live.state.steps)
        return {"api": "v1", "size": 2}

    async def use(briefing: Briefing) -> str:
        return "used"

    async def scenario() -> Any:
        async with engine:
            steps = [Step("plan", plan, phase="planning", plans=True), Step("code", code, phase="code")]
            run = await engine.start(Workflow("flow", steps, agents={"use": use}), run="r")
            return await run.result(), (await run.state()).steps["code"].artifact

    report, artifact = play(scenario())
    assert (report.outcome, report.steps["use"].output) == ("done", "used")
    assert list(artifact.parts) == ["/api"]
    assert artifact.values == {"/size": 2}


@pytest.mark.parametrize("when", ["before the briefing", "before the report"])
def test_an_output_that_cannot_be_read_fails_the_attempt_and_not_the_run(when: str) -> None:
    journal = MemoryJournal()

    async def plan(briefing: Briefing) -> str:
        return "x" * 5_000

    async def code(briefing: Briefing) -> str:
        if when == "before the briefing":
            journal._memory.payloads.clear()
        return "c"

    async def review(briefing: Briefing) -> Outcome:
        journal._memory.payloads.clear()
        return failed(Finding("no login", category="missing requirement", requirement_id="REQ-1"))

    async def scenario() -> Any:
        async with Engine(journal) as engine:
            steps = [
                Step("plan", plan, phase="planning"),
                Step("code", code, needs="plan", phase="code"),
                Step("review", review, reviews="code", needs="plan"),
            ]
            run = await engine.start(Workflow("flow", steps, limits={"errors_in_a_row": 1}), run="r")
            await run.at_rest()
            return await run.events()

    [failure] = only(AttemptFailed, play(scenario()))
    assert failure.step == "review"
    assert failure.error.startswith("JournalDamaged: ")
