"""The defect goes to the step that injected it. The first rule that matches wins and is recorded."""

from __future__ import annotations

from typing import Any

import pytest

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.errors import AlreadyClosed, IllegalCommand, NotFound
from backedge.core.feedback.loop import LoopState
from backedge.core.feedback.routing import route_for
from backedge.core.model import HUMAN, Finding, Severity, Status
from backedge.core.workflow.definition import Step, Workflow
from backedge.core.workflow.profiles import PROFILES
from backedge.core.workflow.routes import RouteRule
from backedge.core.workflow.validate import valid_graph
from tests.core.play import Limits, Play, ask, failed, flow, grows, passed, step, texts

CHAIN = (
    step("plan", phase="planning"),
    step("design", "plan", phase="design"),
    step("code", "design", phase="code"),
    step("review", reviews="code"),
)


def routed(
    work: Workflow, finding: Finding, reporter: str = "review", blockers: int = 0
) -> tuple[tuple[str, ...], str]:
    route = route_for(valid_graph(work), reporter, finding.affected_phase, finding, blockers)
    return route.targets, route.rule


def phase(*names: str, **more: Any) -> Finding:
    return Finding("wrong", affected_phase=names, **more)


def test_an_affected_phase_routes_to_the_step_of_that_phase() -> None:
    assert routed(flow(*CHAIN), phase("planning")) == (("plan",), "affected_phase")


def test_two_affected_phases_are_two_targets() -> None:
    assert routed(flow(*CHAIN), phase("planning", "design")) == (("plan", "design"), "affected_phase")


def test_a_phase_named_twice_is_one_target() -> None:
    assert routed(flow(*CHAIN), phase("planning", "planning")) == (("plan",), "affected_phase")


def test_a_phase_without_steps_falls_through_to_the_next_rule() -> None:
    assert routed(flow(*CHAIN), phase("research")) == (("code",), "subject")


def test_the_nearest_upstream_step_of_the_phase_gets_it() -> None:
    work = flow(
        step("d1", phase="design"),
        step("d2", "d1", phase="design"),
        step("code", "d2", phase="code"),
        step("review", reviews="code"),
    )
    assert routed(work, phase("design")) == (("d2",), "affected_phase")


def test_equally_near_steps_all_get_it() -> None:
    work = flow(
        step("api", phase="design"),
        step("db", phase="design"),
        step("code", "api", "db", phase="code"),
        step("review", reviews="code"),
    )
    assert routed(work, phase("design")) == (("api", "db"), "affected_phase")


def test_steps_of_an_earlier_phase_without_consumers_are_reached_too() -> None:
    work = flow(
        step("root"),
        step("p1", "root", phase="planning"),
        step("p2", "root", phase="planning"),
        step("code", "root", phase="code"),
        step("review", reviews="code"),
    )
    assert routed(work, phase("planning")) == (("p1", "p2"), "affected_phase")


def test_an_affected_phase_wins_over_the_routes() -> None:
    work = flow(*CHAIN, routes=(RouteRule("design", category=("security",)),))
    assert routed(work, phase("planning", category="security")) == (("plan",), "affected_phase")


@pytest.mark.parametrize(
    ("rule", "finding", "rule_matches"),
    [
        (RouteRule("plan", category=("security",)), Finding("x", category="security"), True),
        (RouteRule("plan", category=("security",)), Finding("x", category="API Security!"), True),
        (RouteRule("plan", category=("api security",)), Finding("x", category="apiSecurity"), True),
        (RouteRule("plan", category=("api security",)), Finding("x", category="api_security"), True),
        (RouteRule("plan", category=("security",)), Finding("x", category="insecurity"), False),
        (RouteRule("plan", category=("security",)), Finding("security", category=""), False),
        (RouteRule("plan", keywords=("token",)), Finding("the token leaks"), True),
        (RouteRule("plan", keywords=("token",)), Finding("tokens leak"), False),
        (RouteRule("plan", keywords=("token",)), Finding("x", category="token"), False),
        (RouteRule("planning", category=("",)), Finding("anything"), True),
        (RouteRule("plan", blockers=2), Finding("x"), False),
    ],
)
def test_routes_match_whole_words(rule: RouteRule, finding: Finding, rule_matches: bool) -> None:
    expected = (("plan",), "routes") if rule_matches else (("code",), "subject")
    assert routed(flow(*CHAIN, routes=(rule,)), finding, blockers=1) == expected


