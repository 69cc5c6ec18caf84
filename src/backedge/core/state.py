"""Where a run stands: the fold of its events.

`evolve` only writes down what an event says; every judgement was made by `decide` before. States are immutable: a
decision that could not be appended is simply dropped, together with the state that it would have led to.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from backedge.core import events as e
from backedge.core.graph import Graph
from backedge.core.ledger import Tracked, sighted, with_status
from backedge.core.limits import BUDGETS
from backedge.core.loops import RECENT, Loop, LoopState, Share, Turn
from backedge.core.model import HUMAN, Breach, Change, Claim, Feedback, Mode, Severity, Status, Usage, Word
from backedge.core.pmap import Map
from backedge.core.staleness import consumed_by, judged_digest
from backedge.core.value import Json, Value, replace
from backedge.core.workflow import Workflow, graph_of

KEPT_CHANGES = 4
"""How many versions back a new finding can be traced to the fix that wrote it."""


class Artifact(Value, frozen=True):
    """The current output of a step."""

    version: int
    digest: str
    attempt: int
    output: Json = None
    payload: str | None = None
    parts: dict[str, str] = {}
    consumed: dict[str, str] = {}
    """What it was made from: the digest of each input."""
    changes: tuple[tuple[int, tuple[Change, ...]], ...] = ()
    """Where the last few versions differ from the ones before them."""
    inputs: dict[str, int] = {}
    """The versions it was made from, by producer."""
    cause: tuple[str, ...] = ()
    """The loops that made this version necessary."""
    summary: str = ""


class Running(Value, frozen=True):
    """An attempt under way."""

    attempt: int
    mode: Mode
    started: float
    agent: str = ""
    loops: tuple[str, ...] = ()
    given: tuple[int, ...] = ()
    """The findings it has to address."""
    verifies: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    cause: tuple[str, ...] = ()
    consumed: dict[str, str] = {}
    versions: dict[str, int] = {}
    awaits: tuple[str, ...] = ()
    """The loops that it waits for, in mid-work."""
    joined: tuple[str, ...] = ()
    """The loops that this attempt raised or rejoined."""


class Judgement(Value, frozen=True):
    """The last verdict of a judge."""

    word: Word
    versions: dict[str, int]
    """The artifact versions it saw."""
    accepted: bool = False
    """A person let it count as passed."""


class StepState(Value, frozen=True):
    """What is known of one step."""

    attempts: int = 0
    running: Running | None = None
    artifact: Artifact | None = None
    errors: int = 0
    error_grant: int = 0
    last_error: str = ""
    session: str | None = None
    """The conversation that its agent can go on with."""
    retry_at: float = 0.0
    rounds: int = 0
    """Executions that feedback asked for."""
    passed_over: bool = False
    told: tuple[str, ...] = ()
    """Loops closed by hand whose resolution the next attempt has to be given."""
    asked: dict[str, str] = {}
    """Feedback raised in mid-work since the last finished attempt: what was asked, and the loop."""
    verdict: Judgement | None = None
    verdicts: int = 0
    failures: int = 0
    """Failing verdicts in a row."""
    checks: int = 0
    """Checks of its inputs that found something, or found it mended: they are no verdicts of its agent."""
    last_loop: str | None = None
    """The last loop that its verdicts started."""
    open_findings: tuple[int, ...] = ()
    """The findings that it has to answer for when it judges again."""


class Escalation(Value, frozen=True):
    """A decision packet."""

    id: str
    reason: str
    options: tuple[str, ...]
    opened_at: float
    loop: str | None = None
    step: str | None = None
    breach: Breach | None = None
    decided: e.EscalationDecided | None = None


class RunState(Value, frozen=True):
    """Everything that the rules need to know of a run."""

    run: str
    graph: Graph
    started_at: float
    seq: int = 0
    input: Json = None
    input_payload: str | None = None
    steps: dict[str, StepState] = {}
    loops: dict[str, Loop] = {}
    """The open ones."""
    closed: Map[int, Loop] = Map()
    findings: Map[int, Tracked] = Map()
    known: Map[str, int] = Map()
    """Finding by judge and fingerprint."""
    accepted: Map[str, int] = Map()
    """Finding by judge and fingerprint, for those that a person accepted."""
    escalations: dict[str, Escalation] = {}
    """The open ones."""
    decided: Map[int, Escalation] = Map()
    refused: Map[int, e.FeedbackRefused] = Map()
    opened_loops: int = 0
    opened_escalations: int = 0
    usage: Usage = Usage()
    attempts: int = 0
    rounds: int = 0
    recoveries: int = 0
    pairs: dict[tuple[str, str], int] = {}
    grants: dict[str, float] = {}
    busy: int = 0
    busy_since: float = 0.0
    worked: float = 0.0
    last_at: float = 0.0
    paused_by: str | None = None
    compromised: bool = False
    """Something was accepted or passed over."""
    ended: e.RunEnded | None = None

    @property
    def workflow(self) -> Workflow:
        return self.graph.workflow

    def seconds_at_work(self, now: float) -> float:
        return self.worked + (max(0.0, now - self.busy_since) if self.busy else 0.0)

    def rounds_of(self, step: str) -> int:
        return self.steps[step].rounds if step != HUMAN else 0

    def loop(self, id: str) -> Loop | None:
        """An open or closed loop by its id."""
        found = self.loops.get(id) or self.closed.get(number(id))
        return found if found is not None and found.id == id else None

    def escalation(self, id: str) -> Escalation | None:
        found = self.escalations.get(id) or self.decided.get(number(id))
        return found if found is not None and found.id == id else None

    @property
    def paused(self) -> bool:
        return self.paused_by is not None or any(loop.pauses for loop in self.loops.values())


def number(id: str) -> int:
    """The number in an id such as L-3; -1 for anything else."""
    _, _, digits = id.partition("-")
    return int(digits) if digits.isdecimal() else -1


def replay(events: Iterable[e.Event]) -> RunState | None:
    """The state after these events; None for none."""
    state: RunState | None = None
    for event in events:
        state = evolve(state, event)
    return state


def evolve(state: RunState | None, event: e.Event) -> RunState:
    """The state after one more event."""
    if state is None:
        if not isinstance(event, e.RunStarted):
            raise ValueError(f"the first event of a run is run_started, got {type(event).__name__}")
        graph = graph_of(event.workflow)
        return RunState(
            run=event.run,
            graph=graph,
            started_at=event.at,
            last_at=event.at,
            seq=1,
            input=event.input,
            input_payload=event.input_payload,
            steps=dict.fromkeys(graph.steps, StepState()),
        )
    after = _evolved(state, event)
    return replace(after, seq=state.seq + 1, last_at=max(state.last_at, event.at))


def _evolved(state: RunState, event: e.Event) -> RunState:
    match event:
        case e.AttemptStarted():
            return _attempt_started(state, event)
        case e.AttemptSucceeded():
            return _attempt_succeeded(state, event)
        case e.VerdictGiven():
            return _verdict_given(state, event)
        case e.FeedbackRouted():
            return _feedback_routed(state, event)
        case e.LoopOpened():
            return _loop_opened(state, event)
        case e.LoopClosed():
            return _loop_closed(state, event)
        case e.RunEnded():
            return replace(state, ended=event)
        case e.AttemptFailed():
            step = state.steps[event.step]
            failed = replace(
                step,
                errors=step.errors + 1,
                retry_at=event.retry_at,
                last_error=event.error,
                session=event.session or step.session,
            )
            return _attempt_over(state, event, failed)
        case e.AttemptDropped():
            return _attempt_over(state, event, state.steps[event.step])
        case e.FeedbackRefused():
            return replace(state, refused=state.refused.set(len(state.refused), event))
        case e.FeedbackAcknowledged():
            said = {"message": event.message, "action": event.action, "eta": event.eta}
            loop = state.loops[event.loop]
            moved = loop.moved(LoopState.RESOLVING) if loop.state is LoopState.WAITING_RESPONSE else loop
            return with_loop(state, replace(moved, acknowledged={**loop.acknowledged, event.target: said}))
        case e.FeedbackRejoined():
            return _joined(state, event.step, event.loop)
        case e.AnswerGiven():
            loop = state.loops[event.loop]
            answered = replace(loop, answers={**loop.answers, event.target: event.answer})
            return with_loop(state, _share_done(answered, event.target, changed=True))
        case e.WaitBegan():
            return _running(state, event.step, awaits=(*_awaits(state, event.step), event.loop))
        case e.WaitEnded():
            return _running(state, event.step, awaits=_awaits(state, event.step, but=event.loop))
        case e.WaiterTold():
            consumed = consumed_by(state, event.step)
            others = _awaits(state, event.step, but=event.loop)
            state = _running(state, event.step, awaits=others, consumed=consumed, versions=event.inputs)
            return with_loop(state, replace(state.loops[event.loop], told=True))
        case e.EscalationOpened():
            return _escalation_opened(state, event)
        case e.LoopOverdue():
            loop = state.loops[event.loop]
            late = with_loop(state, replace(loop.moved(LoopState.ESCALATING), breach=event.breach))
            questions = (each for each in late.escalations.values() if each.loop == loop.id and each.reason == ASKED)
            packet = replace(next(each for each in questions if each.breach is None), breach=event.breach)
            late = replace(late, escalations={**late.escalations, packet.id: packet})
            return _no_longer_awaited(late, loop)
        case e.EscalationDecided():
            return _escalation_decided(state, event)
        case e.StepPassedOver():
            step = replace(state.steps[event.step], passed_over=True)
            return replace(with_step(state, event.step, step), compromised=True)
        case e.FindingsSettled():
            return _findings_settled(state, event)
        case e.FindingReclassified():
            return _finding_reclassified(state, event)
        case e.RunPaused():
            return replace(state, paused_by=event.by)
        case e.RunResumed():
            return replace(state, paused_by=None)
        case e.RunStarted():
            raise ValueError(f"run {state.run!r} was started before: run_started comes once, and first")
        case _:
            assert_never(event)


def with_step(state: RunState, name: str, step: StepState) -> RunState:
    return replace(state, steps={**state.steps, name: step})


def with_loop(state: RunState, loop: Loop) -> RunState:
    return replace(state, loops={**state.loops, loop.id: loop})


def _running(state: RunState, name: str, **changes: object) -> RunState:
    step = state.steps[name]
    assert step.running is not None
    return with_step(state, name, replace(step, running=replace(step.running, **changes)))


def _awaits(state: RunState, name: str, but: str | None = None) -> tuple[str, ...]:
    """What a running attempt waits for, without one loop."""
    running = state.steps[name].running
    assert running is not None
    return tuple(loop for loop in running.awaits if loop != but)


def _attempt_started(state: RunState, event: e.AttemptStarted) -> RunState:
    name, step = event.step, state.steps[event.step]
    loops, pairs = state.loops, state.pairs
    asked_for = False
    if event.loops:
        loops, pairs = dict(loops), dict(pairs)
        for id in event.loops:
            loop = loops[id]
            share = loop.shares[name]
            if not share.charged:
                asked_for = True
                pairs[loop.source, name] = pairs.get((loop.source, name), 0) + 1
            loop = loop.moved(LoopState.RESOLVING) if loop.state is not LoopState.RESOLVING else loop
            loops[id] = replace(
                loop,
                round=loop.round + (not loop.delivered),
                delivered=True,
                shares={**loop.shares, name: replace(share, charged=True)},
            )
    # A first attempt that is given feedback counts too: its source runs again to verify it.
    counted = 1 if asked_for else 0
    verifies = tuple(loop.id for loop in loops.values() if loop.source == name and loop.state is LoopState.VALIDATING)
    running = Running(
        attempt=event.attempt,
        mode=event.mode,
        started=event.at,
        agent=event.agent,
        loops=event.loops,
        given=tuple(dict.fromkeys(finding for id in event.loops for finding in loops[id].shares[name].findings)),
        verifies=verifies if event.mode != "answer" else (),
        told=step.told if event.mode != "answer" else (),
        cause=event.cause,
        consumed=consumed_by(state, name),
        versions=event.inputs,
    )
    started = replace(step, attempts=event.attempt, running=running, rounds=step.rounds + counted)
    return replace(
        state,
        steps={**state.steps, name: started},
        loops=loops,
        pairs=pairs,
        attempts=state.attempts + 1,
        rounds=state.rounds + counted,
        busy=state.busy + 1,
        busy_since=state.busy_since if state.busy else event.at,
    )


def _attempt_over(
    state: RunState, event: e.AttemptSucceeded | e.AttemptFailed | e.AttemptDropped, step: StepState
) -> RunState:
    """What every way to end an attempt has in common: it costs, and it no longer runs."""
    busy, since, worked = state.busy - 1, state.busy_since, state.worked
    if isinstance(event, e.AttemptDropped) and event.reason == "in doubt":
        # Its process died after the last event and before this one: the time between is nobody's work.
        since, worked = event.at, state.seconds_at_work(state.last_at)
    elif not busy:
        worked = state.seconds_at_work(event.at)
    return replace(
        state,
        steps={**state.steps, event.step: replace(step, running=None)},
        usage=state.usage + event.usage,
        busy=busy,
        busy_since=since,
        worked=worked,
    )


def _attempt_succeeded(state: RunState, event: e.AttemptSucceeded) -> RunState:
    name, step = event.step, state.steps[event.step]
    running = step.running
    assert running is not None
    step = replace(
        step,
        errors=0,
        error_grant=0,
        last_error="",
        session=event.session or step.session,
        asked={},
        told=tuple(id for id in step.told if id not in running.told),
    )
    if running.mode == "answer":
        return _attempt_over(state, event, step)
    before, made = step.artifact, event.made
    digest = made.digest
    if state.graph.is_judge(name):
        digest = judged_digest(digest, running.consumed)
    changed = before is None or before.digest != digest
    changes: tuple[tuple[int, tuple[Change, ...]], ...] = ()
    if before is None:
        version = 1
    elif changed:
        version, changes = before.version + 1, (*before.changes, (before.version + 1, made.changed))[-KEPT_CHANGES:]
    else:
        version, changes = before.version, before.changes
    artifact = Artifact(
        version=version,
        digest=digest,
        attempt=event.attempt,
        output=made.output,
        payload=made.payload,
        parts=made.parts,
        consumed=running.consumed,
        inputs=running.versions,
        changes=changes,
        cause=running.cause if changed or before is None else before.cause,
        summary=event.summary,
    )
    state = _attempt_over(state, event, replace(step, artifact=artifact))
    if running.loops:
        unchanged = 0
        loops = dict(state.loops)
        for id in (id for id in running.loops if delivers(state, id, name)):
            loop = loops[id]
            if changed and f"{name}:{digest}" in loop.rejected:
                loop = replace(loop, returns=loop.returns + 1)
            loops[id] = _share_done(loop, name, changed)
            unchanged = max(unchanged, loops[id].unchanged - loop.unchanged)
        state = replace(state, loops=loops, recoveries=state.recoveries + unchanged)
    return _claims_noted(state, event.claims) if event.claims and not state.graph.is_judge(name) else state


def delivers(state: RunState, loop: str, target: str) -> bool:
    """Whether a target's attempt still answers a loop: it may have been closed or sent elsewhere by a decision."""
    share = state.loops[loop].shares.get(target) if loop in state.loops else None
    return share is not None and share.charged and not share.done


