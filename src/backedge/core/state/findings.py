"""Folds the events of findings: verdicts report them, decisions settle or reclassify them."""

from __future__ import annotations

from backedge.core import events as e
from backedge.core.findings.identity import location_of
from backedge.core.findings.ledger import TrackedFinding, after_sighting, with_status
from backedge.core.model import Status
from backedge.core.state.persistent_map import Map
from backedge.core.state.run import LastVerdict, RunState, StepState, with_loop, with_step
from backedge.core.value import replace

MAX_PER_LOCATION = 8
"""How many findings are remembered for each location."""


_NONE_UNCONFIRMED: Map[int, bool] = Map()
"""The unconfirmed findings after a pass: a pass settles all of them."""


def verdict_given(state: RunState, event: e.VerdictGiven) -> RunState:
    judge = state.steps[event.judge]
    by_check = not event.attempt
    verdict_number = 1 + (judge.checks if by_check else judge.verdicts)
    findings = state.findings
    changed = {
        sighting.id: after_sighting(findings.get(sighting.id), sighting, event.judge, verdict_number)
        for sighting in event.findings
    }
    known = state.finding_by_key.merged({tracked.key: id for id, tracked in changed.items() if id not in findings})
    for id, status in event.settled:
        settled = with_status(changed.get(id) or findings[id], status)
        fixed = status in (Status.FIXED, Status.CONTESTED)
        changed[id] = replace(settled, fixed_at=state.attempts) if fixed else settled
    findings = findings.merged(changed)
    candidates = [id for id in judge.open_findings if id not in changed] + sorted(changed)
    still_open = tuple([id for id in candidates if findings[id].awaits_verdict])
    if by_check:
        unconfirmed = _unconfirmed(judge.unconfirmed, changed)
        judge = replace(judge, open_findings=still_open, unconfirmed=unconfirmed, checks=verdict_number)
    else:
        assert judge.artifact is not None
        fails = event.word == "fail"
        judge = replace(
            judge,
            open_findings=still_open,
            unconfirmed=_unconfirmed(judge.unconfirmed, changed) if fails else _NONE_UNCONFIRMED,
            verdict=LastVerdict(
                event.word, judge.artifact.inputs, tree=judge.evidence.tree, workspace=judge.evidence.workspace
            ),
            verdicts=verdict_number,
            failures=judge.failures + 1 if fails else 0,
        )
    if state.graph.steps[event.judge].approver and event.word != "fail" and not event.unasked:
        for subject in state.graph.steps[event.judge].judges:
            state = with_step(state, subject, replace(state.steps[subject], unapproved=()))
    return with_step(
        state,
        event.judge,
        judge,
        findings=findings,
        finding_by_key=known,
        findings_by_location=_by_location(state, event),
    )


def _by_location(state: RunState, event: e.VerdictGiven) -> Map[str, tuple[int, ...]]:
    """The findings by location, with those of one more verdict. Disputes need only the last few at each location."""
    found: dict[str, tuple[int, ...]] = {}
    for sighting in event.findings:
        location = location_of(sighting.finding) if sighting.finding is not None else ""
        if location:
            before = found.get(location, state.findings_by_location.get(location, ()))
            found[location] = (*(id for id in before if id != sighting.id), sighting.id)[-MAX_PER_LOCATION:]
    return state.findings_by_location.merged(found)


def findings_contested(state: RunState, event: e.FindingsContested) -> RunState:
    contested = {id: with_status(state.findings[id], Status.CONTESTED) for id in event.findings}
    loop = replace(state.loops[event.loop], contested=event.findings)
    return replace(with_loop(state, loop), findings=state.findings.merged(contested))


def _unconfirmed(before: Map[int, bool], changed: dict[int, TrackedFinding]) -> Map[int, bool]:
    entries: dict[int, bool] = {}
    for id, tracked in changed.items():
        unconfirmed = tracked.status is Status.UNCONFIRMED
        if unconfirmed or id in before:
            entries[id] = unconfirmed
    return before.merged(entries)


def finding_reclassified(state: RunState, event: e.FindingReclassified) -> RunState:
    id = event.finding
    before = state.findings[id]
    tracked = replace(
        before, reclassified=event.phases or (event.phase,), introduced_by=event.introduced_by or before.introduced_by
    )
    state = replace(state, findings=state.findings.set(id, tracked))
    loop = state.loops.get(tracked.loop or "")
    if loop is None or not any(id in share.findings for share in loop.shares.values() if not share.counted):
        return state
    return with_loop(state, replace(loop, reclassified=tuple(dict.fromkeys((*loop.reclassified, id)))))


def findings_settled(state: RunState, event: e.FindingsSettled) -> RunState:
    findings, accepted = state.findings, state.accepted
    for id in event.findings:
        tracked = with_status(findings[id], event.status)
        findings = findings.set(id, tracked)
        if event.status is Status.ACCEPTED:
            accepted = accepted.set(tracked.key, id)
    for judge in dict.fromkeys(findings[id].found_by for id in event.findings):
        step = state.steps.get(judge)
        if step is not None:
            state = with_step(state, judge, _without_settled(step, findings))
    has_accepted = state.has_accepted or event.status in (Status.ACCEPTED, Status.DEFERRED)
    return replace(state, findings=findings, accepted=accepted, has_accepted=has_accepted)


def _without_settled(step: StepState, findings: Map[int, TrackedFinding]) -> StepState:
    return replace(
        step,
        open_findings=tuple(id for id in step.open_findings if findings[id].awaits_verdict),
        unconfirmed=_unconfirmed(step.unconfirmed, {id: findings[id] for id in step.unmentioned}),
    )
