"""TAP, the Test Anything Protocol: what bats, prove, tape and others print."""

from __future__ import annotations

import re

from backedge.adapters.reports.places import FileNames, evidence_of, first_line
from backedge.adapters.reports.tests import ReportedTests, Result, TestList, id_of, require_tests
from backedge.core.errors import AgentError
from backedge.core.text import clean
from backedge.engine.protocol import Finding

_POINT = re.compile(
    r"(?P<indent> *)(?P<not>not )?ok\b(?: +(?P<number>\d+))?(?: +-)?(?: (?P<name>(?:\\.|[^#\\])*))?(?:# *(?P<directive>\w+).*)?"
)
_PLAN = re.compile(r"(?P<indent> *)1\.\.(?P<count>\d{1,9})(?:\s*#.*)?")
_MESSAGE = re.compile(r"""\s*(?:error|message): *(?:\|-?)?['"]?(?P<said>[^'"\s].*?)['"]?$""")
_SUBTEST = re.compile(r"(?P<indent> *)# Subtest: (?P<name>.*)")


def read_tap(text: bytes, names: FileNames, allow_empty: bool = False) -> tuple[ReportedTests, list[Finding]]:  # noqa: ARG001 - TAP names no files
    """The tests with their results, and a finding for each that failed. Raises AgentError if that is not TAP."""
    listed, findings = TestList(), []
    suites: dict[int, str] = {}
    planned: int | None = None
    points = 0
    had_parts: set[int] = set()
    said: list[str] = []
    for line in clean(text.decode("utf-8", "replace")).splitlines():
        if line.startswith("Bail out!"):
            raise AgentError(
                f"the tests were given up: {first_line(line.removeprefix('Bail out!')) or 'no reason given'}"
            )
        plan, subtest, point = _PLAN.fullmatch(line), _SUBTEST.fullmatch(line), _POINT.fullmatch(line)
        if plan is not None and not plan["indent"]:
            planned = int(plan["count"])
        elif subtest is not None:
            suites[len(subtest["indent"])] = subtest["name"]
        elif point is not None:
            depth = len(point["indent"])
            points += depth == 0
            is_suite = any(each > depth for each in had_parts)
            had_parts = {each for each in had_parts if each <= depth} | {depth}
            if not is_suite:
                around = [suites[each] for each in sorted(suites) if each < depth]
                result = _result(point)
                id = listed.add(id_of(*around, (point["name"] or f"test {point['number'] or points}").strip()), result)
                if result == "failed":
                    said = []
                    findings.append((id, said))
                    continue
            said = []
        else:
            said.append(line)
    if planned is None and not points:
        raise AgentError("the report is not TAP: it has no plan and no tests; correct the command")
    if planned is None or points != planned:
        raise AgentError(
            f"the TAP report has {points} tests, its plan says {'nothing' if planned is None else planned}: run them again"
        )
    tests = listed.tests()
    made = [
        Finding(f"{id}: {_reason(lines)}", category="test", evidence=evidence_of("\n".join(lines)), test=id)
        for id, lines in findings
    ]
    require_tests(tests, made, "the TAP report", allow_empty)
    return tests, made


def _result(point: re.Match[str]) -> Result:
    directive = (point["directive"] or "").upper()
    if directive.startswith("SKIP") or directive == "TODO":
        return "skipped"
    return "failed" if point["not"] else "passed"


def _reason(lines: list[str]) -> str:
    """What went wrong: the message in the details, else the first comment."""
    for line in lines:
        found = _MESSAGE.match(line)
        if found is not None:
            return first_line(found["said"])
    comments = (line.strip().removeprefix("#").strip() for line in lines if line.lstrip().startswith("#"))
    return next((first_line(each) for each in comments if each), "failed")
