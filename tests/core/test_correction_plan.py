"""When steps start: not before their needs are settled, one rework for all findings, one verification."""

from __future__ import annotations

from typing import Any

import pytest

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.feedback.loop import LoopState
from backedge.core.model import Finding, Kind, Severity
from backedge.core.scheduling.pending import pending
from backedge.core.scheduling.scheduler import Start
from tests.core.play import Play, Reply, ask, failed, flow, grows, out, passed, step, texts

CHAIN = (
    step("plan", phase="planning"),
    step("design", "plan", phase="design"),
    step("review", reviews="design"),
    step("code", "design", phase="code"),
)


def running(play: Play) -> list[str]:
    return [name for name, each in play.s.steps.items() if each.running is not None]


def planning(text: str, **more: Any) -> Finding:
    return Finding(text, affected_phase=("planning",), **more)


class TestStarting:
    def test_steps_that_can_run_in_parallel_do(self) -> None:
        play = Play(flow(step("a"), step("b"), step("c", "a", "b"), step("d", "a")))
        assert running(play) == ["a", "b"]
        play.finish("a")
        assert running(play) == ["b", "d"]

    def test_a_step_waits_for_the_judges_of_what_it_needs(self) -> None:
        play = Play(flow(*CHAIN))
        play.finish("plan")
        play.finish("design")
        assert running(play) == ["review"]
        play.finish("review")
        assert running(play) == ["code"]

    def test_a_step_does_not_wait_for_judges_that_need_it_themselves(self) -> None:
        work = flow(step("a"), step("b", "a"), step("end", "b", reviews="a"))
        assert Play(work).run().attempts() == {"a": 1, "b": 1, "end": 1}

    def test_a_judge_waits_only_for_the_judges_that_it_names(self) -> None:
        both = flow(step("a"), step("r1", reviews="a"), step("r2", reviews="a"))
        play = Play(both)
        play.finish("a")
        assert running(play) == ["r1", "r2"]
        ordered = Play(flow(step("a"), step("r1", reviews="a"), step("r2", "r1", reviews="a")))
        ordered.finish("a")
        assert running(ordered) == ["r1"]

    def test_judges_of_each_others_consumers_do_not_deadlock(self) -> None:
        work = flow(
            step("a"),
            step("b"),
            step("m", "a"),
            step("n", "b"),
            step("ja", "n", reviews="a"),
            step("jb", "m", reviews="b"),
        )
        assert Play(work).run().outcome == "verified"

    def test_nothing_starts_downstream_of_a_step_that_is_due(self) -> None:
        play = Play(flow(*CHAIN), {"plan": grows, "design": grows}).run()
        play.person_raises("plan")
        assert running(play) == ["plan"]

    def test_no_more_attempts_start_than_there_are_free_slots(self) -> None:
        play = Play(flow(step("a"), step("b"), step("c")), slots=2)
        assert running(play) == ["a", "b"]
        assert Start("c", "work") in pending(play.s, play.now)
        play.finish("a")
        assert running(play) == ["b", "c"]

    def test_judges_in_order_run_one_after_the_other_and_a_failing_one_skips_the_rest(self) -> None:
        work = flow(step("a"), step("r1", reviews="a"), step("r2", tests="a"), judges_in_order=True)
        play = Play(work, {"a": grows, "r1": [failed("x"), passed()]}).run()
        assert play.attempts() == {"a": 2, "r1": 2, "r2": 1}


