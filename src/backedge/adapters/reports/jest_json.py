"""The JSON report of Jest, which Vitest writes too: every test with its file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from backedge.adapters.reports.junit_case import places_in
from backedge.adapters.reports.places import FileNames, evidence_of, first_line
from backedge.adapters.reports.tests import ReportedTests, Result, TestList, id_of, require_tests
from backedge.core.errors import AgentError
from backedge.engine.protocol import Finding

_TITLE = re.compile(r"^ *● .*$", re.MULTILINE)
_RESULTS: Mapping[str, Result] = {
    "passed": "passed",
    "failed": "failed",
    **dict.fromkeys(("pending", "skipped", "todo", "disabled", "focused"), "skipped"),
}


def read_jest(text: bytes, names: FileNames, allow_empty: bool = False) -> tuple[ReportedTests, list[Finding]]:
    """The tests with their results, and a finding for each that failed. Raises AgentError for what is not a report."""
    try:
        report = msgspec.json.decode(text.decode("utf-8-sig", "replace"))
    except (msgspec.DecodeError, RecursionError) as error:
        raise AgentError(f"the Jest report is not JSON: {error}; the tool may have been cut off") from error
    if not isinstance(report, dict) or not isinstance(report.get("testResults"), list):
        raise AgentError("the Jest report has no `testResults`: write it with `--json --outputFile`")
    reader = _Reader(names)
    try:
        for suite in report["testResults"]:
            reader.suite(suite)
        declared = int(report.get("numFailedTests") or 0)
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise AgentError(
            f"the Jest report cannot be read: {type(error).__name__} {error}; write it with `--json --outputFile`"
        ) from error
    tests = reader.tests.tests()
    if declared > len(tests.failed):
        raise AgentError(
            f"the Jest report declares {declared} failures but lists {len(tests.failed)}: it is incomplete, so run the tests again"
        )
    require_tests(tests, reader.findings, "the Jest report", allow_empty)
    return tests, reader.findings


class _Reader:
    def __init__(self, names: FileNames) -> None:
        self.tests = TestList()
        self.findings: list[Finding] = []
        self._names = names

    def suite(self, suite: Mapping[str, Any]) -> None:
        """The tests of one file. A file that failed without a failing test could not be loaded."""
        file = self._names.of(suite["name"])
        shown = file or suite["name"]
        cases = suite.get("assertionResults") or []
        results = [self._case(case, file, shown) for case in cases]
        if suite.get("status") == "failed" and "failed" not in results:
            self._failed(id_of(shown), file, [str(suite.get("message") or "")], merge=True)

    def _case(self, case: Mapping[str, Any], file: str | None, shown: str) -> Result:
        result = _RESULTS[case["status"]]
        id = id_of(shown, " > ".join([*case.get("ancestorTitles", ()), case["title"]]))
        messages = [str(each) for each in case.get("failureMessages") or ()]
        if result == "failed":
            self._failed(id, file, messages)
        else:
            tried_again = bool(messages) or (case.get("invocations") or 1) > 1
            self.tests.add(id, result, file, flaky=tried_again)
        return result

    def _failed(self, id: str, file: str | None, messages: list[str], merge: bool = False) -> None:
        id = (self.tests.merge if merge else self.tests.add)(id, "failed", file)
        text = "\n".join(messages)
        # Jest puts a title above the message: "● Test suite failed to run".
        said = first_line(_TITLE.sub("", text)) or "failed"
        line = next((number for path, number in reversed(places_in(text, self._names)) if path == file), None)
        description = f"{id}: {said}"
        self.findings.append(
            Finding(description, category="test", evidence=evidence_of(text), file=file, line=line, test=id)
        )
