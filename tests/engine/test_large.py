"""Large values: stored once, by their digest, and briefed in full."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from backedge import Briefing, Engine, Report, Step, failed, passed
from backedge.core import events as e
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


def test_what_a_step_reads_of_a_large_input_decides_whether_it_runs_again(tmp_path: Path) -> None:
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
