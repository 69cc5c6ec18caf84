"""Faults of the originals that must not come back, named by the original that had them."""

from __future__ import annotations

from typing import Any

import pytest

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.briefing import notices
from backedge.core.errors import IllegalCommand
from backedge.core.feedback.loop import FINAL, LoopState
from backedge.core.model import HUMAN, Breach, Finding, Kind, MalformedFeedback, Option, Severity, Usage, severity_of
from backedge.core.state.evolve import replay
from backedge.core.workflow.limits import Limits
from tests.core.play import Play, Reply, ask, failed, flow, grows, made, out, passed, profiled, step, texts

PLANNED = (step("plan", phase="planning"), step("design", "plan", phase="design"), step("review", reviews="design"))


def planned(*reviews: Reply, **more: Any) -> Play:
    return Play(flow(*PLANNED, **more), {"plan": grows, "design": grows, "review": list(reviews)}).run()


def asking(*targets: str, **more: Any) -> Play:
    play = Play(flow(step("a"), step("b", "a")), {"a": grows, "b": grows})
    play.finish("a")
    return play.raises("b", ask(*targets, **more))


# 0: the loop engine


def test_fault_0_ids_do_not_collide_within_one_instant() -> None:
    play = Play(flow(step("a"))).run()
    for number in range(20):
        play.person_raises("a", message=f"{number}")
    assert len({notice.loop for notice in notices(play.s, "a")}) == 20


def test_fault_0_details_and_options_are_not_lost() -> None:
    options = (Option("polling", "low", "slower"),)
    play = asking("a", details={"deep": [1, {"k": None}]}, options=options)
    play.finish("b")
    request = play.briefings["a"][1].feedback.requests[0]
    assert (request.details, request.options) == ({"deep": [1, {"k": None}]}, options)


def test_fault_0_waiting_for_a_resolved_loop_returns_its_result() -> None:
    play = asking(HUMAN).decide("resolve", note="yes")
    play.do(c.BeginWait("L-1", "b", 1))
    assert play.of(e.WaitBegan) == []
    resolution = play.loop().resolution
    assert resolution is not None and (resolution.state, resolution.text) == ("resolved", "yes")


def test_fault_0_resolving_one_of_two_blockers_does_not_resume() -> None:
    play = asking(HUMAN, message="1", blocking=True).raises("b", ask(HUMAN, message="2", blocking=True))
    play.decide("resolve", note="one")
    assert play.s.paused


def test_fault_0_an_acknowledgement_by_another_step_is_refused() -> None:
    with pytest.raises(IllegalCommand):
        asking("a").do(c.Acknowledge("L-1", HUMAN))


# 1: the refinement loop


def test_fault_1_rework_of_the_plan_reruns_everything_after_it() -> None:
    play = planned(failed(Finding("x", affected_phase=("planning",))), passed())
    assert play.attempts() == {"plan": 2, "design": 2, "review": 2}
    # The old rejection is not the latest any more, and no budget burns without work.
    verdict = play.s.steps["review"].verdict
    assert verdict is not None and (verdict.word, play.s.rounds) == ("pass", 1)


@pytest.mark.parametrize(("policy", "outcome"), [("manual", "waiting"), ("error", "failed"), ("skip", "accepted")])
def test_fault_1_on_breach_is_respected(policy: str, outcome: str) -> None:
    assert planned(failed("x"), limits={"rounds_per_loop": 0}, on_breach=policy).outcome == outcome


def test_fault_1_no_loop_stays_open_for_ever() -> None:
    play = planned(failed("x"), failed("y"), passed())
    assert all(loop.state in FINAL for loop in play.s.closed_loops.values()) and not play.s.loops


def test_fault_1_the_last_error_is_recorded() -> None:
    play = Play(flow(step("a")), {"a": [Exception("no disk")]}).run()
    again = replay(play.events)
    assert again is not None and again.steps["a"].last_error == "no disk"


# 2: the tight loop


def test_fault_2_three_different_issues_are_not_the_same_issue() -> None:
    play = planned(failed("x"), failed("y"), failed("z"), passed())
    assert play.outcome == "verified"


