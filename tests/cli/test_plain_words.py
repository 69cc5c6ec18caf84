"""From the outside: messages are complete, printed once, and printed at once."""

from __future__ import annotations

import signal
import time

from tests.cli.conftest import Make
from tests.cli.project import raises, until


def test_the_second_interrupt_does_not_wait_for_a_plain_function(make: Make) -> None:
    project = make("name: w\nsteps: {a: {phase: code, agent: 'python:slow:work'}}\n")
    (project.folder / "slow.py").write_text(
        "import pathlib, time\ndef work(briefing):\n    pathlib.Path('begun').touch()\n    time.sleep(60)\n"
    )
    process = project.started("run", "--json")
    until(lambda: (project.folder / "begun").exists())
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    asked = time.monotonic()
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert time.monotonic() - asked < 8, "the grace of agents is 10 s"
    assert project.show().outcome == "waiting", "nobody knows what became of it: that is asked"


def test_all_problems_of_an_outcome_are_reported_at_once(make: Make) -> None:
    wrong = {"summary": 3, "wat": 1, "findings": [{"description": "x"}, {"description": 1, "line": "a", "foo": 1}]}
    project = make({"limits": {"errors_in_a_row": 1}, "steps": {"a": {"phase": "code"}}}, a=[wrong])
    said = project.run().steps["a"]["last_error"]
    assert said == (
        "the outcome is not understood: Expected `str`, got `int` - at `$.summary`; Object contains unknown field `wat`; "
        "Expected `str`, got `int` - at `$.findings[1].description`; Expected `int | null`, got `str` - at "
        "`$.findings[1].line`; Object contains unknown field `foo` - at `$.findings[1]`"
    )


def test_a_number_with_thousands_of_digits_is_reported_clearly(make: Make) -> None:
    reply = {"!stdout": '{"output": ' + "9" * 5000 + "}"}
    project = make({"limits": {"errors_in_a_row": 1}, "steps": {"a": {"phase": "code"}}}, a=[reply])
    said = project.run().steps["a"]["last_error"]
    assert "a number has 5,000 digits, at most 300 are read: write it as text" in said and "sys." not in said


def test_a_cancelled_run_names_the_person_once(make: Make) -> None:
    project = make({"limits": {"errors_in_a_row": 1}, "steps": {"a": {"phase": "code"}}}, a=[{"!exit": 1}])
    run = project.run().run
    project.backedge("cancel", run)
    told = project.backedge("show").out
    assert told.count("cancelled by") == 2, "the escalation and the run, in the timeline"
    assert "cancelled cancelled" not in told and "cancelled by cancelled" not in told


def test_a_second_acknowledgement_is_refused(make: Make) -> None:
    project = make({"steps": {"a": {"phase": "code"}}}, a=[{"feedback": [raises("fix_request", "human")]}, {}])
    project.run()
    assert project.backedge("feedback", "ack", "L-1").code == 0
    assert "'human' has already acknowledged L-1" in project.refused("feedback", "ack", "L-1")
