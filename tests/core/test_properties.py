"""What is true for every run of every workflow, whatever agents and people do. One test for each sentence of the design.

Each property is a function that checks the record of a run. The tests below apply it to random records; `make deep`
tries twenty times as many.
"""

from __future__ import annotations

from collections import Counter

import msgspec
from hypothesis import given

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.briefing import brief
from backedge.core.decide import decide
from backedge.core.feedback.loop import FINAL, TRANSITIONS, LoopState
from backedge.core.findings.identity import fingerprint
from backedge.core.findings.ledger import UNSETTLED, ledger_key
from backedge.core.findings.verdicts import stated_findings
from backedge.core.model import HUMAN, SIDE_MODES, Severity
from backedge.core.scheduling.pending import RestoreFiles, WakeAt, outcome_of, pending
from backedge.core.scheduling.scheduler import ready
from backedge.core.state.evolve import evolve
from backedge.core.state.run import RunState
from backedge.core.workflow.bound import max_attempts
from backedge.core.workflow.graph import Graph
from tests.core.strategies import Pick, RandomRun, a_random_run, drive_to_end, effort, picks

NET = "nothing can start, and no rule says why: cancel the run and report this as a bug"
DECODER = msgspec.json.Decoder(e.Event)


# 1. The bound


def attempts_made(run: RandomRun) -> int:
    return sum(isinstance(event, e.AttemptStarted) for event in run.events)


def attempts_dropped(run: RandomRun) -> int:
    return sum(isinstance(event, e.AttemptDropped) for event in run.events)


def granted(run: RandomRun) -> float:
    """The most attempts that people can have added: by decisions, and by feedback that no attempt raised."""
    limits, steps = run.workflow.limits, run.workflow.max_steps if run.workflow.plans else len(run.workflow.steps)
    all_limits = [limits, *(step.limits for step in run.workflow.steps if step.limits)]
    tries = max(each.errors_in_a_row or 0 for each in all_limits)
    packets = {event.escalation: event for event in run.events if isinstance(event, e.EscalationOpened)}
    more: float = 0
    per_pair = max(each.rounds_per_pair or 0 for each in all_limits) if limits.rounds_total is None else 0
    for event in run.events:
        if isinstance(event, e.LoopOpened) and event.feedback is not None and not event.attempt:
            # Its source runs once more to verify it. Pairs with a person as their source are not in the bound.
            more += tries if event.source != HUMAN else tries * steps * per_pair * len(event.feedback.to)
        if not isinstance(event, e.EscalationDecided) or event.by == "on_breach":
            continue
        packet = packets[event.escalation]
        limit = packet.breach.limit if packet.breach else ""
        if event.choice == "resolve" or packet.reason.startswith("the delivered files"):
            more += tries * steps
        elif limit == "errors_in_a_row":
            more += event.rounds
        elif limit == "attempts":
            more += event.amount
        elif limits.rounds_total is None or limit == "rounds_total":
            # Every target of the loop may get that many more, and `revise` resets the rounds used.
            used = max(max(each.rounds_per_step or 0, each.rounds_per_pair or 0) for each in all_limits)
            more += tries * steps * steps * (event.rounds + (used if event.choice == "revise" else 0))
    return more


def no_run_passes_its_bound(run: RandomRun) -> None:
    bound = max_attempts(run.workflow)
    assert bound is not None
    allowed = bound + granted(run)
    assert attempts_made(run) - attempts_dropped(run) <= allowed, (attempts_made(run), bound, granted(run))
    if run.workflow.limits.attempts is not None:
        extra = [ev.amount for ev in run.events if isinstance(ev, e.EscalationDecided)]
        assert attempts_made(run) <= run.workflow.limits.attempts + sum(extra)


# 2. and 5. Something is always pending, and every loop ends


def something_is_always_pending(run: RandomRun) -> None:
    for result in run.results:
        state = result.after
        assert state is not None
        assert not any(isinstance(ev, e.EscalationOpened) and ev.reason == NET for ev in result.events), result.command
        if state.ended is not None or state.paused_by is not None:
            continue
        effects = pending(state, result.now)
        assert effects
        if outcome_of(state) == "running" and not state.busy and not ready(state, result.now):
            assert any(isinstance(effect, WakeAt | RestoreFiles) for effect in effects), "nothing would wake the run"
        running = [step.running for step in state.steps.values() if step.running is not None]
        if running and all(attempt.awaits for attempt in running) and not state.escalations:
            assert ready(state, float("inf")), "all attempts wait for each other"


