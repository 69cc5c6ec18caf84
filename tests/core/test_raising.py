"""Feedback that agents and people raise: it joins a loop, is refused, or opens a loop that its source verifies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.errors import AlreadyClosed, IllegalCommand, NotFound
from backedge.core.feedback.loop import LoopState
from backedge.core.model import Breach, Kind, MalformedFeedback
from backedge.core.state.loops import question_key
from tests.core.play import Play, Reply, Script, Severity, ask, flow, grows, out, step

PLAN_CODE = (step("plan", phase="planning"), step("code", "plan", phase="code"))


def coding(*steps: Any, code: Script | Sequence[Reply] = grows, **more: Any) -> Play:
    """The plan is done and the code is being written."""
    play = Play(flow(*(steps or PLAN_CODE), **more), {"plan": grows, "code": code})
    play.finish("plan")
    return play


def test_a_step_that_raises_feedback_verifies_it_by_running_again() -> None:
    play = coding().raises("code", ask("plan", message="no login"))
    play.run()
    assert play.attempts() == {"plan": 2, "code": 2}
    assert play.briefings["plan"][1].feedback.requests[0].message == "no login"
    resolution = play.briefings["code"][1].feedback.resolutions[0]
    assert (resolution.loop, resolution.state, resolution.message) == ("L-1", "fixed", "no login")
    assert play.loop().state is LoopState.RESOLVED


def test_feedback_in_an_outcome_is_raised_like_any_other() -> None:
    play = coding(code=lambda p, n: out("code", feedback=(ask("plan"),) if p.s.steps[n].attempts == 1 else ()))
    play.run()
    assert play.attempts() == {"plan": 2, "code": 2}
    assert play.outcome == "done"


def test_until_it_is_verified_its_output_is_provisional() -> None:
    play = coding(*PLAN_CODE, step("ship", "code")).raises("code", ask("plan"))
    play.finish("code")
    assert play.s.steps["ship"].running is None
    play.run()
    assert play.attempts()["ship"] == 1
    assert play.briefings["ship"][0].inputs == {"code": "code 2"}


def test_raising_the_same_again_is_the_next_round() -> None:
    play = coding(code=lambda p, n: out(p.now, feedback=(ask("plan", message=f"{p.now}"),)))
    play.run()
    assert play.opened() == 1
    assert play.loop().breach == Breach("rounds_per_loop", 5, 5)
    assert play.attempts() == {"plan": 6, "code": 6}
    assert [each.message for each in play.loop().past_rounds] != []


def test_raising_it_again_to_the_root_by_its_name_is_the_next_round_too() -> None:
    names = iter(["plan", "root", "plan", "root"])
    play = coding(code=lambda p, n: out(p.now, feedback=(ask(next(names)),)), limits={"rounds_per_loop": 3})
    play.run()
    assert (play.opened(), play.loop().round) == (1, 3)


def test_raising_something_else_resolves_the_loop_and_opens_another() -> None:
    kinds = [Kind.FIX_REQUEST, Kind.MISSING_REQUIREMENT]
    play = coding(
        code=lambda p, n: out(
            p.now, feedback=tuple(ask("plan", kind=k) for k in kinds[p.s.steps[n].attempts - 1 :][:1])
        )
    )
    play.run()
    assert [loop.kind for loop in play.s.closed_loops.values()] == kinds
    assert all(loop.state is LoopState.RESOLVED for loop in play.s.closed_loops.values())


def test_one_item_is_one_loop_regardless_of_its_number_of_targets() -> None:
    work = (step("a"), step("b"), step("code", "a", "b"))
    play = Play(flow(*work), {"a": grows, "b": grows, "code": grows})
    play.finish("a")
    play.finish("b")
    play.raises("code", ask("a", "b")).run()
    assert play.opened() == 1
    assert play.attempts() == {"a": 2, "b": 2, "code": 2}


def test_two_items_are_two_loops_delivered_together_and_verified_once() -> None:
    play = coding().raises("code", ask("plan", message="1")).raises("code", ask("plan", message="2"))
    play.run()
    assert play.opened() == 2
    assert play.attempts() == {"plan": 2, "code": 2}
    assert [request.message for request in play.briefings["plan"][1].feedback.requests] == ["1", "2"]


def test_a_fix_request_without_a_suggested_fix_is_accepted_with_a_warning() -> None:
    play = coding().raises("code", ask("plan"))
    assert "without suggested_fix" in play.of(e.LoopOpened)[0].warning
    assert coding().raises("code", ask("plan", suggested_fix="x")).of(e.LoopOpened)[0].warning == ""


def test_root_means_the_first_step() -> None:
    assert coding().raises("code", ask("root", "plan")).loop().targets == ("plan",)


def test_malformed_feedback_is_refused_with_the_reason() -> None:
    play = coding()
    play.do(c.RaiseFeedback("code", MalformedFeedback(("plan",), "kind 'banana' is unknown", "m"), 1))
    assert play.of(e.RefusedFeedback) == [
        e.RefusedFeedback(play.now, "code", ("plan",), "kind 'banana' is unknown", "m")
    ]
    assert play.opened() == 0


def test_malformed_feedback_in_an_outcome_is_an_error_and_the_agent_is_asked_again() -> None:
    def code(play: Play, name: str) -> Any:
        said = {1: (ask("plan"),), 2: (MalformedFeedback(("plan",), "no kind"),)}
        return out(play.now, feedback=said.get(play.s.steps[name].attempts, ()))

    play = coding(code=code).run()
    assert play.of(e.AttemptFailed)[0].error == "its feedback can go nowhere: no kind"
    assert play.briefings["code"][2].last_error == "its feedback can go nowhere: no kind"
    assert (play.outcome, play.loop().state, len(play.s.refused)) == ("done", LoopState.RESOLVED, 0)


def test_an_exhausted_limit_opens_the_loop_in_escalating() -> None:
    play = coding(limits={"rounds_total": 0}).raises("code", ask("plan"))
    assert play.loop().state is LoopState.ESCALATING
    assert play.loop().breach == Breach("rounds_total", 0, 0)
    assert play.of(e.RefusedFeedback) == []


class TestRejoining:
    """An attempt that was lost while it ran has raised the feedback already."""

    def lost(self) -> Play:
        play = coding().raises("code", ask("plan"))
        play.do(c.DropAttempt("code", 1, "interrupted"))
        return play

    def test_the_next_attempt_that_raises_the_same_rejoins_the_loop(self) -> None:
        play = self.lost()
        play.finish("plan")
        play.raises("code", ask("plan"))
        assert play.opened() == 1
        assert play.of(e.FeedbackRejoined) == [e.FeedbackRejoined(play.now, "L-1", "code", 2)]

    def reworded(self) -> Play:
        """An attempt got a result and was lost; the next one raised it again in other words, and was lost too."""
        play = coding().raises("code", ask("plan", message="no units"))
        play.do(c.BeginWait("L-1", "code", 1))
        play.finish("plan")
        play.do(c.DropAttempt("code", 1, "interrupted"))
        play.raises("code", ask("plan", message="no units of time"))
        assert (play.opened(), len(play.of(e.FeedbackRouted))) == (1, 2)
        play.do(c.DropAttempt("code", 2, "interrupted"))
        play.finish("plan")
        return play

    @pytest.mark.parametrize("message", ["no units", "no units of time"])
    def test_either_wording_rejoins_the_same_loop(self, message: str) -> None:
        play = self.reworded().raises("code", ask("plan", message=message))
        assert play.of(e.FeedbackRejoined) == [e.FeedbackRejoined(play.now, "L-1", "code", 3)]
        assert (play.opened(), play.loop().round) == (1, 2)

    def test_both_wordings_one_after_the_other_rejoin_the_same_loop(self) -> None:
        play = self.reworded()
        for message in ("no units", "no units of time"):
            play.raises("code", ask("plan", message=message))
        assert (len(play.of(e.FeedbackRejoined)), len(play.of(e.FeedbackRouted)), play.opened()) == (1, 2, 1)

    def test_feedback_raised_again_by_a_verifying_attempt_is_not_repeated_after_a_crash(self) -> None:
        play = coding().raises("code", ask("plan"))
        play.finish("code")
        play.finish("plan")
        play.raises("code", ask("plan", message="still not"))
        play.do(c.DropAttempt("code", 2, "interrupted"))
        play.finish("plan")
        assert play.loop().state is LoopState.VALIDATING
        play.raises("code", ask("plan", message="still not"))
        assert (play.opened(), play.loop().round, len(play.of(e.FeedbackRouted))) == (1, 2, 2)

    def test_an_attempt_that_raises_something_else_opens_another_loop(self) -> None:
        play = self.lost()
        play.finish("plan")
        play.raises("code", ask("plan", message="other", kind=Kind.MISSING_REQUIREMENT))
        assert play.opened() == 2


class TestIllegal:
    def test_an_unknown_source_is_refused(self) -> None:
        with pytest.raises(NotFound, match="unknown source 'x'"):
            coding().do(c.RaiseFeedback("x", ask("plan")))

    def test_feedback_has_to_name_the_running_attempt(self) -> None:
        with pytest.raises(IllegalCommand, match=r"attempt 7 of step 'code' is not running \(attempt 1 is\)"):
            coding().do(c.RaiseFeedback("code", ask("plan"), 7))

    def test_feedback_in_a_cancelled_run_is_refused(self) -> None:
        play = coding()
        play.do(c.Cancel(by="ann"))
        with pytest.raises(AlreadyClosed, match="has ended: cancelled"):
            play.person_raises("plan")


class TestReassigned:
    """A person reassigned the loop: raising it again to the original target is the next round of the new target."""

    WORK = (
        step("plan", phase="planning"),
        step("design", phase="design"),
        step("code", "plan", "design", phase="code"),
    )

    def reassigned(self, target: str = "design") -> Play:
        play = Play(flow(*self.WORK, limits={"rounds_per_loop": 0}), {"plan": grows, "design": grows})
        play.finish("plan")
        play.finish("design")
        play.raises("code", ask("plan"))
        play.finish("code")
        return play.decide("reassign", target=target)

    @pytest.mark.parametrize("to", ["plan", "design"])
    def test_in_an_outcome(self, to: str) -> None:
        play = self.reassigned()
        play.finish("design")
        play.finish("code", out("code 2", feedback=(ask(to, message="again"),)))
        assert (play.opened(), play.loop().targets, play.loop().state) == (1, ("design",), LoopState.RESOLVING)
        assert play.briefings["design"][2].feedback.requests[0].message == "again"
        play.finish("design")
        play.finish("code", out("code 3", feedback=(ask("plan", message="and again"),)))
        assert (play.opened(), play.loop().targets, play.loop().round) == (1, ("design",), 3)

    def test_while_the_attempt_runs(self) -> None:
        play = self.reassigned()
        play.finish("design")
        play.raises("code", ask("plan", message="again"))
        assert (play.opened(), play.loop().targets) == (1, ("design",))
        assert play.s.steps["code"].loop_by_question == {question_key(ask("plan", message="again")): "L-1"}

    def test_raising_anything_else_resolves_the_loop(self) -> None:
        play = self.reassigned()
        play.finish("design")
        play.finish("code", out("code 2", feedback=(ask("plan", "design"),)))
        assert (play.opened(), play.loop().state) == (2, LoopState.RESOLVED)


class TestSeveralQuestionsOfOneAttempt:
    """Within an attempt, a different question is a loop of its own. A later execution that asks again rejects the answer."""

    def answered(self, play: Play, message: str, **more: Any) -> str:
        play.raises("code", ask("plan", kind=Kind.CONTEXT_REQUEST, message=message, **more))
        loop = f"L-{play.opened()}"
        play.do(c.BeginWait(loop, "code", play.s.steps["code"].attempts))
        play.finish("plan", out(answer=message.upper()))
        assert play.loop(loop).result_delivered
        return loop

    def test_each_question_is_a_loop_of_its_own_and_is_answered(self) -> None:
        play = coding()
        for number, question in enumerate(("port?", "host?", "user?", "password?", "region?"), 1):
            assert self.answered(play, question) == f"L-{number}"
            assert play.loop(f"L-{number}").answers == {"plan": question.upper()}
        assert not play.s.escalations
        play.finish("code")
        assert play.outcome == "done"
        assert [play.loop(f"L-{number}").round for number in range(1, 6)] == [1] * 5

    def test_the_same_words_with_other_details_are_another_question(self) -> None:
        play = coding()
        play.raises("code", ask("plan", message="which one?", details={"field": "a"}))
        play.raises("code", ask("plan", message="which one?", details={"field": "b"}))
        play.raises("code", ask("plan", message="which one?", details={"field": "b"}, severity=Severity.CRITICAL))
        play.raises("code", ask("plan", message="which one?", details={"field": "b"}))
        assert play.opened() == 3

    def test_the_same_question_again_is_the_next_round(self) -> None:
        play = coding()
        self.answered(play, "port?")
        self.answered(play, "host?")
        play.raises("code", ask("plan", kind=Kind.CONTEXT_REQUEST, message="host?"))
        assert (play.opened(), play.loop("L-1").state) == (2, LoopState.VALIDATING)
        assert play.loop("L-2").state is LoopState.RESOLVING

    def test_another_one_in_the_outcome_resolves_the_first(self) -> None:
        play = coding()
        self.answered(play, "port?")
        play.finish("code", out("code", feedback=(ask("plan", kind=Kind.CONTEXT_REQUEST, message="host?"),)))
        assert (play.opened(), play.loop("L-1").state) == (2, LoopState.RESOLVED)

    def test_a_later_execution_that_asks_in_other_words_rejects_the_answer(self) -> None:
        play = coding()
        self.answered(play, "port?")
        play.finish("code", RuntimeError("broke"))
        play.now += 10
        play.do(c.Proceed())
        play.raises("code", ask("plan", kind=Kind.CONTEXT_REQUEST, message="which port?"))
        assert (play.opened(), play.loop().round) == (1, 2)


class TestLostAttempts:
    """The next attempt gets a decision made for a lost one, whatever it raises itself."""

    @pytest.mark.parametrize("choice", ["resolve", "accept"])
    def test_an_attempt_whose_process_died(self, choice: str) -> None:
        play = Play(flow(step("code", on_doubt="rerun"))).raises("code", ask("human"))
        play.do(c.BeginWait("L-1", "code", 1))
        play.slots = 0
        play.decide(choice, note="use pg")
        play.slots = 9
        play.do(c.DropAttempt("code", 1, "in doubt"))
        (resolution,) = play.briefings["code"][1].feedback.resolutions
        assert (resolution.loop, resolution.text) == ("L-1", "use pg")
        play.finish("code")
        assert play.s.steps["code"].results_due == ()
        assert play.attempts() == {"code": 2}

    def test_an_attempt_that_was_lost_before_the_decision(self) -> None:
        play = Play(flow(step("code"))).raises("code", ask("human"))
        play.do(c.BeginWait("L-1", "code", 1))
        play.slots = 0
        play.do(c.DropAttempt("code", 1, "interrupted"))
        play.decide("accept", note="use pg")
        play.slots = 9
        play.do(c.Proceed())
        (resolution,) = play.briefings["code"][1].feedback.resolutions
        assert (resolution.state, resolution.text) == ("accepted", "use pg")

    def test_an_attempt_that_ended_with_an_error(self) -> None:
        play = Play(flow(step("code"))).raises("code", ask("human"))
        play.do(c.BeginWait("L-1", "code", 1))
        play.decide("resolve", note="use pg")
        play.finish("code", RuntimeError("broke"))
        play.now += 10
        play.do(c.Proceed())
        (resolution,) = play.briefings["code"][1].feedback.resolutions
        assert resolution.text == "use pg"


class TestRefused:
    """Serious feedback that cannot be delivered is not lost: a person is told, and meanwhile the run goes on."""

    def test_a_person_is_asked_and_nothing_is_held_up(self) -> None:
        play = coding(*PLAN_CODE, step("ship", "code")).raises("code", ask("nobody", message="no login"))
        packet = play.s.escalations["E-1"]
        assert (packet.options, packet.loop, packet.step) == (("continue", "cancel"), None, None)
        assert packet.reason.startswith("refused feedback of 'code': unknown target 'nobody'")
        assert packet.reason.endswith("; it said: no login")
        assert (play.run().outcome, play.attempts()) == ("waiting", {"plan": 1, "code": 1, "ship": 1})
        assert play.decide("continue").run().outcome == "done"

    def test_a_person_is_not_asked_twice_about_the_same(self) -> None:
        play = coding().raises("code", ask("nobody")).raises("code", ask("nobody"))
        assert (len(play.s.refused), list(play.s.escalations)) == (2, ["E-1"])
        play.raises("code", ask("nobody", message="something else"))
        assert list(play.s.escalations) == ["E-1", "E-2"]

    def test_an_agent_that_corrects_itself_needs_no_person(self) -> None:
        play = coding().raises("code", ask("plam", message="no login")).raises("code", ask("plan", message="no login"))
        assert play.of(e.EscalationDecided)[0].note == "it was raised again, and delivered"
        assert (play.run().outcome, len(play.s.refused), play.opened()) == ("done", 1, 1)

    @pytest.mark.parametrize("severity", [Severity.MEDIUM, Severity.LOW])
    def test_lesser_feedback_is_only_listed(self, severity: Severity) -> None:
        play = coding().raises("code", ask("nobody", severity=severity))
        assert (len(play.s.refused), play.run().outcome) == (1, "done")

    def test_a_person_who_raises_it_sees_the_refusal_at_once(self) -> None:
        play = coding().person_raises("nobody")
        assert (len(play.s.refused), play.s.escalations) == (1, {})

    def test_feedback_that_is_not_understood_counts_as_serious(self) -> None:
        play = coding()
        play.do(c.RaiseFeedback("code", MalformedFeedback((), "no kind"), 1))
        assert play.s.escalations["E-1"].reason == "refused feedback of 'code': no kind; it said: nothing"

    def test_a_causal_cycle_in_an_outcome_is_refused_and_told(self) -> None:
        def plan(play: Play, name: str) -> Any:
            again = (ask("spec", message="unclear"),) if play.s.steps[name].attempts == 2 else ()
            return out(play.now, feedback=again)

        def spec(play: Play, name: str) -> Any:
            again = (ask("plan", message="cannot be done"),) if play.s.steps[name].attempts == 2 else ()
            return out(play.now, feedback=again)

        work = (step("spec"), step("plan", "spec"), step("code", "plan"))
        scripts: dict[str, Any] = {"spec": spec, "plan": plan, "code": grows}
        play = Play(flow(*work, scope="any"), scripts)
        play.finish("spec")
        play.finish("plan")
        play.raises("code", ask("plan")).run()
        (refusal,) = play.of(e.RefusedFeedback)
        assert "causal cycle: plan → spec → plan" in refusal.reason
        assert play.s.escalations["E-1"].reason.startswith("refused feedback of 'spec': causal cycle")
        assert play.decide("continue").run().outcome == "done"

    def test_feedback_in_an_outcome_that_can_go_nowhere_is_an_error_and_not_a_refusal(self) -> None:
        said = [out("c", feedback=(ask("nobody"),)), out("c")]
        play = coding(code=said).run()
        assert "its feedback can go nowhere: unknown target 'nobody'" in play.of(e.AttemptFailed)[0].error
        assert (play.outcome, len(play.s.refused), play.s.rounds) == ("done", 0, 0)
