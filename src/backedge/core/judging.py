"""From what a judge said to what follows: the ledger, the verdict, the next round of its loop."""

from __future__ import annotations

from backedge.core import events as e
from backedge.core.contest import dispute_in, disputed
from backedge.core.draft import Draft, ask_person, close, end_dispute, escalate_loop
from backedge.core.ledger import Tracked, changes_since, fingerprints, ledger_key, sits_in
from backedge.core.limits import first_breach
from backedge.core.loops import Loop, LoopState
from backedge.core.measures import Check
from backedge.core.measuring import route_of_measure
from backedge.core.model import HUMAN, Change, Claim, Finding, Kind, Outcome, Resolution, Status, Word
from backedge.core.requirements import BY_REQUIREMENT, Gap, gap_of, says_missing
from backedge.core.routing import Route, route_for
from backedge.core.shapes import skips
from backedge.core.state import RunState, number
from backedge.core.value import Value

ACTIONABLE = (Status.OPEN, Status.NOT_FIXED, Status.REGRESSED)
REMOVED = (Status.FIXED, Status.WITHDRAWN, Status.DUPLICATE)


class Reading(Value, frozen=True):
    """What one verdict says about the ledger."""

    word: Word
    sightings: tuple[e.Sighting, ...]
    settled: tuple[tuple[int, Status], ...]
    ask: bool = False
    """It brings findings that could have been made earlier, and a person wants to be asked about those."""

    @property
    def actionable(self) -> tuple[int, ...]:
        return tuple(sighting.id for sighting in self.sightings if sighting.status in ACTIONABLE)


def judge(draft: Draft, name: str, attempt: int, outcome: Outcome, word: Word) -> None:
    """Record a verdict and start, continue or resolve the judge's loop."""
    state = draft.state
    loop = verdict_loop(state, name)
    # What is measured could not have been found earlier: each value is a finding of its own.
    later = loop is not None and name not in state.graph.measures
    changed = changes_since(state, name)
    reading = read(state, name, outcome.findings, outcome.claims, word, changed, later)
    granted = loop is not None and loop.round < loop.diverging_from
    dispute = None if granted else dispute_in(state, name, reading.sightings, changed)
    draft.add(e.VerdictGiven(draft.now, name, attempt, reading.word, reading.sightings, reading.settled))
    if reading.word != "fail":
        if loop is not None:
            close(draft, loop, LoopState.RESOLVED, Resolution("resolved", text=outcome.summary))
        return
    if state.steps[name].passed_over:
        # A person went on without it while it was at work: what it finds after all starts nothing.
        judged_by = draft.state.steps[name]
        draft.add(e.FindingsSettled(draft.now, (*judged_by.open_findings, *judged_by.unmentioned), Status.DEFERRED))
        return
    if loop is None:
        kind = _kind_of(state, name)
        last = state.steps[name].last_loop
        draft.add(e.LoopOpened(draft.now, draft.next_loop(), kind, name, attempt, follows=last))
        loop = verdict_loop(draft.state, name)
        assert loop is not None
        balance = None
    else:
        authored = sum(sighting.fix_authored for sighting in reading.sightings if sighting.finding is not None)
        balance = (authored, sum(status in REMOVED for _, status in reading.settled))
    if dispute is not None:
        end_dispute(draft, loop.id, dispute.findings)
        draft.add(e.FindingsContested(draft.now, loop.id, dispute.findings))
    send_round(draft, loop, reading.actionable, balance, dispute.reason if dispute else "")
    after = draft.state.loops.get(loop.id)
    if reading.ask and after is not None and after.state is not LoopState.ESCALATING:
        escalate_loop(draft, after, None, "new findings that could have been made earlier")


def _kind_of(state: RunState, judge: str) -> Kind:
    measure = state.graph.measures.get(judge)
    if measure is not None:
        return Kind.INCONSISTENCY if isinstance(measure, Check) else Kind.QUALITY_GATE_FAILURE
    return Kind.TEST_FAILURE if state.graph.steps[judge].tests else Kind.REVIEW_REJECTION


def route_of(state: RunState, source: str, tracked: Tracked, blockers: int) -> Route:
    """Where a finding goes: a check or gate says so itself. It goes past steps that are skipped, if need be to the step
    under judgement: what a skipped one makes, nobody gets, and what a person left out is not asked for again."""
    if source in state.graph.measures and not tracked.reclassified:
        return route_of_measure(state, source, tracked.finding)
    route = route_for(state.graph, source, tracked.phases, tracked.finding, blockers)
    if not state.graph.conditions and not state.compromised:
        return route
    there = _not_skipped(state, route.targets)
    subjects = state.graph.steps[source].judges
    return Route(there, route.rule) if there else Route(_not_skipped(state, subjects) or subjects, "subject")