def open_loops_wait_for_a_person(run: RandomRun) -> None:
    """For a run in which nothing can start."""
    state = run.s
    assert state.ended is not None or not state.busy
    if state.loops:
        assert state.escalations
    if state.ended is not None:
        assert not state.loops and not state.escalations


# 3. No finding is lost


def no_finding_is_lost(run: RandomRun) -> None:
    for result in run.results:
        assert result.after is not None
        for event in result.events:
            if isinstance(event, e.VerdictGiven):
                for sighting in event.findings:
                    assert result.after.findings[sighting.id].found_by == event.judge
                for id, _ in event.settled:
                    assert id in result.after.findings
        verdicts = [event for event in result.events if isinstance(event, e.VerdictGiven)]
        if isinstance(result.command, c.FinishAttempt) and verdicts:
            sighted = {sighting.id for sighting in verdicts[0].findings}
            for finding in stated_findings(result.command.outcome):
                assert result.after.finding_by_key[ledger_key(result.command.step, fingerprint(finding))] in sighted
            # It reports on every finding that it had to verify.
            assert result.before is not None
            answered = sighted | {id for id, _ in verdicts[0].settled}
            assert set(result.before.steps[result.command.step].open_findings) <= answered
        if result.after.ended is not None and result.after.ended.outcome in ("verified", "done", "accepted"):
            unsettled = [f for f in result.after.findings.values() if f.status in UNSETTLED]
            assert not unsettled, unsettled
    for result in run.results[1:]:
        assert result.before is not None and result.after is not None
        assert len(result.before.findings) <= len(result.after.findings)


# 4. Each finding reaches each affected phase once per round


def nearest_of_phase(graph: Graph, source: str, phase: str) -> set[str]:
    """The steps of a phase that a judge's finding has to reach, computed independently of the code under test."""
    level, distance = {source}, {source: 0}
    while level:
        level = {need for name in level for need in graph.needs[name] if need not in distance}
        distance.update(dict.fromkeys(level, max(distance.values()) + 1))
    others = [name for name, step in graph.steps.items() if not step.judges and name != source]
    legal = [name for name in others if graph.phase_of[name] == phase]
    if graph.workflow.scope == "upstream":
        rank = graph.rank(source)
        legal = [name for name in legal if name in distance or graph.rank(name) < rank or name == graph.root]
    near = [distance[name] for name in legal if name in distance]
    return {name for name in legal if distance.get(name) == min(near)} if near else set(legal)


def each_finding_reaches_each_phase_once(run: RandomRun) -> None:
    done: dict[str, Counter[str]] = {}
    carried: dict[tuple[str, int], tuple[str, ...]] = {}
    for result in run.results:
        for before, event, after in result.transitions():
            if isinstance(event, e.FeedbackRouted):
                for ids in event.shares.values():
                    assert len(set(ids)) == len(ids)
                loop = after.loops[event.loop]
                if "affected_phase" in event.rules:
                    for finding in event.rules["affected_phase"]:
                        expected = {
                            target
                            for phase in after.findings[finding].phases
                            for target in nearest_of_phase(after.graph, loop.source, phase)
                            # A step that was skipped before it made an artifact cannot have injected the defect.
                            if after.steps[target].artifact is not None or not after.steps[target].skipped_by_decision
                        }
                        # A target that already works on it keeps it, even if it was sent elsewhere since.
                        got = {to for to, share in loop.shares.items() if finding in share.findings}
                        assert expected <= got <= expected | set(event.kept)
                done[event.loop] = Counter()
                # An attempt that is still choosing does not count for the round that a choice began without it.
                carried = {at: tuple(id for id in loops if id != event.loop) for at, loops in carried.items()}
            elif isinstance(event, e.RolledBack):
                done |= {id: Counter() for id in event.shares}
            elif isinstance(event, e.AttemptStarted):
                assert len(set(event.loops)) == len(event.loops)
                carried[event.step, event.attempt] = event.loops
                briefed = brief(after, event.step, event.at, None, {}).feedback.findings
                assert len({finding.id for finding in briefed}) == len(briefed)
                expected = {f"F-{id}" for loop in event.loops for id in after.loops[loop].shares[event.step].findings}
                # Feedback that a new plan has to settle was never executed: it comes with the plan's rework.
                expected |= {
                    f"F-{id}"
                    for loop in before.loops.values()
                    if loop.state is LoopState.VALIDATING and event.mode not in SIDE_MODES and event.step in loop.shares
                    for share in (loop.shares[event.step],)
                    if not share.counted
                    for id in share.findings
                }
                # The same finding of several judges appears once, with the ids of all of them.
                assert {id for each in briefed for id in (each.id, *each.same_as)} == expected
                assert not any(before.loops[id].shares[event.step].done for id in event.loops)
                if event.mode not in SIDE_MODES and not event.loops:
                    own = [loop for loop in before.loops.values() if loop.source == event.step and loop.by_verdict]
                    assert all(share.done for loop in own for share in loop.shares.values()), "it verifies too early"
            elif isinstance(event, e.AttemptSucceeded):
                for id in carried[event.step, event.attempt]:
                    done[id][event.step] += 1
                    assert done[id][event.step] == 1, f"{id} was delivered twice to {event.step}"


