"""Disputes: demands that contradict each other. No rework can meet both, so a person decides between them.

The rules look only at the ledger, never at the wording. Two findings have the same location if they name the same file
and line, or the same path. There are three kinds of dispute:

- Finding A was fixed, then finding B at the same location was fixed, and now A is back: A and B contradict each other.
- As before, but the judge of A words it differently, so it is a new finding. It counts if it lies in what the fix of B
  changed, and if the judge had an earlier finding at this location that was fixed.
- The step that reworks contested a finding twice, and its judge insisted on it both times: step and judge disagree.
"""

from __future__ import annotations

from collections.abc import Iterable

from backedge.core import events as e
from backedge.core.findings.identity import lies_in, location_of
from backedge.core.findings.ledger import TrackedFinding
from backedge.core.model import Change, Finding, Status
from backedge.core.state.run import RunState
from backedge.core.value import Value

MAX_INSISTENCE = 2
"""After a judge has insisted this often on a finding that the step contests, a person is asked."""


class Dispute(Value, frozen=True):
    """Findings that contradict each other, or one that a step contests; and the reason that people read."""

    findings: tuple[int, ...]
    reason: str


def find_dispute(state: RunState, judge: str, sightings: Iterable[e.Sighting], changed: list[Change]) -> Dispute | None:
    """The first dispute that a verdict reveals. `state` is the state before the verdict."""
    for sighting in sightings:
        before = state.findings.get(sighting.id)
        finding = sighting.finding or (before.finding if before is not None else None)
        assert finding is not None
        if before is not None and _insists(before, sighting.status):
            return _with_the_step(before)
        rival = _rival(state, judge, before, sighting.status, finding, changed)
        if rival is not None:
            return _between(sighting.id, judge, finding, rival)
    return None


def _insists(before: TrackedFinding, status: Status) -> bool:
    contested = (
        before.status is Status.CONTESTED and before.resolution is not None and before.resolution.status == "contested"
    )
    return contested and status is Status.NOT_FIXED and before.insisted + 1 >= MAX_INSISTENCE


def _rival(
    state: RunState, judge: str, before: TrackedFinding | None, status: Status, finding: Finding, changed: list[Change]
) -> TrackedFinding | None:
    """The finding at the same location whose fix caused this one; None if there is none."""
    if status is Status.REGRESSED:
        assert before is not None
        others = _same_location(state, finding, before.finding)
        rivals = [each for each in others if each.id != before.id and _undoes(each, before)]
    elif before is None and status is Status.OPEN and lies_in(finding, changed):
        others = _same_location(state, finding)
        earlier = [each for each in others if each.found_by == judge and each.status is Status.FIXED]
        rivals = [each for each in others if each.found_by != judge and any(_undoes(each, own) for own in earlier)]
    else:
        return None
    return max(rivals, key=lambda each: each.addressed_at, default=None)


def _same_location(state: RunState, *findings: Finding) -> list[TrackedFinding]:
    """The findings of the run that have the same location as one of these."""
    locations = dict.fromkeys(location for finding in findings if (location := location_of(finding)))
    ids = dict.fromkeys(id for location in locations for id in state.findings_by_location.get(location, ()))
    return [state.findings[id] for id in ids]


def _undoes(later: TrackedFinding, fixed: TrackedFinding) -> bool:
    """Whether a step addressed `later` after it had fixed `fixed`."""
    return later.addressed_at > fixed.fixed_at > 0 and not set(later.introduced_by).isdisjoint(fixed.introduced_by)


def _between(id: int, judge: str, finding: Finding, rival: TrackedFinding) -> Dispute:
    reason = (
        f"contested: F-{id} of {judge} wants {_demand(finding)}, {rival.name} of {rival.found_by} wants "
        f"{_demand(rival.finding)}, both at {location_of(finding)}"
    )
    return Dispute((id, rival.id), reason)


def _with_the_step(tracked: TrackedFinding) -> Dispute:
    assert tracked.resolution is not None
    why = f": {_short(tracked.resolution.note)}" if tracked.resolution.note else ""
    steps = " and ".join(tracked.introduced_by)
    reason = (
        f"contested: {tracked.name} of {tracked.found_by} wants {_demand(tracked.finding)}, and {steps} contests that"
        f"{why}; {tracked.found_by} insisted {MAX_INSISTENCE} times"
    )
    return Dispute((tracked.id,), reason)


def _demand(finding: Finding) -> str:
    return _short(finding.suggested_fix or finding.description)


def _short(text: str, max_length: int = 120) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= max_length else f"{line[:max_length]}…")


def is_disputed(state: RunState, id: int) -> bool:
    """Whether a person has to decide about a contested finding. Until then nothing is done about it."""
    return any(id in loop.contested and loop.escalation is not None for loop in state.loops.values())


def unanswered_findings(state: RunState, loop: str, now: tuple[int, ...] = ()) -> dict[Status, tuple[int, ...]]:
    """The contested findings of a dispute that is over and that no other loop or verdict will settle, by the status they
    get: fixed if the judge said so last, else deferred. Findings in `now` are disputed again and left out."""
    found: dict[Status, tuple[int, ...]] = {}
    for id in (id for id in state.loops[loop].contested if id not in now):
        tracked = state.findings[id]
        judge = state.steps.get(tracked.found_by)
        in_another_loop = any(id in other.finding_ids for other in state.loops.values() if other.id != loop)
        to_be_judged = judge is not None and id in judge.open_findings and tracked.found_by == state.loops[loop].source
        if tracked.status is not Status.CONTESTED or in_another_loop or to_be_judged:
            continue
        status = Status.FIXED if tracked.fixed_at >= tracked.addressed_at else Status.DEFERRED
        found[status] = (*found.get(status, ()), id)
    return found
