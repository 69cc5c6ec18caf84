"""`prune` frees space; events are kept, and `show` still works."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from backedge.adapters.journals.sqlite import SqliteJournal
from tests.cli_setup.parts import asked, backedge, story


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Two runs that have ended, one that waits."""
    story(tmp_path)
    for name in ("r-1", "r-2"):
        backedge(tmp_path, "run", "--quiet", "--run", name)
    story(tmp_path, wrong=9)
    backedge(tmp_path, "run", "--quiet", "--run", "r-3", expect=3)
    return tmp_path


def test_pruning_old_runs_frees_space_and_show_still_works(project: Path) -> None:
    would = asked(project, "prune", "--keep", "0s", "--dry-run")
    assert (would["runs"], would["dry_run"]) == (["r-2", "r-1"], True)
    assert (project / ".backedge" / "attempts" / "r-1").is_dir()
    events = backedge(project, "audit", "export", "r-1").stdout
    freed = asked(project, "prune", "--keep", "0s")
    assert (freed["bytes"], freed["files"]) == (would["bytes"], would["files"])
    assert not (project / ".backedge" / "attempts" / "r-1").exists()
    assert not (project / ".backedge" / "runs" / "r-1" / "backedge.yaml").exists()
    assert (project / ".backedge" / "runs" / "r-1" / "progress.json").exists()
    assert backedge(project, "audit", "export", "r-1").stdout == events
    backedge(project, "audit", "verify")
    assert asked(project, "show", "r-1")["outcome"] == "verified"
    assert asked(project, "prune", "--keep", "0s")["bytes"] == 0


def test_pruning_removes_large_outputs_and_show_says_so(tmp_path: Path) -> None:
    story(tmp_path)
    backedge(tmp_path, "run", "--quiet")
    size = (tmp_path / ".backedge" / "journal.db").stat().st_size
    assert asked(tmp_path, "prune", "--keep", "0s")["bytes"] > 80_000
    assert (tmp_path / ".backedge" / "journal.db").stat().st_size < size - 70_000
    assert "its large outputs were pruned on" in backedge(tmp_path, "show").stdout
    assert asked(tmp_path, "show")["steps"]["code"]["output"] is None
    backedge(tmp_path, "audit", "verify")


def test_pruning_keeps_runs_that_have_not_ended_and_shared_values(project: Path) -> None:
    backedge(project, "prune", "--keep", "0s")
    assert (project / ".backedge" / "attempts" / "r-3").is_dir()
    # r-3 has outputs of the same contents as the pruned runs: each is stored once, for all.
    assert len(asked(project, "show", "r-3")["steps"]["code"]["output"]["large"]) == 40_000
    backedge(project, "decide", "E-1", "accept")
    backedge(project, "resume", "r-3", expect=4)


def test_pruning_keeps_the_newest_and_the_recent_runs(project: Path) -> None:
    assert asked(project, "prune", "--dry-run")["runs"] == []
    assert asked(project, "prune", "--runs", "1", "--dry-run")["runs"] == ["r-1"]
    assert asked(project, "prune", "--runs", "1", "--keep", "1d", "--dry-run")["runs"] == []
    assert asked(project, "prune", "--runs", "0", "--dry-run")["runs"] == ["r-2", "r-1"]


def test_pruning_skips_a_run_that_a_process_executes(project: Path) -> None:
    journal = SqliteJournal(project / ".backedge" / "journal.db")
    try:
        asyncio.run(journal.claim("r-2"))
        freed = asked(project, "prune", "--keep", "0s")
    finally:
        asyncio.run(journal.close())
    assert (freed["runs"], freed["held"]) == (["r-1"], ["r-2"])


def test_an_invalid_time_is_a_clear_error(tmp_path: Path) -> None:
    story(tmp_path)
    done = backedge(tmp_path, "prune", "--keep", "soon", expect=2)
    assert "there is no journal" in done.stderr
    backedge(tmp_path, "run", "--quiet")
    assert "expected a time like 30d" in backedge(tmp_path, "prune", "--keep", "soon", expect=2).stderr
