"""Workflows that change: a planner adds, replaces and removes steps during the run."""

from __future__ import annotations

from typing import Any

import pytest

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.errors import WorkflowError
from backedge.core.feedback.loop import LoopState
from backedge.core.model import Finding, Kind, Severity, Status
from backedge.core.state.evolve import replay
from backedge.core.value import replace
from backedge.core.workflow.bound import max_attempts
from backedge.core.workflow.build import build_added_steps, build_workflow
from backedge.core.workflow.definition import PassRule, Repeat, Step, Workflow
from backedge.core.workflow.limits import Limits
from backedge.core.workflow.plan import NotedValues
from backedge.core.workflow.validate import problems_of
from tests.core.play import Planned, Play, ask, failed, flow, grows, out, passed, planned, step

PLAN = step("plan", phase="planning", plans=True)
PLANS_JUDGES = step("plan", phase="planning", plans=True, plans_judges=True)
CODE = step("code", "plan", phase="code")
TEST = step("test", tests="code")
DOCS = step("docs", "plan", phase="test")


def missing(*to: str, **more: Any) -> Any:
    return ask(*to, kind=Kind.DEPENDENCY_MISSING, message="there is no refund model", **more)


def order(play: Play) -> list[str]:
    return [event.step for event in play.of(e.AttemptStarted)]


def error(play: Play, name: str = "plan") -> str:
    return play.s.steps[name].last_error


def grouped(*steps: Step) -> Workflow:
    return build_workflow("w", [(each, {}) for each in steps])


def joining(*steps: Step, remove: tuple[str, ...] = (), **more: Any) -> Any:
    """A plan whose steps are read like those of a file."""
    workflow = more.pop("of")
    return planned("p", *build_added_steps(workflow, [(each, {}) for each in steps]), remove=remove, **more)


class TestGroups:
    UX, ARCH = (step(name, "plan", phase="design", group="design") for name in ("ux", "arch"))
    BUILD = step("build", "design", phase="code")
    WORK = grouped(PLAN, UX, BUILD)

    def test_a_step_that_needs_a_group_needs_new_members_too(self) -> None:
        play = Play(self.WORK, {"plan": [joining(self.ARCH, of=self.WORK)]}).run()
        assert (play.outcome, order(play)) == ("done", ["plan", "ux", "arch", "build"])
        assert play.briefings["build"][0].inputs.keys() == {"ux", "arch"}
        assert replay(play.events).workflow == play.s.workflow  # type: ignore[union-attr]

    def test_a_judge_of_a_group_judges_new_members_too(self) -> None:
        work = grouped(PLAN, self.UX, step("review", reviews="design"))
        play = Play(work, {"plan": [joining(self.ARCH, of=work)], "arch": grows, "review": [failed("x"), passed()]})
        assert play.run().loop().targets == ("ux", "arch")

    def test_a_consumer_that_has_run_runs_again_with_the_new_member(self) -> None:
        work = grouped(PLAN, self.UX, self.BUILD, step("review", reviews="build"))
        found = failed(Finding("no architecture", affected_phase=("planning",)))
        play = Play(work, {"plan": [out("p"), joining(self.ARCH, of=work)], "review": [found, passed()]}).run()
        assert (play.outcome, play.attempts()) == (
            "verified", {"plan": 2, "ux": 1, "build": 2, "review": 2, "arch": 1},
        )  # fmt: skip

    def test_a_group_that_was_emptied_can_be_filled_again(self) -> None:
        play = Play(self.WORK, {"plan": [joining(self.ARCH, remove=("ux",), of=self.WORK)]}).run()
        assert play.briefings["build"][0].inputs.keys() == {"arch"}

    def test_a_new_step_does_not_need_a_member_that_the_same_plan_removes(self) -> None:
        ship = step("ship", "design", phase="code")
        play = Play(self.WORK, {"plan": [joining(self.ARCH, ship, remove=("ux",), of=self.WORK)]}).run()
        assert (play.outcome, list(play.briefings["ship"][0].inputs)) == ("done", ["arch"])

    def test_a_new_member_downstream_of_its_own_group_is_refused(self) -> None:
        late = step("late", "build", phase="code", group="design")
        play = Play(self.WORK, {"plan": [joining(late, of=self.WORK), out("p")]}).run()
        assert "in a circle" in play.of(e.AttemptFailed)[0].error

    def test_a_new_member_may_not_rerun_a_step_that_is_not_downstream_of_the_planner(self) -> None:
        independent = replace(self.UX, needs=())
        work = grouped(step("slow", phase="planning", plans=True), independent, self.BUILD)
        play = Play(work)
        play.finish("ux")
        joins = joining(replace(self.ARCH, needs=()), of=work)
        play.finish("slow", joins)
        why = "step 'build' is running and would also need 'arch', which joins its group: add it when that step is done"
        assert error(play, "slow") == why
        play.finish("build")
        play.now += 60
        play.do(c.Proceed())
        play.finish("slow", joins)
        assert error(play, "slow").startswith("step 'build' has run and would also need 'arch', which joins its group")


