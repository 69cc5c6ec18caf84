"""Functions as agents: plain and async, with declared types, and whatever they return or raise."""

from __future__ import annotations

import asyncio
import datetime
import functools
import gc
import re
import resource
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel, ConfigDict, field_validator

from backedge import (
    Attempt,
    Briefing,
    Engine,
    Feedback,
    Finding,
    FindingResolution,
    MemoryJournal,
    Outcome,
    Report,
    Run,
    Step,
    Usage,
    Workflow,
    failed,
    passed,
)
from backedge.core import events as e
from backedge.engine.codec import decode_events
from backedge.testing import FakeClock, ScriptedAgent
from tests.engine.parts import flow, named, only, play, until


async def finished(workflow: Workflow, input: object = None, **engine: Any) -> tuple[Report, list[e.Event]]:
    async with Engine(**engine) as running:
        run = await running.start(workflow, input)
        return await run.result(), await run.events()


def error_of(agent: Any, **step: Any) -> str:
    """The recorded error of a failing agent. Whatever it does, the run waits for a person and can be replayed."""
    report, events = play(finished(flow(Step("a", agent, **step), limits={"errors_in_a_row": 1})))
    assert report.outcome == "waiting"
    assert not only(e.AttemptSucceeded, events)
    return only(e.AttemptFailed, events)[0].error


# Plain functions


def test_a_plain_function_does_not_block_the_event_loop() -> None:
    threads: list[str] = []

    def slow(briefing: Briefing) -> str:
        threads.append(threading.current_thread().name)
        time.sleep(0.15)
        return "made"

    async def scenario() -> tuple[int, Report]:
        async with Engine() as engine:
            run = await engine.start(flow(*(Step(f"s{n}", slow) for n in range(4))))
            waiting = asyncio.create_task(run.result())
            started, turns = time.perf_counter(), 0
            while not waiting.done():
                await asyncio.sleep(0.002)
                turns += 1
            assert time.perf_counter() - started < 0.5, "the four run side by side"
            return turns, await waiting

    turns, report = play(scenario())
    assert turns > 15
    assert report.outcome == "done"
    assert set(threads) == {"backedge-agent"}


def test_a_plain_function_can_raise_feedback_and_wait_on_its_own_thread() -> None:
    told: list[Any] = []

    def code(briefing: Briefing, attempt: Any) -> str:
        attempt.spend(Usage(tokens_in=7))
        loop = attempt.raise_feedback(Feedback("context_request", "plan", "which?", requested_info="currency"))
        told.append(attempt.wait_for(loop))
        return "made"

    plan = ScriptedAgent("plan", "EUR")
    report, _ = play(finished(flow(Step("plan", plan), Step("code", code, needs="plan"))))
    assert report.outcome == "done"
    assert told[0].answers == {"plan": "EUR"}
    assert report.usage.tokens_in == 7


def test_a_plain_function_that_outlives_the_engine_does_no_harm() -> None:
    over: list[str] = []
    go = threading.Event()

    def late(briefing: Briefing, attempt: Any) -> str:
        go.wait(5)
        try:
            attempt.raise_feedback(Feedback("fix_request", "human", "?"))
        except RuntimeError as error:
            over.append(str(error))
        return "made"

    async def scenario() -> None:
        async with Engine(grace=0.02) as engine:
            await engine.start(flow(Step("a", late)))
            await asyncio.sleep(0.01)

    play(scenario())
    go.set()
    deadline = time.monotonic() + 5
    while not over and time.monotonic() < deadline:
        time.sleep(0.005)
    assert over == ["Event loop is closed"]


def test_a_plain_function_that_takes_too_long_is_timed_out() -> None:
    at_once, most = 0, 0

    def slow(briefing: Briefing) -> str:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        time.sleep(0.15 if briefing.attempt == 1 else 0)
        at_once -= 1
        return f"attempt {briefing.attempt}"

    report, events = play(finished(flow(Step("a", slow, timeout=0.05))))
    assert report.steps["a"].output == "attempt 2"
    [failure] = only(e.AttemptFailed, events)
    assert failure.error == "timeout: no outcome after 0.05 s; a later outcome was ignored"
    assert failure.seconds >= 0.15
    assert most == 1


