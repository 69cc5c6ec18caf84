"""What a judge's verdict does: it updates the ledger and starts, continues or resolves the judge's loop."""

from __future__ import annotations

from backedge.core import events as e
from backedge.core.breaches import first_breach, next_round_granted
from backedge.core.checks import route_of_engine_judge
from backedge.core.escalation.opening import ask_person, escalate_loop
from backedge.core.feedback.closing import close_loop, end_dispute
from backedge.core.feedback.loop import Loop, LoopState
from backedge.core.feedback.requirements import BY_REQUIREMENT, Gap, gap_of, says_missing
from backedge.core.feedback.routing import Route, route_for
from backedge.core.findings.disputes import find_dispute
from backedge.core.findings.identity import fingerprints
from backedge.core.findings.ledger import TrackedFinding, ledger_key
from backedge.core.findings.unwritable import unwritable_reason
from backedge.core.findings.verdicts import REMOVED_STATUSES, changes_since, read_verdict
from backedge.core.model import HUMAN, Finding, Kind, Outcome, Resolution, Status, VerdictWord
from backedge.core.scheduling.skipping import is_skipped
from backedge.core.state.run import RunState
from backedge.core.transaction import Transaction
from backedge.core.workflow.checks import Check


def record_verdict(
    tx: Transaction, name: str, attempt: int, outcome: Outcome, word: VerdictWord, unasked: bool = False
) -> None:
    """Record a verdict and start, continue or resolve the judge's loop."""
    state = tx.state
    loop = verdict_loop(state, name)
    # A check or gate cannot have missed a finding earlier: each measured value is a new finding.
    later = loop is not None and name not in state.graph.engine_judges
    changed = changes_since(state, name)
    reading = read_verdict(state, name, outcome.findings, outcome.resolutions, word, changed, later)
    granted = loop is not None and next_round_granted(loop)
    # The first findings of a run cannot contradict earlier ones.
    disputable = len(state.findings) > 0 and not granted
    dispute = find_dispute(state, name, reading.sightings, changed) if disputable else None
    tx.add(e.VerdictGiven(tx.now, name, attempt, reading.word, reading.sightings, reading.settled, unasked))
    if reading.word != "fail":
        if loop is not None:
            close_loop(tx, loop, LoopState.RESOLVED, Resolution("resolved", text=outcome.summary))
        return
    if state.steps[name].skipped_by_decision:
        # A person skipped this judge while it was running: its findings are recorded, but start no loop.
        judge = tx.state.steps[name]
        tx.add(e.FindingsSettled(tx.now, (*judge.open_findings, *judge.unmentioned), Status.DEFERRED))
        return
    if loop is None:
        kind = _kind_of(state, name)
        last = state.steps[name].last_loop
        tx.add(e.LoopOpened(tx.now, tx.next_loop(), kind, name, attempt, follows=last))
        loop = verdict_loop(tx.state, name)
        assert loop is not None
        balance = None
    else:
        authored = sum(sighting.fix_authored for sighting in reading.sightings if sighting.finding is not None)
        balance = (authored, sum(status in REMOVED_STATUSES for _, status in reading.settled))
    if dispute is not None:
        end_dispute(tx, loop.id, dispute.findings)
        tx.add(e.FindingsContested(tx.now, loop.id, dispute.findings))
    send_round(tx, loop, reading.actionable, balance, dispute.reason if dispute else "")
    after = tx.state.loops.get(loop.id)
    if reading.ask and after is not None and after.state is not LoopState.ESCALATING:
        escalate_loop(tx, after, None, "the judge reported new findings that it could have reported earlier")
        return
    # Asked once: a person may have sent the findings of earlier rounds on.
    new = [sighting.id for sighting in reading.sightings if sighting.fingerprint and sighting.id in reading.actionable]
    if after is not None and after.state is not LoopState.ESCALATING:
        reason = unwritable_reason(tx.state, name, after, new)
        if reason:
            escalate_loop(tx, after, None, reason)