class TestAdding:
    def test_added_steps_run_where_they_belong(self) -> None:
        play = Play(flow(PLAN, CODE), {"plan": [planned("p", step("ux", "plan"), step("ship", "code", "ux"))]})
        assert play.run().outcome == "done"
        assert order(play) == ["plan", "ux", "code", "ship"]
        assert play.briefings["ship"][0].inputs == {"code": "code", "ux": "ux"}

    def test_an_added_judge_gates_the_steps_after_its_subject(self) -> None:
        plan = planned("p", step("review", reviews="code"))
        deploy = step("deploy", "code")
        play = Play(flow(PLAN, CODE, deploy), {"plan": [plan], "code": grows, "review": [failed("bad"), passed()]})
        assert play.run().outcome == "verified"
        assert order(play) == ["plan", "code", "review", "code", "review", "deploy"]

    def test_the_change_is_one_event_with_the_steps_as_they_were_written(self) -> None:
        play = Play(flow(PLAN, CODE), {"plan": [planned("p", step("ux", "plan"))]}).run()
        (change,) = play.of(e.StepsChanged)
        assert (change.by, change.attempt, change.added, change.removed) == ("plan", 1, (step("ux", "plan"),), ())
        assert play.s.specs == {"ux": {"name": "ux", "needs": ["plan"]}}
        assert replay(play.events) is not None and replay(play.events).workflow == play.s.workflow  # type: ignore[union-attr]

    def test_repeating_the_same_plan_changes_nothing(self) -> None:
        same = planned("p", step("ux", "plan"), remove=["old"])
        play = Play(flow(PLAN, CODE, step("old", "plan")), {"plan": [same]}).run()
        play.person_raises("plan").run()
        assert len(play.of(e.StepsChanged)) == 1
        assert play.attempts() == {"plan": 2, "code": 1, "ux": 1}

    def test_steps_can_be_added_while_others_run(self) -> None:
        play = Play(flow(PLAN, step("docs")), {"plan": [planned("p", step("ux"))]})
        play.finish("plan")
        assert play.s.steps["docs"].running is not None and play.s.steps["ux"].running is not None

    def test_a_planners_briefing_has_the_steps_and_how_many_can_be_added(self) -> None:
        play = Play(flow(PLAN, CODE, TEST, max_steps=5), {"plan": grows}).run()
        briefing = play.briefings["plan"][0]
        assert [(each.name, each.phase, each.needs, each.judges, each.running) for each in briefing.steps] == [
            ("plan", "planning", (), (), True),
            ("code", "code", ("plan",), (), False),
            ("test", "code", ("code",), ("code",), False),
        ]
        assert briefing.left["max_steps"] == 2
        assert play.briefings["code"][0].steps == () and "max_steps" not in play.briefings["code"][0].left