def _share_done(loop: Loop, target: str, changed: bool) -> Loop:
    shares = {**loop.shares, target: replace(loop.shares[target], done=True, changed=changed)}
    loop = replace(loop, shares=shares)
    if not all(share.done for share in shares.values()):
        return loop
    idle = not any(share.changed for share in shares.values())
    loop = replace(loop, unchanged=loop.unchanged + idle)
    # A fix that comes while a person is asked about its loop waits for the decision.
    return loop if loop.state is LoopState.ESCALATING else loop.moved(LoopState.VALIDATING)


def _claims_noted(state: RunState, claims: tuple[Claim, ...]) -> RunState:
    findings = state.findings
    for claim in claims:
        tracked = findings[number(claim.finding)]
        contested = claim.status == "contested" and tracked.needs_answer
        status = Status.CONTESTED if contested else tracked.status
        findings = findings.set(tracked.id, replace(tracked, claim=claim, status=status))
    return replace(state, findings=findings)


def _verdict_given(state: RunState, event: e.VerdictGiven) -> RunState:
    judge = state.steps[event.judge]
    by_check = not event.attempt
    turn = 1 + (judge.checks if by_check else judge.verdicts)
    findings = state.findings
    changed = {
        sighting.id: sighted(findings.get(sighting.id), sighting, event.judge, turn) for sighting in event.findings
    }
    known = state.known.merged({tracked.key: id for id, tracked in changed.items() if id not in findings})
    for id, status in event.settled:
        changed[id] = with_status(changed.get(id) or findings[id], status)
    findings = findings.merged(changed)
    given = [id for id in judge.open_findings if id not in changed] + sorted(changed)
    judge = replace(judge, open_findings=tuple(id for id in given if findings[id].needs_answer))
    if by_check:
        judge = replace(judge, checks=turn)
    else:
        assert judge.artifact is not None
        judge = replace(
            judge,
            verdict=Judgement(event.word, judge.artifact.inputs),
            verdicts=turn,
            failures=judge.failures + 1 if event.word == "fail" else 0,
        )
    return replace(state, steps={**state.steps, event.judge: judge}, findings=findings, known=known)


