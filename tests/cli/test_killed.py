"""kill -9 of the command while real agents run, then resume: nothing is lost, left behind or done twice."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from typing import Any

import pytest

from tests.cli.conftest import Make
from tests.cli.project import Project, Result, failed, finished, killed, passed, until

ONE: dict[str, Any] = {"steps": {"a": {"phase": "code"}}}


def killed_at_work(project: Project, *args: str, step: str = "a", count: int = 1, after: float = 0.1) -> str:
    """Kill the command while an agent works; returns the run."""
    process = project.started(*(args or ("run", "--json")))
    run = project.wait_for_execution(step, count)[0]
    time.sleep(after)
    killed(process)
    return run


def test_resume_waits_for_a_running_agent_and_adopts_its_outcome(make: Make) -> None:
    project = make(ONE, a=[{"!wait": "go", "output": "by the first"}, {"output": "by the second"}])
    killed_at_work(project)
    (pid,) = project.living()
    process = project.started("resume", "--json")
    time.sleep(0.6)
    assert project.living() == [pid] and process.poll() is None
    (project.folder / "go").touch()
    result = Result(finished(process))
    assert (result.outcome, result.steps["a"]["output"], result.attempts) == ("done", "by the first", {"a": 1})
    assert len(project.executions()) == 1


@pytest.mark.parametrize("file", [True, False])
def test_a_finished_outcome_is_adopted(make: Make, file: bool) -> None:
    project = make(ONE, a=[{"!wait": "go", "!file": file, "output": "made"}, {"output": "again"}])
    killed_at_work(project)
    (project.folder / "go").touch()
    until(lambda: not project.living())
    result = project.resume()
    assert (result.outcome, result.steps["a"]["output"], result.attempts) == ("done", "made", {"a": 1})
    assert len(project.executions()) == 1


def test_time_between_the_crash_and_the_resume_is_no_work(make: Make) -> None:
    project = make({"limits": {"wall_clock": 3}, **ONE}, a=[{"!wait": "go", "output": "made"}])
    killed_at_work(project)
    (project.folder / "go").touch()
    until(lambda: not project.living())
    time.sleep(4)
    result = project.resume()
    assert (result.outcome, result.escalations) == ("done", [])
    assert result.usage["seconds"] < 3


def gone(project: Project) -> None:
    """The agent dies as well, without an outcome."""
    project.end_agents()
    until(lambda: not project.living())


def test_a_dead_agent_without_an_outcome_is_in_doubt_and_a_person_is_asked(make: Make) -> None:
    project = make(ONE, a=[{"!sleep": 60}, {"output": "again"}])
    run = killed_at_work(project)
    gone(project)
    result = project.resume()
    assert (result.code, result.outcome, result.escalation["step"]) == (3, "waiting", "a")
    assert "attempt 1 of 'a' is in doubt" in result.escalation["reason"] and result.escalation["breach"] is None
    assert result.escalation["options"] == ["continue", "skip", "cancel"]
    assert len(project.executions()) == 1
    # Asking again asks the same, and runs nothing.
    assert project.resume().escalation == result.escalation
    assert len(project.executions()) == 1
    again = project.answer("E-1", "continue")
    assert (again.run, again.outcome, again.steps["a"]["output"], again.attempts) == (run, "done", "again", {"a": 2})


@pytest.mark.parametrize("how", [{"on_doubt": "rerun"}, {"idempotent": True}])
def test_an_idempotent_step_runs_again_without_a_question(make: Make, how: dict[str, Any]) -> None:
    project = make({"steps": {"a": {"phase": "code", **how}}}, a=[{"!sleep": 60}, {"output": "again"}])
    killed_at_work(project)
    gone(project)
    result = project.resume()
    assert (result.code, result.outcome, result.attempts, result.escalations) == (0, "done", {"a": 2}, [])


def test_children_of_a_dead_agent_are_ended_with_it(make: Make) -> None:
    project = make({"steps": {"a": {"phase": "code", "on_doubt": "rerun"}}}, a=[{"!child": 60, "!sleep": 60}, {}])
    killed_at_work(project, after=0.3)
    until(lambda: len(project.executions()) == 2)
    (_, _, _, agent), (_, _, kind, _) = project.executions()
    assert kind == "child"
    os.kill(agent, signal.SIGKILL)
    until(lambda: not project.living())
    assert project.resume().outcome == "done"
    assert project.living() == []


def without_supervisor(make: Make, said: str, on_doubt: str) -> Project:
    """A project whose agent kills its supervisor, which is its parent, after it has said something."""
    script = f"echo . >> runs; {said}; kill -9 $PPID; sleep 60"
    steps = {"a": {"phase": "code", "on_doubt": on_doubt, "run": ["sh", "-c", script]}}
    return make({"limits": {"errors_in_a_row": 2}, "steps": steps})


def test_an_attempt_without_a_supervisor_is_in_doubt_and_does_not_run_again_without_asking(make: Make) -> None:
    project = without_supervisor(make, "echo '{}'", "ask")
    result = project.run()
    assert (result.code, result.escalation["step"], result.escalation["breach"]) == (3, "a", None)
    assert "attempt 1 of 'a' is in doubt: nothing shows how the attempt ended" in result.escalation["reason"]
    assert (project.folder / "runs").read_text() == ".\n"


def test_a_finished_outcome_is_adopted_also_without_a_supervisor(make: Make) -> None:
    project = without_supervisor(make, 'echo \'{"output": 1}\' > "$BACKEDGE_OUTCOME"', "ask")
    result = project.run()
    assert (result.outcome, result.steps["a"]["output"]) == ("done", 1)
    assert (project.folder / "runs").read_text() == ".\n"


def test_an_attempt_without_a_supervisor_does_not_run_again_for_ever(make: Make) -> None:
    project = without_supervisor(make, "echo '{}'", "rerun")
    assert project.run().breach == ("errors_in_a_row", 2, 2)


def test_a_function_dies_with_the_command_and_is_in_doubt(make: Make) -> None:
    project = make("name: w\nsteps: {a: {phase: code, agent: 'python:mine:work'}}\n")
    (project.folder / "mine.py").write_text(
        "import pathlib, time\n"
        "def work(briefing):\n"
        "    here = pathlib.Path(f'{pathlib.Path(__file__).parent}.seen')\n"
        "    with open(here / 'executions', 'a') as log:\n"
        "        log.write(f'{briefing.run} a {briefing.attempt} 999999999\\n')\n"
        "    time.sleep(30 if briefing.attempt == 1 else 0)\n"
        "    return briefing.attempt\n"
    )
    killed_at_work(project)
    result = project.resume()
    assert (result.code, result.escalation["step"]) == (3, "a")
    assert (project.answer("E-1", "continue").steps["a"]["output"], len(project.executions())) == (2, 2)


@pytest.mark.parametrize("by", ["cancel", "decide"])
def test_cancelling_a_run_without_a_process_leaves_no_agent_behind(make: Make, by: str) -> None:
    steps = {"a": {"phase": "code"}, "b": {"phase": "code"}}
    project = make(
        {"limits": {"errors_in_a_row": 1}, "steps": steps}, a=[{"!child": 60, "!sleep": 60}], b=[{"!exit": 1}]
    )
    process = project.started("run", "--json")
    run = project.wait_for_execution("b")[0]
    until(lambda: len(project.living()) == 2 and project.backedge("inbox", "--json").json)
    killed(process)
    args = ["cancel", run] if by == "cancel" else ["decide", "E-1", "cancel"]
    assert project.backedge(*args).code == 0
    assert until(lambda: not project.living(), within=5)
    result = project.resume(run)
    assert (result.code, result.outcome, result.steps["a"]["state"]) == (1, "cancelled", "waiting")


def test_a_kill_while_waiting_for_a_person_loses_nothing(make: Make) -> None:
    work = {"limits": {"rounds_per_loop": 0}, "steps": {"a": {"phase": "code"}, "r": {"reviews": "a"}}}
    project = make(work, r=[failed("x"), passed()])
    process = project.started("run", "--wait", "--json")
    project.wait_for_execution("r")
    until(lambda: project.backedge("inbox", "--json").json)
    killed(process)
    assert project.answer("E-1", "continue").outcome == "verified"


STEPS: dict[str, Any] = {
    "plan": {"phase": "planning"},
    "code": {"phase": "code", "needs": ["plan"]},
    "docs": {"phase": "code", "needs": ["plan"]},
    "review": {"reviews": "code"},
    "test": {"tests": "code"},
    "ship": {"needs": ["code", "docs"]},
}
SCRIPTS: dict[str, Any] = {
    "plan": [{"!sleep": 0.05, "!file": True}],
    "code": [{"!sleep": 0.1, "!file": True}],
    "docs": [{"!sleep": 0.3, "!file": True}],
    "review": [failed("one", **{"!file": True}), passed(**{"!file": True})],
    "test": [passed(**{"!sleep": 0.1, "!file": True})],
    "ship": [{"!sleep": 0.1, "!file": True}],
}


@pytest.mark.parametrize("seed", range(6))
def test_kills_at_random_moments_do_not_change_the_result(make: Make, seed: int) -> None:
    chance = random.Random(seed)
    project = make({"steps": STEPS}, **SCRIPTS)
    process = project.started("run", "--json", "--run", "r")
    kills = 0
    while kills < 4:
        # Long enough to get somewhere, short enough not to get to the end.
        until(lambda: (project.folder / ".backedge" / "journal.db").exists())
        time.sleep(chance.uniform(0.05, 0.9))
        if process.poll() is not None:
            finished(process)
            break
        killed(process)
        kills += 1
        if not project.backedge("runs", "--json").json:
            process = project.started("run", "--json", "--run", "r")
            continue
        process = project.started("resume", "--json", "r")
    process.communicate(timeout=30)
    result = project.resume("r")
    for _ in range(20):
        # In doubt is what was cut off before its outcome was written: a person says to run it again.
        if result.code != 3:
            break
        for packet in [each for each in result.escalations if each["decided"] is None]:
            assert "is in doubt" in packet["reason"]
            project.decide(packet["id"], "continue")
        result = project.resume("r")
    assert (result.code, result.outcome) == (0, "verified")
    # A review that was in doubt is made again, by the script's next reply: then there was nothing to mend.
    assert {each["state"] for each in result.loops} <= {"resolved"}
    starts = Counter((step, attempt) for _, step, attempt, _ in project.executions())
    assert set(starts.values()) == {1}, "an attempt was executed twice"
    for step, attempts in result.attempts.items():
        assert {int(attempt) for name, attempt in starts if name == step} <= set(range(1, attempts + 1))
    assert project.living() == []
    assert project.backedge("audit", "verify").code == 0
    assert project.told("code")[-1] in (["one"], [])