class TestReplacing:
    def replan(self, *add: Step, remove: tuple[str, ...] = (), **more: Any) -> Play:
        """A run that is done, whose planner is then asked to change it."""
        again = planned("p", *add, remove=remove)
        play = Play(flow(PLAN, CODE, DOCS, step("ship", "code"), **more), {"plan": [out("p"), again]})
        play.run().person_raises("plan", kind=Kind.ARCHITECTURE_ISSUE).run()
        return play.decide("resolve", note="that is it").run()

    def test_only_what_depends_on_the_change_runs_again(self) -> None:
        play = self.replan(step("code", "plan", phase="code", timeout=9))
        assert play.attempts() == {"plan": 2, "code": 2, "docs": 1, "ship": 1}
        assert play.s.graph.steps["code"].timeout == 9

    def test_the_old_output_is_the_previous_output_of_the_replaced_step(self) -> None:
        assert self.replan(step("code", "plan", timeout=9)).briefings["code"][1].previous == "code"

    def test_a_consumer_that_lost_a_need_runs_again(self) -> None:
        play = self.replan(remove=("code",))
        assert play.s.graph.needs["ship"] == ()
        assert play.attempts() == {"plan": 2, "docs": 1, "ship": 2}

    def test_a_consumer_that_gained_a_need_runs_again(self) -> None:
        play = self.replan(step("ship", "code", "docs"))
        assert play.attempts() == {"plan": 2, "code": 1, "docs": 1, "ship": 2}

    def test_attempt_numbers_are_never_reused(self) -> None:
        play = self.replan(remove=("docs",))
        play.scripts["plan"] = [planned("p", DOCS)]
        play.person_raises("plan").run().decide("resolve", note="that is it").run()
        assert play.s.steps["docs"].attempts == 2

    def test_a_changed_plan_counts_as_a_change_even_with_the_same_output(self) -> None:
        play = self.replan(remove=("docs",))
        assert play.loop().shares["plan"].changed and play.loop().unchanged_reworks == 0

    def test_the_errors_of_the_old_agent_do_not_count_for_the_new_one(self) -> None:
        scripts: dict[str, Any] = {
            "plan": [out("p"), planned("p", step("code", "plan", timeout=9))],
            "code": [Exception("broke")],
        }
        play = Play(flow(PLAN, CODE, DOCS), scripts).run()
        assert play.breach() == "errors_in_a_row"
        play.scripts["code"] = [out("c")]
        play.person_raises("plan", kind=Kind.ARCHITECTURE_ISSUE).run()
        play.decide("resolve", note="that is it").run()
        packet = play.s.escalation("E-1")
        assert packet is not None and packet.decided is not None
        assert (packet.decided.choice, packet.decided.by, packet.decided.note) == (
            "continue",
            "plan",
            "plan replaced it",
        )
        assert play.s.steps["code"].attempts == 4 and play.s.steps["code"].artifact is not None

    def test_a_question_about_a_removed_step_is_settled(self) -> None:
        scripts: dict[str, Any] = {"plan": [out("p"), planned("p", remove=["code"])], "code": [Exception("broke")]}
        play = Play(flow(PLAN, CODE, DOCS, on_breach="manual"), scripts).run()
        play.person_raises("plan", kind=Kind.ARCHITECTURE_ISSUE).run()
        assert [packet.step for packet in play.s.escalations.values()] == [None]
        assert play.decide("resolve", note="fine").run().outcome == "done"

    def test_a_question_to_do_a_removed_step_is_closed(self) -> None:
        scripts: dict[str, Any] = {"plan": [out("p"), planned("p", remove=["code"])]}
        play = Play(flow(PLAN, step("code", "plan", agents=("human",)), DOCS), scripts).run()
        play.person_raises("plan", kind=Kind.ARCHITECTURE_ISSUE).run()
        packet = play.s.escalation("E-1")
        assert packet is not None and packet.decided is not None and packet.decided.choice == "cancelled"


