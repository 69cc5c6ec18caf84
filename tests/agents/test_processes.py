"""Stopping an attempt kills its whole process tree, however it hides, and nothing else."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from backedge.adapters.agents import process as processes
from backedge.adapters.agents.attempt_folder import Ended
from backedge.adapters.agents.process_tree import Identity, family, lives, row_of, send
from backedge.core.errors import AgentError
from tests.agents.parts import (
    Hands,
    agent,
    done,
    files_of,
    is_gone,
    is_zombie_of_ours,
    outcome_of,
    play,
    python,
    result_of,
    shell,
    survivors,
    told,
    until,
    until_there,
)

TREES = {
    "a child": "sleep 60 & echo $! >> pids; echo . >> ready; wait",
    "a grandchild": "(sleep 60 & echo $! >> pids; wait) & echo $! >> pids; sleep 0.2; echo . >> ready; wait",
    "one that ignores the request": 'trap "" TERM; sleep 60 & echo $! >> pids; echo . >> ready; wait; sleep 60',
    "one in a group of its own": "set -m; sleep 60 & echo $! >> pids; echo . >> ready; wait",
    "one in a session of its own": "setsid sh -c 'echo $$ >> pids; echo . >> ready; sleep 60' & wait",
    "one whose parent is gone": "(setsid sh -c 'echo $$ >> pids; echo . >> ready; exec sleep 60' &); sleep 60",
    "one that lost its environment": "env -i setsid sleep 60 & echo $! >> pids; sleep 0.2; echo . >> ready; wait",
    "one that is stopped": "sleep 60 & echo $! >> pids; kill -STOP $!; echo . >> ready; wait",
}


@pytest.mark.parametrize("code", TREES.values(), ids=TREES)
def test_cancelling_ends_the_whole_tree(code: str, tmp_path: Path) -> None:
    async def scenario() -> float:
        work = asyncio.create_task(done(tmp_path, shell(f"echo $$ >> pids; {code}"), grace=0.3))
        await until_there(tmp_path / "ready")
        began = time.monotonic()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        return time.monotonic() - began

    assert play(scenario()) < 3
    pids = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
    assert len(pids) >= 2
    assert [pid for pid in pids if not is_gone(pid)] == [], "no orphan"
    assert [pid for pid in pids if is_zombie_of_ours(pid)] == [], "no zombie"
    assert survivors(tmp_path) == []


def test_a_timeout_ends_the_tree_and_is_an_error_that_keeps_the_log(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=r"timeout: no outcome after 0\.3 s") as caught:
        outcome_of(tmp_path, shell("echo working >&2; sleep 60 & sleep 60"), timeout=0.3)
    assert caught.value.log == b"working\n"
    assert survivors(tmp_path) == []


def test_a_process_can_clean_up_within_its_grace_period(tmp_path: Path) -> None:
    code = "trap 'sleep 0.2; echo cleaned > cleaned; exit 0' TERM; echo . > ready; sleep 60 & wait"

    async def scenario() -> None:
        work = asyncio.create_task(done(tmp_path, shell(code), grace=5.0))
        await until_there(tmp_path / "ready")
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    play(scenario())
    assert (tmp_path / "cleaned").read_text() == "cleaned\n"
    assert files_of(tmp_path).ended == Ended(code=0, cancelled=True)


def test_the_request_to_stop_comes_once(tmp_path: Path) -> None:
    code = (
        "import signal, time\n"
        "signal.signal(signal.SIGTERM, lambda *_: open('asked', 'a').write('.'))\n"
        "print('.', file=open('ready', 'w'), flush=True)\n"
        "while True: time.sleep(0.05)"
    )

    async def scenario() -> None:
        work = asyncio.create_task(done(tmp_path, python(code), grace=0.5))
        await until_there(tmp_path / "ready")
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    play(scenario())
    assert (tmp_path / "asked").read_text() == "."


def test_cancelling_twice_does_not_wait_for_the_grace_period_and_leaves_nothing(tmp_path: Path) -> None:
    async def scenario() -> float:
        work = asyncio.create_task(
            done(tmp_path, shell('trap "" TERM; echo . > ready; while :; do sleep 1; done'), grace=20)
        )
        await until_there(tmp_path / "ready")
        began = time.monotonic()
        work.cancel()
        await asyncio.sleep(0.1)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        return time.monotonic() - began

    assert play(scenario()) < 3
    assert survivors(tmp_path) == []


def test_ending_the_event_loop_ends_the_process(tmp_path: Path) -> None:
    async def scenario() -> None:
        asyncio.create_task(done(tmp_path, shell("echo . > ready; sleep 60")))  # noqa: RUF006 - it is abandoned on purpose
        await until_there(tmp_path / "ready")

    play(scenario())
    assert survivors(tmp_path) == []


@pytest.mark.parametrize("delay", [0.0, 0.001, 0.003, 0.006, 0.01, 0.02])
def test_cancelling_at_the_moment_of_starting_leaves_nothing(delay: float, tmp_path: Path) -> None:
    async def scenario() -> None:
        work = asyncio.create_task(done(tmp_path, shell("sleep 60")))
        await asyncio.sleep(delay)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    play(scenario())
    assert survivors(tmp_path) == []


def test_processes_that_a_finished_command_left_in_its_group_are_killed(tmp_path: Path) -> None:
    assert outcome_of(tmp_path, shell("sleep 60 & echo $! > left; echo {}")).output is None
    assert is_gone(int((tmp_path / "left").read_text()))


def test_a_finished_command_leaves_no_zombie_and_a_record_of_its_end(tmp_path: Path) -> None:
    outcome_of(tmp_path, shell("echo $$ > pid; echo {}"))
    assert not is_zombie_of_ours(int((tmp_path / "pid").read_text()))
    assert files_of(tmp_path).ended == Ended(code=0)
    running = files_of(tmp_path).running
    assert running is not None
    assert running.pid == int((tmp_path / "pid").read_text())
    with pytest.raises(AgentError):
        outcome_of(tmp_path, shell("kill -9 $$"), told(2))
    assert files_of(tmp_path, told(2)).ended == Ended(signal=9)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_too_much_output_ends_the_tree_at_once(stream: str, tmp_path: Path) -> None:
    code = f"yes >&{1 if stream == 'stdout' else 2} & echo $! > pid; wait"
    with pytest.raises(AgentError, match=f"wrote more than 1,000,000 bytes on {stream}"):
        outcome_of(tmp_path, shell(code), max_stdout=1_000_000)
    assert is_gone(int((tmp_path / "pid").read_text()))
    file = files_of(tmp_path).stdout if stream == "stdout" else files_of(tmp_path).log
    assert file.stat().st_size <= 1_000_000, "the disk is given back"


def test_too_much_output_is_an_error_even_if_the_command_has_ended(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="wrote more than 1,000 bytes on stdout"):
        outcome_of(tmp_path, shell("head -c 2000 /dev/zero; echo {}"), max_stdout=1_000)


def test_processes_are_polled_if_they_cannot_be_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_pidfd", lambda pid: None)
    assert outcome_of(tmp_path, shell("sleep 0.1; echo {}")).output is None
    with pytest.raises(AgentError, match="timeout"):
        outcome_of(tmp_path, shell("sleep 60"), told(2), timeout=0.2)
    assert survivors(tmp_path, told(2)) == []


def test_an_attempt_that_still_runs_is_not_started_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        work = asyncio.create_task(done(tmp_path, shell("echo . >> ready; sleep 60")))
        await until_there(tmp_path / "ready")
        with pytest.raises(AgentError, match="already running as process"):
            await agent(tmp_path, shell("echo . >> ready")).work(told(), Hands())
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    play(scenario())
    assert (tmp_path / "ready").read_text() == ".\n"


def test_files_of_an_earlier_attempt_with_the_same_name_are_set_aside(tmp_path: Path) -> None:
    outcome_of(tmp_path, shell('echo \'{"output": "old"}\' > "$BACKEDGE_OUTCOME"'))
    assert outcome_of(tmp_path, shell('echo \'{"output": "new"}\'')).output == "new"
    assert files_of(tmp_path).path.with_name("code-1~1").is_dir()


def test_a_reused_process_id_is_another_process() -> None:
    stranger = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        row = row_of(stranger.pid)
        assert row is not None
        earlier = Identity(stranger.pid, "of an earlier boot")
        assert lives(row.identity)
        assert not lives(earlier)
        assert family(earlier, b"BACKEDGE_OUTCOME=/nowhere") == set()
        send(earlier, [earlier], signal.SIGKILL)
        assert stranger.poll() is None, "nobody else's process is touched"
    finally:
        stranger.kill()
        stranger.wait()


def test_a_program_name_with_brackets_and_spaces_is_read_correctly(tmp_path: Path) -> None:
    odd = tmp_path / "a) R 1 (b"
    odd.symlink_to("/bin/sleep")
    child = subprocess.Popen([odd, "60"])
    try:
        row = row_of(child.pid)
        assert row is not None
        assert row.parent == os.getpid()
    finally:
        child.kill()
        child.wait()
    assert row_of(child.pid) is None


def wait(condition: Callable[[], object]) -> None:
    play(until(condition))


def spawners_of(pid: int) -> list[Identity]:
    """The spawners that a process started."""
    rows = [row_of(int(name)) for name in os.listdir("/proc") if name.isdigit()]
    children = [row.identity for row in rows if row is not None and row.parent == pid and not row.dead]
    return [each for each in children if b"spawner.py" in Path(f"/proc/{each.pid}/cmdline").read_bytes()]


def test_all_attempts_of_a_process_share_one_spawner(tmp_path: Path) -> None:
    for number in (1, 2):
        result_of(tmp_path, shell("echo {}"), told(number))
    assert len(spawners_of(os.getpid())) == 1


def test_after_the_spawner_was_killed_the_next_attempt_starts_another(tmp_path: Path) -> None:
    result_of(tmp_path, shell("echo {}"))
    (spawner,) = spawners_of(os.getpid())
    os.kill(spawner.pid, signal.SIGKILL)
    wait(lambda: not lives(spawner))
    assert result_of(tmp_path, shell("echo {}"), told(2)).outcome is not None
    assert spawners_of(os.getpid()) != [spawner]


def test_the_spawner_ends_with_backedge_and_the_supervisor_does_not(tmp_path: Path) -> None:
    starter = subprocess.Popen(
        [sys.executable, "-m", "tests.agents.starter", str(tmp_path), "1", *shell("echo . > ready; sleep 60")]
    )
    wait((tmp_path / "ready").exists)
    wait(lambda: files_of(tmp_path).running is not None)
    (spawner,) = spawners_of(starter.pid)
    starter.kill()
    starter.wait()
    wait(lambda: not lives(spawner))
    running = files_of(tmp_path).running
    assert running is not None and running.supervisor is not None
    assert lives(Identity(*running.supervisor)), "it has to record how the program ends"
    os.killpg(running.pid, signal.SIGKILL)
    wait(lambda: (exited := files_of(tmp_path).exited) is not None and exited.signal == signal.SIGKILL)


def test_a_program_has_only_its_own_descriptors(tmp_path: Path) -> None:
    open_ones = shell('ls /proc/self/fd > fds; echo "{}"')
    result_of(tmp_path, open_ones)
    # The shell's `ls` has its three and the folder that it lists.
    assert (tmp_path / "fds").read_text().split() == ["0", "1", "2", "3"]
