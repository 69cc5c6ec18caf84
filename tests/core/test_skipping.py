"""Feedback and steps that their condition skips: no step receives what they make, so they are not reworked."""

from __future__ import annotations

from typing import Any

import pytest

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.errors import IllegalCommand
from backedge.core.feedback.loop import LoopState
from backedge.core.model import HUMAN, Decision, Kind, Option, Outcome, Status
from backedge.core.state.evolve import replay
from backedge.core.workflow.checks import Gate
from tests.core.play import Finding, Play, ask, failed, flow, grows, out, passed, step

WHY = "'ui' is skipped ('plan:/ui == true' is not met)"
STEPS = (
    step("plan", phase="planning"),
    step("ui", "plan", phase="code", when=("plan:/ui == true",)),
    step("ship", "ui", "plan", phase="test"),
)


def plans(*values: Any) -> list[Outcome]:
    return [out({"ui": value, "n": index}) for index, value in enumerate(values)]


def played(play: Play) -> tuple[str, dict[str, int]]:
    assert replay(play.events) == play.s
    return play.outcome, play.attempts()


def fault(text: str, *phases: str) -> Finding:
    return Finding(text, affected_phase=phases)


class TestRaised:
    def test_feedback_to_only_skipped_steps_is_refused(self) -> None:
        play = Play(flow(*STEPS), {"plan": plans(False)}).run().person_raises("ui").run()
        assert play.of(e.RefusedFeedback)[0].reason == (
            f"{WHY}: no step would receive the fix; send the feedback to a step that runs"
        )
        assert played(play) == ("done", {"plan": 1, "ui": 0, "ship": 1})

    def test_the_other_targets_get_the_feedback(self) -> None:
        play = Play(flow(*STEPS), {"plan": plans(False), "ship": grows}).run()
        play.person_raises("ui", "ship").run()
        assert (play.loop().targets, play.attempts()) == (("ship",), {"plan": 1, "ui": 0, "ship": 2})
        play.decide("resolve").run()
        assert played(play)[0] == "done"

    def test_feedback_to_a_step_that_is_skipped_later_is_escalated(self) -> None:
        play = Play(flow(*STEPS, scope="any"), {"plan": plans(False)}).person_raises("ui").run()
        assert play.breach() == f"no step is left to fix it: {WHY}"
        assert played(play) == ("waiting", {"plan": 1, "ui": 0, "ship": 0})
        with pytest.raises(
            IllegalCommand, match="reassign needs a target: 'ui' is skipped: use one of plan, ship, human"
        ):
            play.decide("reassign", target="ui")
        play.decide("reassign", target="ship").run()
        assert play.attempts() == {"plan": 1, "ui": 0, "ship": 1}

    def test_a_step_whose_condition_turns_true_again_gets_its_share(self) -> None:
        play = Play(flow(*STEPS), {"plan": plans(False, True), "ui": grows, "ship": grows}).run()
        play.person_raises("plan", "ui").run()
        assert play.loop().targets == ("plan", "ui")
        assert [each.message for each in play.briefings["ui"][0].feedback.requests] == ["fix it"]

    def test_a_finished_share_is_verified_when_the_other_targets_are_skipped(self) -> None:
        play = Play(flow(*STEPS), {"plan": plans(True, False), "ui": grows, "ship": grows})
        play.finish("plan")
        play.finish("ui")
        play.raises("ship", ask("plan", "ui"))
        play.finish("ship")
        play.finish("plan")
        play.run()
        assert (play.loop().targets, play.loop().state) == (("plan",), LoopState.RESOLVED)
        assert played(play) == ("done", {"plan": 2, "ui": 1, "ship": 2})

    def test_a_chosen_rework_leaves_out_a_skipped_step(self) -> None:
        offers = (Option("new ui", rework=("ui",)), Option("both", rework=("ui", "plan")))
        which = ask("plan", kind=Kind.CONSTRAINT_VIOLATION, message="which?", options=offers)
        replies = [plans(False)[0], out(decision=Decision("both")), plans(False, False)[1]]
        play = Play(flow(*STEPS), {"plan": replies, "ship": [out(1, feedback=(which,)), out(2)]}).run()
        assert (tuple(play.loop().shares), play.attempts()["ui"]) == (("plan",), 0)
        assert (play.loop().targets, play.s.escalations) == (("plan",), {})


