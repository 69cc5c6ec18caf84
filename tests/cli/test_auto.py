"""From the outside: `--auto`, `--step`, and `--step` with a question before each attempt."""

from __future__ import annotations

import codecs
import json
import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tests.cli.conftest import Make
from tests.cli.project import COMMAND, Project, environment, failed, passed, raises

STEPS: dict[str, Any] = {
    "plan": {"phase": "planning"},
    "code": {"phase": "code", "needs": ["plan"]},
    "review": {"reviews": "code"},
}


def steps_of(project: Project) -> list[tuple[str, str]]:
    """Which attempts were executed, in order."""
    return [(step, attempt) for _, step, attempt, _ in project.executions()]


def test_stepping_and_running_all_at_once_give_the_same_result(make: Make) -> None:
    script = {"code": [{"output": 1}, {"output": 2}], "review": [failed("no"), passed()]}
    whole = make({"steps": STEPS}, **script)
    assert whole.run("--auto").outcome == "verified"
    project = make({"steps": STEPS}, **script)
    first = project.run("--step")
    assert (first.code, first.outcome, steps_of(project)) == (0, "running", [("plan", "1")])
    assert f"`backedge resume {first.run} --step` makes the next attempt" in first.err
    for count in range(2, 5):
        assert project.resume("--step").outcome == "running"
        assert len(project.executions()) == count
    last = project.resume("--step")
    assert (last.code, last.outcome) == (0, "verified")
    assert steps_of(project) == steps_of(whole)
    told, expected = ([event["type"] for event in each.events()] for each in (project, whole))
    assert told == expected, "going step by step leaves nothing in the journal"


def test_after_some_steps_the_rest_can_run_at_once(make: Make) -> None:
    project = make({"steps": STEPS}, review=[passed()])
    project.run("--step")
    result = project.resume()
    assert (result.outcome, result.attempts) == ("verified", {"plan": 1, "code": 1, "review": 1})


def test_step_starts_only_one_of_several_ready_steps(make: Make) -> None:
    project = make({"steps": {name: {"phase": "code"} for name in "abc"}})
    assert project.run("--step").attempts == {"a": 1, "b": 0, "c": 0}
    assert project.resume("--step").attempts == {"a": 1, "b": 1, "c": 0}
    assert project.resume("--step").outcome == "done"


def test_stepping_into_a_question_to_a_person_waits(make: Make) -> None:
    project = make({"steps": {"a": {"phase": "code"}}}, a=[{"feedback": [raises("fix_request", "human")]}, {}])
    result = project.run("--step")
    assert (result.code, result.outcome) == (3, "waiting")
    project.decide("E-1", "resolve", "--note", "so")
    assert project.resume("--step").outcome == "done"


def test_a_failing_attempt_counts_as_the_step_and_the_retry_waits_for_its_backoff(make: Make) -> None:
    project = make({"steps": {"a": {"phase": "code"}}}, a=[{"!exit": 1}, {}])
    first = project.run("--step")
    assert (first.outcome, first.attempts) == ("running", {"a": 1})
    second = project.resume("--step")
    assert (second.outcome, second.attempts) == ("done", {"a": 2})
    failure = next(event for event in project.events() if event["type"].startswith("attempt_failed"))
    again = [event for event in project.events() if event["type"].startswith("attempt_started")][1]
    assert again["at"] >= failure["retry_at"]


def test_after_a_kill_step_continues_the_running_attempt(make: Make) -> None:
    project = make({"steps": STEPS}, plan=[{"!wait": "go"}], review=[passed()])
    process = project.started("run", "--step")
    project.wait_for_execution("plan")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    resumed = project.started("resume", "--step", "--json")
    time.sleep(0.5)
    (project.folder / "go").touch()
    out, _ = resumed.communicate(timeout=30)
    told = json.loads(out)
    assert (told["outcome"], told["steps"]["plan"]["state"]) == ("running", "done")
    assert steps_of(project) == [("plan", "1")]