def _loop_opened(state: RunState, event: e.LoopOpened) -> RunState:
    cause = state.loop(event.caused_by) if event.caused_by else None
    source = event.source
    raised = event.feedback
    loop = Loop(
        id=event.loop,
        kind=event.kind,
        source=source,
        state=LoopState.NOTIFYING,
        feedback=raised,
        severity=raised.severity if raised else Severity.LOW,
        blocking=raised.blocking if raised else False,
        limits=state.graph.limits_of(source) if source != HUMAN else state.workflow.limits,
        opened_at=event.at,
        caused_by=event.caused_by,
        depth=1 + (cause.depth if cause else 0),
        follows=event.follows,
    )
    state = replace(with_loop(state, loop), opened_loops=number(event.loop), ended=None)
    if raised is not None and event.attempt and state.steps[source].running is not None:
        return _asked_in_mid_work(state, source, raised, loop.id)
    if loop.by_verdict:
        return with_step(state, source, replace(state.steps[source], last_loop=loop.id))
    return state


def asked_key(feedback: Feedback) -> str:
    """What makes two pieces of feedback, raised in mid-work, the same question."""
    return "\n".join((feedback.kind, ",".join(sorted(feedback.to)), feedback.message))


def _joined(state: RunState, name: str, loop: str) -> RunState:
    running = state.steps[name].running
    assert running is not None
    return _running(state, name, joined=(*running.joined, loop))


