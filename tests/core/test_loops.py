"""The life of a loop: the table, and what moves a loop through it."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from backedge.core import commands as c
from backedge.core.errors import AlreadyClosed, IllegalCommand, NotFound
from backedge.core.feedback.loop import FINAL, TRANSITIONS, Loop, LoopEvent, LoopState
from backedge.core.model import HUMAN, Finding, Kind, Severity
from backedge.core.state.evolve import evolve
from backedge.core.state.run import RunState
from tests.core.play import Play, ask, failed, flow, grows, passed, step

S = LoopState


def test_every_state_has_a_row_and_only_final_ones_lead_nowhere() -> None:
    assert set(TRANSITIONS) == set(LoopState)
    assert {state for state, row in TRANSITIONS.items() if not row} == FINAL


def test_the_table_is_that_of_the_design() -> None:
    edges = {(state, after) for state, row in TRANSITIONS.items() for after in row.values()}
    assert edges == {
        (S.NOTIFYING, S.WAITING_RESPONSE),
        (S.WAITING_RESPONSE, S.RESOLVING),
        (S.WAITING_RESPONSE, S.ESCALATING),
        (S.RESOLVING, S.VALIDATING),
        (S.RESOLVING, S.ESCALATING),
        (S.VALIDATING, S.RESOLVED),
        (S.VALIDATING, S.RESOLVING),
        (S.VALIDATING, S.ESCALATING),
        (S.ESCALATING, S.RESOLVED),
        (S.ESCALATING, S.RESOLVING),
        (S.ESCALATING, S.ACCEPTED),
        (S.ESCALATING, S.CANCELLED),
        (S.ESCALATING, S.FAILED),
    }


EVENTS = get_args(LoopEvent)


@pytest.mark.parametrize(("state", "event"), list(product(LoopState, EVENTS)))
def test_an_event_looks_up_the_next_state_or_is_refused(state: LoopState, event: LoopEvent) -> None:
    loop = Loop("L-1", Kind.FIX_REQUEST, "a", state)
    if event in TRANSITIONS[state]:
        assert loop.on(event).state is TRANSITIONS[state][event]
    else:
        with pytest.raises(IllegalCommand, match=f"loop L-1 is {state}: '{event}' cannot happen"):
            loop.on(event)


@pytest.mark.parametrize("state", sorted(set(LoopState) - FINAL - {S.NOTIFYING}))
@pytest.mark.parametrize("end", sorted(FINAL))
def test_an_open_loop_can_be_closed_in_any_state(state: LoopState, end: LoopState) -> None:
    assert Loop("L-1", Kind.FIX_REQUEST, "a", state).closed(end).state is end


@pytest.mark.parametrize(("state", "end"), list(product(sorted(FINAL), sorted(FINAL))))
def test_nothing_leaves_a_final_state(state: LoopState, end: LoopState) -> None:
    with pytest.raises(IllegalCommand, match=f"{state} is final"):
        Loop("L-1", Kind.FIX_REQUEST, "a", state).closed(end)


@pytest.mark.parametrize("state", [S.WAITING_RESPONSE, S.RESOLVING, S.VALIDATING, S.ESCALATING])
def test_a_resumed_loop_waits_for_its_targets(state: LoopState) -> None:
    assert Loop("L-1", Kind.FIX_REQUEST, "a", state).resumed().state is S.RESOLVING


def states_of(play: Play, loop: str = "L-1") -> list[LoopState]:
    """The states of a loop, in order."""
    state: RunState | None = None
    seen: list[LoopState] = []
    for event in play.events:
        state = evolve(state, event)
        found = state.loop(loop)
        if found is not None and seen[-1:] != [found.state]:
            seen.append(found.state)
    return seen


REVIEWED = (step("design"), step("review", reviews="design"))


def test_a_verified_fix_resolves_the_loop() -> None:
    play = Play(flow(*REVIEWED), {"design": grows, "review": [failed("x"), passed()]}).run()
    assert states_of(play) == [S.NOTIFYING, S.WAITING_RESPONSE, S.RESOLVING, S.VALIDATING, S.RESOLVED]


def test_a_rejected_fix_starts_another_round() -> None:
    play = Play(flow(*REVIEWED), {"design": grows, "review": [failed("x"), failed("y"), passed()]}).run()
    assert states_of(play)[2:] == [S.RESOLVING, S.VALIDATING, S.RESOLVING, S.VALIDATING, S.RESOLVED]


def test_a_limit_leads_from_validating_to_escalating() -> None:
    work = flow(*REVIEWED, limits={"rounds_per_loop": 1})
    play = Play(work, {"design": grows, "review": [failed("x"), failed("y"), passed()]}).run()
    # The round is routed first, and then found to exceed the limit.
    assert states_of(play)[-2:] == [S.RESOLVING, S.ESCALATING]
    play.decide("continue").run()
    assert states_of(play)[-3:] == [S.RESOLVING, S.VALIDATING, S.RESOLVED]


@pytest.mark.parametrize(
    ("choice", "end"), [("accept", S.ACCEPTED), ("skip", S.ACCEPTED), ("cancel", S.CANCELLED), ("resolve", S.RESOLVED)]
)
def test_a_decision_ends_an_escalated_loop(choice: str, end: LoopState) -> None:
    work = flow(*REVIEWED, limits={"rounds_per_loop": 0})
    play = Play(work, {"design": grows, "review": [failed("x"), passed()]}).run()
    play.decide(choice, note="so be it")
    assert play.loop().state is end
    assert play.loop().resolution is not None


def test_the_policy_error_fails_the_loop() -> None:
    work = flow(*REVIEWED, limits={"rounds_per_loop": 0}, on_breach="error")
    play = Play(work, {"review": [failed("x")]}).run()
    assert play.loop().state is S.FAILED


def test_a_judge_has_one_loop_and_each_failing_verdict_is_its_next_round() -> None:
    work = flow(
        step("plan", phase="planning"), step("design", "plan", phase="design"), step("review", reviews="design")
    )
    rounds = [failed("x"), failed(Finding("y", affected_phase=("planning",))), passed()]
    play = Play(work, {"plan": grows, "design": grows, "review": rounds}).run()
    assert play.opened() == 1
    assert play.loop().round == 2
    assert play.loop().targets == ("plan",)
    assert [past.targets for past in play.loop().past_rounds] == [("design",)]


def test_a_judge_that_fails_again_later_opens_a_new_loop_that_names_the_old_one() -> None:
    play = Play(flow(*REVIEWED), {"design": grows, "review": [failed("x"), passed(), failed("y"), passed()]}).run()
    play.person_raises("design").run()
    assert play.loop("L-3").follows == "L-1"
    assert play.loop("L-3").round == 1


def test_a_failing_test_is_a_test_failure_and_a_failing_review_a_rejection() -> None:
    work = flow(step("code"), step("review", reviews="code"), step("test", tests="code"))
    play = Play(work, {"code": grows, "review": [failed("x"), passed()], "test": [failed("y"), passed()]}).run()
    assert {loop.source: loop.kind for loop in play.s.closed_loops.values()} == {
        "review": Kind.REVIEW_REJECTION,
        "test": Kind.TEST_FAILURE,
    }


def test_a_loop_has_the_severity_of_its_worst_finding() -> None:
    mild = Finding("x", severity=Severity.LOW)
    play = Play(flow(*REVIEWED), {"design": grows, "review": [failed(mild), passed()]}).run()
    assert play.loop().severity is Severity.LOW
    worse = Play(flow(*REVIEWED), {"design": grows, "review": [failed(mild, Finding("y", blocking=True)), passed()]})
    assert (worse.run().loop().severity, worse.loop().blocking) == (Severity.HIGH, True)


class TestAcknowledging:
    """A target acknowledges its feedback."""

    def waiting(self) -> Play:
        play = Play(flow(step("a"), step("b", "a")))
        play.finish("a")
        return play.raises("b", ask("a", HUMAN))

    def test_the_loop_is_resolving_and_keeps_the_message(self) -> None:
        play = self.waiting()
        play.do(c.Acknowledge("L-1", HUMAN, "on it", "ask the boss", "1h"))
        assert play.loop().state is S.RESOLVING
        assert play.loop().acknowledged == {HUMAN: {"message": "on it", "action": "ask the boss", "eta": "1h"}}

    def test_a_second_acknowledgement_is_kept_with_the_first(self) -> None:
        play = self.waiting()
        play.do(c.Acknowledge("L-1", HUMAN, "on it"))
        play.do(c.Acknowledge("L-1", "a", "me too"))
        assert list(play.loop().acknowledged) == [HUMAN, "a"]

    def test_an_acknowledgement_by_another_step_is_refused(self) -> None:
        with pytest.raises(IllegalCommand, match="'b' is not a target of L-1: only a, human"):
            self.waiting().do(c.Acknowledge("L-1", "b"))

    @pytest.mark.parametrize("loop", ["L-9", "E-1", "x"])
    def test_an_unknown_loop_is_not_found(self, loop: str) -> None:
        with pytest.raises(NotFound, match="open loops: L-1"):
            self.waiting().do(c.Acknowledge(loop, "a"))

    def test_a_closed_loop_cannot_be_acknowledged(self) -> None:
        play = self.waiting().decide("resolve", note="done")
        with pytest.raises(AlreadyClosed, match="L-1 is resolved"):
            play.do(c.Acknowledge("L-1", "a"))
        with pytest.raises(NotFound, match="no loops are open"):
            play.do(c.Acknowledge("L-2", "a"))