def test_a_plain_function_that_outlives_its_timeout_is_in_doubt_and_not_run_twice() -> None:
    go, started = threading.Event(), list[int]()

    def slow(briefing: Briefing) -> None:
        started.append(briefing.attempt)
        go.wait(10)

    async def scenario() -> tuple[Report, list[e.Event]]:
        async with Engine(grace=0.02) as engine:
            run = await engine.start(flow(Step("a", slow, timeout=0.03)))
            return await run.result(), await run.events()

    report, events = play(scenario())
    go.set()
    assert report.outcome == "waiting"
    assert started == [1]
    assert [event.reason for event in only(e.AttemptDropped, events)] == ["in doubt"]
    assert only(e.EscalationOpened, events)[0].reason == (
        "attempt 1 of 'a' is in doubt: timeout: no outcome after 0.03 s, and the agent did not stop when it was told to: "
        "it may still be running; continue runs it again"
    )


def test_an_idempotent_function_that_never_ends_is_rerun_but_not_forever() -> None:
    go, started = threading.Event(), list[int]()

    def slow(briefing: Briefing) -> None:
        started.append(briefing.attempt)
        go.wait(10)

    async def scenario() -> tuple[Report, list[e.Event]]:
        async with Engine(grace=0.02) as engine:
            step = Step("a", slow, timeout=0.03, idempotent=True)
            run = await engine.start(flow(step, limits={"errors_in_a_row": 2}))
            return await run.result(), await run.events()

    report, events = play(scenario())
    go.set()
    assert (report.outcome, started) == ("waiting", [1, 2])
    assert only(e.AttemptFailed, events)[0].error == (
        "timeout: no outcome after 0.03 s, and the agent did not stop when it was told to"
    )


def test_closing_waits_for_a_plain_function_and_keeps_its_output() -> None:
    journal = MemoryJournal()

    def slow(briefing: Briefing) -> str:
        time.sleep(0.1)
        return "made"

    async def scenario() -> Report:
        async with Engine(journal) as engine:
            await engine.start(flow(Step("a", slow), Step("b", named, needs="a")), run="r")
            await asyncio.sleep(0.01)
        async with Engine(journal) as engine:
            return await (await engine.find("r")).report()

    report = play(scenario())
    assert report.steps["a"].output == "made"
    assert report.steps["b"].attempts == 0


def test_closing_records_a_plain_function_that_keeps_running_as_in_doubt_and_resume_asks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    journal, go, started = MemoryJournal(), threading.Event(), list[int]()

    def slow(briefing: Briefing) -> None:
        started.append(briefing.attempt)
        go.wait(10)

    async def scenario() -> tuple[Report, list[e.Event]]:
        async with Engine(journal, grace=0.02) as engine:
            await engine.start(flow(Step("a", slow)), run="r")
            await asyncio.sleep(0.01)
        async with Engine(journal, grace=0.02) as engine:
            run = await engine.resume("r", flow(Step("a", slow)))
            return await run.result(), await run.events()

    report, events = play(scenario())
    go.set()
    assert (report.outcome, started) == ("waiting", [1])
    assert [event.reason for event in only(e.AttemptDropped, events)] == ["in doubt"]
    assert "its engine was closed, and the agent did not stop" in only(e.EscalationOpened, events)[0].reason
    gc.collect()
    assert not caplog.records


@pytest.mark.parametrize("swallows", [True, False])
def test_closing_does_not_wait_for_a_plain_function_that_waits_for_an_answer(swallows: bool) -> None:
    journal = MemoryJournal()

    def asks(briefing: Briefing, attempt: Any) -> str:
        try:
            attempt.wait_for(attempt.raise_feedback(Feedback("fix_request", "human", "?")))
        except Exception:
            if not swallows:
                raise
        return "made without an answer"

    async def scenario() -> tuple[float, list[e.Event]]:
        engine = await Engine(journal).__aenter__()
        await engine.start(flow(Step("a", asks)), run="r")
        await until(lambda: only(e.WaitBegan, decode_events(journal._memory.runs["r"].records)))
        began = time.perf_counter()
        await engine.close()
        return time.perf_counter() - began, decode_events(journal._memory.runs["r"].records)

    took, events = play(scenario())
    assert took < 2
    assert [event.reason for event in only(e.AttemptDropped, events)] == ["interrupted"]
    assert not only(e.AttemptSucceeded, events)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", ["async", "plain"])