def test_a_function_that_asks_while_it_runs_gets_its_answer_in_the_same_step(make: Make) -> None:
    project = make(
        {"steps": {"a": {"phase": "planning"}, "b": {"phase": "code", "needs": ["a"], "agent": "python:asks:work"}}},
        a=[{"output": 1}, {"answer": "blue"}],
    )
    (project.folder / "asks.py").write_text(
        "import backedge as be\n"
        "async def work(brief, attempt):\n"
        "    item = be.Feedback('context_request', 'a', requested_info='colour?', message='m')\n"
        "    told = await attempt.wait_for(await attempt.raise_feedback(item))\n"
        "    return str(told.answers)\n"
    )
    assert project.run("--step").outcome == "running"
    result = project.resume("--step")
    assert (result.outcome, result.attempts) == ("done", {"a": 2, "b": 1})
    assert "blue" in result.steps["b"]["output"]


# With somebody at the terminal


class Terminal:
    """A person at a terminal: the command's stdin and stderr."""

    def __init__(self, project: Project, *args: str, columns: int = 100, results: bool = False) -> None:
        """With `results`, stdout is the terminal too."""
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._mine, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [COMMAND, *args],
            cwd=project.folder,
            env=environment({"TERM": "xterm", "COLUMNS": str(columns)}),
            stdin=theirs,
            stdout=theirs if results else subprocess.DEVNULL,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.seen = self.before = ""

    def wait_for(self, text: str, within: float = 20) -> None:
        self._read(lambda: text in self.seen, within)
        assert text in self.seen, self.seen
        self.before, _, self.seen = self.seen.partition(text)

    def type(self, text: str) -> None:
        os.write(self._mine, text.encode())

    def end(self) -> int:
        self._read(lambda: False, 20)
        return self.process.wait(20)

    def _read(self, enough: Callable[[], bool], within: float) -> None:
        end = time.monotonic() + within
        with suppress(OSError):  # the other side is gone
            while not enough() and time.monotonic() < end:
                if select.select([self._mine], [], [], 0.1)[0]:
                    self.seen += self._decoder.decode(os.read(self._mine, 65536))

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._mine)


def test_on_a_terminal_step_asks_before_each_attempt(make: Make) -> None:
    project = make({"steps": STEPS}, review=[failed("no"), passed()])
    terminal = Terminal(project, "run", "--step")
    try:
        for step in ("plan (attempt 1)", "code (attempt 1)", "review (attempt 1)"):
            terminal.wait_for(f"next: {step}? [Enter: run it, s: stop here, a: run all the rest] ")
            terminal.type("\n")
        terminal.wait_for("next: code (attempt 2, rework L-1)?")
        assert len(project.executions()) == 3, "nothing starts before it is allowed"
        terminal.type("what\n")
        terminal.wait_for("next: code (attempt 2, rework L-1)?")
        terminal.type("s\n")
        assert terminal.end() == 0
        assert len(project.executions()) == 3
    finally:
        terminal.close()
    assert project.resume().outcome == "verified"


def test_on_a_terminal_you_can_let_all_the_rest_run(make: Make) -> None:
    project = make({"steps": STEPS}, review=[passed()])
    terminal = Terminal(project, "run", "--step")
    try:
        terminal.wait_for("next: plan")
        terminal.type("a\n")
        assert terminal.end() == 0
    finally:
        terminal.close()
    assert project.show().outcome == "verified"


def test_ctrl_c_and_the_end_of_the_input_stop_at_the_question(make: Make) -> None:
    project = make({"steps": STEPS}, review=[passed()])
    for stop, code in (("\x03", 130), ("\x04", 0)):
        terminal = Terminal(project, "run", "--step")
        try:
            terminal.wait_for("next: plan")
            if code == 130:
                os.kill(terminal.process.pid, signal.SIGINT)
            else:
                terminal.type(stop)
            assert terminal.end() == code
        finally:
            terminal.close()
    assert project.executions() == []
    assert project.resume().outcome == "verified"