def _feedback_routed(state: RunState, event: e.FeedbackRouted) -> RunState:
    loop = state.loops[event.loop]
    recent = loop.recent
    if loop.delivered and not event.kept:
        told = loop.feedback.message if loop.feedback else ""
        recent = (*recent, Turn(loop.round, loop.targets, loop.given, told))[-RECENT:]
    findings = state.findings
    routed: dict[int, list[str]] = {}
    for target, ids in event.shares.items():
        for id in ids:
            routed.setdefault(id, []).append(target)
    severity, blocking, streak = loop.severity, loop.blocking, 0
    changed: dict[int, Tracked] = {}
    chosen = {id for ids in event.rules.values() for id in ids}
    for id, targets in routed.items():
        tracked = replace(findings[id], loop=loop.id)
        steps = tuple(target for target in targets if target != HUMAN)
        if id in chosen and steps:
            # A person may mend it, but it was a step that injected it.
            tracked = replace(tracked, introduced_by=steps)
        changed[id] = tracked
        if tracked.finding.severity.rank < severity.rank:
            severity = tracked.finding.severity
        blocking = blocking or tracked.finding.blocking
        streak = max(streak, tracked.streak)
    findings = findings.merged(changed)
    source = state.steps.get(loop.source)
    turns = _turns(source, loop) - loop.revised_at
    shares = {target: loop.shares[target] for target in event.kept}
    shares |= {target: Share(findings=ids) for target, ids in event.shares.items()}
    rejected = loop.rejected
    judged = state.graph.steps[loop.source].judges if source and not event.kept else ()
    for name in {*event.shares, *judged} - {HUMAN}:
        artifact = state.steps[name].artifact
        if artifact is not None:
            rejected = rejected.set(f"{name}:{artifact.digest}", True)
    loop = replace(
        loop.moved(LoopState.WAITING_RESPONSE if loop.state is LoopState.NOTIFYING else LoopState.RESOLVING)
        if loop.state in (LoopState.NOTIFYING, LoopState.VALIDATING, LoopState.ESCALATING)
        else loop,
        feedback=_in_new_words(loop, event.feedback),
        shares=shares,
        targets=tuple(shares),
        routed_by=next(iter(event.rules), loop.routed_by),
        delivered=bool(event.kept),
        reclassified=(),
        recent=recent,
        severity=severity,
        blocking=blocking,
        longest_streak=min(streak, turns),
        failures=min(source.failures, turns) if source and loop.by_verdict else 0,
        rejected=rejected,
        balance=(*loop.balance, event.balance)[-2:] if event.balance else loop.balance,
        told=False,
        answers={},
        acknowledged={},
    )
    state = replace(with_loop(state, loop), findings=findings)
    if event.feedback is not None and source is not None and source.running is not None:
        return _asked_in_mid_work(state, loop.source, event.feedback, loop.id)
    return state