def test_a_coroutine_is_not_an_output(kind: str) -> None:
    async def inner() -> str:
        return "made"

    async def returns(briefing: Briefing) -> Any:
        return inner()

    assert error_of(returns if kind == "async" else lambda b: returns(b)) == (
        "the agent returned a coroutine: expected an output; await it, and return what it gives"
    )
    gc.collect()


def test_a_plain_function_that_returns_an_awaitable_after_being_stopped_is_interrupted() -> None:
    journal, begun = MemoryJournal(), list[str]()

    async def rest() -> None:
        begun.append("rest")

    def slow(briefing: Briefing) -> Any:
        time.sleep(0.1)
        return rest()

    async def scenario() -> None:
        async with Engine(journal) as engine:
            await engine.start(flow(Step("a", slow)), run="r")
            await asyncio.sleep(0.01)

    play(scenario())
    assert [event.reason for event in only(e.AttemptDropped, decode_events(journal._memory.runs["r"].records))] == [
        "interrupted"
    ]
    assert not begun


def test_partials_methods_callables_and_lambdas_are_functions_too() -> None:
    async def prefixed(prefix: str, briefing: Briefing) -> str:
        return f"{prefix} {briefing.step}"

    class Agent:
        async def method(self, briefing: Briefing) -> str:
            return f"method {briefing.step}"

        def __call__(self, briefing: Briefing, attempt: Any) -> str:
            return f"call {briefing.step}"

    report, _ = play(
        finished(
            flow(
                Step("a", functools.partial(prefixed, "partial")),
                Step("b", Agent().method),
                Step("c", Agent()),
                Step("d", lambda briefing: "lambda d"),
            )
        )
    )
    assert [step.output for step in report.steps.values()] == ["partial a", "method b", "call c", "lambda d"]


# What they return


class Plan(BaseModel):
    units: list[str]
    due: datetime.date = datetime.date(2026, 1, 2)


@dataclass
class Point:
    x: int


def test_pydantic_models_and_dataclasses_are_outputs() -> None:
    seen: list[Any] = []

    def consumer(briefing: Briefing) -> None:
        seen.append(briefing.inputs)

    report, _ = play(
        finished(
            flow(
                Step("plan", lambda briefing: Plan(units=["a"])),
                Step("point", lambda briefing: {"at": [Point(1)], "plan": Plan(units=[])}),
                Step("last", consumer, needs=["plan", "point"]),
            )
        )
    )
    assert report.steps["plan"].output == {"units": ["a"], "due": "2026-01-02"}
    assert seen == [
        {
            "plan": {"units": ["a"], "due": "2026-01-02"},
            "point": {"at": [{"x": 1}], "plan": {"units": [], "due": "2026-01-02"}},
        }
    ]


def test_a_declared_input_arrives_as_the_declared_type() -> None:
    seen: list[Any] = []

    def code(briefing: Briefing) -> str:
        seen.append(briefing.inputs["plan"])
        return "made"

    play(finished(flow(Step("plan", lambda b: {"units": ["a"]}), Step("code", code, needs="plan", accepts=Plan))))
    assert seen == [Plan(units=["a"])]


def test_a3_20_an_invalid_input_goes_to_its_producer_and_costs_the_consumer_no_attempt() -> None:
    plan, code = ScriptedAgent({"units": "all"}, {"units": [1]}, {"units": ["a"]}), ScriptedAgent("made")
    report, events = play(finished(flow(Step("plan", plan), Step("code", code, needs="plan", accepts=Plan))))
    assert report.outcome == "done"
    assert [briefing.attempt for briefing in code.briefings] == [1], "it was never called with what does not fit"
    assert report.steps["code"].attempts == 1
    assert [(loop.kind, loop.source, loop.targets, loop.state, loop.rounds) for loop in report.loops] == [
        ("validation_failure", "code", ("plan",), "resolved", 2)
    ]
    [issue] = plan.briefings[1].feedback.findings
    assert (issue.path, issue.category) == ("/units", "schema")
    assert "valid array" in issue.description
    assert plan.briefings[2].feedback.findings[0].path == "/units/0"
    assert plan.briefings[1].previous == {"units": "all"}
    assert {finding.status for finding in report.findings} == {"fixed"}
    assert not only(e.AttemptFailed, events)


def test_an_input_that_stays_invalid_escalates_within_the_limits() -> None:
    code = ScriptedAgent("made")
    plan = ScriptedAgent(*({"units": n} for n in range(99)))
    report, _ = play(finished(flow(Step("plan", plan), Step("code", code, needs="plan", accepts=Plan))))
    assert report.outcome == "waiting"
    assert report.escalations[0].loop == "L-1"
    assert not code.briefings


