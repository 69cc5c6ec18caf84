"""Edge cases that random runs rarely reach. Each was found by a change of the code that no other test noticed."""

from __future__ import annotations

import pytest

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.briefing import brief
from backedge.core.decide import decide
from backedge.core.workflow.profiles import PROFILES
from tests.core.play import Finding, Play, failed, flow, out, passed, step


def test_the_second_target_gets_its_share_even_if_the_first_oscillates() -> None:
    both = Finding("both", affected_phase=("planning", "code"))
    workflow = flow(
        step("plan", phase="planning"),
        step("code", "plan", phase="code"),
        step("review", reviews="code"),
        limits={"oscillation": 1},
    )
    outputs = {"plan": [out(1), out(2), out(1)], "code": [out(1), out(2), out(3)]}
    play = Play(workflow, {**outputs, "review": [failed(both), failed(both), passed()]}).run()
    assert play.s.steps["plan"].attempts == 3
    assert play.s.steps["code"].attempts == 3
    assert play.outcome == "verified"


def test_a_diverging_loop_is_checked_again_after_exactly_the_granted_rounds() -> None:
    def review(play: Play, name: str) -> object:
        count = play.attempts()["review"]
        return failed(Finding(f"defect {count}", path="/a"))

    workflow = flow(
        step("plan"),
        step("review", reviews="plan", complete=True),
        limits={"diverging": True, "rounds_per_loop": None, "rounds_total": 50},
    )
    scripts = {"plan": lambda play, name: out({"a": play.attempts()["plan"]}), "review": review}
    play = Play(workflow, scripts).run()  # type: ignore[arg-type]
    (packet,) = play.s.escalations.values()
    assert packet.breach is not None and packet.breach.limit == "diverging"
    before = play.s.loops["L-1"].round
    play.decide("continue", rounds=2).run()
    (packet,) = play.s.escalations.values()
    assert packet.breach is not None and packet.breach.limit == "diverging"
    assert play.s.loops["L-1"].round == before + 2


def test_a_missing_phase_maps_to_the_nearest_earlier_one_not_to_the_root() -> None:
    sdlc = PROFILES["ai-sdlc"]
    workflow = flow(
        step("ask", phase="research"),
        step("study", "ask", phase="research"),
        step("code", "study", phase="code"),
        step("review", reviews="code"),
        routes=sdlc.routes,
        nearest_phase=True,
    )
    play = Play(workflow, {"review": [failed(Finding("too big", category="architecture")), passed()]}).run()
    assert play.attempts() == {"ask": 1, "study": 2, "code": 1, "review": 2}


def test_a_briefing_has_the_remaining_rounds_of_a_pair_and_of_a_step() -> None:
    limits = {"rounds_per_pair": 2, "rounds_per_step": 3}
    play = Play(flow(step("plan"), step("review", reviews="plan"), limits=limits))
    play.finish("plan")
    play.finish("review", failed("a gap"))
    left = brief(play.s, "plan", play.now, None, {}).left
    assert left["rounds_per_pair"] == 1
    assert left["rounds_per_step"] == 2


@pytest.mark.parametrize(
    "reports",
    [
        pytest.param("a b b b", id="first seen in a later verdict"),
        pytest.param("a b a a a", id="seen again after a gap"),
    ],
)
def test_a_streak_begins_with_the_first_verdict_that_reports_the_finding(reports: str) -> None:
    workflow = flow(
        step("plan"),
        step("review", reviews="plan"),
        limits={"same_finding": 3, "rounds_per_loop": None, "no_change": None},
    )
    verdicts = [failed(word) for word in reports.split()]
    play = Play(workflow, {"plan": lambda play, name: out(play.attempts()["plan"]), "review": verdicts}).run()
    (packet,) = play.s.escalations.values()
    assert packet.breach is not None and packet.breach.limit == "same_finding"
    assert play.attempts()["review"] == len(verdicts)


def test_a_finding_lies_in_the_last_fix_only_if_that_fix_changed_its_location() -> None:
    versions = [{"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 2, "b": 2}]
    late = Finding("late", path="/a")
    workflow = flow(step("plan"), step("review", reviews="plan"))
    play = Play(
        workflow,
        {"plan": [out(version) for version in versions], "review": [failed("one"), failed("two"), failed(late)]},
    )
    for name in ("plan", "review", "plan", "review", "plan", "review"):
        play.finish(name)
    assert not play.s.findings[3].fix_authored


def test_without_a_number_of_free_slots_nothing_starts() -> None:
    events = decide(None, c.StartRun("r", flow(step("plan"))), 1.0)
    assert [type(event) for event in events] == [e.RunStarted]
