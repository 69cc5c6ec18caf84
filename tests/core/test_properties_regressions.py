"""Counterexamples that the properties found, as plain tests. Each was a run that lost something, or never ended."""

from __future__ import annotations

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.model import HUMAN, Status
from backedge.core.scheduling.pending import is_stuck
from backedge.core.workflow.bound import max_attempts
from tests.core.play import (
    Feedback,
    Finding,
    Kind,
    Limits,
    Play,
    Reply,
    Script,
    Severity,
    failed,
    flow,
    out,
    passed,
    step,
)


def raised(*to: str, kind: Kind = Kind.MISSING_REQUIREMENT, blocking: bool = False) -> Feedback:
    return Feedback(kind, to, "it does not fit", blocking=blocking)


def ask(play: Play, source: str, *to: str, wait: bool = False, kind: Kind = Kind.MISSING_REQUIREMENT) -> str:
    """Let a running attempt raise feedback, and return its loop."""
    running = play.s.steps[source].running
    assert running is not None
    events = play.do(c.RaiseFeedback(source, raised(*to, kind=kind), running.attempt))
    loop = next(event.loop for event in events if isinstance(event, e.LoopOpened))
    if wait:
        play.do(c.BeginWait(loop, source, running.attempt))
    return loop


def fail(play: Play, name: str) -> None:
    play.finish(name, RuntimeError("broke"))


def running(play: Play) -> set[str]:
    return {name for name, each in play.s.steps.items() if each.running is not None}


# Attempts that wait for each other


def test_judges_whose_needs_cross_do_not_wait_for_each_other() -> None:
    play = Play(
        flow(
            step("x"),
            step("left", "x"),
            step("right", "x"),
            step("by_left", "left", reviews="x"),
            step("by_right", "right", reviews="x"),
        )
    )
    assert play.run().outcome == "verified"


def test_blocking_feedback_to_a_step_behind_a_judge_lets_that_judge_run() -> None:
    play = Play(flow(step("plan"), step("review", reviews="plan"), step("code", "plan")), slots=1)
    play.finish("plan")
    fail(play, "review")
    play.do(c.RaiseFeedback(HUMAN, raised("code", blocking=True)))
    play.run()
    assert play.s.steps["code"].artifact is not None


def test_a_step_that_broke_after_asking_a_later_step_is_retried_first() -> None:
    play = Play(flow(step("a"), step("review", reviews="a"), step("b", "a"), scope="any"))
    ask(play, "a", "b")
    fail(play, "a")
    assert not is_stuck(play.s)
    assert play.run().outcome == "verified"


def test_two_sources_that_ask_each_others_steps_do_not_wait_for_ever() -> None:
    play = Play(flow(step("s1"), step("s2"), step("t1", "s2"), step("t2", "s1"), scope="any"))
    play.finish("s1", out(1, feedback=(raised("t1"),)))
    play.finish("s2", out(1, feedback=(raised("t2"),)))
    assert play.run().outcome == "done"


def test_two_attempts_that_wait_for_each_other_are_escalated() -> None:
    play = Play(flow(step("a"), step("b"), scope="any"))
    first = ask(play, "a", "b", wait=True)
    ask(play, "b", "a", wait=True)
    (packet,) = play.s.escalations.values()
    assert packet.loop == first and packet.reason == "attempts wait for each other: a, b"
    awaiting = play.s.steps["a"].running
    assert awaiting is not None and not awaiting.awaits


def test_a_waiting_attempt_gets_its_answer_even_if_another_waits_for_it() -> None:
    play = Play(flow(step("x"), step("review", reviews="x"), step("code", "x", "review"), scope="any"))
    play.finish("x")
    play.finish("review")
    loop = ask(play, "code", "x")
    fail(play, "code")
    play.finish("x", out("another"))
    ask(play, "review", "code", wait=True)
    play.now += 60
    play.do(c.Proceed())
    attempt = play.s.steps["code"].running
    assert attempt is not None and "review" in running(play)
    play.do(c.BeginWait(loop, "code", attempt.attempt))
    assert play.s.loops[loop].result_delivered
    assert play.run().outcome == "verified"


def test_no_step_starts_from_the_missing_output_of_a_waiting_first_attempt() -> None:
    play = Play(flow(step("a"), step("review", reviews="a"), step("b", "a"), scope="any"))
    ask(play, "a", "b", wait=True)
    assert running(play) == {"a"}
    assert play.asked() == ["E-1"]


