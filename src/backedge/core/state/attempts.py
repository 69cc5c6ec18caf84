"""Folds the events of attempts: they start, they end, and they leave artifacts."""

from __future__ import annotations

from backedge.core import events as e
from backedge.core.evidence.values import NO_EVIDENCE
from backedge.core.feedback.loop import Loop, LoopState
from backedge.core.model import SIDE_MODES, Change, FindingResolution, Status
from backedge.core.state import version_0_1
from backedge.core.state.fixes import fixes_after_start
from backedge.core.state.run import Artifact, Running, RunState, StepState, TriedAttempt, number, with_loop, with_step
from backedge.core.text import shortened
from backedge.core.value import replace

MAX_TRIED = 5
"""How many attempts of a step are remembered with what they did."""
LONGEST_SUMMARY = 1_000
"""How many characters of each are."""
MAX_VERSIONS_TRACED = 4
"""How many versions of an artifact keep their changes, so that a new finding can be traced to the fix that caused it."""


def attempt_started(state: RunState, event: e.AttemptStarted) -> RunState:
    if event.consumed is None:
        event = version_0_1.attempt_started(state, event)
    assert event.consumed is not None
    name, step = event.step, state.steps[event.step]
    # A first attempt that is given feedback counts as a round too: the source of the feedback runs again to verify it.
    counted = 1 if event.counted else 0
    loops, pairs = state.loops, state.pairs
    if event.loops:
        loops, pairs = dict(loops), dict(pairs)
        for id in event.loops:
            if id in event.counted:
                pair = (loops[id].source, name)
                pairs[pair] = pairs.get(pair, 0) + 1
            loops[id] = _delivered(loops[id], name)
    findings = state.findings
    if event.to_address or event.must_keep_fixed:
        briefed = (*event.to_address, *event.must_keep_fixed)
        findings = findings.merged({id: replace(findings[id], addressed_at=state.attempts + 1) for id in briefed})
    running = Running(
        attempt=event.attempt,
        mode=event.mode,
        started=event.at,
        agent=event.agent,
        loops=event.loops,
        to_address=event.to_address,
        must_keep_fixed=event.must_keep_fixed,
        unverified_loops=event.unverified,
        verifies=event.verifies,
        results=event.results,
        cause=event.cause,
        consumed=event.consumed,
        input_versions=event.inputs,
        told=event.told,
        trees=state.trees if name in state.graph.judges else {},
    )
    started = replace(step, attempts=event.attempt, running=running, rounds=step.rounds + counted)
    return with_step(
        state,
        name,
        started,
        findings=findings,
        loops=loops,
        pairs=pairs,
        fixes=fixes_after_start(state, event),
        attempts=state.attempts + (name not in state.graph.engine_judges),
        rounds=state.rounds + counted,
        busy=state.busy + 1,
        busy_since=state.busy_since if state.busy else event.at,
    )


def _delivered(loop: Loop, target: str) -> Loop:
    """A loop whose feedback a target has begun to address. The first target to begin starts the round."""
    return replace(
        loop.resumed(),
        round=loop.round + (not loop.delivered),
        delivered=True,
        shares={**loop.shares, target: replace(loop.shares[target], counted=True)},
    )


def _attempt_over(
    state: RunState,
    event: e.AttemptSucceeded | e.AttemptFailed | e.AttemptLimited | e.AttemptDropped,
    step: StepState,
) -> RunState:
    """What all ends of an attempt have in common: the cost is added, and the step becomes `step`, which is not running."""
    busy, since, worked = state.busy - 1, state.busy_since, state.seconds_worked
    if isinstance(event, e.AttemptDropped) and event.reason == "in doubt":
        # Its process died some time after the last event. The time since then does not count as work, except for the
        # seconds that this event reports.
        since = event.at
        worked = state.seconds_at_work(state.last_at) + min(event.seconds, max(0.0, event.at - state.last_at))
    elif not busy:
        worked = state.seconds_at_work(event.at)
    return with_step(
        state,
        event.step,
        step,
        usage=state.usage + event.usage,
        busy=busy,
        busy_since=since,
        seconds_worked=worked,
    )


