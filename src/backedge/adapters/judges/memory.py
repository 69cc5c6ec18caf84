"""What a judge remembers of a run: which tests ran, how they were when they failed, and what silenced linters before."""

from __future__ import annotations

import re
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
_LINTERS = re.compile(
    r"(?:#|//|/\*)\s*(?:(?:(?:flake8|ruff):\s*)?noqa|(?:type|\w+):\s*(?:ignore|disable)(?:-error-code)?|nolint|nosec|@ts-[\w-]+"
    r"|shellcheck\s+disable|(?:eslint|tslint|biome|oxlint|stylelint)-(?:disable|ignore)[\w-]*(?=[ ]*(?P<space>[\w@/-]*)))"
    r"(?:\s*[:=\[(]\s*(?P<rules>[^#\])]*))?",
    re.IGNORECASE,
)
"""A comment that silences a linter, and the rules that it names: after a sign, or for those of JavaScript after a space."""
_ALL_RULES = frozenset({"all", "skip-file"})


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
    return {**known.silences, **silences(run, names)}


def silences(run: RunEvidence, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The lines that silence a linter in some files, as they are now."""
    return {name: tuple(text for _, text in _suppressions(run, name)) for name in names}


def silenced(run: RunEvidence, known: KnownTests, findings: Sequence[BriefedFinding]) -> dict[str, str]:
    """The open findings of linters at whose place a comment now silences them."""
    places = [(each.file, each) for each in findings if each.file and not each.test]
    return {
        each.id: text
        for file, each in places
        if (text := _silencer(run, known, file, each.line, f"{each.category} {each.description}"))
    }


def gone_unfixed(
    run: RunEvidence, known: KnownTests, tree: Tree, approved: Mapping[str, str], findings: Sequence[BriefedFinding]
) -> dict[str, tuple[str, str]]:
    """The files in which a linter found something that was never fixed, and why it is not reported any more: the file was
    removed, or a comment silences what was found at the start. With the digest of each file as it is now; what somebody
    has answered for is left out."""
    found: dict[str, str] = {}
    reported = {(each.file, each.description) for each in findings}  # such a one is answered as not fixed
    for finding in findings:
        if finding.file and not finding.test and finding.file not in tree.files:
            found[finding.file] = f"{finding.id} was found in this file, which was removed"
    for each in known.found:
        if not each.file:
            continue
        if each.file not in tree.files:
            found.setdefault(each.file, f'the judge found "{each.description}" in this file, which was removed')
        elif (each.file, each.description) not in reported and (
            text := _silencer(run, known, each.file, each.line, f"{each.rule} {each.description}")
        ):
            found.setdefault(each.file, f"silenced, not fixed: {each.description} ({text})")
    now = {file: tree.files.get(file, "") for file in found}
    return {file: (now[file], why) for file, why in found.items() if approved.get(file) != now[file]}


def _silencer(run: RunEvidence, known: KnownTests, file: str, line: int | None, words: str) -> str:
    """The comment that silences what was found at a place, or in the whole file; empty if there is none. Comments that were
    there when it was reported do not count. Lines move: at any place, a comment counts that names the rule among the words
    of the finding, or no rule at all."""
    if line is None:
        return ""
    before = Counter(known.silences.get(file, ()))
    for number, text in _suppressions(run, file):
        if before[text] > 0:
            before[text] -= 1
        elif abs(number - line) <= NEAR or number <= WHOLE_FILE or _names_rule(text, words):
            return text[:200]
    return ""


def _names_rule(text: str, words: str) -> bool:
    """Whether a comment for a linter is about findings with these words."""
    about = re.findall(r"\w[\w-]*", words.lower())
    for comment in _LINTERS.finditer(text):
        rules = re.findall(r"\w[\w-]*", f"{comment['rules'] or ''} {comment['space'] or ''}".lower())
        # Some linters take the beginning of a rule for all rules that begin so.
        if not rules or any(rule in _ALL_RULES or word.startswith(rule) for rule in rules for word in about):
            return True
    return False


def _suppressions(run: RunEvidence, name: str) -> list[tuple[int, str]]:
    """The lines of a file that silence a judge, with their numbers."""
    text = run.read(name)
    lines = text.decode("utf-8", "replace").splitlines() if text is not None else []
    return [(number, line.strip()) for number, line in enumerate(lines, start=1) if SUPPRESSIONS.search(line)]