def test_a_strict_model_accepts_its_own_output() -> None:
    class Strict(BaseModel):
        model_config = ConfigDict(strict=True)
        due: datetime.date
        pair: tuple[int, int]

    report, _ = play(
        finished(
            flow(
                Step("plan", lambda b: Strict(due=datetime.date(2026, 1, 2), pair=(1, 2)), returns=Strict),
                Step("code", lambda b: b.inputs["plan"].pair, needs="plan", accepts=Strict),
            )
        )
    )
    assert report.outcome == "done"
    assert report.steps["code"].output == [1, 2]


def test_a_model_that_raises_during_validation_is_an_error_of_its_step() -> None:
    class Broken(BaseModel):
        units: list[str]

        @field_validator("units")
        @classmethod
        def check(cls, value: list[str]) -> list[str]:
            raise RuntimeError("a bug in the model")

    report, events = play(
        finished(
            flow(
                Step("plan", lambda b: {"units": []}),
                Step("code", named, needs="plan", accepts=Broken),
                limits={"errors_in_a_row": 1},
            )
        )
    )
    assert report.outcome == "waiting"
    assert [(event.step, event.error) for event in only(e.AttemptFailed, events)] == [
        ("code", "RuntimeError: a bug in the model")
    ]


def test_a_step_that_declares_inputs_runs_without_those_of_a_producer_that_was_skipped() -> None:
    async def scenario() -> Report:
        async with Engine() as engine:
            run = await engine.start(
                flow(
                    Step("plan", ScriptedAgent(OSError("x"))),
                    Step("code", lambda b: sorted(b.inputs), needs="plan", accepts=Plan),
                    limits={"errors_in_a_row": 1},
                )
            )
            await run.result()
            await run.decide("E-1", "skip")
            return await run.result()

    report = play(scenario())
    assert report.outcome == "accepted"
    assert report.steps["code"].output == []


def test_an_output_that_violates_returns_is_an_error_that_says_where() -> None:
    error = error_of(lambda briefing: {"units": [1]}, returns=Plan)
    assert error == "the output does not match the type that the step returns: /units/0: Input should be a valid string"
    assert "the whole" in error_of(lambda briefing: "text", returns=Plan)


def test_an_invalid_output_still_counts_its_cost() -> None:
    replies = [Outcome(output="text", usage=Usage(0.5)), {"units": ["a"]}]
    report, _ = play(finished(flow(Step("plan", ScriptedAgent(*replies), returns=Plan))))
    assert (report.outcome, report.usage.attempts, report.usage.cost_usd) == ("done", 2, 0.5)


def test_the_ladder_is_climbed_from_round_two() -> None:
    rungs: list[str] = []

    def rung(name: str) -> Callable[[Briefing], str]:
        def agent(briefing: Briefing) -> str:
            rungs.append(f"{name} {briefing.attempt} {briefing.agent}")
            return f"{name} {briefing.attempt}"

        return agent

    review = ScriptedAgent(*(failed(f"defect {n}") for n in range(3)), passed())
    report, events = play(
        finished(
            flow(Step("code", [rung("cheap"), rung("strong"), rung("strongest")]), Step("r", review, reviews="code"))
        )
    )
    assert report.outcome == "verified"
    assert rungs == ["cheap 1 code", "cheap 2 code", "strong 3 code#2", "strongest 4 code#3"]
    assert [event.agent for event in only(e.AttemptStarted, events) if event.step == "code"] == [
        "code",
        "code",
        "code#2",
        "code#3",
    ]


# Nonsense


def deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