def _in_new_words(loop: Loop, raised: Feedback | None) -> Feedback | None:
    """What the loop is about, as it was raised last; to whom it was raised first, wherever a person sent it since."""
    if raised is None or loop.feedback is None:
        return loop.feedback
    return replace(raised, to=loop.feedback.to)


def _asked_in_mid_work(state: RunState, name: str, feedback: Feedback, loop: str) -> RunState:
    """Remember under which words an attempt asked: one that repeats its work after a crash asks in the same words."""
    step = state.steps[name]
    assert step.running is not None
    joined = step.running.joined if loop in step.running.joined else (*step.running.joined, loop)
    asked = {**step.asked, asked_key(feedback): loop}
    return with_step(state, name, replace(step, asked=asked, running=replace(step.running, joined=joined)))


def _turns(source: StepState | None, loop: Loop) -> int:
    """How often the source of a loop has spoken in the way that started it: by a verdict, or by a check of inputs."""
    if source is None:
        return 0
    return source.checks if loop.by_check else source.verdicts


def _loop_closed(state: RunState, event: e.LoopClosed) -> RunState:
    loop = replace(state.loops[event.loop].moved(event.state), resolution=event.resolution)
    loops = {id: other for id, other in state.loops.items() if id != loop.id}
    state = replace(
        state,
        loops=loops,
        closed=state.closed.set(number(loop.id), loop),
        compromised=state.compromised or event.state is LoopState.ACCEPTED,
    )
    if loop.source == HUMAN:
        return state
    source = state.steps[loop.source]
    if event.state is LoopState.ACCEPTED and loop.by_verdict and source.verdict is not None:
        source = replace(source, verdict=replace(source.verdict, accepted=True))
    if source.running is not None and loop.id in source.running.awaits:
        others = _awaits(state, loop.source, but=loop.id)
        source = replace(source, running=replace(source.running, awaits=others))
    elif event.state is LoopState.RESOLVED and event.resolution.by:
        source = replace(source, told=(*source.told, loop.id))
    return with_step(state, loop.source, source)


