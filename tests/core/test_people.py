"""Questions to people: `human` is always a legal target."""

from __future__ import annotations

from typing import Any

import pytest

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.escalation.packet import packet
from backedge.core.feedback.loop import LoopState
from backedge.core.model import HUMAN, Breach, Option, Resolution
from backedge.core.scheduling.pending import response_due
from tests.core.play import Play, Script, ask, failed, flow, grows, out, step

PLAN_CODE = (step("plan", phase="planning"), step("code", "plan", phase="code"))


def coding(*steps: Any, code: Script = grows, **more: Any) -> Play:
    """The plan is done and the code is being written."""
    play = Play(flow(*(steps or PLAN_CODE), **more), {"plan": grows, "code": code})
    play.finish("plan")
    return play


class TestPeople:
    """`human` is always a legal target."""

    def with_question(self, **more: Any) -> Play:
        options = (Option("polling", "low", "slower"), Option("push"))
        return coding(**more).raises("code", ask(HUMAN, message="which?", options=options))

    def test_feedback_to_a_person_goes_to_the_inbox(self) -> None:
        (packet,) = self.with_question().s.escalations.values()
        assert (packet.reason, packet.breach, packet.loop) == ("asked", None, "L-1")
        assert packet.options == ("resolve", "accept", "skip", "cancel")

    def test_the_source_runs_once_more_with_the_answer(self) -> None:
        play = self.with_question()
        play.finish("code")
        assert play.outcome == "waiting"
        play.decide("resolve", option="polling", note="for now", by="ann").run()
        resolution = play.briefings["code"][1].feedback.resolutions[0]
        assert (resolution.state, resolution.option, resolution.text, resolution.by) == (
            "resolved",
            "polling",
            "for now",
            "ann",
        )
        assert (play.outcome, play.attempts()["code"]) == ("done", 2)

    def test_a_question_to_a_person_counts_as_one_round(self) -> None:
        assert (self.with_question().s.rounds, self.with_question().loop().round) == (1, 1)

    @pytest.mark.parametrize(("limit", "bound"), [("rounds_total", 1), ("rounds_per_pair", 1), ("rounds_per_loop", 1)])
    def test_the_last_question_within_the_limit_is_asked(self, limit: str, bound: int) -> None:
        play = self.with_question(limits={limit: bound})
        assert play.breach() == "asked"

    @pytest.mark.parametrize("limit", ["rounds_total", "rounds_per_pair", "rounds_per_loop"])
    def test_a_question_beyond_the_limit_is_a_breach_and_continue_asks_it(self, limit: str) -> None:
        play = self.with_question(limits={limit: 0})
        assert play.breach() == limit
        play.finish("code")
        play.decide("continue").run()
        assert play.breach() == "asked"

    def test_a_step_and_a_person_may_be_asked_together(self) -> None:
        play = coding().raises("code", ask("plan", HUMAN))
        play.finish("code")
        play.run()
        assert (play.outcome, play.attempts()["plan"], play.breach()) == ("waiting", 2, "asked")
        play.decide("resolve", note="fine").run()
        assert play.outcome == "done"

    def test_answering_while_the_step_works_on_it_does_not_disturb_the_step(self) -> None:
        play = coding().raises("code", ask("plan", HUMAN))
        play.finish("code")
        play.decide("resolve", note="fine").run()
        assert (play.outcome, play.attempts()) == ("done", {"plan": 2, "code": 2})

    @pytest.mark.parametrize("policy", ["manual", "error", "skip"])
    def test_no_answer_in_time_escalates_exactly_once(self, policy: str) -> None:
        play = self.with_question(on_breach=policy)
        assert [wake.time for wake in play.wakes()] == [play.now + 600]
        play.now += 600
        play.do(c.Proceed())
        play.now += 6_000
        play.do(c.Proceed())
        (late,) = play.of(e.LoopOverdue)
        assert late.breach == Breach("response_timeout", 600, 600)
        assert (play.s.opened_escalations, play.wakes()) == (1, [])
        assert play.loop().state == {"manual": "escalating", "error": "failed", "skip": "accepted"}[policy]
        if policy == "error":
            assert play.of(e.RunEnded)[0].reason == "limit response_timeout (600/600)"

    def test_a_question_says_when_its_answer_is_due(self) -> None:
        play = self.with_question()
        due = play.now + 600
        assert (packet(play.s, "E-1").due_at, response_due(play.s, "L-1"), response_due(play.s, "L-2")) == (
            due,
            due,
            None,
        )
        self.late(play)
        assert (packet(play.s, "E-1").due_at, play.breach()) == (due, "response_timeout")
        stuck = coding(limits={"rounds_per_loop": 0}).raises("code", ask("plan"))
        assert (stuck.breach(), packet(stuck.s, "E-1").due_at) == ("rounds_per_loop", None)

    def test_acknowledged_feedback_does_not_time_out(self) -> None:
        play = self.with_question()
        play.do(c.Acknowledge("L-1", HUMAN))
        play.now += 6_000
        play.do(c.Proceed())
        assert play.of(e.LoopOverdue) == []

    def late(self, play: Play) -> Play:
        play.now += 600
        play.do(c.Proceed())
        return play

    def test_a_step_among_the_targets_does_not_stop_the_timeout_of_a_person(self) -> None:
        play = coding().raises("code", ask("plan", HUMAN))
        play.finish("code")
        play.finish("plan")
        assert play.loop().state is LoopState.RESOLVING
        assert [wake.time for wake in play.wakes()] == [1_001 + 600]
        self.late(play)
        assert (len(play.of(e.LoopOverdue)), play.loop().state) == (1, LoopState.ESCALATING)
        assert (play.breach(), play.s.opened_escalations) == ("response_timeout", 1)
        self.late(play)
        assert (len(play.of(e.LoopOverdue)), play.wakes()) == (1, [])

    def test_an_acknowledgement_by_a_step_does_not_count_for_the_person(self) -> None:
        play = coding().raises("code", ask("plan", HUMAN))
        play.do(c.Acknowledge("L-1", "plan"))
        assert len(self.late(play).of(e.LoopOverdue)) == 1

    def test_a_question_of_a_later_round_has_its_own_timeout(self) -> None:
        play = coding(limits={"rounds_per_loop": 1}).raises("code", ask("plan"))
        play.finish("code")
        play.finish("plan")
        play.now += 5_000
        play.finish("code", out("code 2", feedback=(ask("plan"),)))
        play.decide("reassign", target=HUMAN).decide("continue")
        assert (play.breach(), play.loop().round) == ("asked", 2)
        assert [wake.time for wake in play.wakes()] == [play.now + 600]
        assert len(self.late(self.late(play)).of(e.LoopOverdue)) == 1

    def test_an_attempt_that_waits_for_a_later_question_waits_for_a_person(self) -> None:
        play = coding(limits={"rounds_per_loop": 0}).raises("code", ask(HUMAN))
        play.decide("continue")
        play.do(c.BeginWait("L-1", "code", 1))
        assert (play.loop().state, play.breach(), play.outcome) == (LoopState.RESOLVING, "asked", "waiting")
        assert [wake.time for wake in play.wakes()] == [play.now + 600]
        assert self.late(play).breach() == "response_timeout"

    def test_an_escalated_loop_does_not_time_out_until_it_continues(self) -> None:
        play = coding(limits={"errors_in_a_row": 1}).raises("code", ask("plan", HUMAN))
        play.finish("code")
        play.finish("plan", Exception("broke"))
        assert (play.loop().state, play.s.opened_escalations) == (LoopState.ESCALATING, 2)
        assert self.late(play).of(e.LoopOverdue) == []
        play.decide("continue", "E-2")
        (late,) = play.of(e.LoopOverdue)
        assert play.s.escalations["E-1"].breach == late.breach == Breach("response_timeout", 602, 600)

    def test_steps_that_the_engine_runs_never_time_out(self) -> None:
        play = coding().raises("code", ask("plan"))
        play.now += 6_000
        play.do(c.Proceed())
        assert play.of(e.LoopOverdue) == []