def looped() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("returned", "error"),
    [
        (object, "the output is not JSON: object is not JSON"),
        (lambda: {"a": {1: 2}}, "the output is not JSON: a key of an object is not text: use text"),
        (lambda: (n for n in range(3)), "the output is not JSON: generator is not JSON"),
        (lambda: "\ud800", "the output is not JSON: .*surrogates not allowed"),
        (lambda: {"\udfff": 1}, "the output is not JSON: .*surrogates not allowed"),
        (lambda: deep(100_000), "the output is not JSON: maximum recursion depth"),
        (looped, "the output is not JSON: maximum recursion depth"),
        (lambda: {(1, 2): 3}, "the output is not JSON"),
        (lambda: {1: "a"}, "the output is not JSON: a key of an object is not text"),
        (lambda: threading.Lock(), "the output is not JSON: lock is not JSON"),
        (lambda: Outcome(summary=5), "the outcome is not understood: Expected `str`, got `int` - at `\\$.summary`"),  # type: ignore[arg-type]
        (lambda: Outcome(summary="\ud800"), "the outcome is not JSON: .*surrogates"),
        (lambda: Outcome(feedback="x"), "Expected `array`, got `str` - at `\\$.feedback`"),  # type: ignore[arg-type]
        (lambda: Outcome(feedback=[Feedback("fix_request", "a", blocking="yes")]), "at `\\$.feedback\\[0\\].blocking`"),  # type: ignore[arg-type]
        (lambda: Outcome(answer=object()), "the outcome is not JSON: object is not JSON"),
        (lambda: Outcome(usage={"cost_usd": -1}), "usage cost_usd is -1"),  # type: ignore[arg-type]
        (lambda: Outcome(usage=5), "at `\\$.usage`"),  # type: ignore[arg-type]
        (lambda: Outcome(output=object()), "the output is not JSON: object is not JSON"),
        (lambda: Outcome(resolutions=[FindingResolution("F-9", "fixed")]), "resolutions name 'F-9'"),
        (lambda: Outcome(resolutions=[FindingResolution("F-9", "mended")]), "Invalid enum value 'mended'"),  # type: ignore[arg-type]
        (lambda: passed(), "is not a judge, but returned a verdict"),
        (lambda: failed("x"), "is not a judge, but returned a verdict"),
    ],
)
@pytest.mark.parametrize("kind", ["async", "plain"])
def test_an_invalid_return_value_is_an_error_that_says_what_is_wrong(
    returned: Callable[[], Any], error: str, kind: str
) -> None:
    async def agent(briefing: Briefing) -> Any:
        return returned()

    said = error_of(agent if kind == "async" else lambda briefing: returned())
    assert re.search(error, said)
    # Python 3.11 trips over a deep value that is collected while it parses something.
    gc.collect()


@pytest.mark.parametrize(
    ("returned", "error"),
    [
        (lambda: "looks good", "a judge returned str: expected passed\\(\\), failed\\(\\) or an Outcome"),
        (lambda: True, "a judge returned bool"),
        (lambda: None, "verdict"),
        (dict, "verdict"),
        (lambda: {"verdict": "APPROVED"}, "Invalid enum value 'approved'"),
        (lambda: {"verdict": ["pass"]}, "at `\\$.verdict`"),
        (lambda: {"verdict": "pass", "finding": []}, "unknown field `finding`"),
        (lambda: Outcome(verdict="passed"), "Invalid enum value 'passed'"),  # type: ignore[arg-type]
        (lambda: passed(Finding("x", "critical")), "critical|contradict"),
        (lambda: failed(), "finding"),
        (lambda: failed(Finding("x", "banana")), "severity 'banana' is unknown"),
        (lambda: failed(Finding("x", line="abc")), "at `\\$.findings\\[0\\].line`"),  # type: ignore[arg-type]
        (lambda: failed(Finding("x", file=object())), "object is not JSON"),  # type: ignore[arg-type]
        (lambda: failed(Finding("x", blocking="no")), "at `\\$.findings\\[0\\].blocking`"),  # type: ignore[arg-type]
        (lambda: failed(Finding("x", affected_phase="desing")), "desing"),
        (lambda: failed(Finding(5)), "at `\\$.findings\\[0\\].description`"),  # type: ignore[arg-type]
        (lambda: failed("\ud800"), "surrogates"),
    ],
)
def test_a2_12_an_invalid_verdict_is_asked_again_and_never_taken_for_a_pass(
    returned: Callable[[], Any], error: str
) -> None:
    judge = ScriptedAgent(lambda briefing: returned(), passed())
    report, events = play(
        finished(flow(Step("a", named, phase="code"), Step("r", judge, reviews="a")), clock=FakeClock(auto=True))
    )
    assert report.outcome == "verified"
    [event] = only(e.AttemptFailed, events)
    assert event.step == "r"
    assert re.search(error, event.error)
    assert [verdict.word for verdict in only(e.VerdictGiven, events)] == ["pass"]
    assert not report.loops