def _escalation_opened(state: RunState, event: e.EscalationOpened) -> RunState:
    packet = Escalation(event.escalation, event.reason, event.options, event.at, event.loop, event.step, event.breach)
    state = replace(
        state,
        escalations={**state.escalations, packet.id: packet},
        opened_escalations=number(packet.id),
    )
    if event.loop is not None:
        state = _person_asked(state, event.loop) if event.breach is None else state
        loop = replace(state.loops[event.loop], escalation=packet.id, breach=event.breach)
        if event.reason != ASKED:
            loop = loop.moved(LoopState.ESCALATING)
            state = _no_longer_awaited(state, loop)
        return with_loop(state, loop)
    if event.step is not None and event.breach is not None:
        # The fix failed: the loops that wait for this step wait for the decision about it.
        for loop in [each for each in state.loops.values() if _fixing(each, event.step)]:
            failed = replace(loop.moved(LoopState.ESCALATING), escalation=packet.id)
            state = _no_longer_awaited(with_loop(state, failed), failed)
    return state


def _person_asked(state: RunState, id: str) -> RunState:
    """A question to a person is a round of its loop, counted when it is put."""
    loop = state.loops[id]
    share = loop.shares.get(HUMAN)
    if share is None or share.charged:
        return state
    pair = (loop.source, HUMAN)
    asked = replace(
        loop,
        round=loop.round + (not loop.delivered),
        delivered=True,
        shares={**loop.shares, HUMAN: replace(share, charged=True)},
    )
    state = replace(with_loop(state, asked), rounds=state.rounds + 1)
    return replace(state, pairs={**state.pairs, pair: state.pairs.get(pair, 0) + 1})


