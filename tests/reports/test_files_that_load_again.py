"""A file that could not be loaded: its finding is fixed when the tests of the file run."""

from __future__ import annotations

from pathlib import Path

import pytest

from backedge.adapters.judges.runs import Reading, Runs
from backedge.adapters.judges.verdict import judgement
from backedge.catalog import ReportKind
from backedge.core.briefing import BriefedFinding
from backedge.core.model import Severity
from tests.reports.parts import read, write


def status(kind: ReportKind, before: str, after: str, folder: Path) -> list[str]:
    """What the report of a second run says about the only finding of the first."""
    outcome, _ = read(kind, before.encode(), folder)
    [finding] = outcome.findings
    briefed = BriefedFinding("F-1", finding.description, Severity.HIGH, "test", file=finding.file, test=finding.test)
    again, tests = read(kind, after.encode(), folder)
    runs = Runs(Reading(again, tests), open=[briefed])
    return [each.status for each in judgement(runs).outcome.resolutions]


def junit(*cases: str) -> str:
    return f"<testsuites><testsuite name='s'>{''.join(cases)}</testsuite></testsuites>"


def node(*cases: str) -> str:
    return f"<testsuites>{''.join(cases)}</testsuites>"


GO_BROKEN = '{"Action":"fail","Package":"shop"}'
GO_FINE = '{"Action":"pass","Package":"shop","Test":"TestAdd"}\n{"Action":"pass","Package":"shop"}'
FAILURE = "<failure message='no module'/></testcase>"
LOADS: dict[str, tuple[ReportKind, str, str]] = {
    "pytest": (
        "junit",
        junit("<testcase classname='' name='tests.test_a'><error message='collection failure'/></testcase>"),
        junit("<testcase classname='tests.test_a.TestCart' name='test_x'/>"),
    ),
    "vitest": (
        "junit",
        junit(f"<testcase classname='test/a.test.js' name='test/a.test.js'>{FAILURE}"),
        junit("<testcase classname='test/a.test.js' name='adds'/>"),
    ),
    "jest-junit": (
        "junit",
        junit(f"<testcase classname='Test suite failed to run' name='test/a.test.js' file='test/a.test.js'>{FAILURE}"),
        junit("<testcase classname='adds' name='adds' file='test/a.test.js'/>"),
    ),
    "node 24": (
        "junit",
        node(f"<testcase classname='test' name='test/a.test.js' file='test/a.test.js'>{FAILURE}"),
        node("<testcase classname='test' name='adds' file='test/a.test.js'/>"),
    ),
    "node 20": (
        "junit",
        node(f"<testcase classname='test' name='test/a.test.js'>{FAILURE}"),
        node("<testcase classname='test' name='adds'/>"),
    ),
    "mocha": (
        "junit",
        junit(f"<testcase classname='cart' name='&quot;before all&quot; hook' file='test/a.test.js'>{FAILURE}"),
        junit("<testcase classname='cart' name='adds' file='test/a.test.js'/>"),
    ),
    "go": ("gotest", GO_BROKEN, GO_FINE),
}


@pytest.mark.parametrize("name", LOADS)
def test_a_finding_about_a_whole_file_is_fixed_when_its_tests_run(name: str, tmp_path: Path) -> None:
    write(tmp_path, {"test/a.test.js": "", "tests/test_a.py": ""})
    kind, before, after = LOADS[name]
    assert status(kind, before, after, tmp_path) == ["fixed"]


@pytest.mark.parametrize("name", [each for each in LOADS if each not in ("node 20", "go")])
def test_it_is_not_fixed_if_only_other_files_run(name: str, tmp_path: Path) -> None:
    write(tmp_path, {"test/a.test.js": "", "test/b.test.js": "", "tests/test_a.py": "", "tests/test_b.py": ""})
    kind, before, after = LOADS[name]
    others = after.replace("a.test.js", "b.test.js").replace("test_a", "test_b")
    assert status(kind, before, others, tmp_path) == ["not_fixed"]
