"""Tests that fail only sometimes: with `reruns` they are marked, and nobody reworks anything because of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.reports.parts import write

# Judges may write nothing in the workspace, so the test counts its runs at home.
FLAKY = """\
import os
import pathlib


def test_steady():
    pass


def test_sometimes():
    count = pathlib.Path(os.environ["COUNTED"])
    number = int(count.read_text()) + 1 if count.exists() else 1
    count.write_text(str(number))
    assert number in PASSES, f"run {number}"
"""
WORKFLOW = """\
name: shop
baseline: BASELINE
limits: {rounds_per_loop: 1}
steps:
  code: {run: [echo, "{}"]}
  test: {tests: code, run: [PYTHON, -m, pytest, -p, "no:cacheprovider", --junitxml, "{report}"], report: junit, reruns: RERUNS}
"""


def worked(folder: Path, passes: str, reruns: int, baseline: bool = False) -> tuple[dict[str, Any], int]:
    """The report of a run, and how often the test ran."""
    words = {"PYTHON": sys.executable, "RERUNS": str(reruns), "BASELINE": str(baseline).lower()}
    workflow = WORKFLOW
    for word, value in words.items():
        workflow = workflow.replace(word, value)
    write(folder, {"project/test_shop.py": FLAKY.replace("PASSES", passes), "project/backedge.yaml": workflow})
    count = folder / "count"
    done = subprocess.run(
        [sys.executable, "-m", "backedge", "run", "--json"],
        cwd=folder / "project",
        env={**os.environ, "COUNTED": str(count)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout, done.stderr
    return json.loads(done.stdout), int(count.read_text())


@pytest.mark.parametrize("passes", [2, 3])
def test_a_test_that_passes_on_a_rerun_is_flaky_and_burns_no_round(passes: int, tmp_path: Path) -> None:
    report, runs = worked(tmp_path, f"[{passes}]", reruns=2)
    assert (report["outcome"], report["loops"], report["findings"]) == ("verified", [], [])
    assert report["steps"]["code"]["attempts"] == 1
    tests = report["steps"]["test"]["tests"]
    assert (tests["flaky"], tests["failed"], tests["tests"]) == (["test_shop::test_sometimes"], 0, 2)
    assert runs == passes, "it runs again only while tests fail"


def test_the_summary_and_show_name_the_flaky_tests(tmp_path: Path) -> None:
    worked(tmp_path, "[2]", reruns=1)
    show = [sys.executable, "-m", "backedge", "show"]
    said = subprocess.run(show, cwd=tmp_path / "project", capture_output=True, text=True, timeout=60, check=True).stdout
    assert said.count("  test passed flaky tests when they ran again: test_shop::test_sometimes\n") == 1


def test_a_test_that_never_passes_is_not_flaky(tmp_path: Path) -> None:
    report, runs = worked(tmp_path, "[]", reruns=2)
    assert report["outcome"] != "verified"
    assert report["steps"]["test"]["tests"]["flaky"] == []
    assert report["findings"][0]["test"] == "test_shop::test_sometimes"
    assert runs == 3 * report["steps"]["test"]["attempts"]


def test_without_reruns_a_flaky_test_costs_a_round(tmp_path: Path) -> None:
    report, runs = worked(tmp_path, "[2]", reruns=0)
    assert (len(report["loops"]), runs) == (1, 2)


def test_a_test_that_failed_in_the_baseline_may_be_flaky(tmp_path: Path) -> None:
    report, runs = worked(tmp_path, "[1, 3]", reruns=2, baseline=True)
    assert (report["outcome"], runs) == ("verified", 3)
    assert report["steps"]["test"]["tests"]["before"] == 2
