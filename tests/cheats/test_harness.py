"""The suite itself: it sees a cheat, it leaves nothing behind, and it does not mistake a broken case for a caught one."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cheats.case import Verdict, sh
from tests.cheats.leftovers import end_leftovers
from tests.cheats.registry import CHEATS, CONTROLS
from tests.cheats.repositories import FIXED_SLUG, SCRIPTS, control, writes
from tests.cheats.running import Result, run_case


def result(verdict: Verdict, expected: Verdict) -> Result:
    return Result(CHEATS[0], verdict, "", 0.0, expected)


def test_a_cheat_may_end_better_than_expected_but_not_worse() -> None:
    assert result(Verdict.CAUGHT, Verdict.VISIBLE).ok
    assert result(Verdict.VISIBLE, Verdict.VISIBLE).ok
    assert not result(Verdict.NEITHER, Verdict.VISIBLE).ok
    assert not result(Verdict.VISIBLE, Verdict.CAUGHT).ok
    assert not result(Verdict.BROKEN, Verdict.NEITHER).ok


@pytest.mark.parametrize(
    ("verdict", "ok"),
    [(Verdict.PASSED, True), (Verdict.ASKED, True), (Verdict.REFUSED, False), (Verdict.BROKEN, False)],
)
def test_a_control_passes_with_at_most_one_question(verdict: Verdict, ok: bool) -> None:
    assert Result(CONTROLS[0], verdict, "", 0.0, Verdict.PASSED).ok is ok


def test_honest_work_passes_and_idle_work_is_refused() -> None:
    assert (
        run_case(control("works", "fixes it", sh(writes("slug.sh", FIXED_SLUG)), repository=SCRIPTS)).verdict
        is Verdict.PASSED
    )
    assert run_case(control("idles", "does nothing", sh("true"), repository=SCRIPTS)).verdict is Verdict.REFUSED


def test_a_case_whose_workflow_is_not_valid_is_broken() -> None:
    (first, *_) = [each for each in CHEATS if each.name == "sh-exit-zero"]
    wrong = run_case(replace(first, workflow="name: slugs\nsteps: {}\n"))
    assert wrong.verdict is Verdict.BROKEN
    assert "refused" in wrong.detail


def test_processes_of_a_case_are_ended_and_no_others(tmp_path: Path) -> None:
    marked = subprocess.Popen(["sleep", "30"], env={**os.environ, "CHEATS_CASE": str(tmp_path)}, start_new_session=True)
    inside = subprocess.Popen(["sleep", "30"], cwd=tmp_path, start_new_session=True)
    other = subprocess.Popen(["sleep", "30"], cwd="/")
    try:
        time.sleep(0.1)
        assert sorted(end_leftovers(tmp_path)) == sorted([marked.pid, inside.pid])
        assert marked.wait(5) < 0
        assert inside.wait(5) < 0
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
