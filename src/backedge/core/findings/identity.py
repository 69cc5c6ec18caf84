"""What makes two reports of a defect one finding, and whether a finding lies in what changed."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from backedge.core.findings.normalise import normalised
from backedge.core.model import Change, Finding


def ledger_key(judge: str, fingerprint: str) -> str:
    return f"{judge}\n{fingerprint}"


def fingerprint(finding: Finding) -> str:
    """The identity of a finding: equality of category, file, requirement and description, less what is accidental."""
    parts = (finding.category, plain_path(finding.file or ""), finding.requirement_id or "", finding.description)
    return sha256("\n".join(map(normalised, parts)).encode()).hexdigest()[:16]


def fingerprints(findings: Iterable[Finding]) -> list[str]:
    """The identities of the findings of one report. What it says in the same words of several places are several
    findings, known again by their order; what it says twice of one place is one."""
    found: list[str] = []
    places: dict[str, list[tuple[str | None, int | None, str | None]]] = {}
    for finding in findings:
        print_ = fingerprint(finding)
        known = places.setdefault(print_, [])
        place = (finding.file, finding.line, finding.path)
        if place not in known:
            known.append(place)
        turn = known.index(place) + 1
        found.append(print_ if turn == 1 else f"{print_}#{turn}")
    return found


def plain_path(file: str) -> str:
    """A file name as seen from the folder that it is in."""
    while file.startswith("./"):
        file = file[2:]
    return file


def location_of(finding: Finding) -> str:
    """Where a finding is, as far as it says so; empty if it does not."""
    if finding.file:
        return f"{finding.file}:{finding.line}" if finding.line is not None else finding.file
    return finding.path or ""


def lies_in(finding: Finding, changes: Iterable[Change]) -> bool:
    """Whether a finding lies in what changed. A finding that names no place does not."""
    changes = list(changes)
    if finding.file is not None and any(change.where and not change.where.startswith("/") for change in changes):
        # The files that changed are named: whatever became of the output says nothing of the others.
        changes = [change for change in changes if change.where]
    return any(_touches(finding, change) for change in changes)


def _touches(finding: Finding, change: Change) -> bool:
    if change.where == "":
        # So much changed that no places were noted, or the whole is a text.
        placed = bool(finding.path) or finding.file is not None or finding.line is not None
        return placed and _in_lines(finding, change)
    if finding.path and change.where.startswith("/"):
        inner, outer = finding.path.rstrip("/") + "/", change.where + "/"
        if inner == outer:
            return _in_lines(finding, change)
        if inner.startswith(outer) or outer.startswith(inner):
            return True
    if finding.file is None:
        return False
    last = change.where.rsplit("/", 1)[-1].replace("~1", "/").replace("~0", "~")
    return plain_path(finding.file) in (plain_path(change.where), plain_path(last)) and _in_lines(finding, change)


def _in_lines(finding: Finding, change: Change) -> bool:
    if finding.line is None or not change.lines:
        return True
    return any(first <= finding.line <= last for first, last in change.lines)
