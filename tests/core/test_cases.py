"""The cases of the loop engine (A0) and the refinement loop (A1), as far as they need no files."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.briefing import notices
from backedge.core.errors import AlreadyClosed, IllegalCommand, NotFound
from backedge.core.feedback.loop import LoopState
from backedge.core.model import HUMAN, Breach, Feedback, Finding, Kind, Option, Resolution, Severity
from backedge.core.scheduling.pending import pending
from backedge.core.scheduling.scheduler import Start
from backedge.core.state.evolve import replay
from backedge.core.text import one_line
from backedge.core.wording import feedback_text, summary_of
from tests.core.play import Play, Reply, ask, failed, flow, grows, out, passed, profiled, step, texts

# A0: the loop engine

TEAM = (
    step("architect", phase="planning"),
    step("pm", phase="planning"),
    step("developer", "architect", "pm", phase="code"),
)


def developing(**more: Any) -> Play:
    play = Play(flow(*TEAM, **more), dict.fromkeys(("architect", "pm", "developer"), grows))
    play.finish("architect")
    play.finish("pm")
    return play


def test_a0_01_a_triggered_loop_is_active_and_delivered_once() -> None:
    play = developing().raises("developer", ask("architect", kind=Kind.TECHNICAL_INFEASIBILITY, message="no push"))
    assert list(play.s.loops) == ["L-1"]
    (notice,) = notices(play.s, "architect")
    assert (notice.loop, notice.resolved, notice.message) == ("L-1", False, "no push")


@pytest.mark.parametrize(("feedback", "field"), [(ask(), "to"), (ask("architect", message=""), "message")])
def test_a0_02_a_missing_field_is_named_and_nothing_is_stored(feedback: Feedback, field: str) -> None:
    play = developing().raises("developer", feedback)
    assert play.of(e.RefusedFeedback)[0].reason.startswith(f"{field} is missing")
    assert play.opened() == 0
    with pytest.raises(NotFound, match="unknown source ''"):
        play.do(c.RaiseFeedback("", ask("architect")))


def test_a0_04_each_of_two_targets_gets_a_notification() -> None:
    options = (Option("polling", "low", "slower"), Option("push", "high", "later"))
    play = developing().raises("developer", ask("architect", "pm", details={"api": 1}, options=options))
    found = [notice for target in play.s.steps for notice in notices(play.s, target)]
    assert len(found) == 2
    for notice in found:
        assert (notice.severity, notice.message) == (Severity.HIGH, "fix it")
        assert (notice.details, notice.options) == ({"api": 1}, options)


def test_a0_05_the_default_severity_is_high() -> None:
    assert developing().raises("developer", ask("pm")).loop().severity is Severity.HIGH


@pytest.mark.parametrize(
    ("more", "paused"),
    [
        ({"blocking": True}, True),
        ({"severity": Severity.CRITICAL}, True),
        ({"severity": Severity.MEDIUM}, False),
        ({"severity": Severity.LOW}, False),
    ],
)
def test_a0_06_blocking_or_critical_feedback_pauses_the_run(more: dict[str, Any], paused: bool) -> None:
    play = developing().raises("developer", ask("architect", **more))
    assert play.s.paused is paused
    assert [loop.id for loop in play.s.loops.values() if loop.pauses] == (["L-1"] if paused else [])


def test_a0_08_a_waiter_gets_the_resolution_at_once_and_every_notification_is_resolved() -> None:
    play = developing().raises("developer", ask("architect", HUMAN))
    play.do(c.BeginWait("L-1", "developer", 1))
    play.decide("resolve", option="polling", by="ann")
    running = play.s.steps["developer"].running
    assert running is not None and not running.awaits
    assert play.loop().resolution == Resolution("resolved", "ann", option="polling")
    for target in ("architect", HUMAN):
        (notice,) = notices(play.s, target)
        assert notice.resolution is not None and notice.resolution.option == "polling"


def test_a0_11_a_manual_resolution_keeps_reason_and_count() -> None:
    play = developing(limits={"rounds_total": 0}).raises("developer", ask("architect"))
    play.decide("resolve", note="by hand")
    assert (play.loop().state, play.loop().breach) == (LoopState.RESOLVED, Breach("rounds_total", 0, 0))
    packet = play.s.escalation("E-1")
    assert packet is not None and packet.reason == "limit rounds_total (0/0)"


def test_a0_12_resolving_twice_or_resolving_an_unknown_loop_is_an_error() -> None:
    play = developing().raises("developer", ask(HUMAN)).decide("resolve", note="yes")
    with pytest.raises(AlreadyClosed, match="was already decided"):
        play.decide("resolve", "E-1", note="no")
    with pytest.raises(NotFound):
        play.decide("resolve", "E-2", note="no")


def test_a0_14_an_acknowledgement_is_recorded_and_one_by_a_stranger_is_refused() -> None:
    play = developing().raises("developer", ask("architect", "pm"))
    play.do(c.Acknowledge("L-1", "pm", "on it", "rewrite", "2h"))
    assert play.loop().state is LoopState.RESOLVING
    assert play.loop().acknowledged == {"pm": {"message": "on it", "action": "rewrite", "eta": "2h"}}
    with pytest.raises(AlreadyClosed, match="'pm' has already acknowledged L-1"):
        play.do(c.Acknowledge("L-1", "pm", "still on it"))
    assert [notices(play.s, name)[0].acknowledged for name in ("architect", "pm")] == [False, True]
    with pytest.raises(IllegalCommand, match="is not a target"):
        play.do(c.Acknowledge("L-1", "developer"))


@pytest.mark.parametrize(("bound", "state"), [(1, LoopState.ESCALATING), (2, LoopState.RESOLVING)])
def test_a0_15_a_fix_that_fails_validation_escalates_or_starts_another_round(bound: int, state: LoopState) -> None:
    work = flow(step("a"), step("r", reviews="a"), limits={"rounds_per_loop": bound})
    play = Play(work, {"a": grows, "r": [failed("x"), failed("y")]})
    for name in ("a", "r", "a", "r"):
        play.finish(name)
    assert play.loop().state is state


def test_a0_17_a_saved_and_reloaded_run_is_the_same() -> None:
    play = developing().raises("developer", ask("architect", HUMAN, details={"k": [1, None]}))
    play.finish("developer")
    saved = msgspec.json.encode(play.events)
    assert replay(msgspec.json.decode(saved, type=list[e.Event])) == play.s


# A1: the refinement loop

SDLC = (
    step("research", phase="research"),
    step("plan", "research", phase="planning"),
    step("implement", "plan", phase="code"),
    step("review", reviews="implement"),
    step("create_pr", "implement"),
)
BLOCKER = Finding("injection", Severity.CRITICAL, True, "code_quality")


def refining(*reviews: Reply, **more: Any) -> Play:
    scripts: dict[str, Any] = dict.fromkeys(("research", "plan", "implement"), grows)
    return Play(profiled("ai-sdlc", *SDLC, **more), {**scripts, "review": [*reviews]})


def until_reviewed(play: Play, times: int = 1) -> Play:
    while play.attempts()["review"] < times or play.s.steps["review"].running is not None:
        play.finish(next(name for name, each in play.s.steps.items() if each.running is not None))
    return play


def test_a1_01_a_rejection_with_one_blocker_is_round_one_of_implement() -> None:
    play = until_reviewed(refining(failed(BLOCKER)))
    assert (play.loop().round, play.loop().targets, play.s.rounds) == (1, ("implement",), 1)
    assert len(play.of(e.FeedbackRouted)) == 1


def test_a1_02_after_a_rejection_the_implementation_is_not_complete() -> None:
    play = until_reviewed(refining(failed(BLOCKER)))
    assert play.s.steps["implement"].running is not None
    assert play.s.steps["create_pr"].attempts == 0


def test_a1_03_rework_of_the_plan_reruns_all_later_phases() -> None:
    play = refining(failed(Finding("too big", Severity.CRITICAL, True, "scope")), passed()).run()
    assert play.attempts() == {"research": 1, "plan": 2, "implement": 2, "review": 2, "create_pr": 1}


def test_a1_06_a_success_clears_the_earlier_error() -> None:
    play = Play(flow(step("a"), step("b", "a")), {"a": [Exception("broken"), out()]})
    play.finish("a")
    assert play.s.steps["a"].last_error == "broken"
    play.now += 1
    play.do(c.Proceed())
    play.run()
    assert play.s.steps["a"].last_error == ""


@pytest.mark.parametrize(
    ("category", "blockers", "target"),
    [
        ("missing_research", 1, "research"),
        ("architecture", 1, "plan"),
        ("scope", 1, "plan"),
        ("story_type", 1, "plan"),
        ("content_type", 1, "plan"),
        ("code_quality", 1, "implement"),
        ("", 1, "implement"),
        ("", 2, "plan"),
    ],
)
def test_a1_07_categories_and_blockers_choose_the_phase(category: str, blockers: int, target: str) -> None:
    found = [Finding(f"{n}", Severity.CRITICAL, True, category) for n in range(blockers)]
    assert until_reviewed(refining(failed(*found))).loop().targets == (target,)


def test_a1_08_the_second_iteration_names_its_number_and_the_previous_attempts() -> None:
    play = refining(failed(BLOCKER), failed(BLOCKER), passed()).run()
    first, second = (feedback_text(briefing) for briefing in play.briefings["implement"][1:])
    assert "Iteration 1" in first and "Previous attempts" not in first
    assert "Iteration 2" in second and "Previous attempts" in second and "injection" in second


def test_a1_09_the_context_shows_total_order_place_and_fix() -> None:
    blocker = Finding("injection", Severity.CRITICAL, True, file="src/db/query.ts", line=42, suggested_fix="bind it")
    major = Finding("slow", file="src/db/pool.ts", word="major")
    text = feedback_text(refining(failed(major, blocker), passed()).run().briefings["implement"][1])
    assert "(2 in total)" in text
    assert text.index("`src/db/query.ts:42`") < text.index("`src/db/pool.ts`")
    assert "Suggested fix: bind it" in text


def test_a1_10_without_issues_there_is_prose_and_no_list_of_issues() -> None:
    play = refining(passed()).run()
    play.person_raises("implement", message="make it nicer")
    text = feedback_text(play.briefings["implement"][1])
    assert "make it nicer" in text and "in total" not in text


def test_a1_11_after_a_rejection_exactly_one_rework_is_pending() -> None:
    play = refining(failed(BLOCKER))
    for name in ("research", "plan", "implement"):
        play.finish(name)
    play.slots = 0
    play.finish("review")
    assert pending(play.s, play.now) == (Start("implement", "rework", ("L-1",)),)
    play.slots = 1
    play.do(c.Proceed())
    briefing = play.briefings["implement"][1]
    assert (briefing.round, texts(briefing.feedback.findings)) == (1, ["injection"])


def test_a1_12_after_an_approval_the_pull_request_is_created() -> None:
    play = until_reviewed(refining(passed()))
    assert [each.step for each in play.of(e.AttemptStarted)][-1] == "create_pr"
    assert play.opened() == 0


def test_a1_13_before_the_implementation_there_is_work_and_no_rework() -> None:
    play = refining(passed())
    play.finish("research")
    play.finish("plan")
    assert [(each.step, each.mode) for each in play.of(e.AttemptStarted)][-1] == ("implement", "work")


def test_a1_16_one_rejection_is_fixed_and_the_fourth_blocks() -> None:
    play = refining(failed(BLOCKER), passed()).run()
    assert (play.outcome, play.attempts()["create_pr"]) == ("verified", 1)
    different: list[Reply] = [failed(Finding(f"{n}", Severity.CRITICAL, True)) for n in range(4)]
    blocked = refining(*different).run()
    assert blocked.loop().breach == Breach("rounds_per_loop", 3, 3)
    assert [briefing.round for briefing in blocked.briefings["implement"]] == [0, 1, 2, 3]


@pytest.mark.parametrize(("choice", "left"), [("revise", 0), ("continue", 3)])
def test_a1_19_unblocking_resets_the_counters_only_if_asked_to(choice: str, left: int) -> None:
    play = refining(*[failed(Finding(f"{n}", Severity.CRITICAL, True)) for n in range(9)]).run()
    play.decide(choice, note="again")
    assert play.loop().round - 1 - play.loop().waived.get("loop", 0) == left
    with pytest.raises(AlreadyClosed):
        play.decide(choice, "E-1", note="again")


def test_a1_22_a_reason_is_one_clean_line() -> None:
    assert one_line("\x1b[31mMax\x1b[0m\n `attempts`\r\n reached") == "Max attempts reached"


def test_the_summary_text_of_a_review() -> None:
    found = [Finding("1", Severity.CRITICAL, True), Finding("2", Severity.CRITICAL), Finding("3", Severity.CRITICAL)]
    briefing = refining(failed(*found), passed()).run().briefings["implement"][1]
    assert summary_of(briefing.feedback.findings) == "Review failed: 1 blocker(s), 2 critical"


def test_what_counts_towards_what_recoveries_refinements_and_nothing() -> None:
    broken: list[Reply] = [out("same"), out("same"), Exception("x"), out("new")]
    play = Play(
        profiled("ai-sdlc", *SDLC), {"implement": broken, "review": [failed(BLOCKER), failed(BLOCKER), passed()]}
    )
    play.run()
    # An attempt that changed nothing is a recovery, one that ended with an error counts for nothing, a rejection is a refinement.
    assert (play.s.recoveries, play.loop().round, play.outcome) == (1, 2, "verified")
    play.scripts["review"] = [failed(BLOCKER), passed()]
    play.calls["review"] = 0
    play.scripts["implement"] = grows
    play.person_raises("implement").run()
    assert play.loop("L-3").round == 1
