"""Choices in Python: functions that choose, attempts that wait, requirements instead of loops."""

from __future__ import annotations

from typing import Any

from backedge import Attempt, Briefing, Decision, Engine, Feedback, Option, Outcome, Resolution, Step
from tests.engine.parts import flow, named, play

OPTIONS = [Option("polling", rework=("design",)), Option("queue")]


def chooser(option: str) -> Any:
    """A function that works, and chooses in mode `decide`."""

    async def agent(briefing: Briefing) -> object:
        if briefing.mode == "decide":
            return Decision(option, f"{briefing.step} knows")
        return f"{briefing.step} {briefing.attempt}"

    return agent


def test_an_attempt_waits_for_a_choice_and_continues_with_it() -> None:
    told: list[Resolution] = []

    async def code(briefing: Briefing, attempt: Attempt) -> str:
        await attempt.raise_feedback(
            Feedback("constraint_violation", ["plan", "design"], "no sockets", options=OPTIONS, requirement_id="REQ-9")
        )
        told.append(await attempt.wait_for("REQ-9"))
        return f"with {told[0].option}"

    async def scenario() -> None:
        steps = (
            Step("plan", chooser("polling")),
            Step("design", chooser("polling"), needs="plan"),
            Step("code", code, needs="design"),
        )
        async with Engine() as engine:
            run = await engine.start(flow(*steps))
            report = await run.result()
            assert (report.outcome, report.steps["code"].output) == ("done", "with polling")
            assert (report.steps["design"].attempts, report.steps["code"].attempts) == (3, 1)
            ended = await run.wait_for("REQ-9")
            assert (ended.option, ended.by) == ("polling", "plan, design")

    play(scenario())
    assert told[0].answers["plan"] == {"option": "polling", "reason": "plan knows"}


def test_a_function_may_just_name_the_option() -> None:
    async def plan(briefing: Briefing) -> object:
        return "queue" if briefing.mode == "decide" else "plan"

    async def code(briefing: Briefing) -> object:
        if briefing.attempt > 1:
            return Outcome(output=briefing.feedback.resolutions[0].option)
        return Outcome(output=1, feedback=[Feedback("fix_request", "plan", "which?", options=OPTIONS)])

    async def scenario() -> None:
        steps = (Step("plan", plan), Step("design", named, needs="plan"), Step("code", code, needs="design"))
        async with Engine() as engine:
            report = await (await engine.start(flow(*steps, agreement="first"))).result()
            assert (report.outcome, report.steps["code"].output) == ("done", "queue")

    play(scenario())


def test_a_large_artifact_is_searched_for_a_requirement_too() -> None:
    async def plan(briefing: Briefing) -> object:
        return {"text": "x" * 200_000, "covers": ["REQ-3"]}

    async def code(briefing: Briefing, attempt: Attempt) -> object:
        if briefing.attempt == 1:
            item = Feedback("missing_requirement", message="not possible", requirement_id="REQ-3")
            assert await attempt.raise_feedback(item) == await attempt.raise_feedback(item)
        return briefing.attempt

    async def scenario() -> None:
        steps = (Step("ask", named), Step("plan", plan, needs="ask"), Step("code", code, needs="plan"))
        async with Engine() as engine:
            report = await (await engine.start(flow(*steps))).result()
            assert [(loop.targets, loop.routed_by) for loop in report.loops] == [(("plan",), "requirement")]

    play(scenario())