class TestJudged:
    def test_findings_for_a_step_that_is_skipped_later_are_rerouted(self) -> None:
        work = flow(*STEPS, step("j", reviews="plan"), step("t", "ui", tests="ship"), scope="any")
        verdicts = [failed(fault("no button", "code")), passed()]
        play = Play(work, {"plan": [*plans(False), *plans(False)], "j": verdicts}).run()
        assert (play.loop().targets, play.loop().routed_by) == (("plan",), "subject")
        assert played(play)[1]["ui"] == 0

    def test_each_rerouted_finding_goes_to_its_other_targets(self) -> None:
        work = flow(*STEPS, step("j", reviews="ship"))
        first = failed(fault("both", "code", "planning"), fault("a button", "code"))
        play = Play(work, {"plan": plans(True, False), "ui": grows, "ship": grows, "j": [first, passed()]})
        for name in ("plan", "ui", "ship", "j", "plan"):
            play.finish(name)
        assert play.loop().shares.keys() == {"plan", "ship"}
        assert (play.loop().shares["plan"].done, play.loop().shares["ship"].findings) == (True, (2,))
        play.run()
        assert played(play) == ("verified", {"plan": 2, "ui": 1, "ship": 2, "j": 2})

    def test_a_target_with_an_unfinished_share_gets_the_rerouted_findings_too(self) -> None:
        work = flow(*STEPS, step("j", reviews="ship"))
        first = failed(fault("both", "code", "planning"), fault("a button", "code"), fault("late", "test"))
        play = Play(work, {"plan": plans(True, False), "ui": grows, "ship": grows, "j": [first, passed()]}).run()
        routed = [each.shares for each in play.of(e.FeedbackRouted)]
        assert routed == [{"plan": (1,), "ui": (1, 2), "ship": (3,)}, {"ship": (3, 2)}]
        assert played(play) == ("verified", {"plan": 2, "ui": 1, "ship": 2, "j": 2})

    def test_a_judge_of_only_skipped_steps_does_not_verify(self) -> None:
        work = flow(*STEPS, step("j", reviews="ui"))
        play = Play(work, {"plan": plans(True, False), "j": [failed(fault("no ui needed", "planning"))]}).run()
        assert played(play) == ("verified", {"plan": 2, "ui": 1, "j": 1, "ship": 1})
        assert (play.loop().state, play.finding().status) == (LoopState.RESOLVED, Status.WITHDRAWN)
        assert play.of(e.LoopClosed)[0].resolution.text == WHY

    def test_a_judge_judges_again_when_the_version_that_it_rejected_is_back(self) -> None:
        work = flow(*STEPS, step("j", reviews="ui"))
        verdicts = [failed(fault("no ui needed", "planning")), passed()]
        play = Play(work, {"plan": [*plans(True, False), *plans(True)], "j": verdicts}).run()
        assert played(play) == ("verified", {"plan": 2, "ui": 1, "j": 1, "ship": 1})
        play.person_raises("plan").run().decide("resolve").run()
        assert played(play) == ("verified", {"plan": 3, "ui": 1, "j": 2, "ship": 2})

    def test_the_loop_of_a_judge_of_only_skipped_steps_is_closed(self) -> None:
        work = flow(*STEPS, step("j", reviews="ui"))
        play = Play(work, {"plan": plans(True, False), "j": [failed("ugly")]})
        for name in ("plan", "ui"):
            play.finish(name)
        play.person_raises("plan")
        play.run().decide("resolve").run()
        assert play.loop("L-2").state is LoopState.RESOLVED
        assert (play.attempts()["ui"], play.attempts()["j"]) == (1, 1)

    def test_a_judge_that_only_its_own_condition_skips_still_verifies_its_findings(self) -> None:
        work = flow(step("plan"), step("code", "plan"), step("j", "plan", reviews="code", when=("plan:/ui == true",)))
        play = Play(work, {"plan": plans(True, False), "code": grows, "j": [failed("rough"), passed()]})
        for name in ("plan", "code"):
            play.finish(name)
        play.person_raises("plan")
        play.run().decide("resolve").run()
        assert (play.attempts()["j"], play.loop("L-2").state) == (2, LoopState.RESOLVED)

    def test_a_request_of_a_gate_to_a_skipped_step_is_escalated(self) -> None:
        gate = Gate("g", "ship:/score", bound="at_least", threshold=9, requests=(("ui", "draw"),))
        play = Play(flow(*STEPS, gates=(gate,)), {"plan": plans(False), "ship": [out({"score": 1})]}).run()
        assert play.breach() == f"no step is left to fix it: {WHY}"


def test_a_question_to_a_person_and_a_skipped_step_stays_with_the_person() -> None:
    play = Play(flow(*STEPS), {"plan": plans(False)})
    play.finish("plan")
    play.raises("ship", ask("ui", HUMAN))
    assert play.loop().targets == (HUMAN,)
    assert [packet.reason for packet in play.s.escalations.values()] == ["asked"]
    play.decide("resolve", note="so").run()
    assert played(play)[0] == "done"


@pytest.mark.parametrize(("skipped", "status"), [("j", Status.DEFERRED), ("code", Status.WITHDRAWN)])
def test_findings_of_a_judge_are_settled_when_it_is_skipped_before_it_verifies(skipped: str, status: Status) -> None:
    """Its loop was resolved by hand. The judged step still runs, or is skipped too."""
    when = {skipped: ("plan:/ui == true",)}
    work = flow(
        step("plan"),
        step("code", "plan", when=when.get("code", ())),
        step("j", "plan", reviews="code", when=when.get("j", ())),
        limits={"rounds_per_loop": 0},
    )
    play = Play(work, {"plan": plans(True, False), "j": [failed("rough")]}).run()
    play.slots = 0
    play.decide("resolve", note="it is fine").person_raises("plan")
    play.decide("continue", "E-2")
    play.slots = 99
    play.do(c.Proceed())
    play.run().decide("resolve").run()
    assert (play.finding().status, play.attempts()["j"]) == (status, 1)
    assert played(play)[0] == ("accepted" if status is Status.DEFERRED else "verified")
