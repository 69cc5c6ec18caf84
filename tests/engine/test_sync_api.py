"""`backedge.run`: the synchronous API, in scripts and notebooks, and with Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

import backedge
from backedge import Briefing, Step, failed, passed
from backedge.core import events as e
from backedge.errors import RunHeld
from backedge.testing import ScriptedAgent
from tests.engine.conftest import Process, Start
from tests.engine.parts import flow, named, only, play


def line(process: Process) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def test_it_runs_a_workflow_to_its_end() -> None:
    review = ScriptedAgent(failed("no tests"), passed())
    report = backedge.run(flow(Step("code", lambda b: f"v{b.attempt}"), Step("r", review, reviews="code")), "a story")
    assert report.outcome == "verified"
    assert report.steps["code"].output == "v2"
    assert review.briefings[0].input == "a story"


def test_it_returns_when_a_person_is_needed_and_continues_by_id(tmp_path: Path) -> None:
    journal = tmp_path / "deep" / "folder" / "j.db"
    work = flow(Step("a", ScriptedAgent(OSError("x"), "made")), limits={"errors_in_a_row": 1})
    report = backedge.run(work, {"n": 1}, journal=journal, run="r")
    assert report.outcome == "waiting"
    assert backedge.run(work, journal=str(journal), run="r").outcome == "waiting"

    async def decide() -> None:
        async with backedge.Engine(journal) as engine:
            await (await engine.find("r")).decide("E-1", "continue")

    play(decide())
    report = backedge.run(work, journal=journal, run="r")
    assert report.outcome == "done"
    assert report.steps["a"].attempts == 2
    assert backedge.run(work, journal=journal, run="r") == report, "and again changes nothing"


def test_something_that_is_not_a_workflow_is_refused_with_a_clear_message(tmp_path: Path) -> None:
    for run in (None, "r"):
        with pytest.raises(TypeError, match=r"the workflow is a Step: expected backedge\.Workflow"):
            backedge.run(Step("a", named), journal=tmp_path / "j.db", run=run)  # type: ignore[arg-type]
        backedge.run(flow(Step("a", named)), journal=tmp_path / "j.db", run="r")


def test_it_reports_events_as_they_happen() -> None:
    heard: list[tuple[str, e.Event]] = []
    report = backedge.run(flow(Step("a", named)), on_event=lambda run, event: heard.append((run, event)))
    assert {run for run, _ in heard} == {report.run}
    assert [type(event) for _, event in heard] == [e.RunStarted, e.AttemptStarted, e.AttemptSucceeded, e.RunEnded]


def test_it_works_from_inside_a_running_event_loop() -> None:
    threads: list[Any] = []

    async def agent(briefing: Briefing) -> str:
        threads.append(threading.current_thread())
        return "made"

    async def cell() -> backedge.Report:
        return backedge.run(flow(Step("a", agent)))

    report = asyncio.run(cell())
    assert report.outcome == "done"
    assert threads[0] is not threading.main_thread()
    assert not threads[0].is_alive()


def test_its_errors_come_out_of_a_running_event_loop_too(tmp_path: Path) -> None:
    (tmp_path / "not a journal").write_text("x" * 5000)

    async def cell() -> None:
        backedge.run(flow(Step("a", named)), journal=tmp_path / "not a journal")

    with pytest.raises(backedge.errors.JournalError, match="is not a valid journal"):
        asyncio.run(cell())


def test_a_run_that_another_engine_executes_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with backedge.Engine(tmp_path / "j.db") as engine:
            work = flow(Step("a", lambda b: asyncio.sleep(600)))
            await engine.start(work, run="r")
            with pytest.raises(RunHeld):
                backedge.run(work, journal=tmp_path / "j.db", run="r")

    play(scenario())


@pytest.mark.parametrize("door", ["interrupted", "notebook"])
def test_ctrl_c_stops_or_awaits_the_attempts_and_the_next_run_continues(
    tmp_path: Path, start: Start, door: str
) -> None:
    journal = tmp_path / "j.db"
    process = start(door, journal)
    assert line(process) == "running 1"
    os.kill(process.pid, signal.SIGINT)
    assert process.wait(timeout=20) == 130
    assert line(process) == "interrupted"

    async def look() -> list[e.Event]:
        async with backedge.Engine(journal) as engine:
            return await (await engine.find("r")).events()

    events = play(look())
    dropped = only(e.AttemptDropped, events)
    assert [(event.step, event.reason) for event in dropped] == [("a", "interrupted")]
    assert [event.step for event in only(e.AttemptSucceeded, events)] == ["b"]
    assert all(event.seconds > 0 for event in dropped)
    again = start(door, journal)
    assert again.communicate(timeout=30)[0].splitlines() == ["running 2", "done"]