# 6. A pass covers only what its judge saw


def a_pass_covers_only_what_its_judge_saw(run: RandomRun) -> None:
    shown: dict[str, dict[str, int]] = {}
    for result in run.results:
        for _, event, after in result.transitions():
            if isinstance(event, e.AttemptStarted | e.ResultDelivered):
                shown[event.step] = event.inputs
            elif isinstance(event, e.VerdictGiven) and event.attempt:
                verdict = after.steps[event.judge].verdict
                assert verdict is not None
                assert verdict.versions == shown[event.judge]
        if result.after is not None and result.after.ended is not None and result.after.ended.outcome == "verified":
            _every_verdict_is_current(result.after)


def _every_verdict_is_current(state: RunState) -> None:
    for name, step in state.steps.items():
        artifact = step.artifact
        assert artifact is not None
        for need in state.graph.needs[name]:
            made = state.steps[need].artifact
            assert made is not None
            parts = dict(state.graph.steps[name].reads).get(need)
            seen = made.digest if parts is None else " ".join(made.parts[part] for part in parts)
            assert artifact.consumed[need] == seen
        if state.graph.is_judge(name):
            assert step.verdict is not None and step.verdict.word != "fail"


# 7. The journal is the only truth


def replaying_gives_the_live_state(run: RandomRun) -> None:
    replayed: RunState | None = None
    for result in run.results:
        for event in result.events:
            written = DECODER.decode(msgspec.json.encode(event))
            assert written == event
            replayed = evolve(replayed, written)
        assert result.after is not None and replayed is not None
        for name in RunState.__struct_fields__:
            if name != "graph":
                assert getattr(replayed, name) == getattr(result.after, name), name
        assert replayed.workflow == result.after.workflow


# 8. Refused feedback changes nothing; if it is serious and an attempt raised it, a person is asked


def refused_feedback_changes_nothing(run: RandomRun) -> None:
    for result in run.results:
        refusals = [event for event in result.events if isinstance(event, e.RefusedFeedback)]
        if isinstance(result.command, c.RaiseFeedback) and refusals:
            assert result.before is not None and result.after is not None
            assert result.events[0] is refusals[0] and len(refusals) == 1
            otherwise = decide(result.before, c.Proceed(), result.now, result.room)
            asked = [event for event in result.events if isinstance(event, e.EscalationOpened) and event.refused]
            if asked:
                # The ids of other escalations that are opened at the same time follow.
                assert result.command.attempt and asked == [result.events[1]]
                assert [type(event) for event in result.events[2:]] == [type(event) for event in otherwise]
            else:
                assert result.events[1:] == otherwise
        for before, event, after in result.transitions():
            if isinstance(event, e.RefusedFeedback):
                same = msgspec.structs.replace(after, seq=before.seq, refused=before.refused, last_at=before.last_at)
                assert same == before
                assert len(after.refused) == len(before.refused) + 1


# 9. Deciding is a pure function


def deciding_is_pure(run: RandomRun) -> None:
    for result in run.results:
        if result.illegal is not None:
            assert not result.events and result.after is result.before
            assert str(result.illegal)
        else:
            assert decide(result.before, result.command, result.now, result.room) == result.events
            started = [event for event in result.events if isinstance(event, e.AttemptStarted)]
            # Approval that nobody has to give takes no slot.
            approvers = {step.name for step in run.workflow.steps if step.approver}
            assert sum(event.step not in approvers for event in started) <= result.room
            times = [event.at for event in result.events]
            assert times == sorted(times) and (result.before is None or not times or times[0] >= result.before.last_at)


# 10. Pausing


