"""Requirements by their ids: owners, gaps, and the loops about them."""

from __future__ import annotations

from typing import Any

import pytest

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.feedback.loop import LoopState
from backedge.core.feedback.requirements import (
    loop_about,
    mentions,
    producers_before,
    requirements_of,
    requirements_to_trace,
)
from backedge.core.model import HUMAN, Kind, MalformedFeedback
from backedge.core.wording import feedback_text
from tests.core.play import Feedback, Finding, Outcome, Play, failed, flow, out, step

WORK = (
    step("ask", phase="research"),
    step("plan", "ask", phase="planning"),
    step("design", "plan", phase="design"),
    step("code", "design", phase="code"),
    step("test", tests="code"),
)
GAP = Finding("no export", category="missing_functionality", requirement_id="REQ-1")


def judged(*mention: str, finding: Finding = GAP, work: Any = WORK, **more: Any) -> Play:
    """A failing test for a missing requirement, which these steps mention."""
    play = Play(flow(*work, **more))
    for name in play.s.graph.order[:-1]:
        play.finish(name)
    running = play.s.steps["test"].running
    assert running is not None
    play.do(c.FinishAttempt("test", running.attempt, failed(finding), mentions={"REQ-1": mention}))
    return play


def raising(feedback: Feedback, *mention: str, source: str = "code") -> Play:
    play = Play(flow(*WORK))
    for name in ("ask", "plan", "design"):
        play.finish(name)
    attempt = 1 if source == "code" else 0
    play.do(c.RaiseFeedback(source, feedback, attempt, {"REQ-1": mention}))
    return play


class TestMentions:
    @pytest.mark.parametrize(
        "value",
        [
            "REQ-1",
            "first\nREQ-1, then",
            {"REQ-1": None},
            {"units": [{"for": ["REQ-1"]}]},
            ["(REQ-1)"],
        ],
    )
    def test_a_whole_word_anywhere_is_a_mention(self, value: Any) -> None:
        assert mentions(value, "REQ-1")

    @pytest.mark.parametrize("value", ["REQ-10", "PRE-REQ-1", {"REQ-1-b": 1}, None, True, [], {}, "req"])
    def test_other_texts_do_not_mention_it(self, value: Any) -> None:
        assert not mentions(value, "REQ-1")

    def test_a_number_may_be_an_id(self) -> None:
        assert mentions({"requirement": 42}, "42")

    def test_only_requirements_that_decide_a_route_are_searched(self) -> None:
        owned = Feedback(Kind.TECHNICAL_INFEASIBILITY, (), "no", requirement_id="REQ-2")
        sent = Feedback(Kind.TECHNICAL_INFEASIBILITY, ("plan",), "no", requirement_id="REQ-3")
        other = Feedback(Kind.FIX_REQUEST, (), "no", requirement_id="REQ-4")
        plain = Finding("slow", requirement_id="REQ-5")
        assert requirements_to_trace((owned, sent, other, MalformedFeedback((), "x")), (GAP, plain)) == (
            "REQ-2",
            "REQ-1",
        )
        assert requirements_of(Outcome(out().made)) == ()