def attempt_succeeded(state: RunState, event: e.AttemptSucceeded) -> RunState:
    if event.artifact is None:
        event = version_0_1.attempt_succeeded(state, event)
    name, step = event.step, state.steps[event.step]
    running = step.running
    assert running is not None
    side = running.mode in SIDE_MODES
    repeats, repeats_granted = event.repeats or (step.repeats, step.repeats_granted)
    artifact = step.artifact if side else _artifact_of(event, step, running)
    done = replace(
        step,
        running=None,
        artifact=artifact,
        errors=0,
        approved=step.approved and side,
        confidence=step.confidence if side else event.confidence,
        errors_granted=0,
        last_error="",
        limits_in_a_row=0,
        limit_message="",
        session=event.session or step.session,
        loop_by_question={},
        replaced=step.replaced and side,
        results_due=tuple(id for id in step.results_due if id not in running.results) if step.results_due else (),
        repeats=repeats,
        repeats_granted=repeats_granted,
        rejudge=step.rejudge and side,
        evidence=step.evidence if side else NO_EVIDENCE,
        overtaken=step.overtaken if side else running.overtaken,
        tried=step.tried if side or not event.summary.strip() else _tried(state, step, running, event),
    )
    state = _attempt_over(state, event, done)
    if side:
        return state
    if running.loops:
        state = _with_fix(state, name, running, step.artifact, artifact)
    if event.claims and name in state.graph.judges:
        return _with_notes(state, event.claims)
    if event.claims:
        return _with_resolutions(state, event.claims, (*running.to_address, *running.must_keep_fixed))
    return state


def _tried(state: RunState, step: StepState, running: Running, event: e.AttemptSucceeded) -> tuple[TriedAttempt, ...]:
    """What the last attempts of a step did, with this one. Texts are cut, so that a briefing stays small."""
    round = max((state.loops[id].round for id in running.loops if id in state.loops), default=0)
    tried = TriedAttempt(event.attempt, round, shortened(event.summary, LONGEST_SUMMARY))
    return (*step.tried, tried)[-MAX_TRIED:]


def _artifact_of(event: e.AttemptSucceeded, step: StepState, running: Running) -> Artifact:
    """The artifact of an attempt. It is a new version only if it differs from the one before."""
    before, made = step.artifact, event.made
    digest = event.artifact or made.digest
    changed = before is None or before.digest != digest
    changes: tuple[tuple[int, tuple[Change, ...]], ...] = ()
    if before is None:
        version = step.last_version + 1
    elif changed:
        version = max(before.version, step.last_version) + 1
        changes = (*before.changes, (version, made.changed))[-MAX_VERSIONS_TRACED:]
    else:
        version, changes = before.version, before.changes
    return Artifact(
        version=version,
        digest=digest,
        attempt=event.attempt,
        output=made.output,
        payload=made.payload,
        parts=made.parts if changed or before is None else before.parts,
        values=made.values,
        consumed=running.consumed,
        inputs=running.input_versions,
        changes=changes,
        cause=running.cause if changed or before is None else before.cause,
        summary=event.summary,
    )


def _with_fix(
    state: RunState, name: str, running: Running, before: Artifact | None, after: Artifact | None
) -> RunState:
    """The run after an attempt has finished its share of its loops, whether or not it changed the artifact."""
    assert after is not None
    changed = before is None or before.digest != after.digest
    unchanged = 0
    loops = dict(state.loops)
    for id in running.loops:
        if not still_answers(state, id, name):
            continue
        loop = loops[id]
        if changed and f"{name}:{after.digest}" in loop.rejected:
            loop = replace(loop, oscillations=loop.oscillations + 1)
        loops[id] = _share_done(loop, name, changed or running.replanned)
        unchanged = max(unchanged, loops[id].unchanged_reworks - loop.unchanged_reworks)
    return replace(state, loops=loops, recoveries=state.recoveries + unchanged)


