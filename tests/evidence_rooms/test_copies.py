"""A kept copy is brought up to date when a room opens, whatever happened to the workspace or to the copy."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.evidence_rooms.parts import FILES, KINDS, KindOfRoom, contents, fill, kinds, run_in, scratch_of, shell_in


@pytest.fixture(params=[name for name in KINDS if name != "overlay"])
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> KindOfRoom:
    return kinds(tmp_path, request.param)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    fill(tmp_path / "ws")
    time.sleep(0.15)  # younger files are always copied again
    return tmp_path / "ws"


def seen(kind: KindOfRoom, workspace: Path) -> dict[str, str]:
    """The files as a program in a new room sees them."""
    with kind.open(workspace) as room:
        names = shell_in(room, "find . -type f | sort").split("\n")[:-1]
        return {name[2:]: shell_in(room, f"cat '{name}'") for name in names}


def copies(workspace: Path) -> list[Path]:
    return sorted((scratch_of(workspace) / "copies").glob("*/*/files"))


def test_the_copy_follows_the_workspace(kind: KindOfRoom, workspace: Path) -> None:
    assert seen(kind, workspace) == FILES
    (workspace / "a.txt").write_text("changed\n")
    (workspace / "b.txt").unlink()
    (workspace / "src" / "two.py").rename(workspace / "src" / "deep" / "two.py")
    (workspace / "new").mkdir()
    (workspace / "new" / "file").write_text("new\n")
    assert seen(kind, workspace) == contents(workspace)
    assert len(copies(workspace)) == 1


def test_a_change_of_the_same_size_and_time_is_copied(kind: KindOfRoom, workspace: Path) -> None:
    assert seen(kind, workspace)["a.txt"] == "a\n"
    before = (workspace / "a.txt").stat()
    (workspace / "a.txt").write_text("z\n")
    os.utime(workspace / "a.txt", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert seen(kind, workspace)["a.txt"] == "z\n"


def test_files_folders_and_links_may_take_each_others_place(kind: KindOfRoom, workspace: Path) -> None:
    seen(kind, workspace)
    (workspace / "a.txt").unlink()
    (workspace / "a.txt").mkdir()
    (workspace / "a.txt" / "inner").write_text("inner\n")
    (workspace / "b.txt").unlink()
    (workspace / "b.txt").symlink_to("src/one.py")
    (workspace / "src" / "deep" / "three.py").unlink()
    (workspace / "src" / "deep").rmdir()
    (workspace / "src" / "deep").write_text("now a file\n")
    with kind.open(workspace) as room:
        assert shell_in(room, "cat a.txt/inner src/deep; readlink b.txt") == "inner\nnow a file\nsrc/one.py\n"


def test_a_copy_that_was_tampered_with_is_repaired(workspace: Path) -> None:
    kind = KINDS["plain-copy"]
    seen(kind, workspace)
    [copy] = copies(workspace)
    before = (copy / "a.txt").stat()
    (copy / "a.txt").write_text("z\n")
    os.utime(copy / "a.txt", ns=(before.st_atime_ns, before.st_mtime_ns))
    (copy / "b.txt").unlink()
    (copy / "b.txt").symlink_to(workspace / "b.txt")
    (copy / "planted.py").write_text("planted\n")
    assert seen(kind, workspace) == FILES
    assert contents(workspace) == FILES


def test_nothing_is_linked_to_the_workspace(kind: KindOfRoom, workspace: Path) -> None:
    seen(kind, workspace)
    [copy] = copies(workspace)
    for name in FILES:
        assert (copy / name).stat().st_ino != (workspace / name).stat().st_ino
        assert (copy / name).stat().st_nlink == 1


def test_a_copy_is_taken_when_the_room_opens(kind: KindOfRoom, workspace: Path) -> None:
    with kind.open(workspace) as room:
        (workspace / "a.txt").write_text("another step works here\n")
        (workspace / "more.txt").write_text("more\n")
        (workspace / "b.txt").unlink()
        assert shell_in(room, "cat a.txt b.txt; ls; echo x >> src/one.py") == "a\nb\na.txt\nb.txt\nsrc\ntests\n"
        assert (room.changed(), room.made()) == (("src/one.py",), ())


def test_ignored_build_products_modes_and_times_are_copied(kind: KindOfRoom, workspace: Path) -> None:
    (workspace / ".gitignore").write_text("build/\n")
    (workspace / "build").mkdir()
    (workspace / "build" / "tool").write_text("#!/bin/sh\necho built\n")
    (workspace / "build" / "tool").chmod(0o755)
    os.utime(workspace / "build" / "tool", (1_000_000_000, 1_000_000_000))
    (workspace / "src" / "__pycache__").mkdir()
    (workspace / "src" / "__pycache__" / "one.pyc").write_text("stale")
    with kind.open(workspace) as room:
        assert (
            shell_in(room, "build/tool; stat -c %Y build/tool; ls src") == "built\n1000000000\ndeep\none.py\ntwo.py\n"
        )


def test_what_cannot_be_copied_is_left_out(kind: KindOfRoom, workspace: Path) -> None:
    os.mkfifo(workspace / "pipe")
    (workspace / "secret").write_text("x")
    (workspace / "secret").chmod(0)
    with kind.open(workspace) as room:
        assert run_in(room, "test", "-e", "pipe").returncode == 1
        assert room.changed() == ()
