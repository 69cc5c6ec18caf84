"""A running attempt that waits for feedback gets the result as soon as it is there."""

from __future__ import annotations

from typing import Any

import pytest

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.errors import NotFound
from backedge.core.feedback.loop import LoopState
from backedge.core.model import HUMAN
from tests.core.play import Play, Script, ask, flow, grows, step

PLAN_CODE = (step("plan", phase="planning"), step("code", "plan", phase="code"))


def coding(*steps: Any, code: Script = grows, **more: Any) -> Play:
    """The plan is done and the code is being written."""
    play = Play(flow(*(steps or PLAN_CODE), **more), {"plan": grows, "code": code})
    play.finish("plan")
    return play


class TestWaiting:
    def waiting(self, **more: Any) -> Play:
        play = coding(**more).raises("code", ask("plan"))
        play.do(c.BeginWait("L-1", "code", 1))
        return play

    def running(self, play: Play) -> Any:
        return play.s.steps["code"].running

    def awaits(self, play: Play, name: str) -> tuple[str, ...]:
        running = play.s.steps[name].running
        return running.awaits if running else ()

    def test_inputs_may_change_while_an_attempt_waits(self) -> None:
        play = self.waiting()
        assert play.s.steps["plan"].running is not None
        assert coding().raises("code", ask("plan")).s.steps["plan"].running is None

    def test_a_waiting_attempt_gets_the_result_with_the_current_inputs(self) -> None:
        play = self.waiting()
        play.finish("plan")
        (delivered,) = play.of(e.ResultDelivered)
        assert delivered.inputs == {"plan": 2}
        assert self.running(play).awaits == ()

    def test_finishing_without_raising_it_again_resolves_the_loop(self) -> None:
        play = self.waiting()
        play.finish("plan")
        play.finish("code")
        assert (play.outcome, play.attempts()) == ("done", {"plan": 2, "code": 1})
        assert play.loop().state is LoopState.RESOLVED

    def test_raising_it_again_in_the_same_attempt_is_the_next_round(self) -> None:
        play = self.waiting()
        play.finish("plan")
        play.raises("code", ask("plan"))
        play.do(c.BeginWait("L-1", "code", 1))
        play.finish("plan")
        assert (play.loop().round, play.opened()) == (2, 1)

    def test_raising_it_twice_before_the_result_is_one_loop(self) -> None:
        play = self.waiting().raises("code", ask("plan"))
        assert (play.opened(), play.loop().round) == (1, 1)

    def test_the_result_is_delivered_when_everything_upstream_is_settled(self) -> None:
        work = (step("plan"), step("design", "plan"), step("code", "design"))
        play = Play(flow(*work), {"plan": grows, "design": grows})
        play.finish("plan")
        play.finish("design")
        play.raises("code", ask("plan"))
        play.do(c.BeginWait("L-1", "code", 1))
        play.finish("plan")
        assert play.of(e.ResultDelivered) == []
        play.finish("design")
        assert play.of(e.ResultDelivered)[0].inputs == {"design": 2}

    def test_the_result_is_not_delivered_while_an_upstream_fix_is_due(self) -> None:
        play = self.waiting()
        play.person_raises("plan")
        play.finish("plan")
        assert play.of(e.ResultDelivered) == []
        play.run()
        assert play.of(e.ResultDelivered) != []

    def test_an_escalation_ends_the_wait(self) -> None:
        play = self.waiting()
        play.scripts["plan"] = [Exception("broken")]
        for _ in range(3):
            play.finish("plan")
            play.now += 60
            play.do(c.Proceed())
        assert self.running(play).awaits == ()

    def test_an_answer_by_a_person_ends_the_wait_and_needs_no_further_attempt(self) -> None:
        play = coding().raises("code", ask(HUMAN))
        play.do(c.BeginWait("L-1", "code", 1))
        play.decide("resolve", note="yes", by="ann")
        assert self.running(play).awaits == ()
        play.finish("code")
        assert (play.outcome, play.attempts()["code"]) == ("done", 1)

    def test_an_attempt_may_wait_for_several_loops_and_gets_each_result_when_it_is_ready(self) -> None:
        play = coding().raises("code", ask("plan"))
        play.raises("code", ask(HUMAN))
        play.do(c.BeginWait("L-1", "code", 1))
        play.do(c.BeginWait("L-2", "code", 1))
        assert self.running(play).awaits == ("L-1", "L-2")
        play.finish("plan")
        assert [each.loop for each in play.of(e.ResultDelivered)] == ["L-1"]
        assert (self.running(play).awaits, play.outcome) == (("L-2",), "waiting")
        play.decide("resolve", note="yes", by="ann")
        assert self.running(play).awaits == ()

    def test_an_attempt_that_stops_waiting_for_one_loop_still_waits_for_the_other(self) -> None:
        play = coding().raises("code", ask("plan"))
        play.raises("code", ask(HUMAN))
        play.do(c.BeginWait("L-1", "code", 1))
        play.do(c.BeginWait("L-2", "code", 1))
        play.do(c.EndWait("L-2", "code", 1))
        assert self.running(play).awaits == ("L-1",)

    def test_a_deadlock_of_two_waiting_attempts_is_broken(self) -> None:
        play = Play(flow(step("a"), step("b"), step("c"), scope="any"))
        play.finish("a")
        for source, target, loop in (("b", "c", "L-1"), ("c", "b", "L-2")):
            play.raises(source, ask(target))
            play.do(c.BeginWait(loop, source, 1))
        assert play.breach() == "attempts wait for each other: b, c"
        assert self.awaits(play, "b") == ()

    def in_a_circle(self) -> Play:
        """Three attempts wait for each other. The loop of the first was escalated, and its fix came after that."""
        work = flow(step("code", "plan"), step("plan"), step("x"), scope="any")
        play = Play(work, {"plan": grows, "code": grows})
        play.finish("plan")
        for source, target, loop, attempt in (
            ("x", "code", "L-1", 1),
            ("code", "plan", "L-2", 1),
            ("plan", "x", "L-3", 2),
        ):
            play.raises(source, ask(target))
            play.do(c.BeginWait(loop, source, attempt))
        assert play.breach() == "attempts wait for each other: code, plan, x"
        play.do(c.EndWait("L-3", "plan", 2))
        play.finish("plan")
        return play

    def test_a_fix_made_while_a_person_is_asked_waits_for_the_decision(self) -> None:
        play = self.in_a_circle()
        assert (play.loop("L-2").state, play.asked()) == (LoopState.ESCALATING, ["E-1"])

    def test_the_fix_is_verified_when_the_loop_continues(self) -> None:
        play = self.in_a_circle().decide("continue")
        assert play.loop("L-2").state is LoopState.VALIDATING
        assert len([event for event in play.of(e.FeedbackRouted) if event.loop == "L-2"]) == 1

    def test_the_fix_is_redone_when_a_person_revises_the_approach(self) -> None:
        play = self.in_a_circle().decide("revise", note="from scratch")
        assert play.loop("L-2").state is LoopState.RESOLVING
        assert len([event for event in play.of(e.FeedbackRouted) if event.loop == "L-2"]) == 2

    def test_in_a_deadlock_the_attempt_whose_fix_is_done_gets_the_result(self) -> None:
        work = flow(step("a"), step("m", "a"), step("b", "a", "m"), scope="any")
        play = Play(work, {"a": grows, "m": grows})
        play.finish("a")
        play.finish("m")
        play.raises("b", ask("a"))
        play.do(c.BeginWait("L-1", "b", 1))
        play.finish("a")
        play.raises("m", ask("b"))
        play.do(c.BeginWait("L-2", "m", 2))
        assert [each.loop for each in play.of(e.ResultDelivered)] == ["L-1"]

    def test_a_result_is_not_delivered_early_if_a_step_waits_for_a_free_slot(self) -> None:
        play = coding().raises("code", ask("plan"))
        play.slots = 0
        play.do(c.BeginWait("L-1", "code", 1))
        assert (play.of(e.ResultDelivered), play.s.escalations) == ([], {})

    def test_an_attempt_cannot_wait_for_an_escalated_loop(self) -> None:
        play = coding(limits={"rounds_total": 0}).raises("code", ask("plan"))
        play.do(c.BeginWait("L-1", "code", 1))
        assert play.of(e.WaitBegan) == []

    @pytest.mark.parametrize(("loop", "name"), [("L-9", "code"), ("L-1", "plan")])
    def test_only_the_step_that_raised_a_loop_can_wait_for_it(self, loop: str, name: str) -> None:
        play = self.waiting()
        with pytest.raises(NotFound, match="did not raise"):
            play.do(c.BeginWait(loop, name, 2 if name == "plan" else 1))