@pytest.mark.parametrize("kind", [dict, lambda **said: Outcome(**said)], ids=["JSON", "Python"])
def test_the_words_of_an_outcome_may_be_in_any_case(kind: Callable[..., Any]) -> None:
    first = kind(verdict="FAIL", findings=[Finding("x", "CRITICAL"), Finding("y", "Major")])
    answers = [FindingResolution("F-1", "FIXED"), FindingResolution("F-2", "Not_Fixed")]  # type: ignore[arg-type]
    second = kind(verdict=" Needs_Improvement\n", resolutions=answers)
    if kind is dict:
        first, second = (msgspec.to_builtins(each) for each in (first, second))
    judge = ScriptedAgent(first, second)
    report, events = play(finished(flow(Step("a", named, phase="code"), Step("r", judge, reviews="a"))))
    assert [verdict.word for verdict in only(e.VerdictGiven, events)] == ["fail", "needs_improvement"]
    assert not only(e.AttemptFailed, events)
    assert [(each.severity, each.status) for each in report.findings] == [("critical", "fixed"), ("high", "deferred")]


@pytest.mark.parametrize(
    ("made", "error"),
    [
        (lambda: {"x": [1, float("nan")]}, "the output has nan at /x/1: JSON has no such number; use null or text"),
        (lambda: float("inf"), "the output has inf at its root: JSON has no such number; use null or text"),
        (lambda: nested(201), "the output is nested more than 200 levels deep: write a file instead"),
        (lambda: nested(100_000), "the output is not JSON: "),
    ],
)
def test_values_that_json_cannot_hold_are_an_error_and_not_changed_silently(
    made: Callable[[], Any], error: str
) -> None:
    assert error_of(lambda briefing: made()).startswith(error)


def test_two_hundred_levels_and_many_nulls_are_kept() -> None:
    report, _ = play(finished(flow(Step("deep", lambda b: nested(200)), Step("wide", lambda b: [[None]] * 300))))
    assert report.outcome == "done"
    assert report.steps["deep"].output == nested(200)


def nested(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize("kind", ["async", "plain"])
def test_a_function_may_change_its_inputs_without_changing_the_run(kind: str) -> None:
    """An agent that modifies its inputs does not change the artifacts that the engine has."""
    seen: list[Any] = []

    def changed(briefing: Briefing, inputs: Any) -> int:
        briefing.inputs["plan"]["units"].append("mine")
        inputs["plan"]["units"].append("mine")
        briefing.input["story"] = "mine"
        return 1

    async def later(briefing: Briefing, attempt: Any) -> int:
        return changed(briefing, attempt.inputs)

    def plain(briefing: Briefing, attempt: Any) -> int:
        return changed(briefing, attempt.inputs)

    def after(briefing: Briefing) -> None:
        seen.append((briefing.inputs["plan"], briefing.input))

    steps = [
        Step("plan", lambda b: {"units": ["a"]}),
        Step("x", later if kind == "async" else plain, needs="plan"),
        Step("y", after, needs=["plan", "x"]),
    ]

    async def scenario() -> Report:
        async with Engine() as engine:
            return await (await engine.start(flow(*steps), input={"story": "s"})).result()

    report = play(scenario())
    assert seen == [({"units": ["a"]}, {"story": "s"})]
    assert report.steps["plan"].output == {"units": ["a"]}


def test_a_rework_that_modifies_its_previous_output_counts_as_a_change() -> None:
    def work(briefing: Briefing) -> Any:
        out = briefing.previous or {}
        out["g"] = briefing.attempt
        return out

    found = [failed(Finding("first", path="/a")), failed(Finding("second", severity="medium", path="/g")), passed()]
    report, _ = play(finished(flow(Step("a", work, phase="code"), Step("r", ScriptedAgent(*found), reviews="a"))))
    assert [(each.description, each.fix_authored) for each in report.findings] == [("first", False), ("second", True)]


def test_sets_bytes_dates_and_paths_are_stored_as_json() -> None:
    report, _ = play(
        finished(
            flow(
                Step("bytes", lambda b: b"\x00\xff"),
                Step("set", lambda b: {3, 1, 2}),
                Step("when", lambda b: datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)),
                Step("where", lambda b: {"files": [Path("src") / "a.py"]}),
            )
        )
    )
    assert report.outcome == "done"
    assert {name: step.output for name, step in report.steps.items()} == {
        "bytes": "AP8=",
        "set": [1, 2, 3],
        "when": "2026-01-02T00:00:00Z",
        "where": {"files": ["src/a.py"]},
    }