# Skipped steps


def test_feedback_from_a_skipped_step_is_still_verified() -> None:
    play = Play(flow(step("a"), step("b", "a"), limits={"errors_in_a_row": 1}, on_breach="skip"))
    play.finish("a")
    fail(play, "b")
    assert play.outcome == "accepted"
    play.do(c.RaiseFeedback("b", raised("a")))
    assert play.run().outcome == "accepted"
    assert not play.s.loops


def test_feedback_from_a_skipped_step_reaches_a_later_step() -> None:
    workflow = flow(
        step("a"), step("b", "a"), step("c", "b"), limits={"errors_in_a_row": 1}, on_breach="skip", scope="any"
    )
    play = Play(workflow)
    play.finish("a")
    fail(play, "b")
    play.run()
    play.do(c.RaiseFeedback("b", raised("c")))
    assert "c" in running(play)


def test_the_findings_of_a_judge_that_is_skipped_are_deferred() -> None:
    play = Play(flow(step("plan"), step("review", reviews="plan"), limits={"rounds_per_loop": 0}))
    play.finish("plan")
    play.finish("review", failed("a gap"))
    play.decide("resolve", note="look again")
    attempt = play.s.steps["review"].running
    assert attempt is not None
    play.do(c.DropAttempt("review", attempt.attempt, "in doubt"))
    play.decide("skip")
    assert play.outcome == "accepted"
    assert play.s.findings[1].status is Status.DEFERRED


# Decisions about running attempts


def test_an_attempt_whose_loop_was_closed_meanwhile_can_finish() -> None:
    play = Play(flow(step("plan"), step("code", "plan")))
    play.finish("plan")
    play.finish("code", out(1, feedback=(raised("plan", HUMAN),)))
    assert running(play) == {"plan"}
    play.decide("resolve", note="leave it")
    play.finish("plan", out("another"))
    assert play.run().outcome == "done"


def test_an_answer_to_a_loop_that_was_closed_meanwhile_is_dropped() -> None:
    play = Play(flow(step("plan"), step("code", "plan")))
    play.finish("plan")
    play.finish("code", out(1, feedback=(raised("plan", HUMAN, kind=Kind.CONTEXT_REQUEST),)))
    play.decide("resolve", note="never mind")
    play.finish("plan", out(None, answer="late"))
    assert play.run().outcome == "done"


def test_an_attempt_does_not_answer_feedback_that_came_after_it_began() -> None:
    play = Play(flow(step("a"), step("b"), step("c", "a", "b"), limits={"rounds_total": 1}))
    play.finish("a")
    play.finish("b")
    play.finish("c", out(1, feedback=(raised("a", "b"),)))
    assert running(play) == {"a"} and play.asked() == ["E-1"]
    play.decide("reassign", target="a")
    play.finish("a", out("as first asked"))
    assert not play.s.loops["L-1"].shares["a"].done
    again = play.s.steps["a"].running
    assert again is not None and again.loops == ("L-1",)


def test_a_loop_that_a_policy_closes_at_once_does_not_escalate_its_new_findings() -> None:
    workflow = flow(
        step("plan"),
        step("review", reviews="plan"),
        limits={"rounds_per_loop": 1},
        on_breach="skip",
        new_findings=tuple((severity, "ask") for severity in Severity),
    )
    play = Play(workflow, {"plan": [out(1), out(2), out(3)], "review": [failed("a"), failed("b")]})
    assert play.run().outcome == "accepted"


def test_a_question_to_a_person_stays_open_while_a_breach_of_its_loop_is_decided() -> None:
    play = Play(flow(step("plan"), step("code", "plan"), limits={"rounds_total": 1}))
    play.finish("plan")
    play.finish("code", out(1, feedback=(raised("plan", HUMAN),)))
    question, breach = play.s.escalations.values()
    play.decide("continue", breach.id)
    assert play.s.loops["L-1"].escalation == question.id


def test_an_input_error_that_no_rule_routes_goes_to_its_producer() -> None:
    play = Play(flow(step("plan"), step("code", "plan", checked=True), limits={"rounds_per_loop": 0}))
    play.finish("plan")
    play.do(c.ReportInputCheck("code", (("plan", Finding("no units")),)))
    play.decide("reclassify", phase="test")
    assert play.s.loops["L-1"].targets == ("plan",)
    assert running(play) == {"plan"}


# What may run at the same time