def _kind_of(state: RunState, judge: str) -> Kind:
    measure = state.graph.engine_judges.get(judge)
    if measure is not None:
        return Kind.INCONSISTENCY if isinstance(measure, Check) else Kind.QUALITY_GATE_FAILURE
    return Kind.TEST_FAILURE if state.graph.steps[judge].tests else Kind.REVIEW_REJECTION


def route_of(state: RunState, source: str, tracked: TrackedFinding, blockers: int) -> Route:
    """Where a finding goes. A check or gate routes its own findings. Skipped steps are left out, because no step
    receives what they make; if no target remains, the finding goes to the step under judgement."""
    if source in state.graph.engine_judges and not tracked.reclassified:
        return route_of_engine_judge(state, source, tracked.finding)
    route = route_for(state.graph, source, tracked.phases, tracked.finding, blockers)
    if not state.graph.conditions and not state.has_accepted:
        return route
    available = _not_skipped(state, route.targets)
    subjects = state.graph.steps[source].judges
    return Route(available, route.rule) if available else Route(_not_skipped(state, subjects) or subjects, "subject")


def _not_skipped(state: RunState, targets: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(
        target
        for target in targets
        if target == HUMAN or not (is_skipped(state, target) or state.steps[target].skipped_without_output)
    )


def verdict_loop(state: RunState, judge: str) -> Loop | None:
    """The open loop that a judge's verdicts started. A judge has at most one."""
    for loop in state.loops.values():
        if loop.source == judge and loop.by_verdict:
            return loop
    return None


def send_round(
    tx: Transaction, loop: Loop, ids: tuple[int, ...], balance: tuple[int, int] | None = None, contested: str = ""
) -> None:
    """Route findings as the next round of a loop. Escalate the loop if a limit forbids the round or it is contested."""
    shares, rules, gaps = shares_of(tx, loop, ids)
    deliver_round(tx, loop, shares, rules, balance, (), gaps, contested)


def shares_of(
    tx: Transaction, loop: Loop, ids: tuple[int, ...]
) -> tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]], tuple[tuple[int, str], ...]]:
    """Which target gets which findings, by which rules, and where missing requirements got lost."""
    findings = tx.state.findings
    blockers = sum(findings[id].finding.blocking for id in ids)
    shares: dict[str, list[int]] = {}
    rules: dict[str, list[int]] = {}
    gaps: list[tuple[int, str]] = []
    for id in ids:
        tracked = findings[id]
        route = route_of(tx.state, loop.source, tracked, blockers)
        gap = _gap(tx, loop.source, tracked) if route.rule == "subject" else None
        if gap is not None:
            route = Route((gap.step,), BY_REQUIREMENT)
            gaps.append((id, gap.words))
        rules.setdefault(route.rule, []).append(id)
        # An input check has no step under judgement: if no rule matches, the finding stays with the producer.
        for target in route.targets or tracked.introduced_by:
            shares.setdefault(target, []).append(id)
    routed = {target: tuple(share) for target, share in shares.items()}
    return routed, {rule: tuple(share) for rule, share in rules.items()}, tuple(gaps)


def _gap(tx: Transaction, judge: str, tracked: TrackedFinding) -> Gap | None:
    """Where the requirement that a finding reports as missing was lost, if the shell traced it."""
    requirement = tracked.finding.requirement_id
    if requirement is None or requirement not in tx.mentions or not says_missing(tracked.finding):
        return None
    return gap_of(tx.state, judge, requirement, tx.mentions[requirement])