def while_paused_only_awaited_steps_start(run: RandomRun) -> None:
    blocking: set[str] = set()
    for result in run.results:
        for before, event, after in result.transitions():
            if isinstance(event, e.LoopOpened) and event.feedback is not None:
                if event.feedback.blocking or event.feedback.severity is Severity.CRITICAL:
                    blocking.add(event.loop)
            elif isinstance(event, e.FeedbackRouted):
                found = (after.findings[id].finding for ids in event.shares.values() for id in ids)
                if any(finding.blocking or finding.severity is Severity.CRITICAL for finding in found):
                    blocking.add(event.loop)
            elif isinstance(event, e.LoopClosed):
                blocking.discard(event.loop)
            elif isinstance(event, e.RolledBack):
                blocking -= {id for id in event.shares if not after.loops[id].pauses}
            elif isinstance(event, e.AttemptStarted):
                assert before.paused_by is None
                assert not blocking or event.step in _awaited_steps(before), (event, blocking)
            if after.ended is None:
                assert after.paused == (bool(blocking) or after.paused_by is not None)


def _awaited_steps(state: RunState) -> set[str]:
    graph = state.graph
    wanted: set[str] = set()
    for loop in state.loops.values():
        targets = {*loop.targets, *loop.shares}
        wanted |= {loop.source, *targets}
        wanted |= {name for name, step in graph.steps.items() if set(step.judges) & targets}
    wanted |= {name for name, step in state.steps.items() if set(step.added_for) & set(state.loops)}
    wanted -= {HUMAN}
    # A step also needs the judges before it to pass.
    while more := {need for name in wanted for need in (*graph.needs[name], *graph.gates[name])} - wanted:
        wanted |= more
    return wanted


# 11. Loops move along the table


def takes_two_transitions(event: e.Event) -> bool:
    """Whether an event moves a loop through two states at once: a choice does, and so does a decision about a loop whose
    fix came meanwhile or that a planner gets."""
    decided = isinstance(event, e.EscalationDecided) and event.choice in ("continue", "replan")
    return isinstance(event, e.ChoiceMade) or decided


def loops_move_along_the_table(run: RandomRun) -> None:
    for result in run.results:
        for before, event, after in result.transitions():
            for id, loop in after.loops.items():
                if id in before.loops:
                    was = before.loops[id].state
                    assert loop.state is was or loop.state in TRANSITIONS[was].values() or takes_two_transitions(event)
                    assert loop.state not in FINAL
                else:
                    assert isinstance(event, e.LoopOpened) and event.loop == id
            for id in before.loops.keys() - after.loops.keys():
                assert isinstance(event, e.LoopClosed) and event.loop == id
                closed = after.loop(id)
                assert closed is not None and closed.state in FINAL
        assert result.after is not None
        sources = Counter(loop.source for loop in result.after.loops.values() if loop.by_verdict)
        assert all(number == 1 for number in sources.values())
        for id, packet in result.after.escalations.items():
            assert packet.loop is None or result.after.loops[packet.loop].escalation is not None, id
        for loop in result.after.loops.values():
            assert loop.escalation is None or loop.escalation in result.after.escalations
            assert loop.state != "escalating" or loop.escalation is not None


# 12. Early cutoff


def nothing_runs_again_without_a_reason(run: RandomRun) -> None:
    lost: set[str] = set()
    for result in run.results:
        for before, event, _ in result.transitions():
            if isinstance(event, e.AttemptFailed | e.AttemptDropped):
                lost.add(event.step)
            elif isinstance(event, e.AttemptSucceeded):
                lost.discard(event.step)
            elif isinstance(event, e.AttemptStarted):
                step = before.steps[event.step]
                verifies = any(
                    loop.source == event.step and loop.state == "validating" for loop in before.loops.values()
                )
                checked = any(
                    isinstance(ev, e.LoopClosed) and before.loop(ev.loop).source == event.step  # type: ignore[union-attr]
                    for ev in result.events
                )
                again = verifies or step.results_due or step.replaced or checked or step.rejudge
                if not (event.loops or step.artifact is None or again or event.step in lost):
                    assert _digests(before, event.step) != step.artifact.consumed


def _digests(state: RunState, name: str) -> dict[str, str]:
    found = {}
    for need in state.graph.needs[name]:
        made = state.steps[need].artifact
        parts = dict(state.graph.steps[name].reads).get(need)
        if made is None:
            found[need] = ""
        else:
            found[need] = made.digest if parts is None else " ".join(made.parts.get(part, "") for part in parts)
    return found


# 3.4 Starting