class TestLoops:
    """Loops from and to removed steps end; loops of replaced steps continue."""

    REVIEW = step("review", reviews="code")

    def play(self, again: Planned, last: Any = None, **more: Any) -> Play:
        """The review has failed. Before the code is reworked, the planner is asked to change the run."""
        scripts: dict[str, Any] = {
            "plan": [out("p"), again],
            "code": grows,
            "review": [failed("bad"), last or passed()],
        }
        play = Play(flow(PLANS_JUDGES, CODE, self.REVIEW, DOCS, **more), scripts, slots=1)
        for name in ("plan", "code"):
            play.finish(name)
        play.slots = 0
        play.finish("review")
        play.slots = 1
        assert play.loop().state is LoopState.WAITING_RESPONSE
        play.person_raises("plan", kind=Kind.ARCHITECTURE_ISSUE, severity=Severity.CRITICAL).run()
        return play.decide("resolve", note="that is it").run()

    def test_the_loop_of_a_removed_judge_is_cancelled_and_its_findings_are_deferred(self) -> None:
        play = self.play(planned("p", remove=["review"]))
        assert (play.loop().state, play.loop().resolution.text) == (LoopState.CANCELLED, "plan removed review")  # type: ignore[union-attr]
        assert play.finding().status is Status.DEFERRED
        assert play.outcome == "accepted"
        play.do(c.Reclassify("F-1", "planning"))
        assert play.finding().reclassified == ("planning",)

    def test_findings_are_withdrawn_if_the_judged_step_is_removed_too(self) -> None:
        play = self.play(planned("p", remove=["review", "code"]))
        assert play.finding().status is Status.WITHDRAWN
        assert play.outcome == "done"

    def test_a_replaced_step_gets_the_waiting_feedback(self) -> None:
        play = self.play(planned("p", step("code", "plan", phase="code", timeout=9)))
        assert play.loop().state is LoopState.RESOLVED
        assert [issue.description for issue in play.briefings["code"][1].feedback.findings] == ["bad"]

    def test_a_replaced_judge_verifies_the_findings_of_the_old_one(self) -> None:
        play = self.play(planned("p", step("review", reviews="code", complete=True)))
        assert (play.loop().state, play.finding().status) == (LoopState.RESOLVED, Status.FIXED)

    def test_a_judge_that_becomes_a_producer_no_longer_answers_for_findings(self) -> None:
        play = self.play(planned("p", step("review", "code")), last=out("r"))
        assert (play.loop().state, play.finding().status) == (LoopState.CANCELLED, Status.WITHDRAWN)
        assert play.s.steps["review"].verdict is None
        assert play.outcome == "done"

    def test_a_judge_whose_target_is_removed_judges_again(self) -> None:
        design = step("design", "plan", phase="design")
        bad = Finding("bad", affected_phase=("design",))
        scripts: dict[str, Any] = {
            "plan": [out("p"), planned("p", remove=["design"])],
            "code": grows,
            "review": [failed(bad), passed()],
        }
        play = Play(flow(PLAN, design, CODE, self.REVIEW), scripts, slots=1)
        for name in ("plan", "design", "code"):
            play.finish(name)
        play.slots = 0
        play.finish("review")
        play.slots = 1
        assert play.loop().targets == ("design",)
        play.person_raises("plan", kind=Kind.ARCHITECTURE_ISSUE, severity=Severity.CRITICAL).run()
        play.decide("resolve", note="that is it").run()
        assert play.loop().state is LoopState.CANCELLED
        assert play.briefings["review"][1].verify[0].description == "bad"
        assert [each.state for each in play.briefings["review"][1].feedback.resolutions] == ["cancelled"]
        assert play.finding().status is Status.FIXED

    def test_a_replaced_judge_judges_only_the_current_steps(self) -> None:
        both = Step("check", judges=("code", "docs"))
        alone = planned("q", step("check", reviews="code"), remove=["docs"])
        scripts: dict[str, Any] = {"plan": [out("p"), alone], "check": [failed("bad"), passed()], "code": grows}
        play = Play(flow(PLANS_JUDGES, CODE, DOCS, both), scripts)
        for name in ("plan", "code", "docs"):
            play.finish(name)
        play.person_raises("plan")
        play.finish("check")
        play.run().decide("resolve", note="that is it").run()
        assert play.s.steps["check"].verdict.versions == {"code": 2}  # type: ignore[union-attr]

    def test_the_loop_of_an_input_check_ends_with_the_check(self) -> None:
        def input_errors(play: Play) -> tuple[tuple[str, Finding], ...]:
            return (("plan", failed("no units").findings[0]),) if play.s.steps["plan"].attempts < 9 else ()

        checked = step("code", "plan", checked=True)
        scripts: dict[str, Any] = {"plan": [out("p"), planned("q", step("code", "plan"))]}
        play = Play(flow(PLAN, checked), scripts, checks={"code": input_errors}).run()
        assert (play.loop().state, play.finding().status) == (LoopState.CANCELLED, Status.WITHDRAWN)
        assert play.outcome == "done"

    def test_an_attempt_that_waits_for_a_removed_step_gets_the_result(self) -> None:
        early = step("early", phase="planning")
        scripts: dict[str, Any] = {"plan": [out("p"), planned("p", remove=["early"])]}
        play = Play(flow(PLAN, early, CODE), scripts)
        for name in ("plan", "early"):
            play.finish(name)
        play.raises("code", ask("early", "plan")).do(c.BeginWait("L-1", "code", 1))
        play.finish("early", Exception("broke"))
        play.finish("plan")
        assert play.loop().state is LoopState.CANCELLED
        assert play.s.steps["code"].running is not None and play.s.steps["code"].running.awaits == ()