def reroute_reclassified(tx: Transaction, loop: Loop) -> None:
    """Send findings that a person has reclassified since they were routed to the steps of the new phase. Only findings
    that are not delivered yet move; the rest of the round stays where it is."""
    if not loop.reclassified:
        return
    findings = tx.state.findings
    blockers = sum(findings[id].finding.blocking for id in loop.finding_ids)
    shares = {
        target: [id for id in share.findings if id not in loop.reclassified]
        for target, share in loop.shares.items()
        if not share.counted
    }
    rules: dict[str, list[int]] = {}
    for id in loop.reclassified:
        tracked = findings[id]
        route = route_of(tx.state, loop.source, tracked, blockers)
        rules.setdefault(route.rule, []).append(id)
        for target in route.targets or tracked.introduced_by:
            before = loop.shares.get(target)
            delivered = before.findings if before and before.counted else ()
            if id not in delivered:
                # A target that is still reworking its share gets all of it again, with the new finding.
                unfinished = delivered if before and not before.done else ()
                shares.setdefault(target, list(unfinished)).append(id)
    routed = {target: tuple(ids) for target, ids in shares.items() if ids}
    unchanged = tuple(target for target, share in loop.shares.items() if share.counted and target not in routed)
    deliver_round(tx, loop, routed, {rule: tuple(ids) for rule, ids in rules.items()}, unchanged=unchanged)


def deliver_round(
    tx: Transaction,
    loop: Loop,
    shares: dict[str, tuple[int, ...]],
    rules: dict[str, tuple[int, ...]],
    balance: tuple[int, int] | None = None,
    unchanged: tuple[str, ...] = (),
    gaps: tuple[tuple[int, str], ...] = (),
    contested: str = "",
) -> None:
    """Record the share of each target; targets in `unchanged` keep theirs. Escalate the loop if a limit forbids the round
    or it is contested, else ask the person among the targets."""
    tx.add(e.FeedbackRouted(tx.now, loop.id, shares, rules, balance=balance, kept=unchanged, gaps=gaps))
    routed = tx.state.loops[loop.id]
    breach = first_breach(tx.state, tx.now, loop=routed)
    if breach is not None or contested:
        escalate_loop(tx, routed, breach, contested)
    elif HUMAN in shares:
        ask_person(tx, routed)


def check_inputs(tx: Transaction, step: str, problems: tuple[tuple[str, Finding], ...]) -> bool:
    """Record the result of an input check; True if the inputs fit. Input errors go to the producers and cost no attempt."""
    loop = next((loop for loop in tx.state.loops.values() if loop.source == step and loop.by_check), None)
    word: VerdictWord = "fail" if problems else "pass"
    reading = read_verdict(tx.state, step, tuple(finding for _, finding in problems), (), word, [], later=False)
    fixed = tuple((id, Status.FIXED) for id, _ in reading.settled if _is_input_error(tx.state, id))
    if reading.sightings or fixed:
        tx.add(e.VerdictGiven(tx.now, step, 0, reading.word, reading.sightings, fixed))
    if reading.word != "fail":
        if loop is not None:
            close_loop(tx, loop, LoopState.RESOLVED, Resolution("resolved", text="the inputs fit"))
        return True
    if loop is None:
        tx.add(e.LoopOpened(tx.now, tx.next_loop(), Kind.VALIDATION_FAILURE, step))
        loop = list(tx.state.loops.values())[-1]
    shares: dict[str, list[int]] = {}
    prints = fingerprints(finding for _, finding in problems)
    for (producer, _), print_ in zip(problems, prints, strict=True):
        id = tx.state.finding_by_key[ledger_key(step, print_)]
        if id in reading.actionable and id not in shares.setdefault(producer, []):
            shares[producer].append(id)
    every = tuple(dict.fromkeys(id for ids in shares.values() for id in ids))
    deliver_round(tx, loop, {name: tuple(ids) for name, ids in shares.items()}, {"explicit": every})
    return False


def _is_input_error(state: RunState, finding: int) -> bool:
    """Whether an input check made a finding. Findings of the step as a judge are not settled by the check."""
    loop = state.loop(state.findings[finding].loop or "")
    return loop is not None and loop.kind is Kind.VALIDATION_FAILURE
