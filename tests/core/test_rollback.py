"""Fixes that make things worse: with `on_worse: rollback`, the version before them counts again."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.errors import IllegalCommand, WorkflowError
from backedge.core.escalation.packet import packet
from backedge.core.evidence.values import Evidence, ProtectedChange, RestoredFiles
from backedge.core.feedback.loop import LoopState
from backedge.core.feedback.undoable import Counts, difference, obstacle, words_of
from backedge.core.model import HUMAN, Status
from backedge.core.scheduling.pending import RestoreFiles, pending
from backedge.core.state.evolve import replay
from backedge.core.state.run import RunState
from backedge.core.wording import feedback_text
from backedge.core.workflow.bound import max_attempts
from backedge.core.workflow.build import build_workflow
from backedge.core.workflow.routes import RouteRule
from backedge.core.workflow.validate import problems_of
from tests.core.play import (
    Finding,
    FindingResolution,
    Limits,
    Play,
    Severity,
    failed,
    flow,
    grows,
    out,
    passed,
    seen,
    step,
)


def critical(text: str) -> Finding:
    return Finding(text, severity=Severity.CRITICAL)


def low(text: str) -> Finding:
    return Finding(text, severity=Severity.LOW)


def reviewed(*replies: Any, on_worse: str = "rollback", code: Any = grows, **more: Any) -> Play:
    """A run of code and its review, up to where only a person can help."""
    workflow = flow(step("code"), step("review", reviews="code"), on_worse=on_worse, **more)
    return Play(workflow, {"code": code, "review": list(replies)}).run()


def statuses(run: Play) -> dict[str, str]:
    return {each.name: each.status.value for each in run.s.findings.values()}


def version(run: Play, name: str) -> int:
    artifact = run.s.steps[name].artifact
    assert artifact is not None
    return artifact.version


def replayed(run: Play) -> RunState:
    state = replay(run.events)
    assert state == run.s
    assert state is not None
    return state


class TestWhatARollbackDoes:
    def test_the_earlier_version_and_its_verdict_count_again_without_another_verdict(self) -> None:
        run = reviewed(failed("a"), failed("b", "c"), passed())
        event = run.of(e.RolledBack)[0]
        assert (event.loop, event.round, event.targets) == ("L-1", 1, ("code",))
        assert (event.versions, event.undone) == ({"code": 1, "review": 1}, {"code": 2, "review": 2})
        assert (event.before, event.after, event.caused) == ((0, 1, 0, 0), (0, 2, 0, 0), (2, 3))
        assert (event.attempts, event.undo, event.by) == ((("code", 2),), {}, "")
        assert run.attempts() == {"code": 3, "review": 3}, "no judge runs for the restored version"
        assert run.outcome == "verified"
        replayed(run)

    def test_the_next_round_starts_from_the_earlier_output_with_the_earlier_findings(self) -> None:
        run = reviewed(failed("a"), failed("b", "c"), passed())
        first, again = run.briefings["code"][1:]
        assert (first.previous, again.previous) == ("code 1", "code 1")
        assert [each.description for each in again.feedback.findings] == ["a"]
        assert [each.description for each in run.briefings["review"][2].verify] == ["a"]

    def test_findings_that_only_the_later_version_had_are_rolled_back_and_stay_visible(self) -> None:
        run = reviewed(failed("a"), failed("b", "c"), passed())
        assert statuses(run) == {"F-1": "fixed", "F-2": "rolled_back", "F-3": "rolled_back"}

    def test_a_version_number_is_never_used_twice(self) -> None:
        assert version(reviewed(failed("a"), failed("b", "c"), passed()), "code") == 3

    def test_a_finding_that_was_rolled_back_is_open_if_it_is_found_again(self) -> None:
        run = reviewed(failed("a"), failed("b", "c"), failed("b"), failed("a"), limits={"rounds_per_loop": 2})
        assert statuses(run)["F-2"] == "open"
        assert run.finding(2).rounds_seen == 2

    def test_equal_findings_are_not_worse(self) -> None:
        assert reviewed(failed("a"), failed("b"), passed()).of(e.RolledBack) == []

    def test_a_graver_finding_is_worse_than_many_others(self) -> None:
        run = reviewed(failed("a", "b", low("c")), failed(critical("d")), passed())
        assert [(each.before, each.after) for each in run.of(e.RolledBack)] == [((0, 2, 0, 1), (1, 0, 0, 0))]

    def test_fewer_grave_findings_are_better_than_any_number_of_lesser_ones(self) -> None:
        assert reviewed(failed(critical("a")), failed("b", "c", low("d")), passed()).of(e.RolledBack) == []

    def test_without_the_setting_the_fix_stays(self) -> None:
        run = reviewed(failed("a"), failed("b", "c"), passed(), on_worse="keep")
        assert run.of(e.RolledBack) == []
        assert run.briefings["code"][2].previous == "code 2"

    def test_a_judge_can_have_its_own_setting(self) -> None:
        def judged(own: Any, all_of_them: str) -> int:
            review = step("review", reviews="code", on_worse=own)
            workflow = flow(step("code"), review, on_worse=all_of_them)
            scripts: dict[str, Any] = {"code": grows, "review": [failed("a"), failed("b", "c"), passed()]}
            return len(Play(workflow, scripts).run().of(e.RolledBack))

        assert (judged("rollback", "keep"), judged("keep", "rollback"), judged(None, "rollback")) == (1, 0, 1)

    def test_what_the_undone_attempt_claimed_is_forgotten(self) -> None:
        claims = out("worse", resolutions=(FindingResolution("F-1", "fixed", "by a cache"),))
        run = reviewed(failed("a"), failed("b", "c"), code=[out("v1"), claims], limits={"rounds_per_loop": 1})
        assert (run.finding(1).claim, statuses(run)["F-1"]) == ("", "open")


class TestLimits:
    def test_it_is_neither_a_return_nor_an_unchanged_rework(self) -> None:
        run = reviewed(failed("a"), failed("b", "c"), failed("d", "e"), passed())
        assert len(run.of(e.RolledBack)) == 2
        assert (run.loop().oscillations, run.loop().unchanged_reworks) == (0, 0)

    def test_a_rework_that_returns_to_the_version_that_was_rolled_back_is_a_return(self) -> None:
        worse = [out("v1"), out("v2"), out("v2"), out("v3")]
        run = reviewed(failed("a"), failed("b", "c"), failed("b", "c"), passed(), code=worse)
        assert run.loop().oscillations == 1

    def test_a_rework_that_changes_nothing_after_a_rollback_is_an_unchanged_rework(self) -> None:
        same = [out("v1"), out("v2"), out("v1"), out("v3")]
        run = reviewed(failed("a"), failed("b", "c"), failed("a"), passed(), code=same)
        assert run.loop().unchanged_reworks == 1

    def test_every_round_counts_and_the_packet_says_what_was_rolled_back(self) -> None:
        run = reviewed(failed("a"), *(failed(f"b{n}", f"c{n}") for n in range(9)), limits={"rounds_per_loop": 2})
        assert run.breach() == "rounds_per_loop"
        assert (len(run.of(e.RolledBack)), run.loop().round, run.attempts()["code"]) == (2, 2, 3)
        told = packet(run.s, "E-1")
        assert [[one.id for one in each.caused] for each in told.rolled_back] == [["F-2", "F-3"], ["F-4", "F-5"]]
        assert [(each.targets, each.round, each.why) for each in told.rolled_back][1] == (
            ("code",),
            2,
            "2 findings instead of 1",
        )
        assert [each.id for each in told.history[-1].findings] == ["F-1"], "the next round is about what stands again"
        assert "rollback" not in [each.choice for each in told.options], "the last fix is rolled back already"
        assert (version(run, "code"), run.loop().state) == (1, LoopState.ESCALATING)
        run.decide("continue").run()
        assert run.briefings["code"][-1].previous == "code 1"
        replayed(run)

    def test_a_run_of_bad_fixes_stays_within_its_bound(self) -> None:
        workflow = flow(
            step("plan"),
            step("code", "plan"),
            step("review", reviews="code"),
            step("test", tests="code"),
            on_worse="rollback",
            limits=Limits(rounds_per_loop=None, rounds_total=6, same_finding=None),
        )

        def worse(run: Play, name: str) -> Any:
            count = run.s.steps[name].verdicts
            return failed(*(f"{name} {count} {n}" for n in range(1 + count)))

        run = Play(workflow, {"plan": grows, "code": grows, "review": worse, "test": worse}).run()
        bound = max_attempts(workflow)
        assert bound is not None
        assert len(run.of(e.RolledBack)) == 6
        assert run.s.attempts <= bound
        assert run.breach() == "rounds_total"
        replayed(run)

    def test_on_breach_error_ends_the_run_before_a_rollback(self) -> None:
        run = reviewed(failed("a"), failed("b", "c"), limits={"rounds_per_loop": 1}, on_breach="error")
        assert (run.outcome, run.of(e.RolledBack)) == ("failed", [])


def two_judges(review: list[Any], test: list[Any], slots: int = 99, **more: Any) -> Play:
    steps = (step("code"), step("review", reviews="code"), step("test", tests="code"))
    workflow = flow(*steps, on_worse="rollback", **more)
    return Play(workflow, {"code": grows, "review": review, "test": test}, slots=slots)


class TestSeveralJudges:
    @pytest.mark.parametrize("slots", [1, 2])
    def test_it_waits_for_all_judges_of_the_version(self, slots: int) -> None:
        run = two_judges([failed("a"), failed("b", "c"), passed()], [failed("t"), passed(), passed()], slots).run()
        assert run.of(e.RolledBack) == [], "review found one more, test one less: no worse in total"
        run = two_judges([failed("a"), failed("b", "c"), passed()], [failed("t"), failed("t"), passed()], slots).run()
        rolled = run.of(e.RolledBack)
        assert [(each.before, each.after) for each in rolled] == [((0, 2, 0, 0), (0, 3, 0, 0))]
        verdicts = [event for event in run.events[: run.events.index(rolled[0])] if isinstance(event, e.VerdictGiven)]
        assert [event.judge for event in verdicts] == ["review", "test", "review", "test"]
        assert statuses(run)["F-2"] == "fixed", "the finding of the test stood again, and was fixed later"
        replayed(run)

    def test_what_a_judge_passed_is_open_again_in_a_loop_that_goes_on_with_its_rounds(self) -> None:
        run = two_judges([failed("a"), passed(), passed()], [passed(), failed("t", "u"), passed()])
        run.run()
        assert [(each.loop, each.caused) for each in run.of(e.RolledBack)] == [("L-1", (2, 3))]
        ended = {loop.id: (loop.state.value, loop.follows, loop.round) for loop in run.s.closed_loops.values()}
        assert ended == {
            "L-1": ("resolved", None, 1),
            "L-2": ("cancelled", None, 0),
            "L-3": ("resolved", "L-1", 2),
        }
        assert run.s.closed_loops[2].resolution.text == "it was about version 2 of code, which was rolled back"  # type: ignore[union-attr]
        assert [event.carries for event in run.of(e.LoopOpened)] == [False, False, True]
        assert statuses(run) == {"F-1": "fixed", "F-2": "rolled_back", "F-3": "rolled_back"}
        assert run.outcome == "verified"
        replayed(run)

    def test_a_loop_that_goes_on_keeps_to_its_limit(self) -> None:
        fails = [failed(f"t{n}", f"u{n}") for n in range(9)]
        run = two_judges([failed("a"), passed()], [passed(), *fails], limits={"rounds_per_loop": 2}).run()
        assert run.breach() == "rounds_per_loop"
        assert (len(run.of(e.RolledBack)), run.attempts()["code"]) == (2, 3)

    def test_a_judge_that_saw_only_one_version_does_not_count(self) -> None:
        steps = (step("code"), step("review", reviews="code"), step("test", "review", tests="code"))
        workflow = flow(*steps, on_worse="rollback")
        scripts: dict[str, Any] = {
            "code": grows,
            "review": [failed("a"), passed()],
            "test": [failed("t", "u", "v"), passed()],
        }
        run = Play(workflow, scripts).run()
        assert run.of(e.RolledBack) == [], "test could not judge the first version: it was not better"
        assert run.outcome == "verified"

    def test_a_fix_that_later_work_builds_on_stays(self) -> None:
        """The review of the plan passed it, so the design went on. What is found in the design is not held against it."""
        steps = (step("plan"), step("check", reviews="plan"), step("code", "plan"), step("test", tests="code"))
        workflow = flow(*steps, on_worse="rollback")
        scripts: dict[str, Any] = {
            "plan": grows,
            "check": [passed(), passed()],
            "code": grows,
            "test": [failed("t"), failed("u", "v"), passed()],
        }
        run = Play(workflow, scripts).run()
        assert len(run.of(e.RolledBack)) == 1
        scripts["check"] = [failed("p"), passed()]
        scripts["test"] = [failed("u", "v"), passed()]
        assert Play(workflow, scripts).run().of(e.RolledBack) == []


class TestCascades:
    def test_all_steps_that_ran_because_of_the_fix_go_back(self) -> None:
        wrong_plan = Finding("a", affected_phase=("planning",))
        steps = (
            step("plan", phase="planning"),
            step("design", "plan", phase="design"),
            step("code", "design", phase="code"),
            step("notes", "plan", phase="code"),
            step("review", reviews="code"),
        )
        scripts = dict.fromkeys(("plan", "design", "code", "notes"), grows)
        replies = {"review": [failed(wrong_plan), failed("b", "c"), passed()]}
        run = Play(flow(*steps, on_worse="rollback"), {**scripts, **replies}).run()
        event = run.of(e.RolledBack)[0]
        assert event.versions == {"plan": 1, "design": 1, "code": 1, "notes": 1, "review": 1}
        assert event.attempts == (("plan", 2), ("design", 2), ("notes", 2), ("code", 2))
        assert run.attempts() == {
            "plan": 3,
            "design": 3,
            "code": 3,
            "notes": 3,
            "review": 3,
        }
        assert run.briefings["plan"][2].previous == "plan 1"
        replayed(run)

    def test_a_loop_inside_the_cascade_is_given_up_with_the_version_that_it_was_about(self) -> None:
        wrong_plan = Finding("a", affected_phase=("planning",))
        steps = (
            step("plan", phase="planning"),
            step("design", "plan", phase="design"),
            step("look", reviews="design"),
            step("code", "design", phase="code"),
            step("review", reviews="code"),
        )
        scripts: dict[str, Any] = dict.fromkeys(("plan", "design", "code"), grows)
        scripts["look"] = [passed(), failed("d"), passed()]
        scripts["review"] = [failed(wrong_plan), failed("b", "c"), passed()]
        run = Play(flow(*steps, on_worse="rollback"), scripts).run()
        event = run.of(e.RolledBack)[0]
        assert event.attempts == (("plan", 2), ("design", 2), ("design", 3), ("code", 2))
        assert event.versions["design"] == 1
        assert statuses(run)["F-2"] == "rolled_back"
        assert run.outcome == "verified"
        replayed(run)

    def test_both_targets_of_a_round_go_back(self) -> None:
        both = (Finding("a", affected_phase=("planning",)), Finding("b"))
        steps = (step("plan", phase="planning"), step("code", "plan", phase="code"), step("review", reviews="code"))
        scripts: dict[str, Any] = {
            "plan": grows,
            "code": grows,
            "review": [failed(*both), failed("c", "d", "e"), passed()],
        }
        run = Play(flow(*steps, on_worse="rollback"), scripts).run()
        event = run.of(e.RolledBack)[0]
        assert (event.targets, event.attempts) == (("plan", "code"), (("plan", 2), ("code", 2)))
        assert event.shares == {"L-1": {"plan": (1,), "code": (2,)}}
        replayed(run)

    def test_a_target_that_had_made_nothing_has_no_version_to_go_back_to(self) -> None:
        """The second target of the round runs for the first time with its feedback."""
        both = (Finding("a"), Finding("b", affected_phase=("test",)))
        steps = (
            step("code", phase="code"),
            step("more", "code", phase="test"),
            step("review", reviews="code"),
        )
        run = Play(
            flow(*steps, on_worse="rollback", scope="any"),
            {"code": grows, "more": grows, "review": [failed(*both), failed("c", "d", "e"), passed()]},
        ).run()
        assert run.of(e.RolledBack) == []


class TestWhatIsNotRolledBack:
    def test_a_fix_that_also_answers_a_person(self) -> None:
        workflow = flow(step("code"), step("review", reviews="code"), on_worse="rollback")
        run = Play(workflow, {"code": grows, "review": [failed("a"), failed("b", "c"), passed()]}, slots=1)
        run.finish("code")
        run.person_raises("code", message="use a list")
        run.run()
        assert len(run.briefings["code"][1].feedback.requests) == 1
        assert run.of(e.RolledBack) == []

    def test_a_version_that_open_feedback_is_about(self) -> None:
        workflow = flow(step("code"), step("review", reviews="code"), step("test", tests="code"), on_worse="rollback")
        scripts: dict[str, Any] = {
            "code": grows,
            "review": [failed("a"), failed("b", "c"), passed()],
            "test": [passed()],
        }
        run = Play(workflow, scripts)
        for name in ("code", "review", "test", "code", "review"):
            run.finish(name)
        run.person_raises("code", message="use a list")
        run.finish("test")
        assert run.of(e.RolledBack) == []
        run.run()
        assert run.of(e.RolledBack) == []

    def test_a_round_in_which_a_person_fixes_a_part(self) -> None:
        parts = failed("a", Finding("b", category="legal"))
        routes = (RouteRule(HUMAN, category=("legal",)),)
        run = two_judges([parts, failed("c", "d", "e")], [failed("t"), failed("t", "u")], routes=routes)
        for name in ("code", "review", "test", "code", "test"):
            run.finish(name)
        assert run.of(e.RolledBack) == []
        assert obstacle(run.s, "L-2") == "a person was asked to fix a part of L-1"

    def test_a_fix_of_something_that_was_made_again_from_other_input(self) -> None:
        """While code is reworked for its review, the plan below it is reworked for another."""
        steps = (
            step("plan", phase="planning"),
            step("code", "plan", phase="code"),
            step("review", reviews="code"),
            step("docs", "plan", phase="code"),
            step("look", reviews="docs"),
        )
        wrong_plan = Finding("p", affected_phase=("planning",))
        scripts: dict[str, Any] = dict.fromkeys(("plan", "code", "docs"), grows)
        scripts |= {"review": [failed("a"), failed("b", "c"), passed()], "look": [failed(wrong_plan), passed()]}
        run = Play(flow(*steps, on_worse="rollback"), scripts)
        for name in ("plan", "code", "docs", "review", "look"):
            run.finish(name)
        assert run.s.steps["code"].running is not None
        run.run()
        assert [event.targets for event in run.of(e.RolledBack)] == []
        assert run.outcome == "verified"

    def test_a_version_made_from_something_that_has_changed_since(self) -> None:
        steps = (
            step("base", phase="planning"),
            step("code", "base", phase="code", reads=(("base", ("/a",)),)),
            step("review", "base", reviews="code"),
        )
        wrong_base = Finding("b", affected_phase=("planning",))
        scripts: dict[str, Any] = {
            "base": [out({"a": 1}), out({"a": 2})],
            "code": grows,
            "review": [failed("a"), failed(wrong_base), failed("c", "d"), passed()],
        }
        run = Play(flow(*steps, on_worse="rollback"), scripts).run()
        assert [each.targets for each in run.of(e.RolledBack)] == [("base",)]
        replayed(run)

    def test_what_a_person_is_asked_about_for_another_reason(self) -> None:
        policy = tuple((severity, "ask") for severity in Severity)
        run = reviewed(failed("a"), failed("b", "c"), passed(), new_findings=policy)
        assert run.of(e.RolledBack) == []
        assert "could have reported earlier" in run.breach()
        assert "rollback" in run.s.escalations["E-1"].options
        run.decide("rollback").run()
        assert run.of(e.RolledBack)[0].by == "a person"
        assert run.outcome == "verified"


class TestDecidingIt:
    def escalated(self, **more: Any) -> Play:
        return reviewed(failed("a"), failed("b"), passed(), on_worse="keep", limits={"rounds_per_loop": 1}, **more)

    def test_the_packet_offers_it_and_says_what_it_will_do(self) -> None:
        run = self.escalated()
        option = next(each for each in packet(run.s, "E-1").options if each.choice == "rollback")
        assert option.next == (
            "the last fix is undone, with its files (code to version 1); F-1 stands again, and the next round starts "
            "from there"
        )
        assert option.impact == "every limit of L-1 is raised by 3 rounds"

    def test_the_next_round_starts_from_the_earlier_version(self) -> None:
        run = self.escalated().decide("rollback", by="ann").run()
        event = run.of(e.RolledBack)[0]
        assert (event.by, event.before, event.after) == ("ann", (0, 1, 0, 0), (0, 1, 0, 0))
        assert run.briefings["code"][2].previous == "code 1"
        assert run.outcome == "verified"
        assert run.s.decided_escalations[1].decided.rounds == 3  # type: ignore[union-attr]
        replayed(run)

    def test_without_a_fix_it_is_not_offered(self) -> None:
        run = reviewed(failed("a"), limits={"rounds_per_loop": 0})
        assert "rollback" not in run.s.escalations["E-1"].options
        with pytest.raises(IllegalCommand, match="'rollback' is not a valid choice for E-1"):
            run.decide("rollback")

    def test_a_running_judge_of_the_version_ends_first(self) -> None:
        run = two_judges([failed("a"), failed("b")], [failed("t"), passed()], limits={"rounds_per_loop": 1})
        for name in ("code", "review", "test", "code", "review"):
            run.finish(name)
        with pytest.raises(IllegalCommand, match="test is running, and works on the version that would be given up"):
            run.decide("rollback")
        run.finish("test")
        run.decide("rollback").run()
        assert len(run.of(e.RolledBack)) == 1

    def test_an_obstacle_since_the_question_is_named(self) -> None:
        run = self.escalated()
        run.slots = 0
        run.person_raises("code", message="use a list")
        with pytest.raises(
            IllegalCommand, match="the last fix of L-1 cannot be rolled back: L-2 of human is open, and is about"
        ):
            run.decide("rollback")
        run.do(c.WithdrawLoop("L-2"))
        run.slots = 1
        run.decide("rollback").run()
        assert run.outcome == "verified"

    def test_a_loop_that_another_decision_closed_is_an_obstacle(self) -> None:
        run = two_judges([failed("a"), failed("b")], [failed("t"), failed("u")], limits={"rounds_per_loop": 1})
        run.run()
        assert list(run.s.escalations) == ["E-1", "E-2"]
        run.decide("accept", "E-2")
        with pytest.raises(IllegalCommand, match="cannot be rolled back: L-2 was decided since"):
            run.decide("rollback", "E-1")

    def test_a_fix_that_is_not_verified_yet_can_be_rolled_back(self) -> None:
        run = reviewed(failed("a"), failed("b"), passed(), on_worse="keep", limits={"rounds_per_loop": 0})
        run.decide("continue")
        run.slots = 0
        run.finish("code")
        run.do(c.EscalateLoop("L-1"))
        run.decide("rollback")
        assert run.of(e.RolledBack)[0].caused == ()
        assert [each.round for each in run.loop().past_rounds] == [1]
        run.slots = 1
        run.scripts["review"] = [passed()]
        assert (run.run().outcome, run.loop().round, run.attempts()) == ("verified", 2, {"code": 3, "review": 2})
        replayed(run)

    def test_the_first_work_of_a_step_cannot_be_rolled_back(self) -> None:
        steps = (step("code", phase="code"), step("more", "code", phase="test"), step("review", reviews="code"))
        workflow = flow(*steps, scope="any", limits={"rounds_per_loop": 1})
        wrong = Finding("b", affected_phase=("test",))
        run = Play(workflow, {"code": grows, "more": grows, "review": [failed(wrong), failed(wrong)]}).run()
        assert run.attempts()["more"] == 1
        assert "rollback" not in run.s.escalations["E-1"].options

    def test_a_reclassified_finding_goes_to_its_new_phase(self) -> None:
        steps = (step("plan", phase="planning"), step("code", "plan", phase="code"), step("review", reviews="code"))
        workflow = flow(*steps, limits={"rounds_per_loop": 1})
        run = Play(workflow, {"plan": grows, "code": grows, "review": [failed("a"), failed("b"), passed()]}).run()
        run.do(c.Reclassify("F-1", "planning"))
        run.decide("rollback")
        assert run.of(e.RolledBack)[0].shares == {"L-1": {"plan": (1,)}}
        assert run.run().outcome == "verified"


WATCHED = {"workspace": "", "files": ("a.py",)}


def files_run(restored: RestoredFiles | None = None, review: Any = None, **more: Any) -> Play:
    """A run whose coder changes files. `restored` says what becomes of the files of a rollback."""
    replies = [seen(out(f"v{n}"), tree=f"t{n}", **WATCHED) for n in range(1, 9)]
    judged = review or [seen(each, tree="t1") for each in (failed("a"), failed("b", "c"), passed())]
    workflow = flow(step("code"), step("review", reviews="code"), on_worse="rollback", **more)
    run = Play(workflow, {"code": replies, "review": judged})
    run.files = {"": restored or RestoredFiles(("a.py",), evidence=Evidence(tree="t1"))}
    return run


class TestFiles:
    def to_rollback(self, run: Play) -> Play:
        for name in ("code", "review", "code", "review"):
            run.finish(name)
        return run

    def test_nothing_of_it_starts_before_the_files_are_restored(self) -> None:
        run = self.to_rollback(files_run())
        effect = RestoreFiles({"": (("code", 2),)}, ("review",), "unless_edited")
        assert [each for each in pending(run.s, run.now) if isinstance(each, RestoreFiles)] == [effect]
        assert (run.outcome, run.s.busy) == ("running", 0)
        run.do(c.Proceed())
        assert run.s.busy == 0
        run.restore(effect)
        assert run.s.steps["code"].running is not None
        assert run.s.trees == {"": "t1"}
        with pytest.raises(IllegalCommand, match="no rollback waits for its files"):
            run.restore(effect)
        assert run.run().outcome == "verified"
        replayed(run)

    def test_a_person_is_asked_about_files_that_were_edited_since(self) -> None:
        names = tuple(f"{n}.py" for n in range(12))
        run = files_run(RestoredFiles(edited=("a.py",), lost=names)).run()
        question = run.s.escalations["E-1"]
        assert question.options == ("continue", "rollback", "cancel")
        assert question.reason.startswith("the rollback has restored no file yet: a.py: edited since; 0.py, 1.py")
        assert question.reason.endswith("9.py and 2 more: not kept as they were")
        assert (run.outcome, run.s.busy) == ("waiting", 0)
        options = {each.choice: each.next for each in packet(run.s, "E-1").options}
        assert options["continue"] == "all files stay as they are, and the next round starts from them"
        assert options["rollback"] == "all files of the rollback become what they were, edited or not"
        assert "cancel" in options

    @pytest.mark.parametrize(
        ("word", "kept"), [("continue", True), ("keep", True), ("rollback", False), ("restore", False)]
    )
    def test_the_answer_is_carried_out(self, word: str, kept: bool) -> None:
        run = files_run(RestoredFiles(edited=("a.py",))).run().decide(word)
        effects = [each for each in pending(run.s, run.now) if isinstance(each, RestoreFiles)]
        assert [each.rule for each in effects] == ["never" if kept else "anyway"]
        run.run()
        assert run.of(e.FilesRestored)[0].kept is kept
        assert run.briefings["code"][2].rolled_back[0].files_kept is kept
        assert run.outcome == "verified"
        replayed(run)

    def test_a_problem_is_asked_about_until_it_is_gone(self) -> None:
        run = files_run(RestoredFiles(problem="the disk is full")).run()
        assert run.breach() == "the rollback has restored no file yet: the disk is full"
        run.decide("rollback")
        run.do(c.ReportRestored({"": RestoredFiles(problem="the disk is still full")}))
        assert run.breach() == "the rollback has restored no file yet: the disk is still full"
        assert run.decide("keep").run().outcome == "verified"

    def test_a_cancelled_run_restores_nothing(self) -> None:
        run = self.to_rollback(files_run())
        run.do(c.Cancel("ann"))
        assert pending(run.s, run.now) == ()
        with pytest.raises(IllegalCommand, match="no rollback waits"):
            run.do(c.ReportRestored({"": RestoredFiles()}))

    def test_a_second_rollback_waits_for_the_files_of_the_first(self) -> None:
        steps = []
        scripts: dict[str, Any] = {}
        for n in ("1", "2"):
            steps += [step(f"code{n}"), step(f"review{n}", reviews=f"code{n}")]
            scripts[f"code{n}"] = [seen(out(f"v{k}"), tree=f"t{k}", workspace=n) for k in range(9)]
            scripts[f"review{n}"] = [failed("a"), failed("b", "c"), passed()]
        run = Play(flow(*steps, on_worse="rollback"), scripts)
        for name in ("code1", "code2", "review1", "review2", "code1", "code2", "review1", "review2"):
            run.finish(name)
        assert len(run.of(e.RolledBack)) == 1
        run.run()
        assert [each.undo for each in run.of(e.RolledBack)] == [{"1": (("code1", 2),)}, {"2": (("code2", 2),)}]
        assert run.outcome == "verified"
        replayed(run)

    def test_what_was_said_about_a_protected_file_counts_again_with_its_version(self) -> None:
        def coder(run: Play, name: str) -> Any:
            number = run.s.steps[name].attempts
            changes = [ProtectedChange("tests/test_a.py", "changed", f"d{min(number, 2)}")]
            changes += [ProtectedChange("setup.cfg", "added", "e")] if number == 2 else []
            return seen(out(f"v{number}"), tree=f"t{number}", changes=tuple(changes))

        workflow = flow(step("code"), step("review", reviews="code"), on_worse="rollback")
        judged = [seen(each, tree="t1") for each in (failed("a"), failed("b", "c"), passed())]
        run = Play(workflow, {"code": coder, "review": judged})
        kept = ProtectedChange("tests/test_a.py", "changed", "d1")
        other = ProtectedChange("pyproject.toml", "changed", "x")
        run.files = {"": RestoredFiles(("setup.cfg",), evidence=Evidence(tree="t1", changes=(kept, other)))}
        self.to_rollback(run)
        assert {each.file: each.id for each in run.s.protected.values()} == {"tests/test_a.py": 2, "setup.cfg": 3}
        run.restore(RestoreFiles({"": (("code", 2),)}, ("review",), "unless_edited"))
        found = {each.file: (each.id, each.step) for each in run.s.protected.values()}
        assert found == {"tests/test_a.py": (1, "code"), "pyproject.toml": (4, "")}


class TestTelling:
    def test_the_briefing_says_what_was_tried_why_it_was_rolled_back_and_what_it_caused(self) -> None:
        code = [out("v1", summary="first"), out("v2", summary="a cache"), out("v3")]
        run = reviewed(failed("a"), failed("b", "c"), passed(), code=code)
        told = run.briefings["code"][2].rolled_back
        assert [(each.round, each.targets, each.why) for each in told] == [(1, ("code",), "2 findings instead of 1")]
        assert [(each.id, each.description) for each in told[0].caused] == [("F-2", "b"), ("F-3", "c")]
        assert [(each.summary, each.rolled_back) for each in run.briefings["code"][2].tried] == [
            ("first", False),
            ("a cache", True),
        ]
        assert run.briefings["code"][1].rolled_back == ()
        assert run.briefings["review"][2].rolled_back == told, "its judge is told too"

    def test_it_is_told_as_long_as_the_loop_is_open(self) -> None:
        run = reviewed(failed("a"), failed("b", "c"), passed())
        run.person_raises("code", message="use a list")
        assert run.briefings["code"][-1].rolled_back == ()

    def test_the_words_are_by_severity_if_there_are_not_more_findings(self) -> None:
        run = reviewed(failed("a", "b"), failed(critical("c")), passed())
        assert run.briefings["code"][2].rolled_back[0].why == "1 critical instead of 2 high"

    def test_in_words(self) -> None:
        code = [out("v1", summary="first"), out("v2", summary="a cache"), out("v3")]
        run = reviewed(failed("a"), failed("b", critical("c")), passed(), code=code)
        text = feedback_text(run.briefings["code"][2])
        assert "### Iteration 1 was rolled back (code to version 1): it made things worse" in text
        assert "It left 2 findings instead of 1. Its changes are gone; what you get is the version before it.\n" in text
        assert "Find another fix. The undone one caused:\n```\nF-3 [critical] c\nF-2 [high] b\n```" in text
        assert "- code, attempt 2, iteration 1 (rolled back): a cache" in text
        assert "rolled back" not in feedback_text(run.briefings["code"][1])

    def test_a_persons_decision_in_words(self) -> None:
        run = files_run(RestoredFiles(edited=("a.py",)), on_breach="manual").run().decide("keep").run()
        assert "Somebody had edited the files meanwhile: they stayed as they are." in feedback_text(
            run.briefings["code"][2]
        )
        run = reviewed(failed("a"), passed(), on_worse="keep", limits={"rounds_per_loop": 0})
        run.decide("continue")
        run.slots = 0
        run.finish("code")
        run.do(c.EscalateLoop("L-1"))
        run.slots = 1
        run.decide("rollback", by="ann").run()
        text = feedback_text(run.briefings["code"][2])
        assert "### Iteration 1 was rolled back (code to version 1): ann decided it" in text
        assert "Find another fix" not in text

    def test_a_held_out_judge_says_nothing(self) -> None:
        steps = (step("code"), step("review", reviews="code", hidden=True))
        scripts: dict[str, Any] = {
            "code": grows,
            "review": [failed("secret a"), failed("secret b", "secret c"), passed()],
        }
        run = Play(flow(*steps, on_worse="rollback"), scripts).run()
        assert "secret" not in msgspec.json.encode(run.briefings["code"][2].rolled_back).decode()

    @pytest.mark.parametrize(
        ("before", "after", "words"),
        [
            ((0, 1, 0, 0), (0, 3, 0, 0), "3 findings instead of 1"),
            ((0, 0, 0, 0), (1, 0, 0, 0), "1 finding instead of 0"),
            ((0, 2, 0, 1), (1, 1, 0, 0), "1 critical and 1 high instead of 2 high and 1 low"),
            ((0, 1, 0, 0), (0, 0, 0, 0), "none instead of 1 high"),
        ],
    )
    def test_a_difference_in_words(self, before: Counts, after: Counts, words: str) -> None:
        assert difference(before, after) == words

    def test_a_rollback_in_a_line(self) -> None:
        run = reviewed(failed("a"), failed("b", "c"), passed())
        assert words_of(run.of(e.RolledBack)[0]) == "code to version 1: 2 findings instead of 1"
        by_hand = msgspec.structs.replace(run.of(e.RolledBack)[0], by="ann")
        assert words_of(by_hand) == "code to version 1: ann decided it"

    def test_status_rolled_back_is_not_open(self) -> None:
        run = reviewed(failed("a"), failed("b", "c"), passed())
        assert not run.finding(2).needs_answer
        assert run.finding(2).status is Status.ROLLED_BACK


class TestTheSetting:
    def test_only_judges_can_have_their_own(self) -> None:
        assert problems_of(flow(step("code", on_worse="keep"))) == (
            "step 'code' has on_worse but is not a judge: remove it, say it for the judges, or for the whole workflow",
        )

    def test_only_keep_and_rollback_are_known(self) -> None:
        with pytest.raises(WorkflowError, match="on_worse is 'undo': "):
            build_workflow("w", [(step("code"), {})], on_worse="undo")


class TestSlots:
    def test_a_target_upstream_waits_for_a_judge_that_waits_for_a_slot(self) -> None:
        """The plan is more urgent than the test. It would be reworked before the test has said what the last fix did."""
        wrong_plan = Finding("a", affected_phase=("planning",))
        steps = (
            step("plan", phase="planning"),
            step("code", "plan", phase="code"),
            step("review", reviews="code"),
            step("test", tests="code"),
        )
        scripts: dict[str, Any] = {
            "plan": grows,
            "code": grows,
            "review": [failed(wrong_plan), failed(wrong_plan), passed()],
            "test": [passed(), failed("t"), passed()],
        }
        run = Play(flow(*steps, on_worse="rollback"), scripts, slots=2)
        for name in ("plan", "code", "review", "test"):
            run.finish(name)
        run.slots = 1
        run.run()
        assert [(each.before, each.after) for each in run.of(e.RolledBack)] == [((0, 1, 0, 0), (0, 2, 0, 0))]
        assert run.outcome == "verified"
