"""`show --diff`: everything that each attempt changed."""

from __future__ import annotations

from pathlib import Path

from tests.cli_setup.parts import asked, backedge, story


def test_each_rework_is_shown_with_its_loop_its_files_and_a_bounded_difference(tmp_path: Path) -> None:
    story(tmp_path)
    backedge(tmp_path, "run", "--quiet")
    told = backedge(tmp_path, "show", "--diff").stdout
    assert told.startswith("plan v1, attempt 1\n  1 units\n  --- nothing\n  +++ v1\n")
    first = (
        "code v1, attempt 1\n  coded\n  made.txt\n  --- /dev/null\n  +++ b/made.txt\n  @@ -0,0 +1 @@\n  +version 1\n"
    )
    assert first in told
    assert "code v1 → v2, attempt 2, rework for L-1\n  coded\n  made.txt: line 1\n" in told
    assert "  --- a/made.txt\n  +++ b/made.txt\n  @@ -1 +1 @@\n  -version 1\n  +version 2\n" in told
    assert '-  "iteration": 1,\n' in told
    assert '+  "iteration": 2,\n' in told
    assert max(map(len, told.splitlines())) < 310
    _, first, rework = asked(tmp_path, "show", "--diff")
    assert (first["version"], first["files_diff"][-1], first["loops"]) == (1, "+version 1", [])
    assert (rework["step"], rework["version"], rework["loops"]) == ("code", 2, ["L-1"])
    assert rework["files_diff"][-2:] == ["-version 1", "+version 2"]


def test_a_step_without_changes_says_so(tmp_path: Path) -> None:
    story(tmp_path)
    backedge(tmp_path, "run", "--quiet")
    assert backedge(tmp_path, "show", "--diff", "--step", "review").stdout == "no attempt changed anything in review\n"


def test_a_pruned_output_is_named_instead_of_compared(tmp_path: Path) -> None:
    story(tmp_path)
    backedge(tmp_path, "run", "--quiet")
    backedge(tmp_path, "prune", "--keep", "0s")
    told = backedge(tmp_path, "show", "--diff").stdout
    assert "the outputs were pruned" in told
    assert "made.txt: line 1" in told and "+version 2" not in told
