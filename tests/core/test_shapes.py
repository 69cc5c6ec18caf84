"""Conditional steps, repeated steps, and groups."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.errors import WorkflowError
from backedge.core.feedback.loop import LoopState
from backedge.core.model import HUMAN, Finding, Kind, Outcome, Severity
from backedge.core.scheduling.pending import is_stuck
from backedge.core.scheduling.skipping import is_skipped
from backedge.core.state.evolve import replay
from backedge.core.workflow.bound import max_attempts
from backedge.core.workflow.build import build_workflow
from backedge.core.workflow.definition import Repeat, Step
from backedge.core.workflow.routes import RouteRule
from backedge.core.workflow.validate import problems_of, valid_graph
from tests.core.play import Play, ask, failed, flow, grows, out, passed, step


def ui(when: str = "plan:/ui == true", **more: Any) -> Step:
    return step("ui", "plan", when=(when,), **more)


PLAN = step("plan")
SHIP = step("ship", "ui")


def plans(*values: Any) -> list[Outcome]:
    return [out({"ui": value}) for value in values]


def played(play: Play) -> tuple[str, dict[str, int]]:
    assert replay(play.events) == play.s
    return play.outcome, play.attempts()


class TestWhen:
    def test_a_step_whose_condition_is_met_runs(self) -> None:
        play = Play(flow(PLAN, ui(), SHIP), {"plan": plans(True)}).run()
        assert played(play) == ("done", {"plan": 1, "ui": 1, "ship": 1})
        assert [(seen.step, seen.met, seen.reason) for seen in play.of(e.ConditionEvaluated)] == [("ui", True, "")]

    def test_a_step_whose_condition_is_not_met_is_skipped_and_its_consumers_run_without_it(self) -> None:
        play = Play(flow(PLAN, ui(), SHIP), {"plan": plans(False)}).run()
        assert played(play) == ("done", {"plan": 1, "ui": 0, "ship": 1})
        assert is_skipped(play.s, "ui")
        assert play.briefings["ship"][0].inputs == {}
        assert play.of(e.ConditionEvaluated)[0].reason == "plan:/ui == true"

    def test_all_conditions_of_a_list_have_to_be_met(self) -> None:
        both = step("ui", "plan", when=("plan:/ui", "plan:/size > 3"))
        play = Play(flow(PLAN, both, SHIP), {"plan": [out({"ui": True, "size": 3})]}).run()
        assert play.attempts()["ui"] == 0

    def test_judges_of_only_skipped_steps_are_skipped_too(self) -> None:
        other = step("other", "plan")
        work = flow(PLAN, ui(), other, step("j", reviews="ui"), Step("both", judges=("ui", "other")), SHIP)
        play = Play(work, {"plan": plans(False)}).run()
        assert played(play) == ("verified", {"plan": 1, "ui": 0, "other": 1, "j": 0, "both": 1, "ship": 1})
        assert is_skipped(play.s, "j")
        assert not is_skipped(play.s, "both")

    def test_a_skipped_step_runs_when_its_condition_turns_true(self) -> None:
        work = flow(PLAN, ui(), SHIP, step("j", reviews="plan"))
        play = Play(work, {"plan": plans(False, True), "j": [passed(), passed()]}).run()
        assert played(play) == ("verified", {"plan": 1, "ui": 0, "ship": 1, "j": 1})
        play.person_raises("plan").run()
        assert played(play) == ("verified", {"plan": 2, "ui": 1, "ship": 2, "j": 2})

    def test_consumers_lose_the_output_when_the_condition_turns_false(self) -> None:
        work = flow(PLAN, ui(), SHIP, step("j", reviews="plan"))
        play = Play(work, {"plan": plans(True, False), "ui": grows}).run()
        assert play.briefings["ship"][0].inputs == {"ui": "ui 1"}
        play.person_raises("plan").run()
        assert played(play) == ("verified", {"plan": 2, "ui": 1, "ship": 2, "j": 2})
        assert play.briefings["ship"][1].inputs == {}

    def test_a_condition_that_stays_true_reruns_only_stale_steps(self) -> None:
        reads = step("ui", "plan", when=("plan:/ui > 1",), reads=(("plan", ("/text",)),))
        work = flow(PLAN, reads, step("j", reviews="plan"))
        play = Play(work, {"plan": plans(2, 3)}).run()
        play.person_raises("plan").run()
        assert played(play) == ("verified", {"plan": 2, "ui": 1, "j": 2})
        assert [event.met for event in play.of(e.ConditionEvaluated)] == [True, True]

    def test_a_condition_can_refer_to_open_loops(self) -> None:
        late = step("late", "plan", when=("open_loops == 0",))
        play = Play(flow(PLAN, late, step("other")), slots=1)
        play.finish("plan", out("plan", feedback=(ask("human"),)))
        assert play.s.steps["late"].condition is None  # its need is provisional until the answer
        play.raises("other", ask("human"))
        play.decide("resolve", "E-1", note="ok")
        play.finish("other")
        play.finish("plan")
        assert is_skipped(play.s, "late")
        play.decide("resolve", note="ok").run()
        assert played(play) == ("done", {"plan": 2, "late": 1, "other": 2})

    def test_a_condition_on_open_loops_is_looked_at_again_when_a_loop_opens(self) -> None:
        play = Play(flow(step("code"), step("report", when=("open_loops > 0",))))
        assert is_skipped(play.s, "report")
        play.raises("code", ask("human"))
        assert play.s.steps["report"].running is not None
        play.finish("report")
        play.decide("resolve", note="ok").run()
        assert played(play) == ("done", {"code": 2, "report": 1})
        assert [event.met for event in play.of(e.ConditionEvaluated)] == [False, True]

    def test_a_step_that_a_condition_on_loops_started_stays_in_the_run(self) -> None:
        report, ship = step("report", "code", when=("open_loops == 0",)), step("ship", "report")
        play = Play(flow(step("code"), report, ship, step("j", reviews="code")), {"code": grows, "report": grows}).run()
        play.person_raises("code")
        assert not is_skipped(play.s, "report")
        assert played(play.run()) == ("verified", {"code": 2, "report": 2, "ship": 2, "j": 2})

    @pytest.mark.parametrize(
        ("condition", "attempts"),
        [
            ("feedback_from:test > 0", 1),
            ("feedback_to:code", 1),
            ("feedback_from:code", 0),
            ("feedback_to:plan", 0),
            ("open_loops_from:test > 0", 0),
            ("open_loops_to:code == 0", 1),
            ("not feedback_from:human", 1),
        ],
    )
    def test_a_condition_can_refer_to_feedback_from_or_to_a_step(self, condition: str, attempts: int) -> None:
        after = step("after", "code", when=(condition,))
        work = flow(PLAN, step("code", "plan"), step("test", tests="code"), after)
        play = Play(work, {"code": grows, "test": [failed("t"), passed()]}).run()
        assert played(play) == ("verified", {"plan": 1, "code": 2, "test": 2, "after": attempts})

    @pytest.mark.parametrize("condition", ["feedback_to:fixer", "open_loops > 0"])
    def test_a_step_can_wait_for_feedback_to_itself(self, condition: str) -> None:
        play = Play(flow(step("fixer", when=(condition,)), step("code")), {"fixer": grows})
        play.finish("code")
        assert (play.outcome, play.attempts()["fixer"]) == ("done", 0)
        play.person_raises("fixer")
        assert play.attempts()["fixer"] == 1

    def test_feedback_that_would_not_start_a_skipped_step_is_refused(self) -> None:
        work = flow(PLAN, step("fixer", "plan", when=("feedback_to:fixer", "plan:/ui", "feedback_from:plan")))
        play = Play(work, {"plan": plans(False)}).run()
        play.person_raises("fixer")
        assert "'fixer' is skipped" in play.s.refused[0].reason

    def test_an_earlier_evaluation_does_not_depend_on_loops(self) -> None:
        play = Play(flow(step("code"), step("report", when=("open_loops > 0",))), start=False)
        started = e.RunStarted(1.0, "r", play.workflow)
        evaluated = e.ConditionEvaluated(1.0, "report", False, "open_loops > 0", sha256(b"[]").hexdigest())
        play.state = replay([started, evaluated])
        play.person_raises("code", kind=Kind.CONTEXT_REQUEST)
        assert is_skipped(play.s, "report")

    def test_a_skipped_step_answers_questions(self) -> None:
        play = Play(flow(PLAN, ui(), SHIP), {"plan": plans(False), "ui": [out(answer="blue")]}).run()
        play.person_raises("ui", kind=Kind.CONTEXT_REQUEST).run()
        assert played(play) == ("done", {"plan": 1, "ui": 1, "ship": 1})

    def test_the_condition_is_evaluated_before_the_input_check(self) -> None:
        play = Play(flow(PLAN, ui(checked=True), SHIP), {"plan": plans(False)}).run()
        assert played(play) == ("done", {"plan": 1, "ui": 0, "ship": 1})

    def test_a_waiting_attempt_does_not_wait_for_a_skipped_step(self) -> None:
        play = Play(flow(PLAN, ui(), SHIP), {"plan": plans(False)})
        play.finish("plan")
        play.raises("ship", ask("plan"))
        play.do(c.BeginWait("L-1", "ship", 1))
        play.finish("plan", out({"ui": False, "text": 2}))
        assert play.loop().result_delivered
        assert play.run().outcome == "done"


def until(text: str = "polish:/score >= 3", most: int = 4, **more: Any) -> Step:
    return step("polish", "plan", repeat=Repeat((text,), most, **more))


def scores(*values: int) -> list[Outcome]:
    return [out({"score": value}) for value in values]


class TestRepeat:
    def test_a_step_is_repeated_until_its_condition_is_met_before_anything_downstream_starts(self) -> None:
        work = flow(PLAN, until(), step("ship", "polish"), step("j", reviews="polish"))
        play = Play(work, {"polish": scores(1, 2, 3)}).run()
        assert played(play) == ("verified", {"plan": 1, "polish": 3, "ship": 1, "j": 1})
        assert [brief.previous for brief in play.briefings["polish"]] == [None, {"score": 1}, {"score": 2}]
        assert {brief.mode for brief in play.briefings["polish"]} == {"work"}

    def test_an_error_does_not_count_as_a_repetition(self) -> None:
        play = Play(flow(PLAN, until(most=2)), {"polish": [scores(1)[0], Exception("broke"), scores(3)[0]]}).run()
        assert played(play) == ("done", {"plan": 1, "polish": 3})

    def test_an_exhausted_repeat_is_escalated_and_a_person_may_grant_more(self) -> None:
        play = Play(flow(PLAN, until(most=2)), {"polish": scores(1, 2, 2, 3)}).run()
        assert (play.breach(), play.attempts()["polish"]) == ("repeat", 2)
        packet = play.s.escalations["E-1"]
        assert packet.reason == "'polish' ran 2 times, and 'polish:/score >= 3' is still not met: it is 2"
        assert packet.options == ("continue", "skip", "cancel")
        play.decide("continue", rounds=2).run()
        assert played(play) == ("done", {"plan": 1, "polish": 4})

    def test_a_person_may_skip_an_exhausted_repeat(self) -> None:
        work = flow(PLAN, until(most=1), step("ship", "polish"))
        play = Play(work, {"polish": [out({})]}).run()
        assert play.s.escalations["E-1"].reason.endswith(
            "ran once, and 'polish:/score >= 3' is still not met: there is no value"
        )
        play.decide("skip").run()
        assert played(play) == ("accepted", {"plan": 1, "polish": 1, "ship": 1})

    def test_a_rework_restarts_the_repetition_count(self) -> None:
        work = flow(PLAN, until(most=2), step("j", reviews="polish"))
        play = Play(work, {"polish": scores(1, 3, 1, 4), "j": [failed("rough"), passed()]}).run()
        assert played(play) == ("verified", {"plan": 1, "polish": 4, "j": 2})
        assert [brief.mode for brief in play.briefings["polish"]] == ["work", "work", "rework", "work"]

    def test_an_exhausted_repeat_may_ask_another_step_for_help(self) -> None:
        work = flow(PLAN, until(most=2, to="plan"))
        play = Play(work, {"plan": grows, "polish": scores(1, 1, 1, 2, 3)}).run()
        assert played(play) == ("done", {"plan": 3, "polish": 5})
        loop = play.loop()
        assert (loop.kind, loop.source, loop.targets, loop.round) == (Kind.FIX_REQUEST, "polish", ("plan",), 2)
        assert loop.state is LoopState.RESOLVED
        assert play.opened() == 1
        request = play.briefings["plan"][1].feedback.requests[0]
        assert request.message == "'polish' ran 2 times, and 'polish:/score >= 3' is still not met: it is 1"
        assert request.suggested_fix == "make polish:/score >= 3 possible"

    def test_repeat_to_human_escalates(self) -> None:
        play = Play(flow(PLAN, until(most=2, to="human")), {"polish": scores(1, 2, 3)}).run()
        assert (play.breach(), play.s.escalations["E-1"].options) == ("repeat", ("continue", "skip", "cancel"))
        play.decide("continue").run()
        assert played(play) == ("done", {"plan": 1, "polish": 3})

    def test_an_accepted_exhausted_repeat_is_done(self) -> None:
        work = flow(PLAN, until(most=1, to="plan"), limits={"rounds_per_loop": 0})
        play = Play(work, {"polish": scores(1)}).run()
        play.decide("accept").run()
        assert played(play) == ("accepted", {"plan": 1, "polish": 1})

    def test_if_the_help_request_is_refused_a_person_is_asked(self) -> None:
        work = flow(PLAN, until(most=1, to="plan"), step("fix", "polish"), limits={"chain_depth": 1}, scope="any")
        play = Play(work, {"polish": scores(3, 1)}).run()
        play.person_raises("polish").run()
        assert "chain_depth" in play.of(e.RefusedFeedback)[0].reason
        assert "repeat" in [packet.breach.limit for packet in play.s.escalations.values() if packet.breach]

    def test_feedback_by_another_step_to_the_helper_is_not_a_help_request(self) -> None:
        work = flow(PLAN, step("idea"), until(most=1, to="plan"), limits={"chain_depth": 1}, scope="any")
        play = Play(work, {"polish": scores(3, 1)}).run().person_raises("polish")
        play.raises("idea", ask("plan"))
        play.finish("polish")
        assert [(loop.source, loop.targets) for loop in play.s.loops.values()][1:] == [("idea", ("plan",))]
        assert [packet.breach.limit for packet in play.s.escalations.values() if packet.breach] == ["repeat"]

    def test_feedback_to_other_steps_is_not_a_help_request(self) -> None:
        play = Play(flow(PLAN, until(most=1)), {"polish": [out({"score": 1}, feedback=(ask(HUMAN),))]}).run()
        assert play.s.escalations["E-1"].reason == "asked"
        assert play.breach() == "repeat"

    def test_the_bound_counts_every_repetition(self) -> None:
        assert max_attempts(flow(PLAN, until(most=4))) == 3 * (1 + 4) * (1 + 20)

    def test_an_answer_does_not_count_as_a_repetition(self) -> None:
        play = Play(flow(PLAN, until(most=1)), {"polish": [*scores(3), out(answer="so")]}).run()
        play.person_raises("polish", kind=Kind.CONTEXT_REQUEST).run()
        assert played(play) == ("done", {"plan": 1, "polish": 2})
        assert not is_stuck(play.s)


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ((PLAN, ui("plan:/ui = 1")), "step 'ui' has when: condition 'plan:/ui = 1' has the unknown operator '='"),
        ((PLAN, ui("feedback_to:pln > 0")), "step 'pln' does not exist: did you mean 'plan'?"),
        ((PLAN, ui("pln:/ui")), "step 'pln' does not exist: did you mean 'plan'?"),
        (
            (PLAN, ui("ship:/ui"), SHIP),
            "step 'ui' has a when condition on 'ship', which does not run before it: add that step to needs",
        ),
        (
            (PLAN, until("ship:/x"), step("ship", "polish")),
            "has a repeat condition on 'ship', which does not run before it",
        ),
        ((PLAN, until(most=0)), "step 'polish' has repeat with max 0: expected 1 or more"),
        ((PLAN, step("polish", repeat=Repeat((), 3))), "has repeat without a condition: add `until`"),
        ((PLAN, until(to="plna")), "repeat to 'plna', which does not exist: did you mean 'plan'?"),
        (
            (PLAN, until(to="ship"), step("ship", "polish")),
            "repeat to 'ship', which is out of its scope: use one of plan",
        ),
        (
            (step("polish", repeat=Repeat(("polish:/x",), 1, "ship")), step("ship", "polish")),
            "out of its scope: leave `to` out",
        ),
        ((PLAN, step("j", reviews="plan", repeat=Repeat(("plan:/x",), 2))), "has repeat but is a judge"),
        ((PLAN, step("a", group="plan")), "step 'a' has group 'plan', which is the name of a step: rename one of them"),
    ],
)
def test_an_invalid_when_or_repeat_is_refused(steps: tuple[Step, ...], why: str) -> None:
    assert why in "\n".join(problems_of(flow(*steps)))


def test_a_condition_on_a_skipped_step_sees_no_value() -> None:
    more = step("more", "ui", when=("ui:/x == 1",))
    less = step("less", "ui", when=("not ui:/x",))
    work = flow(PLAN, ui(), more, less, step("j", reviews="plan"))
    play = Play(work, {"plan": plans(True, False), "ui": [out({"x": 1})]}).run()
    assert play.attempts() == {"plan": 1, "ui": 1, "more": 1, "less": 0, "j": 1}
    play.person_raises("plan").run()
    assert played(play) == ("verified", {"plan": 2, "ui": 1, "more": 1, "less": 1, "j": 2})
    assert is_skipped(play.s, "more")


def test_a_waiting_attempt_waits_until_a_condition_is_evaluated() -> None:
    work = flow(PLAN, ui(), SHIP)
    play = Play(work, {"plan": plans(True)})
    play.finish("plan")
    play.finish("ui")
    play.raises("ship", ask("plan"))
    play.do(c.BeginWait("L-1", "ship", 1))
    play.slots = 1
    play.finish("plan", out({"ui": False}))
    assert not play.loop().result_delivered
    play.slots = 99
    play.do(c.Proceed())
    assert play.loop().result_delivered
    assert play.run().outcome == "done"


class TestGroups:
    def needs(self, *steps: Step) -> dict[str, tuple[str, ...]]:
        return valid_graph(build_workflow("w", [(each, {}) for each in steps])).needs

    def test_a_step_that_needs_a_group_needs_all_its_members(self) -> None:
        found = self.needs(
            PLAN,
            step("ux", "plan", group="design"),
            step("arch", "plan", group="design"),
            step("code", "design", "plan"),
            Step("review", judges=("design",)),
        )
        assert found["code"] == ("ux", "arch", "plan")
        assert found["review"] == ("ux", "arch")

    def test_a_member_may_need_the_others_of_its_group(self) -> None:
        assert self.needs(step("a", group="g"), step("b", "g", group="g"))["b"] == ("a",)

    def test_a_group_and_a_step_may_not_share_a_name(self) -> None:
        with pytest.raises(WorkflowError, match="is the name of a step"):
            self.needs(step("a"), step("b", "a", group="a"))


def test_a_loop_of_a_skipped_step_does_not_wait_for_it() -> None:
    work = flow(PLAN, ui(), SHIP, scope="any")
    play = Play(work, {"plan": plans(False)})
    play.raises("ui", ask("ship", severity=Severity.CRITICAL))
    play.run()
    assert played(play) == ("done", {"plan": 1, "ui": 0, "ship": 1})
    assert play.loop().state is LoopState.RESOLVED


def test_a_finding_for_a_skipped_step_goes_to_the_step_under_judgement() -> None:
    """No step would receive what the skipped step makes."""
    work = flow(PLAN, ui(phase="code"), step("ship", "ui", phase="test"), step("j", reviews="ship"))
    found = failed(Finding("no button", affected_phase=("code",)))
    play = Play(work, {"plan": plans(False), "ship": grows, "j": [found, passed()]}).run()
    assert (play.loop().targets, play.loop().routed_by) == (("ship",), "subject")
    assert played(play) == ("verified", {"plan": 1, "ui": 0, "ship": 2, "j": 2})


def test_a_finding_for_a_person_and_a_skipped_step_goes_to_the_person() -> None:
    work = flow(PLAN, ui(), step("j", reviews="plan"), routes=(RouteRule(HUMAN, ("legal",)),))
    play = Play(work, {"plan": plans(False), "j": [failed(Finding("no licence", category="legal")), passed()]}).run()
    assert play.loop().targets == (HUMAN,)
    play.decide("resolve", note="it is MIT").run()
    assert play.outcome == "verified"
