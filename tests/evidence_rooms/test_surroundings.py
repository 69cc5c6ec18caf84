"""Rooms on machines that allow less, and rooms whose processes are killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from backedge.adapters.evidence.room import found_room, leftover_rooms, open_room
from backedge.adapters.evidence.room_means import find_means
from backedge.adapters.evidence.room_plan import MEMORY, Means
from backedge.core.errors import AgentError
from tests.evidence_rooms.parts import FILES, KINDS, contents, fill, kinds, scratch_of, shell_in

USER = Path(__file__).with_name("room_user.py")
NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount") if os.geteuid() else ("unshare", "--mount")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return fill(tmp_path / "ws")


def used(workspace: Path, kind: str, script: str, before: str = "", scratch: Path | None = None) -> list[str]:
    """What `room_user` prints, after a script in a mount namespace of its own."""
    user = [sys.executable, str(USER), kind, str(workspace), str(scratch or scratch_of(workspace)), script]
    whole = [*NAMESPACE, "sh", "-c", f'set -e\n{before}\nexec "$@"', "sh", *user]
    done = subprocess.run(whole, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def require_mounts(tmp_path: Path) -> None:
    kinds(tmp_path, "overlay")


def test_mounts_below_the_workspace_are_covered_too(workspace: Path, tmp_path: Path) -> None:
    require_mounts(tmp_path)
    if os.geteuid():
        pytest.skip("needs a mount that was made by root")
    (workspace / "data").mkdir()
    mounted = f"mount -t tmpfs none {workspace}/data; echo d > {workspace}/data/d.txt; echo e > {workspace}/data/e.txt"
    script = "cat data/d.txt; echo x > data/d.txt; rm data/e.txt; echo n > data/n.txt; echo x > a.txt"
    name, content, ended, changed, made = used(workspace, "overlay", script, before=mounted)
    assert (name.split()[1], content, ended) == ("overlay", "d", "0 ")
    assert (changed, made) == ("a.txt,data/d.txt,data/e.txt", "data/n.txt")


def test_a_mounted_file_below_the_workspace_can_only_be_read(workspace: Path, tmp_path: Path) -> None:
    require_mounts(tmp_path)
    if os.geteuid():
        pytest.skip("needs a mount that was made by root")
    mounted = f"mount --bind {workspace}/b.txt {workspace}/a.txt"
    _, content, ended, changed, _ = used(workspace, "overlay", "cat a.txt; echo x > a.txt", before=mounted)
    assert (content, ended, changed) == ("b", "2 ", "")


def test_a_state_folder_that_cannot_hold_layers_is_replaced_by_memory(workspace: Path, tmp_path: Path) -> None:
    require_mounts(tmp_path)
    if os.geteuid():
        pytest.skip("needs an overlay that was made by root")
    for name in ("lower", "upper", "work", "state"):
        (tmp_path / name).mkdir()
    options = f"lowerdir={tmp_path}/lower,upperdir={tmp_path}/upper,workdir={tmp_path}/work"
    mounted = f"mount -t overlay none -o {options} {tmp_path}/state"
    before = set(MEMORY.glob("backedge-*"))
    script = f"grep -c 'upperdir=/proc/self/fd' /proc/self/mountinfo; echo x > a.txt; ls {MEMORY}"
    name, *_, changed, _ = used(workspace, "auto", script, before=mounted, scratch=tmp_path / "state" / "scratch")
    assert (name.split()[1], changed) == ("overlay", "a.txt")
    assert set(MEMORY.glob("backedge-*")) <= before
    assert contents(workspace) == FILES


def test_layers_in_memory_are_removed_with_the_room(workspace: Path, tmp_path: Path) -> None:
    require_mounts(tmp_path)
    before = set(MEMORY.glob("backedge-*"))
    room = open_room("overlay", workspace, scratch_of(workspace), means=Means(True, True, in_memory=True))
    shell_in(room, "echo x > a.txt")
    assert room.changed() == ("a.txt",)
    assert len(set(MEMORY.glob("backedge-*")) - before) == 1
    room.close()
    assert set(MEMORY.glob("backedge-*")) <= before


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bwrap to forbid namespaces")
def test_without_namespaces_a_copy_is_used(workspace: Path, tmp_path: Path) -> None:
    forbid = [
        "bwrap",
        "--bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--unshare-user",
        "--disable-userns",
        "--cap-drop",
        "ALL",
        "--",
    ]
    if subprocess.run([*forbid, "true"], check=False, capture_output=True).returncode:
        pytest.skip("bwrap does not work here")
    user = [sys.executable, str(USER), "{kind}", str(workspace), str(scratch_of(workspace)), "pwd; echo x > a.txt"]

    def run(kind: str) -> subprocess.CompletedProcess[str]:
        argv = [kind if word == "{kind}" else word for word in user]
        return subprocess.run([*forbid, *argv], capture_output=True, text=True, timeout=60, check=False)

    done = run("auto")
    assert done.returncode == 0, done.stderr
    name, where, _, changed, _ = done.stdout.splitlines()
    assert name.split()[1] == "copy"
    assert Path(where).is_relative_to(scratch_of(workspace))
    assert changed == "a.txt"
    assert contents(workspace) == FILES
    assert "no overlay over the workspace" in run("overlay").stderr


def test_a_room_in_a_room(workspace: Path, tmp_path: Path) -> None:
    """Another test suite may use rooms: the workspace of the inner room, and its state, lie in the outer one."""
    require_mounts(tmp_path)
    with KINDS["overlay"].open(workspace) as room:
        inner = [
            sys.executable,
            str(USER),
            "auto",
            str(workspace),
            str(workspace / "state"),
            "echo x > a.txt; cat b.txt",
        ]
        done = subprocess.run(
            room.argv(inner), cwd=room.cwd, env={**os.environ, **room.env}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        _, content, ended, changed, _ = done.stdout.splitlines()
        assert (content, ended, changed) == ("b", "0 ", "a.txt")
        assert room.changed() == ()
    assert contents(workspace) == FILES


def test_what_this_machine_cannot_do_is_said(workspace: Path, tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=r"no overlay over the workspace '.*': out of luck; use `room: auto`"):
        open_room("overlay", workspace, tmp_path / "s", means=Means(False, False, reason="out of luck"))
    assert leftover_rooms(tmp_path / "s") == []
    assert list((tmp_path / "s" / "rooms").iterdir()) == []


@pytest.fixture
def killed(workspace: Path, tmp_path: Path) -> Iterator[tuple[str, int]]:
    """A room whose opener was killed while its program goes on: its name, and the program's number."""
    require_mounts(tmp_path)
    note = tmp_path / "pid"
    script = f"echo x > a.txt; echo $$ > {note}.new; mv {note}.new {note}; exec sleep 300"
    command = [sys.executable, str(USER), "overlay", str(workspace), str(scratch_of(workspace)), script]
    opener = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert opener.stdout is not None
    name = opener.stdout.readline().split()[0]
    until = time.monotonic() + 30
    while not note.exists():
        assert time.monotonic() < until, "the program did not start"
        time.sleep(0.01)
    opener.send_signal(signal.SIGKILL)
    opener.wait()
    opener.stdout.close()
    program = int(note.read_text())
    yield name, program
    if _lives(program):
        os.kill(program, signal.SIGKILL)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _end(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    until = time.monotonic() + 30
    while _lives(pid):
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_room_lives_as_long_as_its_program(workspace: Path, killed: tuple[str, int]) -> None:
    name, program = killed
    scratch = scratch_of(workspace)
    assert leftover_rooms(scratch) == []
    _end(program)
    assert leftover_rooms(scratch, keep=[name]) == []
    assert leftover_rooms(scratch) == [name]
    assert list((scratch / "rooms").iterdir()) == []
    assert contents(workspace) == FILES


def test_the_room_of_a_killed_process_can_be_asked_what_changed(workspace: Path, killed: tuple[str, int]) -> None:
    name, program = killed
    _end(program)
    room = found_room(scratch_of(workspace), name)
    assert room is not None
    with room:
        assert (room.kind, room.changed(), room.made()) == ("overlay", ("a.txt",), ())
        assert leftover_rooms(scratch_of(workspace)) == []
    assert found_room(scratch_of(workspace), name) is None


def test_a_copy_whose_room_is_gone_is_used_again(workspace: Path, tmp_path: Path) -> None:
    kind = KINDS["plain-copy"]
    kind.open(workspace).close()
    scratch = scratch_of(workspace)
    command = [sys.executable, str(USER), "copy", str(workspace), str(scratch), "kill -9 $PPID"]
    subprocess.run(command, capture_output=True, check=False, timeout=60)
    until = time.monotonic() + 30
    while not (gone := leftover_rooms(scratch)):  # the shell that killed its opener may live a moment longer
        assert time.monotonic() < until
        time.sleep(0.01)
    assert len(gone) == 1
    with kind.open(workspace) as room:
        assert shell_in(room, "cat a.txt") == "a\n"
    assert len(list((scratch / "copies").glob("*/*"))) == 1


def test_the_means_of_this_machine_are_found_and_nothing_is_left(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    means = find_means(folder, folder, tmp_path / "scratch")
    assert means.overlay or means.reason
    assert list((tmp_path / "scratch" / "rooms").iterdir()) == []