def nothing_starts_too_early(run: RandomRun) -> None:
    for result in run.results:
        for before, event, _ in result.transitions():
            if not isinstance(event, e.AttemptStarted) or event.mode in SIDE_MODES:
                continue
            for name in (*before.graph.upstream[event.step], *before.graph.consumers[event.step]):
                running = before.steps[name].running
                assert running is None or running.awaits or running.mode in SIDE_MODES, (event.step, name)
            for need in before.graph.needs[event.step]:
                assert before.steps[need].artifact is not None or before.steps[need].skipped_by_decision, (
                    event.step,
                    need,
                )
            if not before.loops:
                for need in before.graph.upstream[event.step]:
                    assert before.steps[need].skipped_by_decision or _current(before, need), (event.step, need)
                for gate in before.graph.gates[event.step]:
                    verdict = before.steps[gate].verdict
                    passed = verdict is not None and (verdict.word != "fail" or verdict.accepted)
                    assert before.steps[gate].skipped_by_decision or (passed and _current(before, gate)), (
                        event.step,
                        gate,
                    )


def _current(state: RunState, name: str) -> bool:
    made = state.steps[name].artifact
    return made is not None and made.consumed == _digests(state, name) and not state.steps[name].replaced


EVERYWHERE = (
    no_run_passes_its_bound,
    something_is_always_pending,
    no_finding_is_lost,
    each_finding_reaches_each_phase_once,
    a_pass_covers_only_what_its_judge_saw,
    replaying_gives_the_live_state,
    refused_feedback_changes_nothing,
    deciding_is_pure,
    while_paused_only_awaited_steps_start,
    loops_move_along_the_table,
    nothing_runs_again_without_a_reason,
    nothing_starts_too_early,
)


@given(picks())
@effort(250)
def test_no_run_passes_its_bound(pick: Pick) -> None:
    run = a_random_run(pick, people=False, most=4, stubborn=True)
    assert run.rest(1_500)
    no_run_passes_its_bound(run)


@given(picks())
@effort(150)
def test_people_add_no_more_attempts_than_they_grant(pick: Pick) -> None:
    run = a_random_run(pick)
    drive_to_end(run)
    no_run_passes_its_bound(run)


@given(picks())
@effort(150)
def test_every_open_loop_ends_or_waits_for_a_person(pick: Pick) -> None:
    run = a_random_run(pick)
    assert run.rest()
    open_loops_wait_for_a_person(run)


@given(picks())
@effort(150)
def test_a_run_whose_inbox_is_answered_ends(pick: Pick) -> None:
    run = a_random_run(pick)
    assert drive_to_end(run)
    open_loops_wait_for_a_person(run)
    something_is_always_pending(run)


@given(picks())
@effort(150)
def test_something_is_always_pending_running_escalated_or_finished(pick: Pick) -> None:
    something_is_always_pending(a_random_run(pick))


@given(picks())
@effort(150)
def test_no_finding_is_lost(pick: Pick) -> None:
    run = a_random_run(pick)
    drive_to_end(run)
    no_finding_is_lost(run)


@given(picks())
@effort(150)
def test_each_finding_reaches_each_affected_phase_once_per_round(pick: Pick) -> None:
    each_finding_reaches_each_phase_once(a_random_run(pick))


@given(picks())
@effort(150)
def test_a_pass_never_covers_a_version_that_its_judge_did_not_see(pick: Pick) -> None:
    run = a_random_run(pick)
    drive_to_end(run)
    a_pass_covers_only_what_its_judge_saw(run)


@given(picks())
@effort(150)
def test_replaying_the_events_gives_the_live_state_after_every_command(pick: Pick) -> None:
    replaying_gives_the_live_state(a_random_run(pick))


@given(picks())
@effort(150)
def test_refused_feedback_changes_nothing_and_asks_a_person_if_it_is_serious(pick: Pick) -> None:
    refused_feedback_changes_nothing(a_random_run(pick))


@given(picks())
@effort(150)
def test_deciding_is_a_pure_function_and_an_illegal_command_changes_nothing(pick: Pick) -> None:
    run = a_random_run(pick)
    for _ in range(8):
        run.do(run.junk())
    deciding_is_pure(run)
    replaying_gives_the_live_state(run)


@given(picks())
@effort(150)
def test_while_paused_only_what_open_loops_wait_for_starts(pick: Pick) -> None:
    while_paused_only_awaited_steps_start(a_random_run(pick))


@given(picks())
@effort(150)
def test_loops_move_along_the_table_and_a_judge_has_one_at_most(pick: Pick) -> None:
    loops_move_along_the_table(a_random_run(pick))


@given(picks())
@effort(150)
def test_a_step_reruns_only_for_a_reason(pick: Pick) -> None:
    nothing_runs_again_without_a_reason(a_random_run(pick))


@given(picks())
@effort(150)
def test_a_step_starts_only_when_nothing_upstream_is_due_or_running(pick: Pick) -> None:
    nothing_starts_too_early(a_random_run(pick))
