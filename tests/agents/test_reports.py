"""Evidence instead of claims: reports of real tools, and of tools that lie, fail or write nothing."""

from __future__ import annotations

import json
import os
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

from backedge.adapters.reports import ReportSpec
from backedge.adapters.reports.junit import read_junit
from backedge.adapters.reports.places import FileNames, path_in_workspace
from backedge.adapters.reports.sarif import read_sarif
from backedge.core.errors import AgentError
from backedge.engine.protocol import Finding, Outcome
from tests.agents.parts import agent, files_of, outcome_of, shell, told

PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml={report}"]
RUFF = [
    f"{sysconfig.get_path('scripts')}/ruff",
    "check",
    "--no-cache",
    "--isolated",
    "--select=F",
    "--output-format=sarif",
    "-o",
    "{report}",
]


def judged(folder: Path, argv: list[str], kind: Any, attempt: int = 1, **more: Any) -> Outcome:
    return outcome_of(folder, argv, told(attempt), judges=True, report=ReportSpec(kind, **more))


def failing(code: int, report: str = "") -> list[str]:
    """A tool that writes a report and exits with a code."""
    written = f"cat > {{report}} <<'END'\n{report}\nEND\necho said >&2; exit {code}"
    return shell(written if report else f"exit {code}")


# The real tools


def test_failing_tests_of_pytest_become_findings_with_place_and_evidence(tmp_path: Path) -> None:
    (tmp_path / "test_sums.py").write_text(
        "import pytest\n\n\nclass TestSums:\n    def test_wrong(self):\n        assert 1 + 1 == 3, 'bad sum'\n\n\n"
        "def test_right():\n    pass\n\n\n@pytest.mark.skip\ndef test_skipped():\n    pass\n\n\n"
        "@pytest.fixture\ndef broken():\n    raise RuntimeError('no database')\n\n\ndef test_error(broken):\n    pass\n"
    )
    outcome = judged(tmp_path, PYTEST, "junit")
    assert outcome.verdict == "fail"
    assert outcome.summary == "4 tests, 2 failed"
    wrong, error = outcome.findings
    assert wrong.description == "test_sums.TestSums::test_wrong: AssertionError: bad sum"
    assert (wrong.category, wrong.severity, wrong.file, wrong.line) == ("test", "high", "test_sums.py", 6)
    assert "assert (1 + 1) == 3" in wrong.evidence
    assert error.description.startswith("test_sums::test_error: failed on setup with")
    assert "no database" in error.description
    assert (error.file, error.line) == ("test_sums.py", 20)


def test_passing_tests_of_pytest_are_a_pass(tmp_path: Path) -> None:
    (tmp_path / "test_fine.py").write_text("def test_fine():\n    print('\\x1b[31m <&>')\n")
    assert judged(tmp_path, PYTEST, "junit") == Outcome(verdict="pass", summary="1 test, 0 failed")


def test_no_tests_at_all_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="has no tests: nothing was tested"):
        judged(tmp_path, PYTEST, "junit")


def test_tests_that_were_all_skipped_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "test_later.py").write_text("import pytest\n\n@pytest.mark.skip\ndef test_later(): ...\n")
    with pytest.raises(AgentError, match="1 test, all skipped: nothing was tested; run at least one"):
        judged(tmp_path, PYTEST, "junit")


def test_a_module_that_cannot_be_imported_is_a_finding(tmp_path: Path) -> None:
    (tmp_path / "test_broken.py").write_text("import no_such_module_at_all\n")
    outcome = judged(tmp_path, PYTEST, "junit")
    assert outcome.verdict == "fail"
    assert "test_broken" in outcome.findings[0].description


def test_results_of_ruff_become_findings(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "a b.py").write_text("import os\n\n\nx = undefined_name\n")
    outcome = judged(tmp_path, RUFF, "sarif")
    assert outcome.verdict == "fail"
    found = {(each.category, each.file, each.line, each.severity) for each in outcome.findings}
    assert found == {("F401", "pkg/a b.py", 1, "high"), ("F821", "pkg/a b.py", 4, "high")}
    assert any("`os` imported but unused" in each.description for each in outcome.findings)


