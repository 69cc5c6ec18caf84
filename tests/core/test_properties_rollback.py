"""What is true for every run in which fixes that make things worse are rolled back, whatever agents and people do."""

from __future__ import annotations

import msgspec
from hypothesis import given

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.feedback.undoable import counts_of
from backedge.core.model import Severity, Status
from backedge.core.scheduling.staleness import is_fresh
from backedge.core.workflow.definition import Step
from backedge.core.workflow.limits import Limits
from tests.core.strategies import (
    Pick,
    RandomRun,
    a_random_run,
    a_workflow,
    drive_to_end,
    effort,
    one_of,
    picks,
    rarely,
    with_lone_bound,
)
from tests.core.test_properties import (
    each_finding_reaches_each_phase_once,
    loops_move_along_the_table,
    no_finding_is_lost,
    no_run_passes_its_bound,
    replaying_gives_the_live_state,
    something_is_always_pending,
)


def a_run_with_rollbacks(pick: Pick, people: bool) -> RandomRun:
    """A run whose judges mostly fail, with other findings each time, in a workflow that rolls back."""
    workflow = a_workflow(pick, 6)
    first = next(step.name for step in workflow.steps if not step.judges)
    steps = (*workflow.steps, Step("last", judges=(first,)))
    workflow = msgspec.structs.replace(
        workflow,
        steps=tuple(msgspec.structs.replace(step, on_worse=None, passes_if=None, limits=None) for step in steps),
        limits=one_of(pick, (Limits(), Limits(rounds_per_loop=2), Limits(rounds_total=9, rounds_per_loop=None))),
        on_worse="rollback",
        new_findings=tuple((severity, "rework") for severity in Severity),
        routes=(),
    )
    workflow = with_lone_bound(pick, workflow) if rarely(pick, 4) else workflow
    run = RandomRun(workflow, pick, people=people)
    for step in steps:
        producers, judges = ("improves", "improves", "improves", "random"), ("worse", "worse", "steady", "random")
        run.behaviours[step.name] = one_of(pick, judges if step.judges else producers)
    run.do(c.StartRun("r", run.workflow))
    for _ in range(20 + pick(60)):
        if run.s.ended is None:
            run.move()
    return run


def rollbacks_restore_what_was_judged(run: RandomRun) -> None:
    """After a rollback, the old verdicts are about the current versions again, and nothing that is counted went down."""
    for result in run.results:
        for before, event, after in result.transitions():
            if not isinstance(event, e.RolledBack):
                continue
            fix = before.fixes[event.loop]
            assert event.by or event.after > event.before
            assert (event.before, event.after) == counts_of(before, fix)
            assert not any(before.steps[name].running for name in fix.steps)
            for name in (*event.targets, *(loop.source for loop in fix.loops.values())):
                assert is_fresh(after, name)
            for name, old in fix.steps.items():
                assert after.steps[name].artifact == old.artifact
                assert after.steps[name].verdict == old.verdict
                assert after.steps[name].attempts == before.steps[name].attempts
            assert (after.rounds, after.pairs, after.attempts) == (before.rounds, before.pairs, before.attempts)
            assert event.loop not in after.fixes, "a round is rolled back at most once"
            new = range(len(fix.findings) + 1, len(after.findings) + 1)
            own = [after.findings[id] for id in new if after.findings[id].found_by in fix.steps]
            assert all(each.status in (Status.ROLLED_BACK, Status.ACCEPTED) for each in own)


def versions_are_never_used_twice(run: RandomRun) -> None:
    made: dict[tuple[str, int], tuple[str, int]] = {}
    for result in run.results:
        for _, event, after in result.transitions():
            if isinstance(event, e.AttemptSucceeded) and event.step in after.steps:
                artifact = after.steps[event.step].artifact
                if artifact is not None and artifact.attempt == event.attempt:
                    known = made.setdefault((event.step, artifact.version), (artifact.digest, event.attempt))
                    assert known[0] == artifact.digest


def rounds_pay_for_rollbacks(run: RandomRun) -> None:
    """Every rollback belongs to a counted round of its own, so that it cannot repeat for ever."""
    rolled_back = [(event.loop, event.round) for event in run.events if isinstance(event, e.RolledBack)]
    assert len(set(rolled_back)) == len(rolled_back)


def check(run: RandomRun) -> None:
    rollbacks_restore_what_was_judged(run)
    versions_are_never_used_twice(run)
    rounds_pay_for_rollbacks(run)
    no_run_passes_its_bound(run)
    something_is_always_pending(run)
    no_finding_is_lost(run)
    replaying_gives_the_live_state(run)
    loops_move_along_the_table(run)
    each_finding_reaches_each_phase_once(run)


@given(picks())
@effort(60)
def test_rollbacks_keep_every_promise_without_people(pick: Pick) -> None:
    run = a_run_with_rollbacks(pick, people=False)
    assert run.rest()
    check(run)


@given(picks())
@effort(40)
def test_rollbacks_keep_every_promise_with_people(pick: Pick) -> None:
    run = a_run_with_rollbacks(pick, people=True)
    for packet in list(run.s.escalations.values()):
        if "rollback" in packet.options and packet.id in run.s.escalations and run.s.ended is None:
            run.decide(packet.id, "rollback")
    assert drive_to_end(run)
    check(run)


@given(picks())
@effort(20)
def test_any_run_keeps_these_promises(pick: Pick) -> None:
    check(a_random_run(pick))
