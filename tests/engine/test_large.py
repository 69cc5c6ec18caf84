"""Large values: stored once, by their digest, and briefed in full."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from backedge import Attempt, Briefing, Engine, Feedback, Option, Report, Step, failed, passed
from backedge.core import events as e
from backedge.errors import FeedbackRefused, IllegalCommand
from backedge.testing import ScriptedAgent
from tests.engine.parts import flow, only, play

LARGE = {"text": "line of text\n" * 20_000}
"""A quarter of a megabyte."""


def test_a_large_output_is_stored_once_and_briefed_in_full(tmp_path: Path) -> None:
    seen: list[Briefing] = []

    def consumer(briefing: Briefing) -> None:
        seen.append(briefing)

    async def scenario() -> tuple[Report, list[e.Event]]:
        async with Engine(tmp_path / "j.db") as engine:
            # Two steps and an input that are the same, and a rework that changes nothing.
            run = await engine.start(
                flow(
                    Step("one", lambda b: LARGE),
                    Step("two", lambda b: LARGE),
                    Step("last", consumer, needs=["one", "two"]),
                ),
                LARGE,
            )
            return await run.result(), await run.events()

    report, events = play(scenario())
    assert report.outcome == "done"
    assert seen[0].inputs == {"one": LARGE, "two": LARGE}
    assert seen[0].input == LARGE
    assert report.steps["one"].output == LARGE
    made = only(e.AttemptSucceeded, events)
    assert made[0].made.output is None
    assert made[0].made.payload == made[1].made.payload == only(e.RunStarted, events)[0].input_payload
    database = sqlite3.connect(tmp_path / "j.db")
    assert database.execute("SELECT count(*), sum(length(body)) FROM payloads").fetchone()[0] == 1
    assert database.execute("SELECT max(length(body)) FROM events").fetchone()[0] < 4_096
    database.close()


def test_a_large_output_is_still_there_after_resume_and_in_the_rework(tmp_path: Path) -> None:
    code = ScriptedAgent(LARGE, {**LARGE, "more": 1})
    work = flow(
        Step("code", code),
        Step("review", ScriptedAgent(OSError("x"), failed("more"), passed()), reviews="code"),
        limits={"errors_in_a_row": 1},
    )

    async def scenario() -> Report:
        async with Engine(tmp_path / "j.db") as engine:
            assert (await (await engine.start(work, LARGE, run="r")).result()).outcome == "waiting"
        async with Engine(tmp_path / "j.db") as engine:
            run = await engine.resume("r", work)
            await run.decide("E-1", "continue")
            return await run.result()

    report = play(scenario())
    assert report.outcome == "verified"
    assert code.briefings[1].previous == LARGE
    assert code.briefings[1].input == LARGE
    assert report.steps["code"].output == {**LARGE, "more": 1}


def test_a_step_reruns_only_if_the_parts_it_reads_of_a_large_input_changed(tmp_path: Path) -> None:
    plan = ScriptedAgent({**LARGE, "api": 1, "notes": 1}, {**LARGE, "api": 1, "notes": 2})
    code = ScriptedAgent("made")

    async def scenario() -> Report:
        async with Engine(tmp_path / "j.db") as engine:
            run = await engine.start(
                flow(
                    Step("plan", plan),
                    Step("review", ScriptedAgent(passed()), reviews="plan"),
                    Step("code", code, needs="plan", reads={"plan": ["/api"]}),
                )
            )
            await run.result()
            from backedge import Feedback

            await run.raise_feedback(Feedback("fix_request", "plan", "better notes"))
            return await run.result()

    report = play(scenario())
    assert report.outcome == "verified"
    assert report.steps["plan"].version == 2
    assert len(code.briefings) == 1, "what it reads did not change"


HUGE = "x" * 1_000_000


def largest(path: Path) -> int:
    database = sqlite3.connect(path)
    try:
        return int(database.execute("SELECT max(length(body)) FROM events").fetchone()[0])
    finally:
        database.close()


def test_an_answer_that_is_too_large_for_events_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    async def asks(briefing: Briefing, attempt: Attempt) -> object:
        return (await attempt.wait_for(await attempt.raise_feedback(Feedback("context_request", "plan", "?")))).answers

    def plan(briefing: Briefing) -> object:
        return (HUGE if briefing.attempt == 2 else "x" * 16_000) if briefing.mode == "answer" else "plan"

    async def scenario() -> tuple[Report, list[e.Event]]:
        async with Engine(tmp_path / "j.db") as engine:
            run = await engine.start(flow(Step("plan", plan), Step("code", asks, needs="plan")))
            return await run.result(), await run.events()

    report, events = play(scenario())
    assert report.outcome == "done"
    assert only(e.AttemptFailed, events)[0].error == (
        "the answer has 1,000,002 bytes: at most 262,144 are kept; write a file, or put it into the output, and say where "
        "it is"
    )
    assert largest(tmp_path / "j.db") < 40_000


@pytest.mark.parametrize(
    "more",
    [
        {"details": {"text": HUGE}},
        {"artifacts": [HUGE]},
        {"options": [Option(HUGE), Option("b")]},
    ],
    ids=["details", "artifacts", "options"],
)
def test_feedback_whose_details_are_too_large_for_events_is_refused(tmp_path: Path, more: dict[str, Any]) -> None:
    refused: list[str] = []

    async def asks(briefing: Briefing, attempt: Attempt) -> None:
        try:
            await attempt.raise_feedback(Feedback("fix_request", "human", "see details", **more))
        except FeedbackRefused as error:
            refused.append(str(error))

    async def scenario() -> None:
        async with Engine(tmp_path / "j.db") as engine:
            run = await engine.start(flow(Step("a", asks)))
            await run.result()
            with pytest.raises(FeedbackRefused, match="at most 262,144 are kept"):
                await run.raise_feedback(Feedback("fix_request", "a", "see details", **more))
            with pytest.raises(IllegalCommand, match=r"Cancel has 1,000,\d+ bytes, at most 65,536 are allowed"):
                await run.cancel(reason=HUGE)

    play(scenario())
    assert len(refused) == 1
    assert "the details of the feedback have 1,000," in refused[0]
    assert largest(tmp_path / "j.db") < 10_000
