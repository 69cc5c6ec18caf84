"""Several processes on one journal: decisions, watching, many runs, interruptions."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Make
from tests.cli.project import COMMAND, Project, Result, Said, environment, failed, finished, passed, raises, until

ONE: dict[str, Any] = {"steps": {"a": {"phase": "code"}}}
REVIEWED: dict[str, Any] = {
    "limits": {"rounds_per_loop": 1},
    "steps": {"code": {"phase": "code"}, "review": {"reviews": "code"}, "ship": {"needs": ["code"]}},
}


def packets(project: Project) -> list[Any]:
    if not (project.folder / ".backedge" / "journal.db").exists():
        return []
    return list(project.backedge("inbox", "--json").json)


def test_with_wait_a_decision_from_another_process_continues_the_run_at_once(make: Make) -> None:
    project = make(REVIEWED, review=[failed("one"), failed("two"), passed()])
    process = project.started("run", "--wait", "--json")
    (packet,) = until(lambda: packets(project))
    assert process.poll() is None
    assert project.decide("E-1", "continue", "--by", "ann").out == f"E-1 of {packet['run']}: continue\n"
    said = finished(process)
    result = Result(said)
    assert (result.code, result.outcome, result.attempts) == (0, "verified", {"code": 3, "review": 3, "ship": 1})


def test_without_wait_run_exits_and_says_what_to_do(make: Make) -> None:
    project = make(REVIEWED, review=[failed("one"), failed("two"), passed()])
    said = project.backedge("run")
    run = project.show().run
    assert said.code == 3 and said.out.startswith("waiting: 4 attempts"), "the result is on stdout"
    assert f"--run {run}" in said.out and f"then: backedge resume {run}" in said.out
    assert f"run {run} of" in said.err and "waiting" not in said.err, "progress is on stderr"
    project.decide("E-1", "continue")
    # Nobody executes it: what was decided starts with the next resume.
    assert project.show().outcome == "running"
    assert project.resume(run).outcome == "verified"


def test_a_second_resume_names_the_process_that_holds_the_run(make: Make) -> None:
    project = make(ONE, a=[{"!wait": "go"}])
    process = project.started("run", "--json")
    run = project.wait_for_execution("a")[0]
    complaint = project.refused("resume", run)
    assert run in complaint and f"process {process.pid}" in complaint
    assert project.refused("resume") == complaint
    (project.folder / "go").touch()
    assert finished(process).code == 0
    assert len(project.executions()) == 1
    assert project.resume(run).code == 0


def test_deleting_the_lock_files_beside_the_journal_lets_no_second_process_execute_the_run(make: Make) -> None:
    """As `git clean` does, which knows only the journal itself."""
    project = make(ONE, a=[{"!wait": "go", "output": 1}])
    running = project.started("run", "--run", "r-1")
    project.wait_for_execution("a")
    (project.folder / ".backedge" / "journal.db.lock").touch()  # the lock of version 0.1
    for path in (project.folder / ".backedge").glob("*lock*"):
        path.unlink()
    assert "process" in project.refused("resume", "r-1")
    (project.folder / "go").touch()
    assert finished(running).code == 0
    assert [(step, attempt) for _, step, attempt, _ in project.executions()] == [("a", "1")]


def test_watch_follows_a_run_of_another_process_to_its_end(make: Make) -> None:
    project = make(ONE, a=[{"!wait": "go", "summary": "made it"}])
    process = project.started("run", "--json")
    project.wait_for_execution("a")
    watching, lines = project.started("watch"), project.started("watch", "--json")
    time.sleep(0.3)
    (project.folder / "go").touch()
    assert finished(process).code == 0
    told = finished(watching)
    assert told.code == 0 and "made it" in told.out and "done" in told.out
    events = [json.loads(line) for line in finished(lines).out.splitlines()]
    assert [each["seq"] for each in events] == list(range(1, len(events) + 1))
    assert events[-1]["type"].startswith("run_ended")
    assert events == project.events()


def test_ctrl_c_stops_watching_but_not_the_run(make: Make) -> None:
    project = make(ONE, a=[{"!wait": "go"}])
    process = project.started("run", "--json")
    project.wait_for_execution("a")
    seen = project.folder.parent / "seen"  # outside: what appears in the folder while an attempt breaks is undone
    with seen.open("wb") as out:
        watching = project.started("watch", stdout=out)
    until(lambda: seen.stat().st_size)
    watching.send_signal(signal.SIGINT)
    assert finished(watching).code == 0
    assert process.poll() is None
    (project.folder / "go").touch()
    assert finished(process).code == 0


def test_watch_says_when_no_process_executes_the_run_any_more(make: Make) -> None:
    project = make(ONE, a=[{"!sleep": 60}, {"summary": "made it"}])
    process = project.started("run", "--json")
    run = project.wait_for_execution("a")[0]
    # Outside: what appears in the folder while an attempt breaks is undone with it.
    seen = project.folder.parent / "seen"
    with seen.open("wb") as out:
        watching = project.started("watch", stdout=out)
    until(lambda: "▸ a" in seen.read_text())
    time.sleep(0.7)
    assert "nobody" not in seen.read_text()
    interrupted(process, signal.SIGINT)
    until(lambda: f"No process is running it. Continue with `backedge resume {run}`\n" in seen.read_text())
    assert project.resume(run).outcome == "done"
    assert finished(watching).code == 0
    assert "made it" in seen.read_text() and seen.read_text().count("No process") == 1


def test_four_parallel_runs_in_one_folder_do_not_disturb_each_other(make: Make) -> None:
    project = make(REVIEWED, code=[{"!sleep": 0.1}], review=[failed("one"), passed()])
    processes = [project.started("run", "--json", "--input", f"n={n}") for n in range(4)]
    results = [Result(finished(each, within=60)) for each in processes]
    assert {result.outcome for result in results} == {"verified"}
    assert all(result.attempts == {"code": 2, "review": 2, "ship": 1} for result in results)
    assert len({result.run for result in results}) == 4
    for number, result in enumerate(results):
        assert {told["input"]["n"] for told in project.briefings("code", result.run)} == {number}
    starts = [(run, step, attempt) for run, step, attempt, _ in project.executions()]
    assert len(starts) == len(set(starts)) == 20
    told = project.backedge("audit", "verify", "--json").json
    assert (told["runs"], told["valid"]) == (4, True)


def test_two_decisions_at_once_have_one_winner(make: Make) -> None:
    project = make(ONE, a=[{"feedback": [raises("fix_request", "human")]}, {}])
    project.run()
    deciding = [project.started("decide", "E-1", "resolve", "--note", f"{n}", "--by", f"p{n}") for n in range(4)]
    said = [finished(each) for each in deciding]
    assert sorted(each.code for each in said) == [0, 2, 2, 2]
    winner = next(n for n, each in enumerate(said) if each.code == 0)
    assert all(f"already decided: resolve by p{winner}" in each.err for each in said if each.code == 2)
    assert project.resume().loop["resolution"]["by"] == f"p{winner}"


def test_cancelling_from_another_process_ends_the_agents_too(make: Make) -> None:
    project = make(ONE, a=[{"!child": 60, "!sleep": 60}])
    process = project.started("run", "--json")
    run = project.wait_for_execution("a")[0]
    until(lambda: len(project.executions()) == 2)
    assert project.backedge("cancel", run, "--reason", "not wanted").out == f"{run} is cancelled\n"
    result = Result(finished(process))
    assert (result.code, result.outcome) == (1, "cancelled")
    assert until(lambda: not project.living())
    assert project.show().steps["a"]["state"] == "waiting"


def test_pausing_from_another_process_lets_running_attempts_finish(make: Make) -> None:
    steps = {"a": {"phase": "code"}, "b": {"needs": ["a"]}}
    project = make({"steps": steps}, a=[{"!wait": "go"}])
    process = project.started("run", "--json")
    run = project.wait_for_execution("a")[0]
    assert project.backedge("pause", run).out == f"{run} is paused\n"
    (project.folder / "go").touch()
    result = Result(finished(process))
    assert (result.code, result.outcome, result.paused, result.attempts) == (3, "waiting", True, {"a": 1, "b": 0})
    assert project.resume().outcome == "done"


def test_resuming_a_paused_run_continues_it_in_the_process_that_waits(make: Make) -> None:
    steps = {"a": {"phase": "code"}, "b": {"needs": ["a"]}}
    project = make({"steps": steps}, a=[{"!wait": "go"}])
    process = project.started("run", "--wait", "--json")
    run = project.wait_for_execution("a")[0]
    project.backedge("pause", run)
    (project.folder / "go").touch()
    until(lambda: project.show().attempts["a"] == 1 and project.show().steps["a"]["state"] == "done")
    assert process.poll() is None
    said = project.backedge("resume", run)
    assert said.code == 0 and f"process {process.pid}" in said.err
    assert Result(finished(process)).outcome == "done"


def test_feedback_in_the_middle_of_a_run_is_queued_and_interrupts_nothing(make: Make) -> None:
    project = make({"steps": {"a": {"phase": "code"}, "r": {"reviews": "a"}}}, a=[{"!wait": "go"}, {}], r=[passed()])
    process = project.started("run", "--json")
    project.wait_for_execution("a")
    project.backedge("feedback", "raise", "--kind", "fix_request", "--to", "a", "--message", "also this")
    (project.folder / "go").touch()
    result = Result(finished(process))
    assert (result.outcome, result.attempts["a"], result.loop["state"]) == ("verified", 2, "resolved")
    assert [each["message"] for each in project.briefings("a")[1]["feedback"]["requests"]] == ["also this"]


def test_an_agent_raises_feedback_through_the_command_while_it_works(make: Make) -> None:
    raising = (
        f'[ $BACKEDGE_ATTEMPT = 1 ] && {COMMAND} feedback raise --run "$BACKEDGE_RUN" --from "$BACKEDGE_STEP" '
        "--kind fix_request --to plan --message 'no units' >&2; echo {}"
    )
    steps = {"plan": {"phase": "planning"}, "code": {"phase": "code", "needs": ["plan"], "run": ["sh", "-c", raising]}}
    project = make({"steps": steps})
    result = project.run()
    assert (result.outcome, result.loop["source"], result.loop["state"]) == ("done", "code", "resolved")
    assert result.attempts == {"plan": 2, "code": 2}


def test_two_runs_of_the_same_id_have_one_winner(make: Make) -> None:
    project = make(ONE, a=[{"!sleep": 0.3}])
    said = [finished(each) for each in [project.started("run", "--json", "--run", "mine") for _ in range(3)]]
    assert sorted(each.code for each in said) == [0, 2, 2]
    assert len(project.executions()) == 1
    assert all("mine" in each.err for each in said if each.code == 2)


@pytest.mark.parametrize(
    ("typed", "loop"),
    [
        ("accept\n", "accepted"),
        ("revise\nanother way\n", "resolved"),
        ("nonsense\nreassign\ncode\n", "resolved"),
        ("7\n", "accepted"),
        ("re\n99\nrev\nanother way\n", "resolved"),
    ],
)
def test_without_a_choice_a_person_at_a_terminal_is_asked(make: Make, typed: str, loop: str) -> None:
    project = make(REVIEWED, review=[failed("one"), failed("two"), passed()])
    project.run()
    ours, theirs = pty.openpty()
    os.write(ours, typed.encode())
    process = subprocess.Popen(
        [COMMAND, "decide"],
        cwd=project.folder,
        env=environment(None),
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    said = finished(process)
    os.close(ours)
    os.close(theirs)
    assert said.code == 0 and "Your choice" in said.err and "limit rounds_per_loop" in said.err
    assert project.resume().loop["state"] == loop


# Interruptions


def interrupted(process: subprocess.Popen[bytes], *signals: signal.Signals, pause: float = 0.2) -> tuple[Said, float]:
    started = time.monotonic()
    for place, each in enumerate(signals):
        if place:
            time.sleep(pause)
        process.send_signal(each)
    said = finished(process)
    return said, time.monotonic() - started


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_one_interruption_stops_cleanly_and_says_how_to_resume(make: Make, sign: signal.Signals) -> None:
    project = make(ONE, a=[{"!child": 60, "!sleep": 60}, {"output": "second"}])
    process = project.started("run", "--json")
    run = project.wait_for_execution("a")[0]
    until(lambda: len(project.executions()) == 2)
    said, _ = interrupted(process, sign)
    assert (said.code, said.json["run"], said.json["outcome"]) == (130, run, "running")
    assert f"continue with `backedge resume {run}`" in said.err
    assert until(lambda: not project.living())
    dropped = [each for each in project.events() if each["type"].startswith("attempt_dropped")]
    assert [each["reason"] for each in dropped] == ["interrupted"]
    again = project.resume()
    assert (again.code, again.steps["a"]["output"], again.attempts) == (0, "second", {"a": 2})
    assert again.escalations == []


def test_an_interruption_ends_the_baseline_before_the_run_begins(make: Make) -> None:
    """The tests of a large project take long, and nothing is lost if they are ended."""
    judge = {"tests": "a", "run": ["sh", "-c", "echo $$ > $OUT; exec sleep 60"], "report": "exitcode"}
    project = make({"steps": {"a": {"phase": "code"}, "test": judge}}, a=[{}])
    mark = project.folder.parent / "baseline-began"
    process = project.started("run", env={"OUT": str(mark)})
    until(lambda: mark.exists() and mark.read_text().strip())
    said, taken = interrupted(process, signal.SIGINT)
    assert (said.code, taken < 10) == (130, True)
    assert "interrupted before an agent ran: nothing was changed" in said.err
    assert until(lambda: not Path(f"/proc/{mark.read_text().strip()}").exists())
    assert project.backedge("runs", "--json").json == []


def test_an_agent_that_ignores_the_request_is_killed_after_a_grace(make: Make) -> None:
    project = make(ONE, a=[{"!ignore": True, "!sleep": 60}, {}])
    process = project.started("run", "--json")
    project.wait_for_execution("a")
    time.sleep(0.2)
    said, taken = interrupted(process, signal.SIGINT)
    assert said.code == 130 and taken < 10
    assert until(lambda: not project.living())
    assert project.resume().outcome == "done"


def test_two_interruptions_stop_at_once_and_are_still_recorded(make: Make) -> None:
    project = make(ONE, a=[{"!ignore": True, "!child": 60, "!sleep": 60}, {}])
    process = project.started("run", "--json")
    project.wait_for_execution("a")
    until(lambda: len(project.executions()) == 2)
    time.sleep(0.2)
    said, taken = interrupted(process, signal.SIGINT, signal.SIGINT)
    # One interruption would give the agent two seconds.
    assert said.code == 130 and taken < 1.9
    assert until(lambda: not project.living())
    again = project.resume()
    assert (again.outcome, again.escalations, again.attempts) == ("done", [], {"a": 2})


def test_two_interruptions_in_the_same_instant(make: Make) -> None:
    project = make(ONE, a=[{"!ignore": True, "!sleep": 60}, {}])
    process = project.started("run", "--json")
    project.wait_for_execution("a")
    time.sleep(0.2)
    said, _ = interrupted(process, signal.SIGINT, signal.SIGINT, signal.SIGINT, pause=0)
    assert said.code == 130
    assert until(lambda: not project.living())
    assert project.resume().outcome == "done"


def test_an_interruption_while_only_a_person_can_help(make: Make) -> None:
    project = make(ONE, a=[{"feedback": [raises("fix_request", "human")]}, {}])
    process = project.started("run", "--wait", "--json")
    until(lambda: packets(project))
    said, _ = interrupted(process, signal.SIGINT)
    assert said.code == 130 and said.json["outcome"] == "waiting"
    assert project.answer("E-1", "resolve", "--note", "x").outcome == "done"


def test_an_interrupted_attempt_is_not_a_round(make: Make) -> None:
    project = make(
        {"steps": {"code": {"phase": "code"}, "r": {"reviews": "code"}}},
        code=[{}, {"!sleep": 60}, {}],
        r=[failed("x"), passed()],
    )
    process = project.started("run", "--json")
    project.wait_for_execution("code", 2)
    interrupted(process, signal.SIGINT)
    result = project.resume()
    assert (result.outcome, result.loop["rounds"], project.told("code")) == ("verified", 1, [[], ["x"], ["x"]])


def test_the_environment_of_an_agent_names_its_run_and_step(make: Make, tmp_path: Path) -> None:
    script = (
        'env | grep ^BACKEDGE_ | sort > seen; cmp -s - "$BACKEDGE_BRIEFING" && echo same >> seen; pwd >> seen; echo {}'
    )
    project = make(f"name: w\nsteps: {{a: {{phase: code, env: {{MINE: 1}}, run: [sh, -c, {json.dumps(script)}]}}}}\n")
    run = project.run().run
    seen = (project.folder / "seen").read_text()
    for line in (f"BACKEDGE_RUN={run}", "BACKEDGE_STEP=a", "BACKEDGE_ATTEMPT=1", "BACKEDGE_OUTCOME=", "same"):
        assert line in seen
    assert seen.rstrip().endswith(str(project.folder))
    assert os.path.isabs(next(line for line in seen.splitlines() if "BRIEFING" in line).partition("=")[2])