@pytest.mark.parametrize("kind", ["async", "plain"])
@pytest.mark.parametrize(
    ("raised", "error"),
    [
        (SystemExit(3), "SystemExit: 3"),
        (asyncio.CancelledError(), "the agent cancelled itself"),
        (TimeoutError("slow"), "TimeoutError: slow"),
        (StopIteration(1), "RuntimeError|StopIteration"),
        (MemoryError(), "MemoryError"),
        (RecursionError("deep"), "RecursionError: deep"),
        (ExceptionGroup("several", [ValueError("x")]), "ExceptionGroup: several"),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "\ud800"), "UnicodeEncodeError"),
        (ValueError("x" * 100_000), "ValueError: xxx"),
        (BaseException("odd"), "BaseException: odd"),
    ],
)
def test_whatever_an_agent_raises_is_recorded_as_its_error(raised: BaseException, error: str, kind: str) -> None:
    async def agent(briefing: Briefing) -> None:
        raise raised

    def plain(briefing: Briefing) -> None:
        raise raised

    said = error_of(agent if kind == "async" else plain)
    assert len(said) <= 16_000
    assert re.search(error, said)


def test_an_exception_that_cannot_be_printed_is_recorded_too() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    async def agent(briefing: Briefing) -> None:
        raise Mute

    assert error_of(agent).startswith("Mute")


@pytest.mark.parametrize("kind", ["async", "plain"])
def test_a_keyboard_interrupt_stops_the_process_not_the_agent_alone(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Ctrl-C stops the whole process: it is never recorded as an error of an agent, and reported once."""

    async def agent(briefing: Briefing) -> None:
        raise KeyboardInterrupt

    def plain(briefing: Briefing) -> None:
        raise KeyboardInterrupt

    async def scenario() -> None:
        async with Engine() as engine:
            await (await engine.start(flow(Step("a", agent if kind == "async" else plain)))).result()

    try:
        play(scenario())
        pytest.fail("the interrupt was swallowed")
    except KeyboardInterrupt:
        pass
    gc.collect()
    assert not caplog.records


def test_an_agent_that_returns_a_hundred_megabytes_is_refused_and_nothing_is_lost() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def agent(briefing: Briefing) -> str:
        return "x" * 100_000_000 if briefing.attempt == 1 else "small"

    async def scenario() -> tuple[Report, list[e.Event], int]:
        async with Engine() as engine:
            run = await engine.start(flow(Step("a", named), Step("b", agent, needs="a")))
            report = await run.result()
            stored = sum(len(record.body) for record in await engine.journal.read(run.id))
            return report, await run.events(), stored

    report, events, stored = play(scenario())
    assert only(e.AttemptFailed, events)[0].error == (
        "the output has 100,000,002 bytes, at most 16,777,216 are allowed: write files instead"
    )
    assert report.outcome == "done"
    assert report.steps["b"].output == "small"
    assert stored < 10_000
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * (1 if sys.platform == "darwin" else 1024)
    assert grown < 450_000_000


@pytest.mark.parametrize(
    "said",
    [
        Outcome(summary="x" * 3_000_000, output="small"),
        Outcome(feedback=[Feedback("fix_request", "human", "x", details="y" * 3_000_000)]),
        Outcome(answer="x" * 3_000_000),
    ],
    ids=["summary", "details", "answer"],
)
def test_the_rest_of_an_outcome_has_a_size_limit_too(said: Outcome) -> None:
    async def scenario() -> str:
        async with Engine(max_output=2_000_000) as engine:
            run = await engine.start(flow(Step("a", lambda b: said), limits={"errors_in_a_row": 1}))
            await run.result()
            return only(e.AttemptFailed, await run.events())[0].error

    assert "the outcome has 3,000," in play(scenario())


def test_a_function_with_two_parameters_gets_the_attempt() -> None:
    seen: list[Any] = []

    async def agent(briefing: Briefing, attempt: Attempt) -> None:
        seen.append((briefing.step, dict(attempt.inputs)))

    async def scenario() -> Run:
        async with Engine() as engine:
            run = await engine.start(flow(Step("a", agent)))
            await run.result()
            return run

    play(scenario())
    assert seen == [("a", {})]