def _not_skipped(state: RunState, targets: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(
        target for target in targets if target == HUMAN or not (skips(state, target) or state.steps[target].left_out)
    )


def verdict_loop(state: RunState, judge: str) -> Loop | None:
    """The open loop that a judge's verdicts started: there is at most one."""
    for loop in state.loops.values():
        if loop.source == judge and loop.by_verdict:
            return loop
    return None


def send_round(
    draft: Draft, loop: Loop, ids: tuple[int, ...], balance: tuple[int, int] | None = None, contested: str = ""
) -> None:
    """Route findings as the next round of a loop; escalate it if a limit forbids that round, or if it is contested."""
    findings = draft.state.findings
    blockers = sum(findings[id].finding.blocking for id in ids)
    shares: dict[str, list[int]] = {}
    rules: dict[str, list[int]] = {}
    gaps: list[tuple[int, str]] = []
    for id in ids:
        tracked = findings[id]
        route = route_of(draft.state, loop.source, tracked, blockers)
        gap = _gap(draft, loop.source, tracked) if route.rule == "subject" else None
        if gap is not None:
            route = Route((gap.step,), BY_REQUIREMENT)
            gaps.append((id, gap.words))
        rules.setdefault(route.rule, []).append(id)
        # A check of inputs has no step under judgement: what no rule routes stays with the producer.
        for target in route.targets or tracked.introduced_by:
            shares.setdefault(target, []).append(id)
    routed = {target: tuple(share) for target, share in shares.items()}
    deliver(draft, loop, routed, {r: tuple(s) for r, s in rules.items()}, balance, (), tuple(gaps), contested)


def _gap(draft: Draft, judge: str, tracked: Tracked) -> Gap | None:
    """Where the requirement that a finding misses got lost, if the shell looked for it."""
    requirement = tracked.finding.requirement_id
    if requirement is None or requirement not in draft.mentions or not says_missing(tracked.finding):
        return None
    return gap_of(draft.state, judge, requirement, draft.mentions[requirement])


def reroute(draft: Draft, loop: Loop) -> None:
    """Send findings that a person has reclassified since they were routed to the steps of that phase. Nobody has them
    yet; what was delivered of the same round stays where it is."""
    if not loop.reclassified:
        return
    findings = draft.state.findings
    blockers = sum(findings[id].finding.blocking for id in loop.given)
    shares = {
        target: [id for id in share.findings if id not in loop.reclassified]
        for target, share in loop.shares.items()
        if not share.charged
    }
    rules: dict[str, list[int]] = {}
    for id in loop.reclassified:
        tracked = findings[id]
        route = route_of(draft.state, loop.source, tracked, blockers)
        rules.setdefault(route.rule, []).append(id)
        for target in route.targets or tracked.introduced_by:
            before = loop.shares.get(target)
            given = before.findings if before and before.charged else ()
            if id not in given:
                # Who is at work on its share is given it again, with what is new.
                at_work = given if before and not before.done else ()
                shares.setdefault(target, list(at_work)).append(id)
    routed = {target: tuple(ids) for target, ids in shares.items() if ids}
    kept = tuple(target for target, share in loop.shares.items() if share.charged and target not in routed)
    deliver(draft, loop, routed, {rule: tuple(ids) for rule, ids in rules.items()}, kept=kept)


def deliver(
    draft: Draft,
    loop: Loop,
    shares: dict[str, tuple[int, ...]],
    rules: dict[str, tuple[int, ...]],
    balance: tuple[int, int] | None = None,
    kept: tuple[str, ...] = (),
    gaps: tuple[tuple[int, str], ...] = (),
    contested: str = "",
) -> None:
    """Record who gets what; escalate the loop if a limit forbids that or it is contested, and ask the person among the targets."""
    draft.add(e.FeedbackRouted(draft.now, loop.id, shares, rules, balance=balance, kept=kept, gaps=gaps))
    routed = draft.state.loops[loop.id]
    breach = first_breach(draft.state, draft.now, loop=routed)
    if breach is not None or contested:
        escalate_loop(draft, routed, breach, contested)
    elif HUMAN in shares:
        ask_person(draft, routed)


def read(
    state: RunState,
    judge: str,
    findings: tuple[Finding, ...],
    claims: tuple[Claim, ...],
    word: Word,
    changed: list[Change],
    later: bool,
) -> Reading:
    """What a verdict says of each finding. `later` means that its loop is open: the goalposts stand."""
    sightings: dict[int, e.Sighting] = {}
    ask = False
    new: dict[str, int] = {}
    fails = word == "fail"
    for finding, print_ in zip(findings, fingerprints(findings), strict=True):
        key = ledger_key(judge, print_)
        id = state.known.get(key)
        tracked = state.findings[id] if id is not None else None
        authored = tracked is None and later and sits_in(finding, changed)
        if key in state.accepted:
            status = Status.ACCEPTED
        elif not fails:
            status = Status.DEFERRED
        else:
            late = later and not authored and (tracked is None or tracked.status is Status.DEFERRED)
            policy = state.workflow.policy_for(finding.severity) if late else "rework"
            ask = ask or (policy == "ask" and tracked is None)
            status = Status.DEFERRED if policy == "defer" else _seen_again(state, tracked)
        if id is None:
            # The same defect may stand twice in one report.
            id = new.setdefault(print_, len(state.findings) + len(new) + 1)
        text = finding if tracked is None or tracked.finding != finding else None
        sightings.setdefault(id, e.Sighting(id, status, text, print_ if tracked is None else "", authored))
    said = {number(claim.finding): claim.status for claim in claims}
    for id, answer in said.items():
        if answer == "not_fixed" and id not in sightings:
            sightings[id] = e.Sighting(id, _seen_again(state, state.findings[id]) if fails else Status.DEFERRED)
    if fails and not any(sighting.status in ACTIONABLE for sighting in sightings.values()):
        word = "needs_improvement"
    complete = state.graph.steps[judge].complete or word != "fail"
    settled = []
    of_judge = state.steps[judge]
    unmentioned = of_judge.unmentioned if word != "fail" else tuple(id for id in said if of_judge.unconfirmed.get(id))
    for id in (*of_judge.open_findings, *unmentioned):
        if id not in sightings:
            unsaid = Status.FIXED if complete else Status.UNCONFIRMED
            status = Status(said[id]) if id in said else unsaid
            # The fix that its judge sees is just what another finding is against.
            settled.append((id, Status.CONTESTED if status is Status.FIXED and disputed(state, id) else status))
    return Reading(word, tuple(sightings.values()), tuple(settled), ask and word == "fail")


def _seen_again(state: RunState, tracked: Tracked | None) -> Status:
    if tracked is None or tracked.status in (Status.WITHDRAWN, Status.DUPLICATE, Status.DEFERRED):
        return Status.OPEN
    if tracked.status is Status.CONTESTED and disputed(state, tracked.id):
        return Status.CONTESTED
    return Status.REGRESSED if tracked.status is Status.FIXED else Status.NOT_FIXED


def check_inputs(draft: Draft, step: str, problems: tuple[tuple[str, Finding], ...]) -> bool:
    """Record what a check of inputs found; True if they fit. It costs no attempt: a misfit goes to the producer."""
    loop = next((loop for loop in draft.state.loops.values() if loop.source == step and loop.by_check), None)
    word: Word = "fail" if problems else "pass"
    reading = read(draft.state, step, tuple(finding for _, finding in problems), (), word, [], later=False)
    gone = tuple((id, Status.FIXED) for id, _ in reading.settled if _is_misfit(draft.state, id))
    if reading.sightings or gone:
        draft.add(e.VerdictGiven(draft.now, step, 0, reading.word, reading.sightings, gone))
    if reading.word != "fail":
        if loop is not None:
            close(draft, loop, LoopState.RESOLVED, Resolution("resolved", text="the inputs fit"))
        return True
    if loop is None:
        draft.add(e.LoopOpened(draft.now, draft.next_loop(), Kind.VALIDATION_FAILURE, step))
        loop = list(draft.state.loops.values())[-1]
    shares: dict[str, list[int]] = {}
    prints = fingerprints(finding for _, finding in problems)
    for (producer, _), print_ in zip(problems, prints, strict=True):
        id = draft.state.known[ledger_key(step, print_)]
        if id in reading.actionable and id not in shares.setdefault(producer, []):
            shares[producer].append(id)
    every = tuple(dict.fromkeys(id for ids in shares.values() for id in ids))
    deliver(draft, loop, {name: tuple(ids) for name, ids in shares.items()}, {"explicit": every})
    return False


def _is_misfit(state: RunState, finding: int) -> bool:
    """Whether a check of inputs made a finding: a judge's other findings are not its to settle."""
    loop = state.loop(state.findings[finding].loop or "")
    return loop is not None and loop.kind is Kind.VALIDATION_FAILURE