def test_fault_2_a_failing_review_is_an_iteration() -> None:
    play = planned(failed("x"), failed("y"), passed())
    assert [briefing.round for briefing in play.briefings["design"]] == [0, 1, 2]


def test_fault_2_an_edit_after_a_passed_review_voids_the_pass() -> None:
    steps = (step("code"), step("review", reviews="code"), step("test", tests="code"))
    play = Play(profiled("tight-loop", *steps), {"code": grows, "test": [failed("t"), passed()]}).run()
    assert play.attempts() == {"code": 2, "review": 2, "test": 2}


def test_fault_2_with_two_domains_both_finish() -> None:
    domains = [
        each
        for name in ("api", "web")
        for each in (step(name), step(f"{name}_review", reviews=name), step(f"{name}_test", tests=name))
    ]
    rejects: list[Reply] = [failed("x"), passed()]
    scripts: dict[str, Any] = {"api": grows, "web": grows, "api_review": rejects, "web_test": rejects}
    play = Play(profiled("tight-loop", *domains), scripts).run()
    assert play.outcome == "verified"
    assert all(each.state is LoopState.RESOLVED for each in play.s.closed_loops.values())


# 3: phase-aware routing


def test_fault_3_after_a_failed_redesign_the_next_design_gets_the_feedback() -> None:
    replies: list[Reply] = [out("v1"), Exception("broken"), out("v2")]
    play = Play(flow(*PLANNED), {"design": replies, "review": [failed("x"), passed()]}).run()
    assert [texts(briefing.feedback.findings) for briefing in play.briefings["design"]] == [[], ["x"], ["x"]]


def test_fault_3_both_issue_reaches_the_planner_once_and_the_designer_once() -> None:
    play = planned(failed(Finding("x", affected_phase=("planning", "design"))), passed())
    for name in ("plan", "design"):
        assert [texts(briefing.feedback.findings) for briefing in play.briefings[name]] == [[], ["x"]]


def test_fault_3_the_total_counts_corrections_not_calls_and_does_not_overshoot() -> None:
    many: list[Reply] = [failed(f"{n}", Finding(f"p{n}", affected_phase=("planning",))) for n in range(9)]
    play = planned(*many, limits={"rounds_total": 4, "rounds_per_loop": None})
    assert (play.s.rounds, play.breach()) == (4, "rounds_total")
    assert play.attempts() == {"plan": 3, "design": 3, "review": 3}


def test_fault_3_a_fail_without_issues_is_not_accepted() -> None:
    empty = type(passed())(made("x"), verdict="fail")
    play = planned(empty, passed())
    assert "fail without findings" in play.of(e.AttemptFailed)[0].error


def test_fault_3_a_retry_carries_its_feedback() -> None:
    replies: list[Reply] = [out("v1"), Exception("1"), Exception("2"), out("v2")]
    play = Play(flow(*PLANNED), {"design": replies, "review": [failed("x"), passed()]}).run()
    assert all(briefing.feedback for briefing in play.briefings["design"][1:])


# 4: the feedback coordinator


def again_and_again(**limits: Any) -> Play:
    code = lambda play, name: out(play.now, feedback=(ask("plan", message=f"{play.now}"),))  # noqa: E731
    work = flow(step("plan"), step("code", "plan"), limits=limits)
    return Play(work, {"plan": grows, "code": code}).run()


def test_fault_4_rounds_are_counted_and_the_limit_fires() -> None:
    play = again_and_again(rounds_per_loop=None, rounds_per_pair=2)
    assert (play.loop().round, play.loop().breach) == (2, Breach("rounds_per_pair", 2, 2))


def test_fault_4_fixing_and_verifying_ends_when_verification_keeps_failing() -> None:
    assert again_and_again().outcome == "waiting"


def test_fault_4_a_new_item_leaves_resolved_history_alone() -> None:
    play = planned(failed("x"), passed())
    before = play.loop("L-1")
    play.person_raises("design")
    assert play.loop("L-1") is before
    assert [notice.resolved for notice in notices(play.s, "design")] == [True, False]


