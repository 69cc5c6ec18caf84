"""What a judge remembers of a run: which tests ran, how they were when they failed, and what silenced linters before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from backedge.adapters.evidence.changes import SUPPRESSIONS
from backedge.adapters.evidence.store import KnownTests
from backedge.adapters.evidence.tree import Tree
from backedge.adapters.judges.run_evidence import RunEvidence
from backedge.adapters.judges.runs import Judgement, Reading
from backedge.core.briefing import BriefedFinding
from backedge.engine.protocol import Finding

NEAR = 3
"""How many lines a comment that silences a linter may be away from the finding that it silences."""
WHOLE_FILE = 5
"""How many lines at the top of a file may silence all of it."""


def remember(
    run: RunEvidence, step: str, tree: Tree, known: KnownTests, found: Judgement, readings: Sequence[Reading]
) -> None:
    """Keep what ran, and the files of failing tests as they are."""
    delivered = readings[0]
    files, versions = dict(known.files), dict(known.versions)
    for reading in readings:
        files |= {test: reading.tests.files.get(test, "") for test in reading.tests.ran if test not in files}
    versions |= {
        test: tree.files.get(file, "") for test, file in delivered.tests.files.items() if test in delivered.tests.ran
    }
    run.store.save_tests(
        step,
        msgspec.structs.replace(
            known,
            files=files,
            versions=versions,
            asked={**known.asked, **found.asked},
            silences=_silences(run, known, found.outcome.findings),
        ),
    )
    run.note_failing(step, _failing(run, step, files, delivered, found))


def _failing(run: RunEvidence, step: str, files: Mapping[str, str], delivered: Reading, found: Judgement) -> set[str]:
    """The files of tests that fail now, or whose findings stay open."""
    failing = {files.get(test, "") for test in delivered.tests.failed}
    failing |= {each.file or "" for each in found.outcome.findings if each.test}
    if any(answer.status == "not_fixed" for answer in found.outcome.resolutions):
        failing |= run.store.failing(step).keys()
    return {name for name in failing if name and run.start.protected.kind(name) is not None}


def _silences(run: RunEvidence, known: KnownTests, findings: Iterable[Finding]) -> dict[str, tuple[str, ...]]:
    """The lines that silence a linter in files with findings. The first look at a file counts."""
    names = {each.file for each in findings if each.file and not each.test} - known.silences.keys()
    return {**known.silences, **{name: tuple(text for _, text in _suppressions(run, name)) for name in names}}


def silenced(run: RunEvidence, known: KnownTests, findings: Sequence[BriefedFinding]) -> dict[str, str]:
    """The open findings of linters at whose place a comment now silences them. A comment for the whole file counts too, and
    comments that were there when the finding was reported do not."""
    found = {}
    for finding in findings:
        if finding.test or not finding.file or finding.line is None:
            continue
        before = Counter(known.silences.get(finding.file, ()))
        for number, text in _suppressions(run, finding.file):
            if before[text] > 0:
                before[text] -= 1
            elif abs(number - finding.line) <= NEAR or number <= WHOLE_FILE:
                found[finding.id] = text[:200]
                break
    return found


def _suppressions(run: RunEvidence, name: str) -> list[tuple[int, str]]:
    """The lines of a file that silence a judge, with their numbers."""
    text = run.read(name)
    lines = text.decode("utf-8", "replace").splitlines() if text is not None else []
    return [(number, line.strip()) for number, line in enumerate(lines, start=1) if SUPPRESSIONS.search(line)]