class TestMissing:
    """dependency_missing: a planner adds what is missing, and the requester runs after that."""

    MODEL = step("refund_model", "plan")

    def play(self, *feedback: Any, again: Any = None, **more: Any) -> Play:
        raised = feedback or (missing(),)
        scripts: dict[str, Any] = {
            "plan": [out("p"), again or planned("p", self.MODEL)],
            "code": [out("c1", feedback=raised), out("c2")],
        }
        return Play(flow(PLAN, CODE, step("ship", "code"), **more), scripts).run()

    def test_a_missing_dependency_goes_to_the_planner_and_the_requester_runs_after_the_added_steps(self) -> None:
        play = self.play()
        assert play.outcome == "done"
        assert order(play) == ["plan", "code", "plan", "refund_model", "code", "ship"]
        assert play.briefings["code"][1].inputs == {"plan": "p", "refund_model": "refund_model"}
        assert (play.loop().targets, play.loop().state) == (("plan",), LoopState.RESOLVED)
        assert play.loop().routed_by == "planner"
        assert play.briefings["plan"][1].feedback.requests[0].message == "there is no refund model"

    def test_raising_it_again_is_the_next_round(self) -> None:
        play = Play(flow(PLAN, CODE), {"plan": [out("p")], "code": [out("c", feedback=(missing(),))]}).run()
        assert (play.opened(), play.loop().round, play.breach()) == (1, 2, "no_change")

    def test_without_a_planner_it_goes_to_the_root(self) -> None:
        play = Play(flow(step("a"), step("b", "a")), {"b": [out(feedback=(missing(),)), out("b")]}).run()
        assert (play.loop().targets, play.outcome) == (("a",), "done")

    def test_an_architecture_issue_without_targets_goes_to_the_planner(self) -> None:
        circle = ask(kind=Kind.ARCHITECTURE_ISSUE, message="a circle")
        play = self.play(circle)
        assert (play.loop().targets, play.loop().routed_by, play.outcome) == (("plan",), "planner", "done")
        alone = Play(flow(step("a")), {"a": [out(feedback=(circle,))]}).run()
        expected = "its feedback can go nowhere: to is missing: name at least one target; it said: a circle"
        assert error(alone, "a") == expected

    def test_the_root_cannot_ask_itself(self) -> None:
        play = Play(flow(step("a")), {"a": [out(feedback=(missing(),))]}).run()
        assert "is the source itself" in error(play, "a")

    def test_the_nearest_planner_is_asked(self) -> None:
        near = step("replan", "plan", phase="planning", plans=True)
        play = Play(
            flow(PLAN, near, step("code", "replan", phase="code")), {"code": [out(feedback=(missing(),)), out("c")]}
        )
        assert play.run().loop().targets == ("replan",)

    def test_a_person_may_report_a_missing_dependency_too(self) -> None:
        play = Play(flow(PLAN, CODE), {"plan": [out("p"), planned("p", self.MODEL)]}).run()
        play.raises("human", missing()).run().decide("resolve", note="that is it").run()
        assert play.loop().targets == ("plan",) and play.s.plans[0].gained == {}
        assert play.s.steps["refund_model"].attempts == 1

    def test_steps_added_for_a_blocking_loop_start_while_the_run_is_paused(self) -> None:
        assert self.play(missing(blocking=True)).outcome == "done"

    def test_steps_added_for_an_architecture_issue_start_while_the_run_is_paused(self) -> None:
        issue = ask("plan", kind=Kind.ARCHITECTURE_ISSUE, blocking=True)
        play = Play(
            flow(PLAN, CODE),
            {
                "plan": [out("p"), planned("p", step("gateway", "plan"))],
                "code": [out("c", feedback=(issue,)), out("c")],
            },
        )
        for name in ("plan", "code", "plan"):
            play.finish(name)
        assert play.s.paused and play.s.steps["gateway"].running is not None

    def test_an_impossible_need_is_an_error_of_the_planner(self) -> None:
        late = self.play(again=planned("p", step("load_test", "plan", phase="test")))
        assert "needs 'load_test' of the later phase test" in error(late)
        circle = self.play(again=planned("p", step("after", "code")))
        assert "in a circle" in error(circle)

    def test_the_requester_waits_for_judges_of_added_steps_without_needing_them(self) -> None:
        play = self.play(again=planned("p", self.MODEL, step("model_review", reviews="refund_model")))
        assert play.s.graph.steps["code"].needs == ("plan", "refund_model")
        assert order(play)[3:5] == ["refund_model", "model_review"]

    def test_a_waiting_attempt_continues_with_the_added_steps(self) -> None:
        play = Play(flow(PLAN, CODE), {"plan": [out("p"), planned("p", self.MODEL)]})
        play.finish("plan")
        play.raises("code", missing()).do(c.BeginWait("L-1", "code", 1))
        play.finish("plan")
        play.finish("refund_model")
        assert play.of(e.ResultDelivered)[0].inputs == {"plan": 1, "refund_model": 1}
        play.finish("code")
        assert (play.outcome, play.attempts()["code"]) == ("done", 1)

    def test_a_removed_requester_does_not_need_the_added_steps(self) -> None:
        play = self.play(again=planned("p", self.MODEL, remove=["code"]))
        assert play.outcome == "done"
        assert (play.loop().state, play.s.plans[0].gained) == (LoopState.CANCELLED, {})


