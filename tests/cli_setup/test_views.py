"""From the outside: the files of a run that agents and people read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from backedge.compat.progress import VERIFIED, read_progress
from tests.cli_setup.parts import asked, backedge, story


def test_an_attempt_reads_a_current_scratchpad_where_its_briefing_says(tmp_path: Path) -> None:
    story(tmp_path)
    backedge(tmp_path, "run", "--run", "r-1")
    output = asked(tmp_path, "show")["steps"]["code"]["output"]
    assert (output["iteration"], output["told"]) == (2, 1)
    folder = tmp_path / ".backedge" / "runs" / "r-1"
    loop = read_progress((folder / "progress.json").read_bytes()).feedback_loop
    assert (loop.status, loop.current_iteration, loop.max_iterations) == (VERIFIED, 2, 3)
    assert loop.iterations[0].review_issues == ("made.txt:1 - issue 1",)
    assert "- **Status**: IMPLEMENTATION_VERIFIED" in (folder / "feedback-scratchpad.md").read_text()
    first = next((tmp_path / ".backedge" / "attempts").glob("*/code-1/briefing.json"))
    assert json.loads(first.read_text())["scratchpad"] == str(folder / "feedback-scratchpad.md")


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (["decide", "E-1", "cancel"], "cancelled"),
        (["cancel", "r-1"], "cancelled"),
        (["decide", "E-1", "continue"], "in_progress"),
    ],
)
def test_an_answer_to_a_run_without_a_process_updates_its_files(answer: list[str], status: str, tmp_path: Path) -> None:
    story(tmp_path, wrong=9)
    backedge(tmp_path, "run", "--quiet", "--run", "r-1", expect=3)
    backedge(tmp_path, *answer)
    folder = tmp_path / ".backedge" / "runs" / "r-1"
    assert json.loads((folder / "progress.json").read_text())["feedback_loop"]["status"] == status
    assert f": {status}." in (folder / "feedback-scratchpad.md").read_text()


def test_resume_updates_the_files_first(tmp_path: Path) -> None:
    story(tmp_path, wrong=9)
    backedge(tmp_path, "run", "--run", "r-1", expect=3)
    path = tmp_path / ".backedge" / "runs" / "r-1" / "progress.json"
    assert json.loads(path.read_text())["feedback_loop"]["status"] == "escalated"
    path.unlink()
    backedge(tmp_path, "decide", "E-1", "cancel")
    backedge(tmp_path, "resume", expect=1)
    assert json.loads(path.read_text())["feedback_loop"]["status"] == "cancelled"