def test_the_first_route_that_matches_and_leads_somewhere_wins() -> None:
    rules = (
        RouteRule("research", category=("x",)),
        RouteRule("design", category=("x",)),
        RouteRule("plan", category=("x",)),
    )
    assert routed(flow(*CHAIN, routes=rules), Finding("w", category="x")) == (("design",), "routes")


def test_a_route_to_a_step_out_of_scope_is_ignored() -> None:
    work = flow(*CHAIN, step("deploy", "code"), routes=(RouteRule("deploy", category=("x",)),))
    assert routed(work, Finding("w", category="x")) == (("code",), "subject")


def test_a_finding_that_no_rule_routes_goes_to_the_step_under_judgement() -> None:
    assert routed(flow(*CHAIN), Finding("w")) == (("code",), "subject")


def test_a_judge_of_two_steps_sends_a_finding_to_both() -> None:
    work = flow(step("a"), step("b"), Step("review", judges=("a", "b")))
    assert routed(work, Finding("w")) == (("a", "b"), "subject")


def sdlc(*steps: Step) -> Workflow:
    profile = PROFILES["ai-sdlc"]
    return flow(*steps, routes=profile.routes, nearest_phase=profile.nearest_phase, profile="ai-sdlc")


FULL = (step("research", phase="research"), step("plan", "research", phase="planning"), *CHAIN[1:])


@pytest.mark.parametrize(
    ("category", "blockers", "target"),
    [
        ("missing_research", 0, "research"),
        ("requirements", 0, "research"),
        ("unclear requirement", 0, "research"),
        ("understanding", 0, "research"),
        ("missing information", 0, "research"),
        ("missing", 0, "code"),
        ("architecture", 0, "plan"),
        ("design", 0, "plan"),
        ("approach", 0, "plan"),
        ("scope", 0, "plan"),
        ("planning", 0, "plan"),
        ("story_type", 0, "plan"),
        ("content_type", 0, "plan"),
        ("code_quality", 0, "code"),
        ("code_quality", 1, "code"),
        ("code_quality", 2, "plan"),
        ("research", 2, "research"),
        ("scoped", 0, "code"),
        ("", 0, "code"),
    ],
)
def test_the_routes_of_ai_sdlc(category: str, blockers: int, target: str) -> None:
    assert routed(sdlc(*FULL), Finding("w", category=category), blockers=blockers) == ((target,), "routes")


def test_a_workflow_without_the_phase_uses_the_nearest_earlier_one_else_its_first_step() -> None:
    assert routed(sdlc(*CHAIN), Finding("w", category="research")) == (("plan",), "routes")
    no_plan = (step("study", phase="research"), step("code", "study", phase="code"), step("review", reviews="code"))
    assert routed(sdlc(*no_plan), Finding("w", category="scope")) == (("study",), "routes")
    own = flow(
        step("think", phase="thinking"),
        step("make", "think", phase="making"),
        step("review", reviews="make"),
        phases=("thinking", "making"),
        routes=PROFILES["ai-sdlc"].routes,
        nearest_phase=True,
    )
    assert routed(own, Finding("w", category="scope")) == (("think",), "routes")


def test_the_journal_records_which_rule_routed_which_finding() -> None:
    work = flow(*CHAIN, routes=(RouteRule("design", category=("security",)),))
    found = (phase("planning"), Finding("two", category="security"), Finding("three"))
    play = Play(work, {"review": [failed(*found), passed()]}).run()
    (event,) = play.of(e.FeedbackRouted)
    assert event.shares == {"plan": (1,), "design": (2,), "code": (3,)}
    assert event.rules == {"affected_phase": (1,), "routes": (2,), "subject": (3,)}
    assert play.loop().routed_by == "affected_phase"
    assert play.finding(2).introduced_by == ("design",)