class TestRefused:
    """An invalid plan is an error of the planner that names the problem."""

    def after(self, plan: Planned, *steps: Step, name: str = "plan", **more: Any) -> str:
        play = Play(flow(*(steps or (PLAN, CODE, TEST)), **more), {name: [plan]}).run()
        assert not play.of(e.StepsChanged)
        return error(play, name)

    @pytest.mark.parametrize(
        ("plan", "problem"),
        [
            (planned("p", step("a", "nowhere")), "step 'a' needs 'nowhere', which does not exist"),
            (planned("p", step("a", "b"), step("b", "a")), "in a circle"),
            (planned("p", step("a", "code", phase="planning")), "of the later phase code"),
            (planned("p", step("a", reviews="test")), "which is a judge: name the step that it judges"),
            (planned("p", step("human")), "reserved name"),
            (planned("p", remove=["cod"]), "remove_steps names 'cod', which is not a step: did you mean 'code'?"),
            (planned("p", remove=["code"]), "step 'test' judges 'code', which does not exist"),
            (planned("p", remove=["plan"]), "'plan' replaces or removes itself"),
            (planned("p", step("code"), remove=["code"]), "'code' is both added and removed"),
            (planned("p", step("a"), step("b")), "max_steps: 2 more would make 5 steps"),
            (
                planned("p", step("a", limits=Limits(errors_in_a_row=9))),
                "would allow 1512 attempts in this run, but its bound is 504",
            ),
        ],
    )
    def test_an_invalid_plan_is_refused(self, plan: Planned, problem: str) -> None:
        most = 4 if "max_steps" in problem or "attempts" in problem else 50
        assert problem in self.after(plan, max_steps=most)

    @pytest.mark.parametrize("plan", [planned("p", remove=["test"]), planned("p", step("test", reviews="code"))])
    def test_a_judge_of_the_workflow_stays_unless_the_file_allows_its_change(self, plan: Planned) -> None:
        assert self.after(plan) == (
            "step 'test' is a judge of the workflow, and 'plan' may not replace or remove it: leave it as it is, or set "
            "`plans: {judges: true}` for 'plan' in the workflow file"
        )
        play = Play(flow(PLANS_JUDGES, CODE, TEST), {"plan": [plan]}).run()
        assert play.s.plans and error(play) == ""

    def test_a_planner_may_add_judges_and_change_those_that_were_added(self) -> None:
        again = [planned("p", step("review", reviews="code")), planned("q", remove=["review"])]
        play = Play(flow(PLAN, CODE, TEST), {"plan": again}).run()
        assert (play.outcome, "review" in play.s.steps) == ("verified", True)
        play.person_raises("plan").run()
        assert (error(play), "review" in play.s.steps) == ("", False)

    def test_a_planner_cannot_add_a_planner_that_may_do_more_than_itself(self) -> None:
        other = step("other", phase="planning", plans=True, plans_judges=True)
        assert "step 'other' would plan judges, but 'plan' may not do that itself" in self.after(planned("p", other))
        play = Play(flow(PLANS_JUDGES, CODE), {"plan": [planned("p", other)]}).run()
        assert "other" in play.s.steps

    def test_only_planners_may_change_steps(self) -> None:
        problem = self.after(planned("c", step("a")), name="code")
        assert "'code' adds or removes steps: only a step with `plans: true` may do that" in problem

    def test_a_planner_that_is_asked_a_question_may_not_change_steps(self) -> None:
        scripts: dict[str, Any] = {"plan": [out("p"), planned("p", step("a"), answer="yes")]}
        play = Play(flow(PLAN, CODE), scripts).run().person_raises("plan", kind=Kind.CONTEXT_REQUEST).run()
        assert "it may change steps only when it works, not when it answers" in error(play)

    def test_a_repeat_beyond_the_bound_of_the_run_is_refused(self) -> None:
        again = step("again", "plan", repeat=Repeat(("again:/x",), 3))
        for repeats, most in ((), 1), ((step("often", "plan", repeat=Repeat(("often",), 2)),), 2):
            play = Play(flow(PLAN, *repeats), {"plan": [planned("p", again), out("p")]})
            play.finish("plan")
            assert error(play) == (
                f"step 'again' has repeat with max 3, but the bound of this run assumes at most {most}: use that, "
                "or raise the max of a step in the workflow file"
            )

    def test_a_running_step_cannot_be_replaced(self) -> None:
        play = Play(flow(PLAN, step("docs")), {"plan": [planned("p", step("docs", timeout=9))]})
        play.finish("plan")
        assert "'docs' is running" in error(play)

    def test_a_planner_without_feedback_may_not_change_steps_that_have_run_and_are_not_downstream(self) -> None:
        play = Play(flow(PLAN, step("docs")), {"plan": [planned("p", remove=["docs"])]})
        play.finish("docs")
        play.finish("plan")
        assert "'docs' has run and is not downstream of 'plan'" in error(play)

    def test_a_judge_with_another_subject_continues_without_the_removed_one(self) -> None:
        both = Step("check", judges=("code", "docs"), reads=(("docs", ("/a",)),))
        play = Play(flow(PLAN, CODE, DOCS, both), {"plan": [planned("p", remove=["docs"])]}).run()
        assert (play.s.graph.steps["check"].judges, play.s.graph.steps["check"].reads) == (("code",), ())
        assert play.outcome == "verified"


