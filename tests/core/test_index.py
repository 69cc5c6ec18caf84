"""The index of a run: it matches a scan of all steps, and the cost of a step does not grow with the run."""

from __future__ import annotations

import sys
from collections.abc import Callable

from hypothesis import given

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.decide import transact
from backedge.core.model import Kind, Outcome, Question
from backedge.core.scheduling.index import index_of, running_attempts
from backedge.core.scheduling.pending import needs_input_check, next_wake, outcome_of
from backedge.core.scheduling.scheduler import ready
from backedge.core.state.evolve import replay
from backedge.core.state.run import NOTHING_DERIVED, RunState
from backedge.core.value import replace
from backedge.core.workflow.definition import Step
from tests.core.play import Play, ask, failed, flow, grows, out, passed, planned, step
from tests.core.strategies import Pick, a_random_run, drive_to_end, effort, picks

GROUP = 20


def without_index(run: RunState) -> RunState:
    """The same run, whose index has to be built from all its steps."""
    return replace(run, derived=NOTHING_DERIVED)


def assert_index_matches_all_steps(run: RunState, now: float) -> None:
    updated, plain = index_of(run), without_index(run)
    built = index_of(plain)
    assert updated.unsettled.keys() == built.unsettled.keys()
    assert updated.front == built.front
    assert updated.running.keys() == built.running.keys()
    assert updated.erring.keys() == built.erring.keys()
    assert running_attempts(run) == running_attempts(plain)
    assert next_wake(run, now) == next_wake(plain, now)
    for moment in (now, float("inf")):
        every = ready(plain, moment)
        assert ready(run, moment) == every
        # The most urgent ones come first, even if only a few are requested.
        free = [start for start in every if not needs_input_check(run, start)]
        for limit in (1, 2):
            some = ready(run, moment, limit)
            assert [start for start in some if not needs_input_check(run, start)][:limit] == free[:limit]


@effort(60)
@given(picks())
def test_the_index_matches_a_scan_of_all_steps(pick: Pick) -> None:
    run = a_random_run(pick)
    drive_to_end(run)
    for result in run.results:
        assert result.after is not None
        assert_index_matches_all_steps(result.after, result.now)
    assert replay(run.events) == run.s


@effort(20)
@given(picks())
def test_a_replay_notes_no_changes_as_long_as_there_is_no_index(pick: Pick) -> None:
    """Each note would copy those before it, so that a long history took time in the square of its length."""
    run = a_random_run(pick)
    drive_to_end(run)
    replayed = replay(run.events)
    assert replayed is not None
    assert (replayed.derived.index, replayed.derived.changed) == (None, ())


def tree(size: int) -> list[Step]:
    """A tree in groups of 20: in each a head, two steps under every step, and a review of every fifth."""
    found = [step("plan", phase="planning")]
    while len(found) < size:
        group, index = divmod(len(found) - 1, GROUP)
        name, above = f"g{group}-{index}", max(0, (index - 1) // 2)
        if index % 5 == 4:
            found.append(step(name, reviews=f"g{group}-{index - 1}"))
        else:
            above -= above % 5 == 4
            found.append(step(name, f"g{group}-{above}" if index else "plan", phase="code"))
    return found


def report(run: RunState, name: str) -> Outcome:
    """Every fourth review, which is one step in twenty, fails once."""
    step = run.steps[name]
    if not run.graph.is_judge(name):
        return out(f"{name} {step.attempts}")
    fails = not step.verdicts and int(name.rpartition("-")[2]) == GROUP - 1
    return failed(f"{name} is wrong") if fails else passed()


def grown(size: int, counted: Callable[[object, str, object], None] | None = None) -> tuple[list[e.Event], RunState]:
    """A tree of steps from start to end, four at a time."""
    workflow = flow(*tree(size), limits={"rounds_total": size})
    events, run = transact(None, c.StartRun("r", workflow), 1.0, 4)
    recorded = list(events)
    while run.ended is None:
        name, running = running_attempts(run)[0]
        done = c.FinishAttempt(name, running.attempt, report(run, name))
        sys.setprofile(counted)
        try:
            events, run = transact(run, done, run.last_at + 1, 1)
        finally:
            sys.setprofile(None)
        recorded += events
    return recorded, run


def calls_per_step(size: int) -> float:
    """The number of function calls per attempt: a measure of cost that does not depend on how busy the machine is."""
    made = 0

    def count(_frame: object, what: str, _arg: object) -> None:
        nonlocal made
        made += what in ("call", "c_call")

    _, run = grown(size, count)
    assert outcome_of(run) == "verified"
    assert run.opened_loops == size // GROUP  # 5 % of the steps
    return made / run.attempts


def test_the_cost_per_step_does_not_grow_with_the_size_of_the_run() -> None:
    small, large = calls_per_step(101), calls_per_step(1_001)
    assert large < 1.3 * small, (small, large)


def test_a_large_run_replays_to_the_same_state() -> None:
    events, run = grown(200)
    assert replay(events) == run


def test_a_planner_can_make_a_run_large() -> None:
    more = [step(f"s{index}", "plan", phase="code") for index in range(100)]
    play = Play(
        flow(step("plan", phase="planning", plans=True), max_steps=200), {"plan": [planned("p", *more)]}, slots=3
    ).run()
    assert play.outcome == "done"
    assert len(play.attempts()) == 101


def test_questions_and_feedback_reach_their_targets_in_a_large_run() -> None:
    steps = tree(100)
    leaf = steps[-1].name if not steps[-1].judges else steps[-2].name
    scripts = {each.name: grows for each in steps if not each.judges}
    play = Play(flow(*steps), scripts, slots=2)
    replies = iter([out("v", feedback=(ask("plan", kind=Kind.CONTEXT_REQUEST),)), out("v")])
    play.scripts[leaf] = lambda _play, _name: next(replies)
    play.scripts["plan"] = [out("p"), out("p", answer="forty-two")]
    play.run()
    assert play.outcome == "verified"
    assert play.attempts()["plan"] == 2
    assert play.attempts()[leaf] == 2


def test_conditions_are_evaluated_in_a_large_run_too() -> None:
    steps = [*tree(100), step("extra", "plan", when=("plan:/ui == true",)), step("last", "extra", phase="code")]
    play = Play(flow(*steps), {"plan": [out({"ui": False})]}, slots=2).run()
    assert play.outcome == "verified"
    assert (play.attempts()["extra"], play.attempts()["last"]) == (0, 1)


def test_a_question_to_a_person_is_withdrawn_when_its_input_changes() -> None:
    work = flow(step("plan"), step("other"), step("sign", "plan", agents=("human",)))
    play = Play(work, {"plan": [out(1), out(2)]}).run()
    play.person_raises("plan").run().decide("resolve").run()
    assert [play.s.escalations[id].about for id in play.asked()] == [Question("work", {"plan": 2})]
    play.decide("resolve", note="signed").run()
    assert (play.outcome, play.attempts()["sign"]) == ("done", 1)
