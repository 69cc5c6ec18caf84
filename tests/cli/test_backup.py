"""`backup` and `restore`: a run goes on meanwhile, nothing is overwritten, and what is restored can be continued."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.conftest import Make
from tests.cli.project import Project, failed, finished, passed

STEPS = {"steps": {"code": {"phase": "code"}, "review": {"reviews": "code"}}}


@pytest.fixture
def backed_up(make: Make) -> tuple[Project, Path]:
    """A project whose journal was copied while its first step was at work."""
    project = make(STEPS, code=[{"output": "x" * 200_000, "!wait": "go"}], review=[passed()])
    running = project.started("run", "--json")
    project.wait_for_execution("code")
    copy = project.folder.with_name("copy.db")
    assert project.backedge("backup", copy, "--json").json["runs"] == 1
    (project.folder / "go").touch()
    assert finished(running).code == 0
    return project, copy


def test_the_run_goes_on_and_a_restored_one_continues(backed_up: tuple[Project, Path]) -> None:
    project, copy = backed_up
    assert project.show().outcome == "verified"
    (project.folder / ".backedge").rename(project.folder.with_name("moved"))
    copy.chmod(0o400)
    assert "restored 1 run" in project.backedge("restore", copy).out
    assert project.show().outcome == "running"
    assert [path.name for path in copy.parent.glob("copy*")] == ["copy.db"]
    again = project.resume()  # what the lost process had begun is in doubt
    assert again.outcome in ("verified", "waiting")
    assert project.backedge("audit", "verify").code == 0


def test_large_values_are_in_the_copy(make: Make) -> None:
    project = make(STEPS, code=[{"output": "x" * 200_000}], review=[passed()])
    assert project.run().code == 0
    said = project.backedge("backup").out
    assert "1 run, " in said
    assert ", verified: " in said
    copy = Path(said.rsplit(": ", 1)[1].strip())
    assert copy.parent == project.folder / ".backedge"
    assert project.backedge("show", "--json", "--journal", copy).json["steps"]["code"]["output"] == "x" * 200_000


def test_nothing_is_overwritten(backed_up: tuple[Project, Path]) -> None:
    project, copy = backed_up
    before = copy.read_bytes()
    assert "exists already and is not overwritten" in project.refused("backup", copy)
    assert "move it away first" in project.refused("restore", copy)
    assert copy.read_bytes() == before
    (project.folder / ".backedge/journal.db").rename(project.folder.with_name("moved.db"))
    (project.folder / ".backedge/journal.db-wal").write_bytes(b"what another journal has not moved into its file yet")
    assert "journal.db-wal" in project.refused("restore", copy)


@pytest.mark.parametrize("content", [b"", b"no journal", b"SQLite format 3\0" + bytes(4096)])
def test_only_a_journal_is_restored(make: Make, content: bytes) -> None:
    project = make(STEPS)
    (project.folder / "other").write_bytes(content)
    assert "other" in project.refused("restore", "other")
    assert not (project.folder / ".backedge/journal.db").exists()
    assert "there is no backup at nothing" in project.refused("restore", "nothing")


def test_a_damaged_backup_is_not_restored(backed_up: tuple[Project, Path]) -> None:
    project, copy = backed_up
    (project.folder / ".backedge").rename(project.folder.with_name("moved"))
    damaged = copy.read_bytes().replace(b'"step":"code"', b'"step":"cobe"', 1)
    copy.write_bytes(damaged)
    assert "event" in project.refused("restore", copy)
    assert not (project.folder / ".backedge/journal.db").exists()
    assert not list((project.folder / ".backedge").glob("*draft*"))


def test_a_full_or_closed_place_is_told(make: Make) -> None:
    project = make(STEPS, review=[passed()])
    assert project.run().code == 0
    assert "cannot write" in project.refused("backup", "/proc/nothing/copy.db")
    assert os.listdir(project.folder / ".backedge").count("journal.db") == 1


def test_drafts_of_killed_backups_are_removed_later(backed_up: tuple[Project, Path]) -> None:
    project, copy = backed_up
    old, new = copy.with_name(".a.db.12345678.draft"), copy.with_name(".b.db.12345678.draft")
    for path in (old, new):
        path.touch()
    os.utime(old, (0, 0))
    assert project.backedge("backup", copy.with_name("second.db")).code == 0
    assert (old.exists(), new.exists()) == (False, True), "a young draft may be somebody's"


@pytest.mark.slow
def test_backups_under_load_and_killed_ones_leave_only_whole_copies(make: Make) -> None:
    """A run appends large outputs all the time; half of the backups are killed at some moment."""
    rounds = 12
    said = [{"output": f"{number}" + "x" * 300_000} for number in range(rounds + 1)]
    verdicts = [failed(f"wrong {number}") for number in range(rounds)]
    limits = {"rounds_per_loop": 50, "rounds_total": 50, "failures_in_a_row": 50, "diverging": False}
    project = make({"limits": limits, **STEPS}, code=said, review=[*verdicts, passed()])
    running = project.started("run", "--json")
    project.wait_for_execution("code")
    copies = project.folder.with_name("copies")
    for number in range(10):
        argv = [sys.executable, "-m", "backedge.cli.main", "backup", str(copies / f"{number}.db")]
        going = subprocess.Popen(argv, cwd=project.folder, stdout=subprocess.DEVNULL)
        if number % 2:
            time.sleep(0.05 * number)
            going.kill()
        going.wait(60)
    finished(running)
    whole = sorted(copies.glob("*.db"))
    assert {f"{number}.db" for number in range(0, 10, 2)} <= {path.name for path in whole}
    for copy in whole:
        assert project.backedge("audit", "verify", "--journal", copy).code == 0, copy
    (project.folder / ".backedge").rename(project.folder.with_name("moved"))
    assert project.backedge("restore", whole[0]).code == 0
    assert project.resume().outcome in ("verified", "waiting", "failed")
    assert project.backedge("audit", "verify").code == 0