class TestBatching:
    def test_all_judges_report_first_and_all_their_findings_are_one_rework(self) -> None:
        work = flow(step("code"), step("review", reviews="code"), step("test", tests="code"))
        play = Play(work, {"code": grows, "review": [failed("r"), passed()], "test": [failed("t"), passed()]})
        play.finish("code")
        play.finish("review")
        assert running(play) == ["test"]
        play.finish("test")
        play.run()
        assert play.attempts() == {"code": 2, "review": 2, "test": 2}
        assert texts(play.briefings["code"][1].feedback.findings) == ["r", "t"]

    @pytest.mark.parametrize("last", ["ja", "jb"])
    def test_a_rework_also_waits_for_running_judges_further_downstream(self, last: str) -> None:
        """They may report findings against the same step: one rework handles them all."""
        work = flow(
            step("plan", phase="planning"),
            step("a", "plan", phase="code"),
            step("b", "plan", phase="code"),
            step("ja", reviews="a"),
            step("jb", reviews="b"),
        )
        rejects = [failed(Finding("no login", affected_phase=("planning",))), passed()]
        play = Play(work, {"plan": grows, "a": grows, "b": grows, "ja": rejects, "jb": rejects})
        for name in ("plan", "a", "b", "jb" if last == "ja" else "ja"):
            play.finish(name)
        assert play.s.steps["plan"].running is None
        play.run()
        assert (play.outcome, play.s.rounds) == ("verified", 1)
        assert play.attempts() == dict.fromkeys(("plan", "a", "b", "ja", "jb"), 2)

    def test_a_rework_does_not_wait_for_a_downstream_judge_that_waits_for_it(self) -> None:
        work = flow(step("plan", phase="planning"), step("a", "plan", phase="code"), step("ja", reviews="a"))
        play = Play(work, {"plan": grows, "a": grows})
        play.finish("plan")
        play.finish("a")
        play.raises("ja", ask("plan"))
        assert play.s.steps["plan"].running is None
        play.do(c.BeginWait("L-1", "ja", 1))
        assert play.s.steps["plan"].running is not None

    def test_a_rework_waits_for_a_failing_judge_until_that_is_escalated(self) -> None:
        work = flow(step("code"), step("review", reviews="code"), step("test", tests="code"))
        play = Play(work, {"code": grows, "review": [failed("r"), passed()], "test": [Exception("x")]})
        play.finish("code")
        play.finish("test")
        play.finish("review")
        assert running(play) == ["test"]
        play.run()
        assert (play.attempts()["code"], play.breach()) == (2, "errors_in_a_row")

    def test_a_rework_waits_for_running_consumers(self) -> None:
        play = Play(flow(step("a"), step("b", "a")))
        play.finish("a")
        play.person_raises("a")
        assert running(play) == ["b"]
        play.finish("b")
        assert running(play) == ["a"]

    def test_a_target_that_has_not_run_gets_feedback_with_its_first_attempt(self) -> None:
        play = Play(flow(step("a"), step("b", "a")))
        play.person_raises("b", message="mind the gap")
        play.run()
        assert play.attempts()["b"] == 1
        assert play.briefings["b"][0].feedback.requests[0].message == "mind the gap"

    def test_a_finding_reaches_each_affected_phase_once_per_round(self) -> None:
        both = Finding("x", affected_phase=("planning", "design"))
        play = Play(flow(*CHAIN), {"plan": grows, "design": grows, "review": [failed(both), passed()]}).run()
        assert texts(play.briefings["plan"][1].feedback.findings) == ["x"]
        assert texts(play.briefings["design"][1].feedback.findings) == ["x"]
        assert play.attempts() == {"plan": 2, "design": 2, "review": 2, "code": 1}
        assert play.s.rounds == 2

    def test_the_earliest_phase_goes_first(self) -> None:
        play = Play(flow(*CHAIN), {"plan": grows, "design": grows, "review": [failed(planning("p"), "d"), passed()]})
        for name in ("plan", "design", "review"):
            play.finish(name)
        assert running(play) == ["plan"]
        play.finish("plan")
        assert running(play) == ["design"]

    def test_then_severity_then_later_rounds_then_age(self) -> None:
        play = Play(flow(step("a"), step("b"), step("c"), step("d")))
        for name in "abc":
            play.finish(name)
        play.finish("d")
        play.slots = 0
        play.person_raises("a", severity=Severity.LOW)
        play.now += 1
        play.person_raises("b")
        play.now += 1
        play.person_raises("c")
        play.person_raises("d", severity=Severity.CRITICAL)
        starts = [effect.step for effect in pending(play.s, play.now) if isinstance(effect, Start)]
        assert starts == ["d", "b", "c", "a"]

    def test_feedback_never_interrupts_a_running_attempt(self) -> None:
        play = Play(flow(step("a")))
        play.person_raises("a")
        assert (running(play), play.attempts()["a"]) == (["a"], 1)
        play.finish("a")
        assert (running(play), play.attempts()["a"]) == (["a"], 2)


