"""Demands that undo each other: no rework can meet both, so a person decides between them.

The rule looks at the ledger alone, never at words. Two findings are at the same place if they name the same file and
line, or the same path. One that was fixed and is there again after the fix of another at its place stands against that
other one. So does a new finding in what that fix wrote, if its judge had a finding fixed at this place before: then two
judges pull in two directions, each time in other words. And a finding that the step which reworks has contested, and
its judge insisted on, twice stands against that step.
"""

from __future__ import annotations

from collections.abc import Iterable

from backedge.core import events as e
from backedge.core.findings.identity import lies_in, location_of
from backedge.core.findings.ledger import TrackedFinding
from backedge.core.model import Change, Finding, Status
from backedge.core.state.run import RunState
from backedge.core.value import Value

INSISTED = 2
"""How often a judge may insist on what the step that reworks contests, before a person is asked."""


class Dispute(Value, frozen=True):
    """What stands against what."""

    findings: tuple[int, ...]
    reason: str


def find_dispute(state: RunState, judge: str, sightings: Iterable[e.Sighting], changed: list[Change]) -> Dispute | None:
    """The first dispute that a verdict brings to light; `state` is the one before it."""
    for seen in sightings:
        before = state.findings.get(seen.id)
        finding = seen.finding or (before.finding if before is not None else None)
        assert finding is not None
        if before is not None and _insists(before, seen.status):
            return _with_the_step(before)
        rival = _rival(state, judge, before, seen.status, finding, changed)
        if rival is not None:
            return _between(seen.id, judge, finding, rival)
    return None


def _insists(before: TrackedFinding, status: Status) -> bool:
    contested = before.status is Status.CONTESTED and before.claim is not None and before.claim.status == "contested"
    return contested and status is Status.NOT_FIXED and before.insisted + 1 >= INSISTED


def _rival(
    state: RunState, judge: str, before: TrackedFinding | None, status: Status, finding: Finding, changed: list[Change]
) -> TrackedFinding | None:
    """The finding whose fix brought this one about, at the same place; None if there is none."""
    if status is Status.REGRESSED:
        assert before is not None
        others = _at(state, finding, before.finding)
        rivals = [each for each in others if each.id != before.id and _undoes(each, before)]
    elif before is None and status is Status.OPEN and lies_in(finding, changed):
        others = _at(state, finding)
        earlier = [each for each in others if each.found_by == judge and each.status is Status.FIXED]
        rivals = [each for each in others if each.found_by != judge and any(_undoes(each, was) for was in earlier)]
    else:
        return None
    return max(rivals, key=lambda each: each.addressed_at, default=None)


def _at(state: RunState, *findings: Finding) -> list[TrackedFinding]:
    """The findings of the run at the place of one of these."""
    places = dict.fromkeys(place for finding in findings if (place := location_of(finding)))
    ids = dict.fromkeys(id for place in places for id in state.findings_by_location.get(place, ()))
    return [state.findings[id] for id in ids]


def _undoes(later: TrackedFinding, fixed: TrackedFinding) -> bool:
    """Whether one finding was addressed by the same step after another had been fixed."""
    return later.addressed_at > fixed.fixed_at > 0 and not set(later.introduced_by).isdisjoint(fixed.introduced_by)


def _between(id: int, judge: str, finding: Finding, rival: TrackedFinding) -> Dispute:
    reason = (
        f"contested: F-{id} of {judge} wants {_demand(finding)}, {rival.name} of {rival.found_by} wants "
        f"{_demand(rival.finding)}, both at {location_of(finding)}"
    )
    return Dispute((id, rival.id), reason)


def _with_the_step(tracked: TrackedFinding) -> Dispute:
    assert tracked.claim is not None
    why = f": {_short(tracked.claim.note)}" if tracked.claim.note else ""
    steps = " and ".join(tracked.introduced_by)
    reason = (
        f"contested: {tracked.name} of {tracked.found_by} wants {_demand(tracked.finding)}, and {steps} contests that"
        f"{why}; {tracked.found_by} insisted {INSISTED} times"
    )
    return Dispute((tracked.id,), reason)


def _demand(finding: Finding) -> str:
    return _short(finding.suggested_fix or finding.description)


def _short(text: str, most: int = 120) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= most else f"{line[:most]}…")


def is_disputed(state: RunState, id: int) -> bool:
    """Whether a person is being asked about a contested finding: nothing is done for it before the decision."""
    return any(id in loop.contested and loop.escalation is not None for loop in state.loops.values())


def unanswered_findings(state: RunState, loop: str, now: tuple[int, ...] = ()) -> dict[Status, tuple[int, ...]]:
    """What becomes of the contested findings that nobody answers for when their dispute is over, but for those that are
    disputed now: fixed if that was the last word of its judge, else a debt."""
    found: dict[Status, tuple[int, ...]] = {}
    for id in (id for id in state.loops[loop].contested if id not in now):
        tracked = state.findings[id]
        judge = state.steps.get(tracked.found_by)
        answered = any(id in other.finding_ids for other in state.loops.values() if other.id != loop)
        asked = judge is not None and id in judge.open_findings and tracked.found_by == state.loops[loop].source
        if tracked.status is not Status.CONTESTED or answered or asked:
            continue
        status = Status.FIXED if tracked.fixed_at >= tracked.addressed_at else Status.DEFERRED
        found[status] = (*found.get(status, ()), id)
    return found