class TestFeedbackByPeople:
    """Each piece of feedback by a person is a loop of its own, verified by judges or else by that person."""

    REVIEWED = (step("a"), step("j", reviews="a"))

    def test_feedback_by_two_people_to_one_step_is_two_loops(self) -> None:
        play = Play(flow(step("a")), {"a": grows}).run()
        play.person_raises("a", message="too slow").run()
        assert play.loop().state is LoopState.ESCALATING
        play.person_raises("a", message="too big").run()
        assert play.opened() == 2
        assert [play.loop(id).round for id in ("L-1", "L-2")] == [1, 1]

    def test_new_human_feedback_does_not_reject_a_fix_that_a_judge_still_verifies(self) -> None:
        play = Play(flow(*self.REVIEWED), {"a": grows}).run()
        play.person_raises("a", message="too slow")
        play.finish("a")
        assert play.loop().state is LoopState.VALIDATING
        play.person_raises("a", message="too big").run()
        assert (play.opened(), play.outcome) == (2, "verified")
        assert [play.loop(id).round for id in ("L-1", "L-2")] == [1, 1]
        assert [play.briefings["a"][n].feedback.requests[0].message for n in (1, 2)] == ["too slow", "too big"]

    def skipped(self) -> Play:
        play = Play(flow(*self.REVIEWED, limits={"rounds_per_loop": 0}), {"a": grows, "j": [failed("x")]}).run()
        return play.decide("skip").run()

    def test_a_skipped_judge_does_not_verify_human_feedback(self) -> None:
        play = self.skipped()
        play.person_raises("a").decide("continue").run()
        assert (play.breach(), play.outcome) == ("the fix waits for your verification", "waiting")
        play.decide("resolve").run()
        assert (play.loop("L-2").state, play.outcome) == (LoopState.RESOLVED, "accepted")

    def test_another_judge_of_the_same_step_verifies_human_feedback(self) -> None:
        work = flow(*self.REVIEWED, step("k", reviews="a"), limits={"rounds_per_loop": 1})
        verdicts = [failed("x"), failed("y")]
        play = Play(work, {"a": grows, "j": verdicts}).run().decide("skip").run()
        play.person_raises("a").run()
        assert (play.outcome, play.loop("L-2").state) == ("accepted", LoopState.RESOLVED)
        assert play.loop("L-2").resolution == Resolution("resolved", text="passed by k")