class TestRoutesToAPerson:
    """`human` is a valid target everywhere: the finding goes to the inbox."""

    WORK = flow(*CHAIN, routes=(RouteRule(HUMAN, ("legal",)),))
    LEGAL = Finding("whose licence is it?", category="legal")

    def judged(self, *findings: Finding, **more: Any) -> Play:
        work = flow(*CHAIN, routes=(RouteRule(HUMAN, ("legal",)),), **more)
        return Play(work, {"plan": grows, "code": grows, "review": [failed(*findings), passed()]}).run()

    def test_the_rule_is_routes(self) -> None:
        assert routed(self.WORK, self.LEGAL) == ((HUMAN,), "routes")

    def test_the_person_is_asked_and_the_judge_runs_once_more_with_the_answer(self) -> None:
        play = self.judged(self.LEGAL)
        assert (play.outcome, play.breach(), play.loop().targets) == ("waiting", "asked", (HUMAN,))
        assert (play.s.rounds, play.loop().round, play.finding().introduced_by) == (1, 1, ())
        play.decide("resolve", note="it is ours", by="ann").run()
        assert play.briefings["review"][1].feedback.resolutions[0].text == "it is ours"
        assert (play.outcome, play.attempts()["code"], play.finding().status) == ("verified", 1, Status.FIXED)

    def test_findings_for_a_step_go_there_at_the_same_time(self) -> None:
        play = self.judged(self.LEGAL, Finding("a typo"))
        assert (play.outcome, play.breach(), play.attempts()["code"]) == ("waiting", "asked", 2)
        assert texts(play.briefings["code"][1].feedback.findings) == ["a typo"]
        assert play.decide("resolve", note="ours").run().outcome == "verified"

    def test_a_person_who_does_not_answer_times_out(self) -> None:
        play = self.judged(self.LEGAL)
        play.now += 600
        play.do(c.Proceed())
        assert play.breach() == "response_timeout"

    def test_a_limit_is_checked_before_the_person_is_asked(self) -> None:
        play = self.judged(self.LEGAL, limits={"rounds_per_loop": 0})
        assert play.breach() == "rounds_per_loop"
        assert play.decide("continue").breach() == "asked"

    def test_every_later_question_has_its_own_timeout(self) -> None:
        play = Play(self.WORK, {"code": grows, "review": [failed("a typo"), failed(self.LEGAL), passed()]}).run()
        assert (play.loop().round, play.breach()) == (2, "asked")
        assert [wake.time for wake in play.wakes()] == [play.now + 600]

    def waiting(self, *findings: Finding) -> Play:
        """The code waits for a free slot."""
        work = flow(*CHAIN, routes=(RouteRule(HUMAN, ("legal",)),))
        play = Play(work, {"code": grows, "review": [failed(*findings), passed()]}, slots=1)
        for name in ("plan", "design", "code"):
            play.finish(name)
        play.slots = 0
        play.finish("review")
        return play

    def test_a_finding_reclassified_to_a_phase_without_steps_may_go_to_a_person_too(self) -> None:
        legal = Finding("whose licence is it?", category="legal", affected_phase=("code",))
        play = self.waiting(legal)
        assert play.loop().targets == ("code",)
        play.do(c.Reclassify("F-1", "research"))
        assert (play.breach(), play.loop().targets) == ("asked", (HUMAN,))
        play.slots = 1
        assert play.decide("resolve", note="ours").run().outcome == "verified"

    def test_a_new_question_replaces_the_one_that_is_already_open(self) -> None:
        play = self.waiting(self.LEGAL, Finding("and whose patent?", category="legal", affected_phase=("code",)))
        assert (play.asked(), play.loop().targets) == (["E-1"], (HUMAN, "code"))
        play.do(c.Reclassify("F-2", "research"))
        assert (play.asked(), play.loop().shares[HUMAN].findings) == (["E-2"], (1, 2))
        with pytest.raises(AlreadyClosed, match="E-1 was withdrawn: replaced by a newer question"):
            play.decide("resolve", "E-1", note="ours")
        play.slots = 1
        assert play.decide("resolve", note="ours").run().outcome == "verified"

    def test_a_limit_may_forbid_the_question(self) -> None:
        legal = Finding("whose licence is it?", category="legal", affected_phase=("code",))
        play = Play(
            flow(*CHAIN, routes=(RouteRule(HUMAN, ("legal",)),), limits={"rounds_per_step": 0}),
            {"review": [failed(legal)]},
        ).run()
        play.do(c.Reclassify("F-1", "research"))
        assert play.decide("continue").breach() == "asked"

    def test_an_input_error_does_not_ask_a_person(self) -> None:
        work = flow(step("a"), step("b", "a", checked=True), routes=(RouteRule(HUMAN, ("legal",)),))
        results = iter([(("a", self.LEGAL),)])
        assert Play(work, {"a": grows}, checks={"b": lambda play: next(results, ())}).run().outcome == "done"