class TestGaps:
    """A missing requirement goes to the step that dropped it."""

    @pytest.mark.parametrize(
        ("mention", "target", "gap"),
        [
            (("ask", "plan", "design"), "code", "REQ-1 is in ask, plan and design, and missing in code"),
            (("ask", "plan"), "design", "REQ-1 is in ask and plan, and missing in design and code"),
            (("ask",), "plan", "REQ-1 is in ask, and missing in plan, design and code"),
            (("plan", "code"), "design", "REQ-1 is in plan and code, and missing in ask and design"),
            ((), "plan", "REQ-1 is missing in ask, plan, design and code"),
            (("design", "code"), "plan", "REQ-1 is in design and code, and missing in ask and plan"),
        ],
    )
    def test_the_first_step_without_it_after_one_with_it_dropped_it(
        self, mention: tuple[str, ...], target: str, gap: str
    ) -> None:
        play = judged(*mention)
        assert (play.loop().targets, play.loop().routed_by) == ((target,), "requirement")
        assert play.finding().gap == gap
        assert play.of(e.FeedbackRouted)[0].gaps == ((1, gap),)

    def test_the_gap_is_named_in_the_briefing(self) -> None:
        play = judged("ask", "plan", "design")
        briefing = play.briefings["code"][1]
        assert briefing.feedback.findings[0].gap == "REQ-1 is in ask, plan and design, and missing in code"
        assert "Gap: REQ-1 is in ask, plan and design, and missing in code" in feedback_text(briefing)

    def test_a_requirement_mentioned_nowhere_goes_to_the_root(self) -> None:
        work = (step("first"), step("code", "first"), step("test", tests="code"))
        assert judged(work=work).loop().targets == ("first",)

    def test_a_requirement_mentioned_everywhere_stays_with_the_judged_step(self) -> None:
        play = judged("ask", "plan", "design", "code")
        assert (play.loop().targets, play.loop().routed_by, play.finding().gap) == (("code",), "subject", "")

    def test_a_phase_or_a_route_takes_precedence(self) -> None:
        placed = Finding("x", category="missing feature", requirement_id="REQ-1", affected_phase=("design",))
        assert judged("ask", finding=placed).loop().routed_by == "affected_phase"

    @pytest.mark.parametrize(
        "finding",
        [
            Finding("x", category="missing", requirement_id="REQ-1"),
            Finding("x", category="missing feature"),
            Finding("x", category="dismissing features", requirement_id="REQ-1"),
            Finding("x", category="missing feature", requirement_id="REQ-2"),
        ],
    )
    def test_only_a_missing_requirement_is_traced(self, finding: Finding) -> None:
        assert judged("ask", finding=finding).loop().routed_by == "subject"

    def test_a_closed_gap_is_no_longer_named(self) -> None:
        play = judged("ask", "plan", "design")
        play.finish("code", out("more"))
        running = play.s.steps["test"].running
        assert running is not None
        everywhere: dict[str, tuple[str, ...]] = {"REQ-1": ("ask", "plan", "design", "code")}
        play.do(c.FinishAttempt("test", running.attempt, failed(GAP), mentions=everywhere))
        assert (play.loop().routed_by, play.finding().gap) == ("subject", "")

    def test_a_step_out_of_scope_does_not_get_it(self) -> None:
        work = (step("code"), step("test", tests="code"))
        play = judged(work=work)
        assert (play.loop().targets, play.loop().routed_by) == (("code",), "requirement")


class TestOwners:
    """An infeasible requirement goes to its owner."""

    INFEASIBLE = Feedback(
        Kind.TECHNICAL_INFEASIBILITY,
        (),
        "no realtime over this network",
        requirement_id="REQ-1",
        details={"analysis": "200 ms", "alternatives": ["polling"]},
    )

    def test_the_earliest_step_that_mentions_it_is_its_owner(self) -> None:
        play = raising(self.INFEASIBLE, "plan", "design")
        assert (play.loop().targets, play.loop().routed_by) == (("plan",), "requirement")
        play.run()
        assert play.loop().state is LoopState.RESOLVED
        request = play.briefings["plan"][1].feedback.requests[0]
        assert request.details == {"analysis": "200 ms", "alternatives": ["polling"]}
        assert '"analysis": "200 ms"' in feedback_text(play.briefings["plan"][1])

    def test_a_requirement_mentioned_nowhere_belongs_to_the_planning_step(self) -> None:
        assert raising(self.INFEASIBLE).loop().targets == ("plan",)

    def test_a_person_may_omit_the_target_too(self) -> None:
        assert raising(self.INFEASIBLE, "design", source=HUMAN).loop().targets == ("design",)

    def test_without_another_step_it_is_refused(self) -> None:
        play = Play(flow(step("a"), step("b", "a"))).raises("a", self.INFEASIBLE)
        assert play.of(e.RefusedFeedback)[0].reason == "to is missing: name at least one target"

    def test_raising_it_again_is_the_next_round(self) -> None:
        play = raising(self.INFEASIBLE, "plan")
        for name in ("code", "plan", "design"):
            play.finish(name, out(f"{name} {play.now}"))
        running = play.s.steps["code"].running
        assert running is not None
        again = Outcome(out("x").made, feedback=(self.INFEASIBLE,))
        play.do(c.FinishAttempt("code", running.attempt, again, mentions={"REQ-1": ("plan",)}))
        assert (play.opened(), play.loop().round) == (1, 2)


def test_a_requirement_resolves_to_the_latest_loop_about_it() -> None:
    play = raising(TestOwners.INFEASIBLE, "plan")
    assert loop_about(play.s, "L-1") is play.loop()
    assert loop_about(play.s, "REQ-1") is play.loop()
    assert loop_about(play.s, "REQ-1", "code") is play.loop()
    assert loop_about(play.s, "REQ-1", "design") is None
    assert loop_about(play.s, "REQ-2") is None


def test_a_requirement_is_traced_through_the_artifacts() -> None:
    play = Play(flow(*WORK))
    play.finish("ask")
    assert producers_before(play.s, "test") == ["ask"]
    assert producers_before(play.s, HUMAN) == ["ask"]