def test_a_clean_run_of_ruff_is_a_pass(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    assert judged(tmp_path, RUFF, "sarif").verdict == "pass"


def test_a_missing_or_misused_tool_is_an_error_that_quotes_it(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=r"report\.xml' is missing.*exit code 1: .*No module named no_such_tool"):
        judged(tmp_path, [sys.executable, "-m", "no_such_tool", "{report}"], "junit")
    with pytest.raises(AgentError, match=r"is missing.*\(exit code 2: .*--no-such-option"):
        judged(tmp_path, [RUFF[0], "check", "--no-such-option", "{report}"], "sarif", 2)


# What is no evidence


@pytest.mark.parametrize("kind", ["junit", "sarif", "json"])
@pytest.mark.parametrize("code", [0, 1])
def test_a_missing_report_is_never_a_pass(kind: str, code: int, tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="is missing: the command has to write it"):
        judged(tmp_path, failing(code), kind)


@pytest.mark.parametrize("kind", ["junit", "sarif", "json"])
@pytest.mark.parametrize(
    "text", ["garbage", "{", "<testsuite", "\0\1", '{"runs": 5}', "<html></html>", '"text"', "[1]", "{}{}"]
)
def test_a_garbled_report_is_never_a_pass(kind: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "garbled").write_text(text)
    with pytest.raises(AgentError):
        judged(tmp_path, shell("cat garbled > {report}"), kind)


GOOD = {
    "junit": '<testsuite tests="1"><testcase name="t"/></testsuite>',
    "sarif": '{"version": "2.1.0", "runs": [{"results": []}]}',
    "json": '{"verdict": "pass"}',
}


@pytest.mark.parametrize(("kind", "text"), GOOD.items())
def test_a_stale_report_is_never_a_pass(kind: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    report = tmp_path / "out" / "report"
    report.write_text(text)
    with pytest.raises(AgentError, match="is stale"):
        judged(tmp_path, ["true"], kind, path="out/report")
    os.utime(report, (2**31 - 10, 2**31 - 10))
    with pytest.raises(AgentError, match="is stale"):
        judged(tmp_path, ["true"], kind, 2, path="out/report")
    with pytest.raises(AgentError, match="is stale"):
        judged(tmp_path, shell("touch -d '2001-01-01' out/report"), kind, 3, path="out/report")
    fresh = shell(f"echo '{text}' > out/report")
    assert judged(tmp_path, fresh, kind, 4, path="out/report").verdict == "pass"


@pytest.mark.parametrize(("kind", "text"), GOOD.items())
def test_a_tool_that_fails_and_lists_nothing_is_an_error(kind: str, text: str, tmp_path: Path) -> None:
    assert judged(tmp_path, failing(0, text), kind).verdict == "pass"
    with pytest.raises(AgentError, match=r"the tool failed \(exit 2\) but its report lists nothing: said"):
        judged(tmp_path, failing(2, text), kind, 2)


def test_a_tool_that_was_killed_is_an_error_whatever_its_report_says(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="ended by SIGKILL"):
        judged(tmp_path, shell(f"echo '{GOOD['json']}' > {{report}}; kill -9 $$"), "json")


def test_a_claim_on_stdout_does_not_count_if_there_is_a_report(tmp_path: Path) -> None:
    claim = shell('echo \'[{"description": "broken"}]\' > {report}; echo \'{"verdict": "pass"}\'')
    assert judged(tmp_path, claim, "json").verdict == "fail"


def test_a_report_outside_the_workspace_is_refused(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "outside.json").write_text("[]")
    with pytest.raises(AgentError, match="leads out of the workspace"):
        judged(tmp_path / "inside", shell("ln -s ../outside.json report; touch ../outside.json"), "json", path="report")
    for path in ("/etc/passwd", "../x"):
        with pytest.raises(ValueError, match="leaves the workspace"):
            ReportSpec("json", path)


def test_only_judges_have_reports(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the step has a report but is not a judge"):
        agent(tmp_path, ["true"], report=ReportSpec("json"))
    with pytest.raises(ValueError, match="expected one of junit, unittest"):
        ReportSpec("xml")  # type: ignore[arg-type]


def test_a_report_of_its_own_lies_in_the_attempts_folder(tmp_path: Path) -> None:
    judged(tmp_path, [*shell('echo "[]" > "$1"'), "sh", "{report}"], "json")
    report = files_of(tmp_path).report(".json")
    assert report.exists()
    assert report.parent == files_of(tmp_path).path
    assert report.name != "report.json", "nobody can guess its name"


# Exit codes


def test_an_exit_code_is_a_verdict_if_the_step_says_so(tmp_path: Path) -> None:
    assert judged(tmp_path, ["true"], "exitcode").verdict == "pass"
    outcome = judged(tmp_path, shell("echo compiling; echo 'main.c:3: \x1b[31merror' >&2; exit 2"), "exitcode", 2)
    assert outcome.verdict == "fail"
    [finding] = outcome.findings
    assert finding.description == "exit code 2: compiling"
    assert finding.evidence == "main.c:3: error\ncompiling"
    with pytest.raises(AgentError, match="SIGTERM"):
        judged(tmp_path, shell("kill $$"), "exitcode", 3)
    with pytest.raises(AgentError, match="no such program"):
        judged(tmp_path, ["no-such-program-at-all"], "exitcode", 4)


# JSON


@pytest.mark.parametrize(
    ("severities", "verdict"),
    [(["high"], "fail"), (["low", "blocker"], "fail"), (["medium", "info"], "needs_improvement"), ([], "pass")],
)
def test_the_verdict_of_a_list_of_findings_follows_from_the_worst(
    severities: list[str], verdict: str, tmp_path: Path
) -> None:
    text = json.dumps([{"description": f"d{n}", "severity": word} for n, word in enumerate(severities)])
    assert judged(tmp_path, failing(1 if severities else 0, text), "json").verdict == verdict


def test_a_json_report_may_be_an_outcome_and_goes_through_unchanged(tmp_path: Path) -> None:
    said = {
        "verdict": "fail",
        "summary": "too slow",
        "output": {"ms": 120},
        "resolutions": [{"finding": "F-1", "status": "fixed"}],
    }
    outcome = judged(tmp_path, failing(1, json.dumps(said)), "json")
    assert (outcome.verdict, outcome.summary, outcome.output) == ("fail", "too slow", {"ms": 120})
    with pytest.raises(AgentError, match="unknown field `verdikt`"):
        judged(tmp_path, failing(0, '{"verdikt": "pass"}'), "json", 2)
    with pytest.raises(AgentError, match="severity 'banana' is unknown"):
        judged(tmp_path, failing(0, '[{"description": "x", "severity": "banana"}]'), "json", 3)


# JUnit


def test_junit_of_other_runners_is_read_too(tmp_path: Path) -> None:
    text = b"""<?xml version="1.0" encoding="UTF-8"?>
    <testsuites><testsuite name="outer" tests="4" failures="2" errors="1"><testsuite name="inner" failures="1">
      <testcase classname="A" name="one" file="src/a.test.js" line="7"><failure message="first&#10;second" type="x">trace</failure></testcase>
      <testcase name="two"><error/></testcase>
      <testcase name="three"><skipped/><system-out>&lt;failure&gt;</system-out></testcase>
      <testcase classname="B" name="four" file="/outside/b.js" line="x"><failure><![CDATA[
  expected 1
  got 2]]></failure></testcase>
    </testsuite></testsuite></testsuites>"""
    tests, findings = read_junit(text, FileNames(tmp_path))
    one, two, three, four = "src/a.test.js::A::one", "inner::two", "inner::three", "B::four"
    assert tests.results == {one: "failed", two: "failed", three: "skipped", four: "failed"}
    assert tests.files == {one: "src/a.test.js"}
    assert findings == [
        Finding(f"{one}: first", category="test", evidence="trace", file="src/a.test.js", line=7, test=one),
        Finding(f"{two}: failed", category="test", test=two),
        Finding(f"{four}: expected 1", category="test", evidence="expected 1\n  got 2", test=four),
    ]


def test_junit_that_could_read_other_files_or_expand_endlessly_is_refused(tmp_path: Path) -> None:
    for text in (
        b'<!DOCTYPE t [<!ENTITY x SYSTEM "file:///etc/passwd">]><testsuite><testcase name="&x;"/></testsuite>',
        b'<!DOCTYPE t [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><testsuite><testcase name="&b;"/></testsuite>',
    ):
        with pytest.raises(AgentError, match="declares a document type"):
            read_junit(text, FileNames(tmp_path))


def test_junit_that_declares_more_failures_than_it_lists_is_not_complete(tmp_path: Path) -> None:
    with pytest.raises(AgentError, match="declares 2 failures but lists 0"):
        read_junit(
            b'<testsuite tests="3" failures="1" errors="1"><testcase name="t"/></testsuite>', FileNames(tmp_path)
        )


def test_an_empty_suite_passes_only_if_that_is_allowed(tmp_path: Path) -> None:
    empty = failing(0, "<testsuites/>")
    assert judged(tmp_path, empty, "junit", allow_empty=True).verdict == "pass"
    with pytest.raises(AgentError, match="nothing was tested"):
        judged(tmp_path, empty, "junit", 2)


def test_evidence_is_bounded(tmp_path: Path) -> None:
    text = f'<testsuite><testcase name="t"><failure message="{"m" * 9_999}">{"x" * 99_999}end</failure></testcase></testsuite>'
    [finding] = read_junit(text.encode(), FileNames(tmp_path))[1]
    assert len(finding.evidence) < 4_100
    assert finding.evidence.endswith("end")
    assert len(finding.description) < 600


# SARIF


def sarif(*results: dict[str, Any], **run: Any) -> bytes:
    return json.dumps({"version": "2.1.0", "runs": [{"results": list(results), **run}]}).encode()


@pytest.mark.parametrize(
    ("level", "severity"), [("error", "high"), ("warning", "medium"), ("note", "low"), (None, "medium")]
)
def test_levels_are_severities(level: str | None, severity: str, tmp_path: Path) -> None:
    [finding] = read_sarif(
        sarif({"ruleId": "R1", "message": {"text": "m"}, **({"level": level} if level else {})}), FileNames(tmp_path)
    )
    assert finding == Finding("m", severity=severity, category="R1", evidence="m")


def test_missing_fields_of_a_result_come_from_its_rule(tmp_path: Path) -> None:
    rules = [
        {"id": "R7", "defaultConfiguration": {"level": "error"}, "messageStrings": {"m": {"text": "no {0} in {1}"}}}
    ]
    result = {
        "ruleIndex": 0,
        "message": {"id": "m", "arguments": ["login", "{0}"]},
        "locations": [{"physicalLocation": {"artifactLocation": {"index": 0}, "region": {"startLine": 4}}}],
    }
    artifacts = [{"location": {"uri": "src/a%20b.py", "uriBaseId": "ROOT"}}]
    base = {"ROOT": {"uri": tmp_path.as_uri() + "/"}}
    log = sarif(result, tool={"driver": {"rules": rules}}, artifacts=artifacts, originalUriBaseIds=base)
    [finding] = read_sarif(log, FileNames(tmp_path))
    assert (finding.category, finding.severity, finding.description) == ("R7", "high", "no login in {0}")
    assert (finding.file, finding.line) == ("src/a b.py", 4)


def test_results_that_are_not_defects_are_left_out(tmp_path: Path) -> None:
    results: list[dict[str, Any]] = [
        {"message": {"text": "x"}, "kind": "pass"},
        {"message": {"text": "x"}, "baselineState": "absent"},
        {"message": {"text": "x"}, "suppressions": [{"kind": "inSource"}]},
    ]
    assert read_sarif(sarif(*results), FileNames(tmp_path)) == []
    assert (
        len(
            read_sarif(sarif({"message": {"text": "x"}, "suppressions": [{"status": "rejected"}]}), FileNames(tmp_path))
        )
        == 1
    )


@pytest.mark.parametrize(
    ("log", "problem"),
    [
        (b'{"version": "2.0.0", "runs": []}', "version '2.0.0': expected '2.1.0'"),
        (b'{"version": "2.1.0", "runs": []}', "nothing was analysed"),
        (b'{"version": "2.1.0", "runs": [{}]}', "did not finish"),
        (b'{"version": "2.1.0", "runs": [{"results": [5]}]}', "cannot be read"),
        (b'{"version": "2.1.0", "runs": [5]}', "cannot be read"),
        (b"[]", "has no runs"),
        (
            sarif(
                invocations=[
                    {"executionSuccessful": False, "toolExecutionNotifications": [{"message": {"text": "no config"}}]}
                ]
            ),
            "did not succeed: no config",
        ),
    ],
)
def test_an_inconsistent_log_is_an_error(log: bytes, problem: str, tmp_path: Path) -> None:
    with pytest.raises(AgentError, match=problem):
        read_sarif(log, FileNames(tmp_path))


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("src/a.py", "src/a.py"),
        ("./src/./a.py", "src/a.py"),
        ("{folder}/src/a.py", "src/a.py"),
        ("file://{folder}/a%20b.py", "a b.py"),
        ("../outside.py", None),
        ("{folder}/../outside.py", None),
        ("/etc/passwd", None),
        ("file:///etc/passwd", None),
        ("https://example.org/a.py", None),
        ("a\0b", None),
        ("", None),
        (None, None),
    ],
)
def test_a_place_is_a_file_of_the_workspace_or_none(name: str | None, place: str | None, tmp_path: Path) -> None:
    assert path_in_workspace(name.replace("{folder}", str(tmp_path)) if name else name, tmp_path) == place