class TestReclassifying:
    """A person says which phase injected a finding: that is the truth."""

    def waiting(self) -> Play:
        play = Play(flow(*CHAIN), {"review": [failed("wrong"), passed()], "plan": grows, "code": grows}, slots=1)
        for name in ("plan", "design", "code"):
            play.finish(name)
        play.slots = 0
        play.finish("review")
        play.slots = 1
        return play

    def test_an_undelivered_finding_goes_to_the_new_phase(self) -> None:
        play = self.waiting()
        play.do(c.Reclassify("F-1", "planning", by="ann"))
        play.run()
        assert texts(play.briefings["plan"][1].feedback.findings) == ["wrong"]
        assert play.attempts()["plan"] == 2
        assert play.briefings["plan"][1].feedback.findings[0].affected_phase == ("planning",)

    def test_reclassifying_a_delivered_finding_is_only_recorded(self) -> None:
        play = self.waiting()
        play.do(c.Proceed())
        play.do(c.Reclassify("F-1", "planning"))
        assert play.loop().targets == ("code",)
        assert play.finding().phases == ("planning",)

    def test_a_target_that_has_fixed_a_finding_does_not_get_it_again(self) -> None:
        both = Finding("wrong", affected_phase=("planning", "code"))
        scripts: dict[str, Any] = {"plan": grows, "design": grows, "code": grows, "review": [failed(both), passed()]}
        play = Play(flow(*CHAIN), scripts)
        for name in ("plan", "design", "code", "review", "plan"):
            play.finish(name)
        assert play.attempts()["plan"] == 2 and play.loop().shares["plan"].done
        play.do(c.Reclassify("F-1", "planning"))
        assert play.run().outcome == "verified"
        assert play.attempts()["plan"] == 2
        assert [texts(each.feedback.findings) for each in play.briefings["code"]] == [[], []]

    def test_a_finding_of_a_closed_loop_can_be_reclassified(self) -> None:
        play = self.waiting().run()
        play.do(c.Reclassify("F-1", "planning"))
        assert play.finding().reclassified == ("planning",)

    def test_the_next_round_goes_to_the_new_phase(self) -> None:
        play = self.waiting()
        play.scripts["review"] = [failed("x"), failed("wrong"), passed()]
        play.do(c.Proceed())
        play.do(c.Reclassify("F-1", "planning"))
        play.run()
        assert play.of(e.FeedbackRouted)[1].shares == {"plan": (1,)}

    def escalated(self, *findings: Finding, **limits: Any) -> Play:
        replies = [failed(*findings), passed()]
        play = Play(flow(*CHAIN, limits=limits), {"plan": grows, "design": grows, "code": grows, "review": replies})
        return play.run()

    @pytest.mark.parametrize(("choice", "note"), [("continue", ""), ("revise", "with a queue")])
    def test_an_escalated_finding_goes_to_the_new_phase_when_the_loop_continues(self, choice: str, note: str) -> None:
        play = self.escalated(Finding("wrong"), Finding("also"), rounds_total=0)
        play.do(c.Reclassify("F-1", "planning", by="ann"))
        assert play.loop().state is LoopState.ESCALATING
        play.decide(choice, note=note).run()
        assert texts(play.briefings["plan"][1].feedback.findings) == ["wrong"]
        assert texts(play.briefings["code"][1].feedback.findings) == ["also"]
        assert (play.outcome, play.loop().round) == ("verified", 1)

    def test_findings_delivered_in_the_same_round_stay_where_they_are(self) -> None:
        found = (Finding("plan it", affected_phase=("planning",)), Finding("code it", affected_phase=("code",)))
        play = self.escalated(*found, rounds_total=1)
        assert (play.breach(), play.attempts()["plan"]) == ("rounds_total", 2)
        play.do(c.Reclassify("F-2", "design"))
        play.decide("continue").run()
        assert texts(play.briefings["design"][2].feedback.findings) == ["code it"]
        assert (play.outcome, play.loop().round, play.loop().targets) == ("verified", 1, ("plan", "design"))
        rework = [event.step for event in play.of(e.AttemptStarted) if event.mode == "rework"]
        assert rework == ["plan", "design"]

    def test_a_target_that_is_done_with_its_share_works_again_for_a_later_finding(self) -> None:
        found = (Finding("plan it", affected_phase=("planning",)), Finding("code it", affected_phase=("code",)))
        play = self.escalated(*found, rounds_total=1)
        play.do(c.Reclassify("F-2", "planning"))
        play.decide("continue").run()
        assert texts(play.briefings["plan"][2].feedback.findings) == ["code it"]
        assert (play.outcome, play.loop().targets) == ("verified", ("plan",))

    def both_at_work(self, *findings: Finding) -> Play:
        """The plan is reworked; the code waits for its share of the same round."""
        play = Play(flow(*CHAIN), {"plan": grows, "code": grows, "review": [failed(*findings), passed()]})
        for name in ("plan", "design", "code", "review"):
            play.finish(name)
        assert play.s.steps["plan"].running is not None
        return play

    def test_a_target_at_work_on_a_finding_does_not_get_it_twice(self) -> None:
        play = self.both_at_work(phase("planning", "code"))
        play.do(c.Reclassify("F-1", "planning"))
        assert play.loop().targets == ("plan",)
        assert play.run().attempts()["plan"] == 2
        assert [event.step for event in play.of(e.AttemptStarted) if event.mode == "rework"] == ["plan"]

    def test_a_target_at_work_on_other_findings_gets_all_of_them_again(self) -> None:
        found = (Finding("plan it", affected_phase=("planning",)), Finding("code it", affected_phase=("code",)))
        play = self.both_at_work(*found)
        play.do(c.Reclassify("F-2", "planning"))
        play.run()
        assert texts(play.briefings["plan"][2].feedback.findings) == ["plan it", "code it"]
        assert (play.outcome, play.loop().targets, play.attempts()["plan"]) == ("verified", ("plan",), 3)

    def test_a_later_decision_counts_more_than_an_earlier_phase(self) -> None:
        play = self.escalated(Finding("wrong"), rounds_per_loop=0)
        play.do(c.Reclassify("F-1", "planning"))
        play.decide("reassign", target=HUMAN).decide("reassign", target="design").run()
        assert texts(play.briefings["design"][1].feedback.findings) == ["wrong"]
        assert play.attempts()["plan"] == 1

    @pytest.mark.parametrize("name", ["F-9", "L-1", "1", "F-x"])
    def test_an_unknown_finding_is_not_found(self, name: str) -> None:
        with pytest.raises(NotFound, match="unknown finding"):
            self.waiting().do(c.Reclassify(name, "planning"))

    def test_an_unknown_phase_is_refused_with_the_nearest(self) -> None:
        with pytest.raises(IllegalCommand, match="did you mean 'planning'"):
            self.waiting().do(c.Reclassify("F-1", "plannin"))