class TestBound:
    def test_the_bound_counts_max_steps_if_a_step_plans(self) -> None:
        assert max_attempts(flow(PLAN, CODE)) == 3 * (50 + 50) * (1 + 20)
        assert max_attempts(flow(PLAN, CODE, max_steps=4)) == 3 * (4 + 4) * (1 + 20)
        assert max_attempts(flow(CODE, max_steps=4)) == 3 * 1 * (1 + 20)
        per_pair = {"rounds_total": None, "rounds_per_pair": 2}
        assert max_attempts(flow(PLAN, CODE, max_steps=4, limits=per_pair)) == 3 * (4 + 4) * (1 + 16 * 2)

    def test_an_invalid_definition_is_refused(self) -> None:
        assert problems_of(flow(PLAN, CODE, max_steps=1))[0].startswith("the workflow has 2 steps, but max_steps is 1")
        assert not problems_of(flow(CODE.__class__("a"), step("b"), max_steps=1))
        judge = Step("check", judges=("plan",), plans=True)
        assert "'check' both judges and plans" in problems_of(flow(PLAN, judge))[0]

    @pytest.mark.parametrize("most", [0, -1, True, 1.5, "many"])
    def test_max_steps_is_a_whole_number(self, most: Any) -> None:
        with pytest.raises(WorkflowError, match=r"max_steps is .*: expected a whole number, 1 or more"):
            build_workflow("w", [(PLAN, {})], max_steps=most)


