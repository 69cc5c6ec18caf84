"""What the runs of a tool say about each open finding: fixed, or why not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec.structs import replace

from backedge.adapters.judges.runs import AS_THEY_WERE, Reading, Runs
from backedge.adapters.judges.test_ids import problem_of
from backedge.core.briefing import BriefedFinding
from backedge.core.model import FindingResolution
from backedge.engine.protocol import Finding

CANNOT_BEGIN = "the judge cannot run with the protected files as they were"
_EXIT_CODE = "check"
"""The category of what an exit code says. It is about everything that the tool checks."""


def same_finding(one: BriefedFinding | Finding, other: BriefedFinding | Finding) -> bool:
    """Whether two reports are about the same defect: the same test, or the same words about the same file."""
    if one.test or other.test:
        return one.test == other.test
    return (one.file, one.description) == (other.file, other.description)


def in_known_words(runs: Runs) -> list[Finding]:
    """The findings on delivered. A test that still fails keeps the words of its open finding, so that it is recognised
    although the message of the failure is another one. What failed before the run says so."""
    known = {each.test: each for each in runs.open if each.test}
    return [_failed_before(_in_words_of(known.get(each.test), each), runs) for each in runs.delivered.outcome.findings]


def _in_words_of(known: BriefedFinding | None, finding: Finding) -> Finding:
    if known is None or not finding.test or known.description == finding.description:
        return finding
    evidence = f"Now: {finding.description}\n{finding.evidence}".rstrip()
    return replace(finding, description=known.description, file=known.file, category=known.category, evidence=evidence)


def _failed_before(finding: Finding, runs: Runs) -> Finding:
    if not finding.test or finding.test not in runs.failed_before:
        return finding
    return replace(finding, evidence=f"It failed before the run began.\n{finding.evidence}".rstrip())


def answers(runs: Runs) -> list[FindingResolution]:
    """One answer for each open finding that the report does not repeat. What the tool itself answers stands, unless it says
    fixed and the runs say otherwise."""
    stated = {each.finding: each for each in runs.delivered.outcome.resolutions}
    found = []
    for finding in runs.open:
        if any(same_finding(finding, each) for each in runs.delivered.outcome.findings):
            continue
        note = _not_fixed(finding, runs)
        status: Literal["fixed", "not_fixed"] = "not_fixed" if note else "fixed"
        for id in (finding.id, *finding.same_as):
            said = stated.pop(id, None)
            kept = said is not None and (said.status != "fixed" or not note)
            found.append(said if said is not None and kept else FindingResolution(id, status, note))
    return [*found, *stated.values()]


def _not_fixed(finding: BriefedFinding, runs: Runs) -> str:
    """Why an open finding is not fixed although it is not reported again; empty if it is fixed."""
    if finding.id in runs.silenced:
        return f"silenced, not fixed: {runs.silenced[finding.id]}"
    if finding.test and (why := problem_of(finding.test, runs.delivered.tests, runs.known)):
        return why
    return next(filter(None, _as_it_was(finding, runs)), "")


def _as_it_was(finding: BriefedFinding, runs: Runs) -> Iterable[str]:
    """Why it is not fixed with the protected files as they were."""
    for reading, words in ((runs.held, AS_THEY_WERE), (runs.as_failed, "with the test as it was when it failed")):
        if reading is None:
            continue
        if not reading.began:
            # Nothing shows how the test was. It counts only if its own file is unchanged; the rest is a question.
            changed = finding.test and (runs.file_of(finding.test) or finding.file or "") in runs.changed
            yield f"{CANNOT_BEGIN}, and the file of the test changed" if changed else ""
        elif _is_reported(finding, reading.outcome.findings):
            yield f"it is still there {words}"
        elif finding.test:
            why = problem_of(finding.test, reading.tests, runs.known)
            # A test that is younger than the reference does not run there.
            must_run = reading is runs.held and finding.test in runs.baseline
            yield f"{why} {words}" if why and (must_run or finding.test in reading.tests.results) else ""


def _is_reported(finding: BriefedFinding, reported: Sequence[Finding]) -> bool:
    by_exit_code = finding.category == _EXIT_CODE and not finding.test and not finding.file
    return any(same_finding(finding, each) or (by_exit_code and each.category == _EXIT_CODE) for each in reported)


def changed_test_file(runs: Runs, reading: Reading, finding: Finding) -> str:
    """The file that a finding of one run is about; empty if it is not known."""
    return reading.tests.files.get(finding.test, "") or runs.file_of(finding.test) or finding.file or ""
