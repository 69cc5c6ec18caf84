"""The verdict of a tool judge, from everything that was run. Pure: it only compares.

A judge runs on *delivered*, the files as they are. If protected files changed, it also runs on *held*: the same product
with the protected files as they were. The report on delivered has to pass. On held, a failure is

- the answer to an open finding: not fixed;
- a question about the changed file that explains it: somebody has to answer for the change;
- a finding, if no changed file explains it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec.structs import replace

from backedge.adapters.judges.explanation import explains, is_test_module
from backedge.adapters.judges.lost_tests import MOST_TESTS_NAMED, lost_tests
from backedge.adapters.judges.open_findings import (
    CANNOT_BEGIN,
    answers,
    changed_test_file,
    in_known_words,
    same_finding,
)
from backedge.adapters.judges.runs import AS_THEY_WERE, Judgement, Reading, Runs
from backedge.adapters.judges.unlisted_tests import unlisted_tests
from backedge.core.evidence.values import ProtectedQuestion, TestCounts
from backedge.core.model import FindingResolution, Severity, severity_of
from backedge.engine.protocol import Finding, Outcome

Verdict = Literal["pass", "fail", "needs_improvement"] | None


def judgement(runs: Runs) -> Judgement:
    """The verdict that follows from what was run."""
    resolutions = answers(runs)
    held, asked = _only_on_held(runs)
    lost, unlisted = lost_tests(runs), unlisted_tests(runs)
    questions = [
        *asked,
        *lost.questions,
        *unlisted.questions,
        *_new_configuration(runs),
        *_environment(runs),
        *_gone_unfixed(runs),
    ]
    more = [*held, *lost.findings, *unlisted.findings]
    counts = _counts(runs) if runs.delivered.tests.results or runs.before is not None else None
    outcome = replace(
        runs.delivered.outcome,
        verdict=_verdict(runs.delivered.outcome.verdict, more, resolutions),
        findings=(*in_known_words(runs), *more),
        resolutions=tuple(resolutions),
        summary=_summary(counts, runs.delivered.outcome, more),
    )
    return Judgement(outcome, _merged(questions), counts, lost.asked)


def _verdict(stated: Verdict, more: Sequence[Finding], resolutions: Sequence[FindingResolution]) -> Verdict:
    """What the report says, or worse."""
    serious = any(severity_of(each.severity)[0].rank <= Severity.HIGH.rank for each in more)
    if serious or any(answer.status == "not_fixed" for answer in resolutions):
        return "fail"
    return "needs_improvement" if more and stated == "pass" else stated


def _only_on_held(runs: Runs) -> tuple[list[Finding], list[ProtectedQuestion]]:
    """What fails only with the protected files as they were: a finding, or a question if a changed file explains it."""
    held = runs.held
    if held is None:
        return [], []
    if not held.began:
        return _could_not_begin(runs, held)
    findings, questions = [], []
    for finding in _new_on(held, runs):
        files = explains(runs.changed, changed_test_file(runs, held, finding))
        name = finding.test or finding.description
        if not files:
            was = f"It fails {AS_THEY_WERE} at the start.\n{finding.evidence}".rstrip()
            findings.append(replace(finding, evidence=was))
        for file in files:
            red = file not in runs.approved and _was_red(finding, runs)
            reason = f"{name} fails with this file as it was" if finding.test else f"with this file as it was: {name}"
            reason += ", and failed when the run began" if red and finding.test else ""
            questions.append(ProtectedQuestion(file, runs.changed[file].digest, reason, (name,), red))
    return findings, questions


def _was_red(finding: Finding, runs: Runs) -> bool:
    """Whether the judge reported it at the start of the run too. An exit code always says the same, in other words."""
    if finding.test:
        return finding.test in runs.failed_before
    return any(
        (finding.file or "") == each.file and (not each.file or finding.description == each.description)
        for each in runs.found_before
    )


def _new_on(held: Reading, runs: Runs) -> Iterable[Finding]:
    """The findings on held that neither delivered has too, nor an open finding answers for. A report may say the same
    several times: as many of them count as delivered has less."""
    failing = runs.delivered.tests.failed
    delivered = Counter((each.file, each.description) for each in runs.delivered.outcome.findings)
    for finding in held.outcome.findings:
        words = finding.file, finding.description
        if finding.test in failing or any(same_finding(each, finding) for each in runs.open):
            continue
        if delivered[words] > 0:
            delivered[words] -= 1
            continue
        yield finding


def _could_not_begin(runs: Runs, held: Reading) -> tuple[list[Finding], list[ProtectedQuestion]]:
    """Any changed file may be why, except new files of tests: they are only taken away."""
    new = {name for name, each in runs.changed.items() if each.change == "added" and is_test_module(name)}
    reason = f"{CANNOT_BEGIN}: {held.problem}"
    asked = [ProtectedQuestion(name, runs.changed[name].digest, reason) for name in runs.changed if name not in new]
    return ([] if asked else [Finding(reason, category="evidence")]), asked


def _new_configuration(runs: Runs) -> Iterable[ProtectedQuestion]:
    """New configuration and new plugins need an answer, unless the judge gives the same result without them."""
    new = {name: each for name, each in runs.changed.items() if each.kind != "test" and each.change == "added"}
    if runs.held is not None and runs.held.tests.results:
        before, now = runs.held.tests.results, runs.delivered.tests.results
        if all(now.get(id) == result for id, result in before.items()):
            return
    elif runs.held is not None and runs.held.began and runs.held.outcome.verdict == "pass":
        return
    for name, each in new.items():
        yield ProtectedQuestion(name, each.digest, "it is new, and a judge reads it")


def _environment(runs: Runs) -> Iterable[ProtectedQuestion]:
    for name, (digest, what) in runs.environment.items():
        yield ProtectedQuestion(name, digest, f"the judge runs with it, and it changed: {what}")


def _gone_unfixed(runs: Runs) -> Iterable[ProtectedQuestion]:
    reported = {each.file for each in runs.delivered.outcome.findings}
    for file, (digest, why) in runs.gone.items():
        if file not in reported:
            yield ProtectedQuestion(file, digest, why)


def _merged(questions: Sequence[ProtectedQuestion]) -> tuple[ProtectedQuestion, ...]:
    """One question for each file, with all reasons."""
    found: dict[str, ProtectedQuestion] = {}
    for each in questions:
        before = found.get(each.file)
        if before is None:
            found[each.file] = each
            continue
        tests = tuple(dict.fromkeys((*before.tests, *each.tests)))[:MOST_TESTS_NAMED]
        reason = before.reason if each.reason in before.reason else f"{before.reason}; {each.reason}"
        found[each.file] = ProtectedQuestion(each.file, each.digest, reason[:1000], tests, before.red or each.red)
    return tuple(found.values())


def _counts(runs: Runs) -> TestCounts:
    tests = runs.delivered.tests
    skipped = sum(result == "skipped" for result in tests.results.values())
    return TestCounts(len(tests.results), len(tests.failed), skipped, runs.before, tuple(runs.flaky))


def _summary(counts: TestCounts | None, outcome: Outcome, more: Sequence[Finding]) -> str:
    if counts is None:
        # A tool without test ids says more about itself than we can.
        return f"{outcome.summary}; {len(more)} {AS_THEY_WERE}" if more else outcome.summary
    parts = [f"{counts.tests} test{'' if counts.tests == 1 else 's'}"]
    if counts.before is not None:
        parts[0] += f", was {counts.before}"
    for number, what in ((counts.failed, "failed"), (counts.skipped, "skipped"), (len(counts.flaky), "flaky")):
        parts += [f"{number} {what}"] if number else []
    return "; ".join(parts)