class TestDefaults:
    """Added steps are treated like steps of the file."""

    def test_the_profile_applies_to_added_steps(self) -> None:
        workflow = build_workflow("w", [(PLAN, {})], profile="asp", limits={"same_finding": False})
        (review, test) = build_added_steps(workflow, [(step("r", reviews="plan"), {}), (step("t", tests="plan"), {})])
        assert review.passes_if == PassRule("asp-design")
        assert test.limits is not None and (test.limits.rounds_per_loop, test.limits.same_finding) == (1, None)

    def test_the_limits_of_added_steps_are_checked(self) -> None:
        workflow: Workflow = build_workflow("w", [(PLAN, {})])
        (review,) = build_added_steps(workflow, [(step("r", reviews="plan"), {"rounds_per_loop": 1})])
        assert review.limits == Limits(rounds_per_loop=1)
        with pytest.raises(WorkflowError, match="limit 'rounds' is unknown"):
            build_added_steps(workflow, [(step("r", reviews="plan"), {"rounds": 1})])


class TestNotes:
    """Values of earlier artifacts that new steps refer to."""

    def test_a_condition_of_a_new_step_sees_existing_artifacts(self) -> None:
        ui = Step("ui", needs=("look", "plan"), when=("look:/ui == true",), reads=(("look", ("/size",)),))
        reply = planned("p", ui)
        notes = {
            "look": NotedValues({"/size": "3"}, {"/ui": True}),
            "code": NotedValues(values={"/a": 1}),
            "gone": NotedValues(),
        }
        plan = Planned(reply.outcome, replace(reply.plan, noted=notes))
        late = step("replan", "look", plans=True)
        play = Play(flow(PLAN, step("look"), late, CODE, max_steps=9), {"replan": [plan]})
        for name in ("look", "plan", "replan"):
            play.finish(name)
        assert play.run().outcome == "done"
        assert play.s.steps["ui"].artifact.consumed["look"] == "3"  # type: ignore[union-attr]
        assert set(play.s.plans[0].noted) == {"look", "code"}
