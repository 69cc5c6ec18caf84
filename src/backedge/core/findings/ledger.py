"""The ledger of findings: what a verdict says of each, and how one finding is known again in a later round."""

from __future__ import annotations

from backedge.core.events import Sighting
from backedge.core.model import Claim, Finding, Status
from backedge.core.value import Value, replace

UNSETTLED = frozenset({Status.OPEN, Status.NOT_FIXED, Status.REGRESSED, Status.UNCONFIRMED, Status.CONTESTED})
"""What still stands, and has to be answered for when its judge judges again."""
_ASKED_ABOUT = UNSETTLED - {Status.UNCONFIRMED}


class TrackedFinding(Value, frozen=True):
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
    addressed_at: int = 0
    """The attempt of the run, counted from its start, that was given it last."""
    fixed_at: int = 0
    """How many attempts the run had made when its judge last said that it is fixed."""
    insisted: int = 0
    """How often its judge saw it again although the step that reworked had contested it."""
    gap: str = ""
    """Where the missing requirement got lost."""

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


def after_sighting(before: TrackedFinding | None, sighting: Sighting, judge: str, verdict: int) -> TrackedFinding:
    """The ledger entry after one more sighting, in the judge's verdict of that number."""
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
        streak=before.streak + 1 if before.last_verdict == verdict - 1 else 1,
        last_verdict=verdict,
        insisted=before.insisted + (before.status is Status.CONTESTED and sighting.status is Status.NOT_FIXED),
    )


def with_status(tracked: TrackedFinding, status: Status) -> TrackedFinding:
    return replace(tracked, status=status)


def ledger_key(judge: str, fingerprint: str) -> str:
    return f"{judge}\n{fingerprint}"