def test_a_step_and_its_input_do_not_start_together() -> None:
    play = Play(flow(step("a"), step("b", "a"), step("c", "b"), scope="any"), slots=1)
    play.finish("a")
    play.finish("b", out(1, feedback=(raised("c"),)))
    play.slots = 0
    fail(play, "c")
    play.do(c.RaiseFeedback(HUMAN, raised("b")))
    play.slots, play.now = 3, play.now + 60
    play.do(c.Proceed())
    assert len(running(play)) == 1


def test_a_judge_verifies_when_all_its_targets_are_done_and_not_before() -> None:
    defect = Finding("both", affected_phase=("planning", "code"))
    play = Play(
        flow(
            step("plan", phase="planning"),
            step("review", reviews="plan"),
            step("code", "plan", phase="code"),
            scope="any",
        ),
        {"plan": [out(1), out(2)], "review": [failed(defect), passed()]},
    )
    play.run()
    order = [event.step for event in play.events if isinstance(event, e.AttemptStarted)]
    assert order[:5] == ["plan", "review", "plan", "code", "review"]
    assert play.outcome == "verified"


def test_a_step_waits_while_another_loop_pauses_after_its_check_closed_its_loop() -> None:
    workflow = flow(step("plan"), step("code", "plan", checked=True), step("other"), step("review", reviews="other"))
    play = Play(workflow)
    play.finish("plan")
    play.do(c.ReportInputCheck("code", (("plan", Finding("no units")),)))
    play.finish("other")
    play.finish("review", failed(Finding("stop", blocking=True)))
    play.finish("plan", out("with units"))
    play.do(c.ReportInputCheck("code"))
    assert "code" not in running(play)
    assert play.run().outcome == "verified"


def test_an_unfinished_step_that_answers_does_not_count_as_done() -> None:
    workflow = flow(step("a"), step("b", "a"), step("review", "a", reviews="b"), scope="any")
    play = Play(workflow)
    ask(play, "a", "b", kind=Kind.CONTEXT_REQUEST, wait=True)
    assert running(play) == {"a", "b"}
    play.finish("b", out(None, answer="yes"))
    play.finish("a")
    assert running(play) == {"b"}


# Versions and rounds


def test_a_verdict_covers_the_versions_that_its_judge_was_given() -> None:
    play = Play(flow(step("plan"), step("review", reviews="plan")))
    play.finish("plan")
    ask(play, "review", "plan", HUMAN, wait=True)
    play.finish("plan", out("another"))
    play.decide("resolve", note="go on")
    play.finish("review", passed())
    judged = [event for event in play.events if isinstance(event, e.VerdictGiven)]
    assert len(judged) == 1
    verdict = play.s.steps["review"].verdict
    assert verdict is not None and verdict.versions == {"plan": 1}
    assert play.run().outcome == "verified"
    assert play.attempts()["review"] == 2


def test_a_first_attempt_with_feedback_counts_as_a_round() -> None:
    limits = Limits(
        errors_in_a_row=1, rounds_total=2, rounds_per_loop=None, same_finding=None, no_change=None, oscillation=None
    )
    workflow = flow(step("a"), step("b", "a"), limits=limits, scope="any")
    count = iter(range(100))
    scripts = {
        "a": lambda play, name: out(next(count), feedback=(raised("b"),) if play.attempts()["a"] == 1 else ()),
        "b": lambda play, name: out(next(count), feedback=(raised("a"),)),
    }
    play = Play(workflow, scripts).run()
    assert play.s.rounds == 2
    bound = max_attempts(workflow)
    assert bound is not None and play.s.attempts <= bound


def test_a_later_step_answers_from_what_it_knows_instead_of_working_on_provisional_output() -> None:
    limits = Limits(errors_in_a_row=1, rounds_total=1)
    workflow = flow(step("a"), step("b", "a"), limits=limits, scope="any")
    question = raised("b", kind=Kind.CONTEXT_REQUEST)
    scripts: dict[str, Script | list[Reply]] = {
        "a": [out(1, feedback=(question,)), out(2)],
        "b": lambda play, name: out("b", answer="yes"),
    }
    play = Play(workflow, scripts).run()
    modes = [(event.step, event.mode) for event in play.events if isinstance(event, e.AttemptStarted)]
    assert modes == [("a", "work"), ("b", "answer"), ("a", "work"), ("b", "work")]
    assert play.outcome == "done"