def attempt_failed(state: RunState, event: e.AttemptFailed) -> RunState:
    step = state.steps[event.step]
    failed = replace(
        step,
        running=None,
        results_due=_undelivered_results(state, step),
        errors=step.errors + 1,
        retry_at=event.retry_at,
        last_error=event.error,
        limits_in_a_row=0,
        limit_message="",
        session=event.session or step.session,
    )
    return _attempt_over(state, event, failed)


def attempt_limited(state: RunState, event: e.AttemptLimited) -> RunState:
    step = state.steps[event.step]
    limited = replace(
        step,
        running=None,
        results_due=_undelivered_results(state, step),
        retry_at=event.retry_at,
        limits_in_a_row=step.limits_in_a_row + 1,
        limited_since=step.limited_since if step.limits_in_a_row else event.at,
        limit_message=event.message,
        session=event.session or step.session,
    )
    made = event.step not in state.graph.engine_judges
    return _attempt_over(replace(state, limited_attempts=state.limited_attempts + made), event, limited)


def attempt_dropped(state: RunState, event: e.AttemptDropped) -> RunState:
    step = state.steps[event.step]
    return _attempt_over(state, event, replace(step, running=None, results_due=_undelivered_results(state, step)))


def _undelivered_results(state: RunState, step: StepState) -> tuple[str, ...]:
    """The loops whose results the next attempt needs, including those that the lost attempt raised and that ended."""
    assert step.running is not None
    ended = (id for id in step.running.raised_loops if id not in state.loops)
    return tuple(dict.fromkeys((*step.results_due, *ended)))


def answer_given(state: RunState, event: e.AnswerGiven) -> RunState:
    loop = state.loops[event.loop]
    answered = replace(loop, answers={**loop.answers, event.target: event.answer})
    return with_loop(state, _share_done(answered, event.target, changed=True))


def still_answers(state: RunState, loop: str, target: str) -> bool:
    """Whether a target's attempt still works for a loop. A decision may have closed the loop or sent it elsewhere."""
    share = state.loops[loop].shares.get(target) if loop in state.loops else None
    return share is not None and share.counted and not share.done


def _share_done(loop: Loop, target: str, changed: bool) -> Loop:
    shares = {**loop.shares, target: replace(loop.shares[target], done=True, changed=changed)}
    loop = replace(loop, shares=shares)
    if not all(share.done for share in shares.values()):
        return loop
    unchanged = not any(share.changed for share in shares.values())
    loop = replace(loop, unchanged_reworks=loop.unchanged_reworks + unchanged)
    # If a person is deciding about the loop, its fix waits for that decision.
    return loop if loop.state is LoopState.ESCALATING else loop.on("fix done")


def _with_notes(state: RunState, resolutions: tuple[FindingResolution, ...]) -> RunState:
    """What a judge says about the findings that it was asked about."""
    notes = {number(said.finding): said.note for said in resolutions}
    noted = {id: replace(state.findings[id], note=note) for id, note in notes.items()}
    return replace(state, findings=state.findings.merged(noted))


def _with_resolutions(
    state: RunState, resolutions: tuple[FindingResolution, ...], briefed: tuple[int, ...]
) -> RunState:
    """A resolution of a finding also applies to the same finding of other judges: the briefing merged them into one."""
    findings = state.findings
    said_by_id = {number(said.finding): said for said in resolutions}
    for id, said in tuple(said_by_id.items()):
        same = (other for other in briefed if findings[other].fingerprint == findings[id].fingerprint)
        for other in same:
            said_by_id.setdefault(other, said)
    for id, said in said_by_id.items():
        tracked = findings[id]
        contested = said.status == "contested" and tracked.needs_answer
        status = Status.CONTESTED if contested else tracked.status
        findings = findings.set(id, replace(tracked, resolution=said, status=status))
    return replace(state, findings=findings)