def test_fault_4_a_refused_target_is_not_queued() -> None:
    play = Play(flow(step("a"), step("b"), step("c", "b")))
    play.finish("b")
    play.raises("c", ask("b", "c"))
    assert (play.opened(), notices(play.s, "b")) == (0, ())


def test_fault_4_the_root_and_earlier_siblings_are_reached() -> None:
    work = flow(step("root"), step("model", "root", phase="design"), step("spec", "model", phase="test"))
    play = Play(work)
    play.finish("root")
    play.finish("model")
    play.raises("spec", ask("root", "model"))
    assert play.loop().targets == ("root", "model")


def test_fault_4_self_feedback_and_a_priority_of_banana_are_refused() -> None:
    play = asking("b")
    play.do(c.RaiseFeedback("b", MalformedFeedback(("a",), "severity 'banana' is unknown"), 1))
    assert (len(play.s.refused), play.opened()) == (2, 0)
    with pytest.raises(ValueError, match="banana"):
        severity_of("banana")


def test_fault_4_depth_is_not_off_by_one() -> None:
    names = "abcde"
    steps = [step(name, *names[:index][-1:]) for index, name in enumerate(names)]
    play = Play(flow(*steps))
    for name in names[:-1]:
        play.finish(name)
    for source, target in ("ed", "dc", "cb", "ba"):
        play.raises(source, ask(target))
        play.finish(source)
    assert (play.opened(), len(play.s.refused)) == (3, 1)


def test_fault_4_quotes_in_a_name_are_harmless() -> None:
    name = "a\"'; DROP TABLE x --"
    play = Play(flow(step(name), step("b", name)), {name: grows, "b": grows})
    play.finish(name)
    play.raises("b", ask(name)).run()
    assert (play.outcome, play.attempts()[name]) == ("done", 2)


def test_an_error_that_would_come_again_is_a_question_at_once() -> None:
    play = Play(flow(step("a")))
    play.do(c.FailAttempt("a", 1, "a changed what it judges", lasting=True))
    [packet] = play.s.escalations.values()
    assert packet.reason == "'a' would end with the same error again: a changed what it judges"
    play.now += 3600
    play.do(c.Proceed())
    assert play.attempts()["a"] == 1


# elsewhere in the field


@pytest.mark.parametrize("ending", ["fails", "is interrupted", "contradicts itself"])
def test_fault_elsewhere_a_budget_counts_on_every_path_and_after_a_restart(ending: str) -> None:
    work = flow(step("a"), limits={"cost_usd": 1.0})
    play = Play(work)
    usage = Usage(cost_usd=1.0)
    match ending:
        case "fails":
            play.do(c.FailAttempt("a", 1, "x", usage))
        case "is interrupted":
            play.do(c.DropAttempt("a", 1, "interrupted", usage))
        case _:
            play.do(c.FinishAttempt("a", 1, out(verdict="pass", usage=usage)))
    play.now += 60
    play.state = replay(play.events)
    play.do(c.Proceed())
    assert (play.breach(), play.attempts()["a"]) == ("cost_usd", 1)


def test_fault_elsewhere_a_review_that_always_finds_something_new_ends() -> None:
    new: list[Reply] = [failed(f"{n}") for n in range(50)]
    assert planned(*new).breach() == "rounds_per_loop"


def test_fault_elsewhere_fixes_that_cause_new_findings_are_detected() -> None:
    new: list[Reply] = [failed(Finding(f"{n}", Severity.LOW, path="/a")) for n in range(50)]
    work = flow(*PLANNED, limits=Limits(diverging=True, rounds_per_loop=None))
    play = Play(work, {"design": lambda p, n: out({"a": p.now}), "review": new}).run()
    assert play.breach() == "diverging"
    assert play.finding(3).fix_authored


def test_fault_elsewhere_a_long_call_is_not_run_twice_after_a_crash() -> None:
    play = Play(flow(step("a")))
    play.state = replay(play.events)
    play.do(c.DropAttempt("a", 1, "in doubt"))
    assert (play.attempts()["a"], play.outcome) == (1, "waiting")


def test_fault_elsewhere_a_kind_of_feedback_is_one_of_a_closed_set() -> None:
    with pytest.raises(ValueError, match="wish"):
        Kind("wish")
