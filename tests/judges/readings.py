"""Short words for reports, findings and changes, so that a test of a rule reads as a sentence."""

from __future__ import annotations

from typing import Any

from backedge.adapters.judges.runs import Difference, Judgement, Reading, Runs
from backedge.adapters.judges.verdict import judgement
from backedge.adapters.reports.spec import judged
from backedge.adapters.reports.tests import ReportedTests, Result
from backedge.core.briefing import BriefedFinding
from backedge.core.model import Severity
from backedge.engine.protocol import Finding

CART = "tests/test_cart.py"
WORDS: dict[str, Result] = {"+": "passed", "-": "failed", "~": "skipped"}


def report(tests: str = "", file: str = CART, lint: tuple[Finding, ...] = (), **more: str) -> Reading:
    """A report of tests, each with its result: `+` passed, `-` failed, `~` skipped. `more` gives tests of other files."""
    results: dict[str, Result] = {}
    files: dict[str, str] = {}
    for place, words in ((file, tests), *((f"tests/test_{name}.py", words) for name, words in more.items())):
        for word in words.split():
            results[word[1:]] = WORDS[word[0]]
            if place:
                files[word[1:]] = place
    findings = [
        Finding(f"{id}: it fails", category="test", test=id, file=files.get(id))
        for id, result in results.items()
        if result == "failed"
    ]
    return Reading(judged([*findings, *lint], f"{len(findings)} failed"), ReportedTests(results, files))


def open_test(id: str, name: str = "F-1", file: str | None = CART, message: str = "it fails") -> BriefedFinding:
    """A failing test that was reported before."""
    return BriefedFinding(name, f"{id}: {message}", Severity.HIGH, "test", category="test", test=id, file=file)


def open_lint(
    description: str, file: str | None = "shop/cart.py", name: str = "F-1", category: str = ""
) -> BriefedFinding:
    """What a linter reported before."""
    return BriefedFinding(name, description, Severity.HIGH, "lint", file=file, line=3, category=category)


def lint(description: str, file: str | None = "shop/cart.py", severity: str = "high", category: str = "") -> Finding:
    return Finding(description, severity, file=file, category=category)


def changed(*names: str, **more: str) -> dict[str, Difference]:
    """Protected files that differ: `+tests/test_new.py` was added, `-tests/test_old.py` removed, others were changed."""
    found = {}
    for word in (*names, *more):
        name = word.lstrip("+-")
        change: Any = {"+": "added", "-": "removed"}.get(word[0], "changed")
        last = name.rpartition("/")[2]
        kind: Any = "config" if last in ("conftest.py", "pyproject.toml", "pytest.ini", "package.json") else "test"
        kind = "judge" if name.startswith("tools/") else kind
        found[name] = Difference(kind, change, "" if change == "removed" else f"f:{name}")
    return found


def verdict(delivered: Reading, held: Reading | None = None, baseline: str = "", **more: Any) -> Judgement:
    """The judgement, if the tests of `baseline` ran at the start."""
    names = frozenset(baseline.split())
    given: dict[str, Any] = {"baseline": names, "required": names, "known": names, "files": dict.fromkeys(names, CART)}
    if names:
        given["before"] = len(names)
    return judgement(Runs(delivered, held, **{**given, **more}))


def answers(found: Judgement) -> dict[str, str]:
    """What was said about each open finding: fixed, or not fixed and why."""
    return {each.finding: each.note or each.status for each in found.outcome.resolutions}


def asked(found: Judgement) -> dict[str, str]:
    """The questions, by file."""
    return {each.file: each.reason for each in found.questions}


def described(found: Judgement) -> list[str]:
    return [each.description for each in found.outcome.findings]


def is_clean(found: Judgement) -> bool:
    """Whether the run may end verified: it passes, and nobody has to answer for anything."""
    return found.outcome.verdict == "pass" and not found.questions and not found.outcome.findings
