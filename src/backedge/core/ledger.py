"""The ledger of findings: what a verdict says of each, and how one finding is known again in a later round."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from typing import TYPE_CHECKING

from backedge.core.accidents import normalised
from backedge.core.model import Change, Claim, Finding, Status
from backedge.core.value import Value, replace

if TYPE_CHECKING:
    from backedge.core.events import Sighting
    from backedge.core.state import RunState

UNSETTLED = frozenset({Status.OPEN, Status.NOT_FIXED, Status.REGRESSED, Status.UNCONFIRMED, Status.CONTESTED})
"""What still stands, and has to be answered for when its judge judges again."""
_ASKED_ABOUT = UNSETTLED - {Status.UNCONFIRMED}


class Tracked(Value, frozen=True):
    """One finding over the rounds of a run."""

    id: int
    finding: Finding
    fingerprint: str
    found_by: str
    status: Status
    loop: str | None = None
    rounds_seen: int = 1
    streak: int = 1
    """In how many consecutive verdicts of its judge, or checks of inputs, it was seen, up to the last time."""
    last_verdict: int = 0
    fix_authored: bool = False
    introduced_by: tuple[str, ...] = ()
    reclassified: tuple[str, ...] = ()
    """The phase that a person named: the truth, whatever the judge said."""
    claim: Claim | None = None
    """What the step that reworked says of it."""
    addressed: int = 0
    """The attempt of the run, counted from its start, that was given it last."""
    fixed_at: int = 0
    """How many attempts the run had made when its judge last said that it is fixed."""
    insisted: int = 0
    """How often its judge saw it again although the step that reworked had contested it."""
    gap: str = ""
    """Where the requirement that it misses got lost."""

    @property
    def name(self) -> str:
        return f"F-{self.id}"

    @property
    def key(self) -> str:
        return ledger_key(self.found_by, self.fingerprint)

    @property
    def phases(self) -> tuple[str, ...]:
        return self.reclassified or self.finding.affected_phase

    @property
    def persistent(self) -> bool:
        return self.rounds_seen >= 2

    @property
    def needs_answer(self) -> bool:
        return self.status in UNSETTLED

    @property
    def asked_about(self) -> bool:
        """Whether its judge is asked about it when it judges again. It left the others open without a word before."""
        return self.status in _ASKED_ABOUT


def ledger_key(judge: str, fingerprint: str) -> str:
    return f"{judge}\n{fingerprint}"


def fingerprint(finding: Finding) -> str:
    """The identity of a finding: equality of category, file, requirement and description, less what is accidental."""
    parts = (finding.category, plain(finding.file or ""), finding.requirement_id or "", finding.description)
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


def plain(file: str) -> str:
    """A file name as seen from the folder that it is in."""
    while file.startswith("./"):
        file = file[2:]
    return file


def sighted(before: Tracked | None, sighting: Sighting, judge: str, verdict: int) -> Tracked:
    """The ledger entry after one more sighting, in the judge's verdict of that number."""
    if before is None:
        assert sighting.finding is not None
        return Tracked(
            id=sighting.id,
            finding=sighting.finding,
            fingerprint=sighting.fingerprint,
            found_by=judge,
            status=sighting.status,
            last_verdict=verdict,
            fix_authored=sighting.fix_authored,
        )
    return replace(
        before,
        finding=sighting.finding or before.finding,
        status=sighting.status,
        rounds_seen=before.rounds_seen + 1,
        streak=before.streak + 1 if before.last_verdict == verdict - 1 else 1,
        last_verdict=verdict,
        insisted=before.insisted + (before.status is Status.CONTESTED and sighting.status is Status.NOT_FIXED),
    )


def place_of(finding: Finding) -> str:
    """Where a finding is, as far as it says so; empty if it does not."""
    if finding.file:
        return f"{finding.file}:{finding.line}" if finding.line is not None else finding.file
    return finding.path or ""


def with_status(tracked: Tracked, status: Status) -> Tracked:
    return replace(tracked, status=status)


def sits_in(finding: Finding, changes: Iterable[Change]) -> bool:
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
    return plain(finding.file) in (plain(change.where), plain(last)) and _in_lines(finding, change)


def _in_lines(finding: Finding, change: Change) -> bool:
    if finding.line is None or not change.lines:
        return True
    return any(first <= finding.line <= last for first, last in change.lines)


def changes_since(state: RunState, judge: str) -> list[Change]:
    """Where the artifacts that a judge sees differ from the versions it judged last."""
    verdict = state.steps[judge].verdict
    if verdict is None:
        return []
    found: list[Change] = []
    for name, version in verdict.versions.items():
        step = state.steps.get(name)
        if step is None or step.artifact is None:
            continue  # a planner has removed what was judged
        artifact = step.artifact
        found += [change for made, changed in artifact.changes if made > version for change in changed]
    return found