def _no_longer_awaited(state: RunState, loop: Loop) -> RunState:
    """Whoever waits in mid-work for a loop that escalates is told so, and goes on."""
    source = state.steps.get(loop.source)
    if source is not None and source.running is not None and loop.id in source.running.awaits:
        return _running(state, loop.source, awaits=_awaits(state, loop.source, but=loop.id))
    return state


ASKED = "asked"
"""The reason of an escalation that is a question to a person, not a breach."""


def _fixing(loop: Loop, step: str) -> bool:
    share = loop.shares.get(step)
    return loop.state is LoopState.RESOLVING and share is not None and share.charged and not share.done


def _escalation_decided(state: RunState, event: e.EscalationDecided) -> RunState:
    packet = state.escalations[event.escalation]
    open_ones = {id: other for id, other in state.escalations.items() if id != packet.id}
    state = replace(
        state, escalations=open_ones, decided=state.decided.set(number(packet.id), replace(packet, decided=event))
    )
    goes_on = event.choice in ("continue", "revise", "reassign", "reclassify")
    limit = packet.breach.limit if packet.breach else ""
    if goes_on and limit in (*BUDGETS, "rounds_total", "recoveries_total"):
        more = event.amount if limit in BUDGETS else event.rounds
        state = replace(state, grants={**state.grants, limit: state.grants.get(limit, 0) + more})
    if packet.step is not None and event.choice == "continue":
        step = state.steps[packet.step]
        state = with_step(
            state, packet.step, replace(step, error_grant=step.error_grant + event.rounds, retry_at=event.at)
        )
    loops = dict(state.loops)
    for id, loop in state.loops.items():
        if loop.escalation == packet.id:
            loop = replace(loop, escalation=next((other for other in open_ones if open_ones[other].loop == id), None))
            if goes_on and loop.state is LoopState.ESCALATING:
                loop = loop.moved(LoopState.RESOLVING)
                if event.choice == "continue" and loop.unverified:
                    loop = loop.moved(LoopState.VALIDATING)
            loops[id] = _granted(state, loop, event) if packet.loop else loop
    return replace(state, loops=loops)


def _granted(state: RunState, loop: Loop, event: e.EscalationDecided) -> Loop:
    if event.choice == "revise":
        return replace(
            loop,
            forgiven={
                "loop": loop.round,
                **{f"pair:{target}": state.pairs.get((loop.source, target), 0) for target in loop.targets},
                **{f"step:{target}": state.rounds_of(target) for target in loop.targets},
            },
            granted=0,
            longest_streak=0,
            failures=0,
            revised_at=_turns(state.steps.get(loop.source), loop),
            unchanged=0,
            returns=0,
            balance=(),
            advice=event.note,
        )
    return replace(
        loop,
        granted=loop.granted + event.rounds,
        diverging_from=loop.round + event.rounds,
        advice=event.note or loop.advice,
    )


def _finding_reclassified(state: RunState, event: e.FindingReclassified) -> RunState:
    id = event.finding
    tracked = replace(state.findings[id], reclassified=(event.phase,))
    state = replace(state, findings=state.findings.set(id, tracked))
    loop = state.loops.get(tracked.loop or "")
    if loop is None or not any(id in share.findings for share in loop.shares.values() if not share.charged):
        return state
    return with_loop(state, replace(loop, reclassified=tuple(dict.fromkeys((*loop.reclassified, id)))))


def _findings_settled(state: RunState, event: e.FindingsSettled) -> RunState:
    findings, accepted = state.findings, state.accepted
    for id in event.findings:
        tracked = with_status(findings[id], event.status)
        findings = findings.set(id, tracked)
        if event.status is Status.ACCEPTED:
            accepted = accepted.set(tracked.key, id)
    steps = {
        name: replace(step, open_findings=tuple(id for id in step.open_findings if findings[id].needs_answer))
        if step.open_findings
        else step
        for name, step in state.steps.items()
    }
    compromised = state.compromised or event.status in (Status.ACCEPTED, Status.DEFERRED)
    return replace(state, steps=steps, findings=findings, accepted=accepted, compromised=compromised)


__all__ = [
    "ASKED",
    "Artifact",
    "Escalation",
    "Judgement",
    "RunState",
    "Running",
    "StepState",
    "asked_key",
    "delivers",
    "evolve",
    "number",
    "replay",
    "with_loop",
    "with_step",
]