class TestScope:
    """Upstream needs, steps of earlier phases and the root; or any step."""

    WORK = (
        step("root"),
        step("model", "root", phase="design"),
        step("code", "root", phase="code"),
        step("peer", "root", phase="code"),
        step("test", tests="code"),
    )

    @pytest.mark.parametrize(("scope", "legal"), [("upstream", ("root", "model")), ("any", ("root", "model", "peer"))])
    def test_legal_targets(self, scope: str, legal: tuple[str, ...]) -> None:
        graph = valid_graph(flow(*self.WORK, scope=scope))
        assert graph.legal_targets("code") == legal
        for source in graph.steps:
            assert tuple(name for name in graph.steps if graph.is_legal(source, name)) == graph.legal_targets(source)

    def test_the_root_is_a_legal_target_for_steps_that_do_not_need_it(self) -> None:
        graph = valid_graph(flow(step("first"), step("second"), step("third", "second")))
        assert graph.legal_targets("third") == ("first", "second")

    @pytest.mark.parametrize(
        ("to", "why"),
        [
            ((), "to is missing"),
            (("code",), "is the source itself"),
            (("nobody",), "unknown target 'nobody'"),
            (("test",), "is a judge: send it to the step under judgement (code)"),
            (("peer",), "is out of scope for 'code'"),
            (("root", "peer"), "is out of scope for 'code'"),
        ],
    )
    def test_raised_feedback_out_of_scope_is_refused_with_the_reason(self, to: tuple[str, ...], why: str) -> None:
        play = Play(flow(*self.WORK))
        play.finish("root")
        before = play.s
        play.raises("code", ask(*to, severity=Severity.MEDIUM))
        assert isinstance(play.events[-1], e.RefusedFeedback)
        assert why in play.events[-1].reason
        assert play.events[-1].targets == to
        assert (play.s.loops, play.s.escalations, play.opened()) == (before.loops, before.escalations, 0)

    def test_a_message_is_required(self) -> None:
        play = Play(flow(*self.WORK))
        play.finish("root")
        play.raises("code", ask("root", message=" "))
        assert "message is missing" in play.of(e.RefusedFeedback)[0].reason

    @pytest.mark.parametrize("source", ["code", "test"])
    def test_a_person_is_always_a_legal_target(self, source: str) -> None:
        play = Play(flow(*self.WORK))
        for name in ("root", "model", "code", "peer")[: 4 if source == "test" else 1]:
            play.finish(name)
        play.raises(source, ask(HUMAN))
        assert play.loop().targets == (HUMAN,)

    def test_a_person_reaches_every_step_but_judges(self) -> None:
        play = Play(flow(*self.WORK, limits=Limits())).run()
        play.person_raises("peer").person_raises("test").person_raises(HUMAN)
        assert play.opened() == 1
        assert len(play.s.refused) == 2