class TestVerification:
    def test_the_source_verifies_once_when_all_its_targets_are_done(self) -> None:
        play = Play(flow(*CHAIN), {"plan": grows, "design": grows, "review": [failed(planning("p"), "d"), passed()]})
        play.run()
        assert play.attempts()["review"] == 2
        assert play.briefings["review"][1].mode == "verify"

    def test_a_fix_that_changed_nothing_is_verified_too(self) -> None:
        play = Play(flow(*CHAIN), {"review": [failed("x"), passed()]}).run()
        assert play.attempts()["review"] == 2

    def test_an_upstream_fix_is_verified_even_if_the_judged_artifact_stays_the_same(self) -> None:
        play = Play(flow(*CHAIN), {"plan": grows, "review": [failed(planning("x")), passed()]}).run()
        assert play.attempts() == {"plan": 2, "design": 2, "review": 2, "code": 1}

    def test_a_loop_whose_fix_is_not_verified_is_not_delivered_again(self) -> None:
        work = flow(step("a"), step("r", reviews="a"))
        play = Play(work, {"a": grows, "r": [failed("x"), passed()]})
        play.finish("a")
        play.finish("r")
        play.finish("a")
        play.person_raises("a")
        play.run()
        assert texts(play.briefings["a"][2].feedback.findings) == []

    def test_a_verdict_about_an_older_version_does_not_let_anything_start(self) -> None:
        play = Play(flow(*CHAIN), {"plan": grows, "design": grows})
        for name in ("plan", "design", "review"):
            play.finish(name)
        play.finish("code")
        play.person_raises("plan")
        play.finish("plan")
        play.decide("resolve")
        assert running(play) == ["design"]
        play.finish("design")
        assert running(play) == ["review"]

    def test_feedback_by_a_person_is_verified_by_the_judges_of_its_target(self) -> None:
        play = Play(flow(*CHAIN), {"design": grows}).run()
        play.person_raises("design").run()
        assert play.outcome == "verified"
        resolution = play.loop().resolution
        assert resolution is not None and resolution.text == "passed by review"

    def test_a_judge_with_findings_keeps_human_feedback_open(self) -> None:
        play = Play(flow(*CHAIN), {"design": grows, "review": [passed(), failed("x"), passed()]}).run()
        play.person_raises("design")
        play.finish("design")
        play.finish("review")
        assert play.loop().state is LoopState.VALIDATING
        assert play.run().outcome == "verified"

    def test_a_question_is_answered_without_changing_the_artifact(self) -> None:
        def plan(play: Play, name: str) -> Reply:
            running = play.s.steps[name].running
            assert running is not None
            return out("ignored", answer=42) if running.mode == "answer" else out("plan")

        play = Play(flow(*CHAIN), {"plan": plan}).run()
        play.person_raises("plan", kind=Kind.CONTEXT_REQUEST, requested_info="how many?").run()
        assert play.outcome == "verified"
        assert play.attempts() == {"plan": 2, "design": 1, "review": 1, "code": 1}
        artifact = play.s.steps["plan"].artifact
        assert artifact is not None and artifact.output == "plan"
        assert play.loop().answers == {"plan": 42}

    def test_a_question_without_an_answer_is_an_error(self) -> None:
        play = Play(flow(step("a"))).run()
        play.person_raises("a", kind=Kind.CONTEXT_REQUEST).run()
        assert "no answer" in play.of(e.AttemptFailed)[0].error

    def test_a_target_that_needs_the_asking_step_answers_before_it_works(self) -> None:
        play = Play(flow(step("a"), step("b", "a"), scope="any"), {"a": grows, "b": [out("b", answer="yes")]})
        play.raises("a", ask("b", kind=Kind.CONTEXT_REQUEST))
        assert running(play) == ["a", "b"]
        play.finish("b")
        assert play.run().outcome == "done"
        assert (play.loop().answers, play.attempts()["b"]) == ({"b": "yes"}, 2)

    def test_an_answer_to_a_closed_question_is_ignored(self) -> None:
        play = Play(flow(step("a"), step("b", "a")), {"a": [out("a", answer="yes")]})
        play.finish("a")
        play.raises("b", ask("a", "human", kind=Kind.CONTEXT_REQUEST))
        assert play.s.steps["a"].running is not None
        play.decide("resolve", note="no")
        play.run()
        assert (play.outcome, play.of(e.AnswerGiven)) == ("done", [])
