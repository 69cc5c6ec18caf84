"""Reports in workflow files: what `check` refuses, and what it warns of."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.config.files import problems, read


def judge(run: str, report: str) -> str:
    return f"name: w\nsteps:\n  a: {{run: [x]}}\n  t: {{tests: a, run: [{run}], report: {report}}}\n"


@pytest.mark.parametrize(
    ("run", "report", "problem"),
    [
        ('x, "{report}"', "cargo", "uses {report}, but the report cargo is read from stdout: set `report`"),
        ('x, "{report}"', "exitcode", "uses {report}, but an exit code has no file: set `report`"),
        ('x, "{reporter}"', "junit", "uses {reporter}, which needs the report unittest or node: set `report`"),
    ],
)
def test_a_command_cannot_use_what_its_report_does_not_have(
    run: str, report: str, problem: str, tmp_path: Path
) -> None:
    [found] = problems(judge(run, report), tmp_path)
    assert found.endswith(f"the command {problem}")


@pytest.mark.parametrize(
    ("run", "report"),
    [
        ('python3, "{reporter}", "{report}"', "unittest"),
        ('gotestsum, --jsonfile, "{report}"', "gotest"),
        ("go, test, -json", "gotest"),
        ("cargo, test", "cargo"),
        ("bats, tests", "tap"),
    ],
)
def test_a_report_that_names_tests_has_no_warning(run: str, report: str, tmp_path: Path) -> None:
    assert read(judge(run, report), tmp_path).warnings == ()


def test_an_exit_code_is_weak_evidence(tmp_path: Path) -> None:
    [warning] = read(judge("make, test", "exitcode"), tmp_path).warnings
    assert "4:" in warning and "steps.t.report: an exit code proves only that the program ended;" in warning


def test_work_without_protected_files_is_weak_evidence(tmp_path: Path) -> None:
    [warning] = read("protects: false\n" + judge("go, test, -json", "gotest"), tmp_path).warnings
    assert "protects: nothing is protected: a step can delete or weaken the tests that judge it" in warning
    assert read("protects: default\n" + judge("go, test, -json", "gotest"), tmp_path).warnings == ()
