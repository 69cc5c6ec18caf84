"""After backedge died: finished attempts are adopted, running ones are awaited, and the rest are in doubt."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from backedge.adapters.agents.attempt_folder import Ended, RunningProcess, Starting
from backedge.adapters.agents.secrets import Secrets
from backedge.adapters.agents.workspace import MOST_STORED, Snapshot
from backedge.adapters.reports import ReportSpec
from backedge.core.errors import AgentError
from backedge.core.model import Change
from backedge.engine.protocol import Finding, Outcome
from tests.agents.parts import (
    Hands,
    agent,
    files_of,
    is_gone,
    outcome_of,
    play,
    recover,
    shell,
    survivors,
    told,
    until,
)

STARTER = Path(__file__).with_name("starter.py")


def abandoned(folder: Path, argv: list[str], ready: str = "ready") -> None:
    """Let another process start an attempt, and kill that process as soon as the command is ready."""
    starter = subprocess.Popen([sys.executable, str(STARTER), str(folder), "1", *argv])
    try:
        deadline = time.monotonic() + 15
        while not (folder / ready).exists() or files_of(folder).running is None:
            assert time.monotonic() < deadline, "the command did not start"
            assert starter.poll() is None, "the command ended too early"
            time.sleep(0.005)
    finally:
        starter.kill()
        starter.wait()


def until_gone(folder: Path) -> None:
    deadline = time.monotonic() + 10
    while survivors(folder):
        assert time.monotonic() < deadline
        time.sleep(0.01)


LIVING = 'echo . > ready; sleep 0.7; echo . >> runs; echo said >&2; echo \'{"output": "after all"}\''


def test_a_running_process_is_awaited_and_adopted(tmp_path: Path) -> None:
    abandoned(tmp_path, shell(LIVING))
    assert survivors(tmp_path), "the command survives the death of who started it"
    began = time.monotonic()
    result = recover(tmp_path, shell(LIVING))
    assert result is not None
    assert result.outcome == Outcome(output="after all")
    assert result.log == b"said\n"
    assert time.monotonic() - began < 5
    assert (tmp_path / "runs").read_text() == ".\n", "it ran once"


def test_an_attempt_that_finished_meanwhile_is_adopted_and_nothing_starts(tmp_path: Path) -> None:
    abandoned(tmp_path, shell(LIVING))
    until_gone(tmp_path)
    assert files_of(tmp_path).ended is None, "nobody saw its end"
    for _ in range(2):
        result = recover(tmp_path, shell("echo . >> runs; exit 9"))
        assert result is not None
        assert result.outcome == Outcome(output="after all")
    assert (tmp_path / "runs").read_text() == ".\n"


@pytest.mark.parametrize(
    "end",
    [
        "exit 0",
        "echo 'some words'",
        'printf \'{"output": 1,\' > "$BACKEDGE_OUTCOME"',
        "printf '{\"output\": {}'",
        "echo '{\"progress\": 5}'",
    ],
)
def test_a_dead_process_without_a_complete_outcome_is_in_doubt(end: str, tmp_path: Path) -> None:
    abandoned(tmp_path, shell(f"echo . > ready; sleep 0.2; {end}"))
    until_gone(tmp_path)
    assert recover(tmp_path, shell("true")) is None


@pytest.mark.parametrize("report", [None, ReportSpec("exitcode")])
def test_a_failing_exit_code_counts_even_if_backedge_was_not_there(report: ReportSpec | None, tmp_path: Path) -> None:
    abandoned(tmp_path, shell("echo . > ready; sleep 0.2; echo '{\"output\": 1}'; echo oh >&2; exit 3"))
    until_gone(tmp_path)
    if report is None:
        with pytest.raises(AgentError, match=r"the command failed \(exit code 3\): oh"):
            recover(tmp_path, shell("true"))
    else:
        result = recover(tmp_path, shell("true"), report=report, judges=True)
        assert result is not None
        assert isinstance(result.outcome, Outcome) and result.outcome.verdict == "fail"


def test_a_running_process_that_fails_is_an_error_also_after_a_restart(tmp_path: Path) -> None:
    abandoned(tmp_path, shell("echo . > ready; sleep 0.5; echo {}; exit 4"))
    assert survivors(tmp_path)
    with pytest.raises(AgentError, match="exit code 4"):
        recover(tmp_path, shell("true"))


def test_without_an_exit_code_stdout_is_in_doubt_but_a_complete_outcome_file_is_not(
    tmp_path: Path,
) -> None:
    abandoned(tmp_path, shell("echo . > ready; echo '{\"output\": 1}'; exec sleep 60"))
    running = files_of(tmp_path).running
    assert running is not None and running.supervisor is not None
    os.kill(running.supervisor[0], signal.SIGKILL)
    os.kill(running.pid, signal.SIGKILL)
    until_gone(tmp_path)
    assert recover(tmp_path, shell("true")) is None
    files_of(tmp_path).outcome.write_text('{"output": 2}')
    result = recover(tmp_path, shell("true"))
    assert result is not None
    assert result.outcome == Outcome(output=2)


def test_a_complete_but_invalid_outcome_file_is_an_error_of_the_agent(tmp_path: Path) -> None:
    abandoned(tmp_path, shell('echo \'{"outptu": 1}\' > "$BACKEDGE_OUTCOME"; echo . > ready; sleep 0.3'))
    until_gone(tmp_path)
    with pytest.raises(AgentError, match="outptu"):
        recover(tmp_path, shell("true"))


def test_a_process_killed_with_backedge_is_in_doubt_and_its_children_are_killed(tmp_path: Path) -> None:
    abandoned(tmp_path, shell("sleep 60 & echo $! > left; echo . > ready; wait"))
    running = files_of(tmp_path).running
    assert running is not None
    os.kill(running.pid, signal.SIGKILL)
    assert recover(tmp_path, shell("true")) is None
    assert is_gone(int((tmp_path / "left").read_text()))


def test_the_timeout_includes_the_time_before_the_restart(tmp_path: Path) -> None:
    abandoned(tmp_path, shell("echo . > ready; sleep 60"))
    began = time.monotonic()
    with pytest.raises(AgentError, match=r"timeout: no outcome after 0\.5 s"):
        recover(tmp_path, shell("true"), timeout=0.5)
    assert time.monotonic() - began < 3
    assert survivors(tmp_path) == []


def test_a_clock_that_was_set_does_not_make_a_living_process_late(tmp_path: Path) -> None:
    abandoned(tmp_path, shell(LIVING))
    record = files_of(tmp_path).path / "starting"
    starting = msgspec.json.decode(record.read_bytes())
    # The same as if the clock of the machine now showed another hour.
    record.write_bytes(msgspec.json.encode({**starting, "at": starting["at"] - 3600}))
    result = recover(tmp_path, shell("true"), timeout=30)
    assert result is not None
    assert result.outcome == Outcome(output="after all")


def test_cancelling_the_wait_for_a_running_process_kills_its_tree_and_leaves_it_in_doubt(tmp_path: Path) -> None:
    abandoned(tmp_path, shell("sleep 60 & echo . > ready; wait"))

    async def scenario() -> None:
        work = asyncio.create_task(agent(tmp_path, ["true"]).recover(told(), Hands()))
        await asyncio.sleep(0.2)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    play(scenario())
    assert survivors(tmp_path) == []
    assert recover(tmp_path, shell("true")) is None, "what we ended ourselves has no outcome"


def test_a_recorded_end_is_read_back_unchanged(tmp_path: Path) -> None:
    outcome_of(tmp_path, shell("echo {}"))
    again = recover(tmp_path, shell("true"))
    assert again is not None
    assert again.outcome == Outcome()
    with pytest.raises(AgentError, match="exit code 4"):
        outcome_of(tmp_path, shell("echo {}; exit 4"), told(2))
    with pytest.raises(AgentError, match="exit code 4"):
        recover(tmp_path, shell("true"), told(2))
    with pytest.raises(AgentError, match="no such program"):
        outcome_of(tmp_path, ["./nowhere"], told(3))
    with pytest.raises(AgentError, match="no such program"):
        recover(tmp_path, shell("true"), told(3))
    with pytest.raises(AgentError, match="timeout"):
        outcome_of(tmp_path, shell("sleep 60"), told(4), timeout=0.1)
    with pytest.raises(AgentError, match="timeout"):
        recover(tmp_path, shell("true"), told(4))


def test_an_attempt_that_never_started_is_in_doubt(tmp_path: Path) -> None:
    assert recover(tmp_path, shell("true")) is None


def test_an_attempt_with_only_its_start_recorded_is_in_doubt(tmp_path: Path) -> None:
    folder = files_of(tmp_path)
    folder.make()
    assert recover(tmp_path, shell("true")) is None
    folder.starting = Starting(time.time())
    assert recover(tmp_path, shell("true")) is None


def test_an_unrecorded_running_process_is_found_by_its_mark(tmp_path: Path) -> None:
    abandoned(tmp_path, shell(LIVING))
    (files_of(tmp_path).path / "process.json").unlink()
    result = recover(tmp_path, shell("true"))
    assert result is not None
    assert result.outcome == Outcome(output="after all")


def test_a_process_id_that_now_belongs_to_another_process_is_not_awaited(tmp_path: Path) -> None:
    folder = files_of(tmp_path)
    folder.make()
    folder.starting = Starting(time.time())
    stranger = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        folder.running = RunningProcess(stranger.pid, "earlier", ("sleep", "60"))
        assert recover(tmp_path, shell("true")) is None
        folder.outcome.write_text('{"output": 1}')
        result = recover(tmp_path, shell("true"))
        assert result is not None
        assert result.outcome == Outcome(output=1)
        assert stranger.poll() is None, "the stranger was left alone"
    finally:
        stranger.kill()
        stranger.wait()


def test_records_written_by_another_program_are_an_error_that_says_so(tmp_path: Path) -> None:
    folder = files_of(tmp_path)
    folder.make()
    (folder.path / "starting").write_text("garbage")
    with pytest.raises(AgentError, match="starting of the attempt cannot be read"):
        recover(tmp_path, shell("true"))


def test_an_adopted_attempt_reports_the_files_that_it_changed(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        subprocess.run(
            ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words], cwd=tmp_path, check=True, capture_output=True
        )

    git("init", "-q")
    (tmp_path / "kept.txt").write_text("one\ntwo\nthree\n")
    git("add", ".")
    git("commit", "-qm", "x")
    (tmp_path / "draft.txt").write_text("not known to git\n")
    work = "printf 'one\\n2\\nthree\\n' > kept.txt; echo more >> draft.txt"
    abandoned(tmp_path, shell(f"echo . > ready; sleep 0.3; {work}; echo {{}}"))
    result = recover(tmp_path, shell("true"))
    assert result is not None
    assert set(result.files) == {Change("draft.txt", ((2, 2),)), Change("kept.txt", ((2, 2),)), Change("ready")}
    assert "+more" in files_of(tmp_path).files.read_text(), "people see how, not only where"


def test_of_the_contents_before_an_attempt_the_smallest_are_stored_without_secrets() -> None:
    texts = {"large": b"x" * MOST_STORED, "small": b"key = hunter2", "empty": b""}
    found = Snapshot(dict.fromkeys(texts, "f:0"), {}, texts).stored(Secrets({"KEY": "hunter2"}).data)
    assert found.files.keys() == texts.keys()
    assert found.texts.keys() == {"small", "empty"}
    assert b"hunter2" not in found.texts["small"]


def test_a_report_that_was_finished_is_adopted_and_so_is_an_exit_code_unless_nobody_saw_it(tmp_path: Path) -> None:
    # The starter knows no reports: its command writes one where an attempt of a judge would have been told to.
    name = 'report-$(sed \'s/.*"token":"\\([0-9a-f]*\\)".*/\\1/\' starting).json'
    code = f'cd "$(dirname "$BACKEDGE_OUTCOME")"; echo \'[{{"description": "bad"}}]\' > "{name}"; cd -; echo . > ready'
    abandoned_with_report(tmp_path, code)
    result = recover(tmp_path, shell("true"), report=ReportSpec("json"), judges=True)
    assert result is not None
    assert isinstance(result.outcome, Outcome)
    assert result.outcome.verdict == "fail"
    assert list(result.outcome.findings) == [Finding("bad")]
    by_code = recover(tmp_path, shell("true"), report=ReportSpec("exitcode"), judges=True)
    assert by_code is not None
    assert isinstance(by_code.outcome, Outcome) and by_code.outcome.verdict == "pass"
    assert recover(tmp_path, shell("true"), report=ReportSpec("junit"), judges=True) is None
    files_of(tmp_path).exit.unlink()
    assert recover(tmp_path, shell("true"), report=ReportSpec("exitcode"), judges=True) is None


def abandoned_with_report(folder: Path, code: str) -> None:
    abandoned(folder, shell(f"{code}; sleep 0.2"))
    until_gone(folder)


def test_the_process_that_started_an_attempt_can_recover_it_too(tmp_path: Path) -> None:
    async def scenario() -> None:
        work = asyncio.create_task(agent(tmp_path, shell("sleep 0.4; echo {}; exit 3")).work(told(), Hands()))
        await until(lambda: files_of(tmp_path).running is not None)
        with pytest.raises(AgentError, match="exit code 3"):
            await agent(tmp_path, ["true"]).recover(told(), Hands())
        with pytest.raises(AgentError, match="exit code 3"):
            await work

    play(scenario())
    assert files_of(tmp_path).ended == Ended(code=3)


@pytest.mark.parametrize("delay", [0.0, 0.002, 0.005, 0.01, 0.05])
def test_a_kill_at_any_moment_of_starting_never_runs_it_twice_or_loses_its_work(delay: float, tmp_path: Path) -> None:
    code = 'echo . >> runs; sleep 0.1; echo \'{"output": 1}\' > "$BACKEDGE_OUTCOME"'
    starter = subprocess.Popen([sys.executable, str(STARTER), str(tmp_path), "1", *shell(code)])
    deadline = time.monotonic() + 15
    while not files_of(tmp_path).path.exists():
        assert time.monotonic() < deadline
    time.sleep(delay)
    starter.kill()
    starter.wait()
    result = recover(tmp_path, shell("echo . >> runs"))
    until_gone(tmp_path)
    runs = (tmp_path / "runs").read_text() if (tmp_path / "runs").exists() else ""
    assert runs in ("", ".\n")
    assert (result is not None) == bool(runs), "adopted if it ran, in doubt if it did not"


def test_an_exit_code_is_seen_even_if_sigchld_is_ignored(tmp_path: Path) -> None:
    usual = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with pytest.raises(AgentError, match="exit code 3"):
            outcome_of(tmp_path, shell("echo {}; exit 3"))
    finally:
        signal.signal(signal.SIGCHLD, usual)
