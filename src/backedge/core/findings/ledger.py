"""The ledger of findings: the history of each finding over the rounds of a run."""

from __future__ import annotations

from backedge.core.events import Sighting
from backedge.core.model import Finding, FindingResolution, Status
from backedge.core.value import Value, replace

UNSETTLED = frozenset({Status.OPEN, Status.NOT_FIXED, Status.REGRESSED, Status.UNCONFIRMED, Status.CONTESTED})
"""The statuses of an open finding: a later verdict or a decision still has to settle it."""
_AWAITS_VERDICT = UNSETTLED - {Status.UNCONFIRMED}


class TrackedFinding(Value, frozen=True):
    """An entry of the ledger: one finding over the rounds of a run."""

    id: int
    finding: Finding
    fingerprint: str
    found_by: str
    status: Status
    loop: str | None = None
    rounds_seen: int = 1
    streak: int = 1
    """How many consecutive verdicts of its judge, or checks of inputs, reported it, up to the last report. A gate or check that
    measured other values begins again: something has changed."""
    last_verdict: int = 0
    fix_authored: bool = False
    introduced_by: tuple[str, ...] = ()
    reclassified: tuple[str, ...] = ()
    """The phase that a person named. It overrules the judge."""
    resolution: FindingResolution | None = None
    """What the step that reworked it says: fixed or contested."""
    addressed_at: int = 0
    """The number of the last attempt that was given it, counted over all attempts of the run."""
    fixed_at: int = 0
    """How many attempts the run had made when its judge last reported it fixed."""
    insisted: int = 0
    """How often its judge reported it again although the step that reworked it had contested it."""
    gap: str = ""
    """For a missing requirement: where it got lost, in words."""
    note: str = ""
    """What its judge said about it when it was last asked."""

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
    def claim(self) -> str:
        """What the step that reworked it says, in words; empty if it says nothing."""
        found = self.resolution
        return f"{found.status}: {found.note}" if found is not None and found.note else found.status if found else ""

    @property
    def needs_answer(self) -> bool:
        return self.status in UNSETTLED

    @property
    def awaits_verdict(self) -> bool:
        """Whether its judge is asked about it when it judges again. Unconfirmed findings are not asked about: the judge
        did not mention them before."""
        return self.status in _AWAITS_VERDICT


def after_sighting(before: TrackedFinding | None, sighting: Sighting, judge: str, verdict: int) -> TrackedFinding:
    """The ledger entry after one more sighting. `verdict` is the number of the judge's verdict."""
    if before is None:
        assert sighting.finding is not None
        return TrackedFinding(
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
        streak=before.streak + 1 if before.last_verdict == verdict - 1 and not sighting.moved else 1,
        last_verdict=verdict,
        insisted=before.insisted + (before.status is Status.CONTESTED and sighting.status is Status.NOT_FIXED),
    )


def with_status(tracked: TrackedFinding, status: Status) -> TrackedFinding:
    return replace(tracked, status=status)


def ledger_key(judge: str, fingerprint: str) -> str:
    return f"{judge}\n{fingerprint}"
