"""The cases of phase-aware routing (A3) and of the feedback coordinator (A4), as far as they need no files."""

from __future__ import annotations

from typing import Any

import pytest

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.errors import IllegalCommand
from backedge.core.feedback.loop import LoopState
from backedge.core.model import Breach, Feedback, Finding, Kind, MalformedFeedback, Severity, Usage
from backedge.core.scheduling.pending import pending
from backedge.core.scheduling.scheduler import Start
from backedge.core.state.evolve import evolve, replay
from backedge.core.state.run import RunState
from tests.core.play import Play, Reply, ask, failed, flow, grows, out, passed, profiled, step, texts

# A3: phase-aware routing

ASP = (step("plan", phase="planning"), step("design", "plan", phase="design"), step("review", reviews="design"))
HIGH_DESIGN = Finding("no index", Severity.HIGH, affected_phase=("design",))
PLANNING = Finding("no authentication", Severity.CRITICAL, affected_phase=("planning",))


def asp(*reviews: Reply) -> Play:
    return Play(profiled("asp", *ASP), {"plan": grows, "design": grows, "review": list(reviews)}).run()


def test_a3_01_a_review_that_passes_at_once_sends_no_feedback() -> None:
    play = asp(passed())
    assert play.attempts() == {"plan": 1, "design": 1, "review": 1}
    assert not any(briefing.feedback for briefings in play.briefings.values() for briefing in briefings)


def test_a3_02_one_high_design_issue_then_pass() -> None:
    play = asp(failed(HIGH_DESIGN), passed())
    assert play.attempts() == {"plan": 1, "design": 2, "review": 2}
    assert texts(play.briefings["design"][1].feedback.findings) == ["no index"]
    artifact = play.s.steps["design"].artifact
    assert artifact is not None and artifact.version == 2


def test_a3_03_one_planning_issue_then_pass() -> None:
    play = asp(failed(PLANNING), passed())
    assert play.attempts() == {"plan": 2, "design": 2, "review": 2}
    assert texts(play.briefings["plan"][1].feedback.findings) == ["no authentication"]
    assert not play.briefings["design"][1].feedback


def test_a3_both_means_planning_and_design_once_each() -> None:
    play = asp(failed(Finding("no log-in", Severity.CRITICAL, affected_phase=("Both", "design"))), passed())
    assert play.attempts() == {"plan": 2, "design": 2, "review": 2}
    assert [texts(play.briefings[each][1].feedback.findings) for each in ("plan", "design")] == [["no log-in"]] * 2
    assert play.finding().phases == ("planning", "design")


def test_a3_both_means_those_of_its_phases_that_the_workflow_has() -> None:
    both = failed(Finding("no log-in", affected_phase=("Both",)))
    steps = (step("design", phase="design"), step("review", reviews="design"))
    play = Play(profiled("asp", *steps, phases=["design"]), {"design": grows, "review": [both, passed()]}).run()
    assert (play.outcome, play.finding().phases) == ("verified", ("design",))


def test_a3_both_is_unknown_without_its_phases() -> None:
    both = failed(Finding("no log-in", affected_phase=("Both",)))
    steps = (step("code", phase="code"), step("review", reviews="code"))
    play = Play(profiled("asp", *steps, phases=["code"]), {"review": [both]}).run()
    assert "affected_phase 'Both' is unknown" in play.s.steps["review"].last_error


@pytest.mark.parametrize(("word", "phases"), [("Both", ("planning", "design")), ("planning", ("planning",))])
def test_a3_a_person_may_say_both(word: str, phases: tuple[str, ...]) -> None:
    play = asp(failed(HIGH_DESIGN))
    play.do(c.Reclassify("F-1", word))
    assert play.finding().phases == phases
    assert (play.finding().introduced_by[0], replay(play.events)) == ("plan", play.s)


def test_a3_a_person_is_told_which_phases_there_are() -> None:
    with pytest.raises(IllegalCommand, match="unknown phase 'boths'"):
        asp(failed(HIGH_DESIGN)).do(c.Reclassify("F-1", "boths"))


def test_a4_the_workflow_root_is_the_first_step() -> None:
    play = Play(flow(step("plan"), step("code", "plan")), {"plan": grows})
    play.finish("plan")
    play.raises("code", ask("workflow-root", "plan"))
    assert play.loop().targets == ("plan",)


def test_a3_06_needs_improvement_is_accepted_without_a_loop() -> None:
    reply = failed(Finding("nicer", Severity.MEDIUM))
    play = Play(flow(*ASP), {"review": [type(reply)(reply.made, verdict="needs_improvement", findings=reply.findings)]})
    assert (play.run().outcome, play.opened()) == ("verified", 0)


@pytest.mark.parametrize(("finding", "name"), [(HIGH_DESIGN, "design"), (PLANNING, "plan")])
def test_a3_08_a_step_that_always_fails_stops_after_three_rounds_with_a_named_limit(
    finding: Finding, name: str
) -> None:
    play = asp(failed(finding))
    assert play.attempts()[name] == 3
    assert play.loop().breach == Breach("rounds_per_step", 2, 2)


def test_a3_12_the_default_phase_is_that_of_the_reviewed_step_and_an_unknown_phase_is_refused() -> None:
    assert asp(failed("x"), passed()).of(e.FeedbackRouted)[0].shares == {"design": (1,)}
    code = (*ASP[:2], step("code", "design", phase="code"), step("code_review", reviews="code"))
    play = Play(flow(*code), {"code_review": [failed("x"), passed()]}).run()
    assert play.of(e.FeedbackRouted)[0].shares == {"code": (1,)}
    odd = asp(failed(Finding("x", affected_phase=("desing",))), passed())
    assert "affected_phase 'desing' is unknown" in odd.of(e.AttemptFailed)[0].error


@pytest.mark.parametrize(
    ("findings", "word"),
    [
        ([Severity.HIGH] * 4, "conditional"),
        ([Severity.HIGH] * 5, "fail"),
        ([Severity.CRITICAL], "fail"),
    ],
)
def test_a3_14_four_high_findings_pass_conditionally_but_five_or_a_critical_one_fail(
    findings: list[Severity], word: str
) -> None:
    found = [Finding(f"{n}", severity) for n, severity in enumerate(findings)]
    work = profiled("asp", step("code", phase="code"), step("review", reviews="code"))
    play = Play(work, {"code": grows, "review": [out(None, findings=tuple(found)), passed()]}).run()
    assert play.of(e.VerdictGiven)[0].word == word
    assert play.attempts()["code"] == (1 if word == "conditional" else 2)


def test_a3_16_a_failing_test_causes_one_regeneration_and_is_then_reported() -> None:
    work = profiled("asp", step("code", phase="code"), step("test", tests="code"))
    play = Play(work, {"code": grows, "test": [failed("x"), failed("y")]}).run()
    assert (play.attempts(), play.loop().breach) == ({"code": 2, "test": 2}, Breach("rounds_per_loop", 1, 1))
    assert texts(play.briefings["code"][1].feedback.findings) == ["x"]


def test_a3_17_an_exception_is_an_error_and_not_a_round() -> None:
    play = asp(Exception("boom"))
    assert (play.attempts()["review"], play.breach(), play.s.rounds) == (3, "errors_in_a_row", 0)


def test_a3_18_the_ledger_shows_where_a_defect_came_from_and_what_it_cost() -> None:
    def costly(play: Play, name: str) -> Reply:
        return out(f"{name} {play.s.steps[name].attempts}", usage=Usage(0.5))

    play = Play(flow(*ASP), {"plan": costly, "design": costly, "review": [failed(PLANNING), passed()]}).run()
    found = play.finding()
    assert (found.found_by, found.introduced_by, found.phases) == ("review", ("plan",), ("planning",))
    extra = [event for event in play.of(e.AttemptStarted) if "L-1" in event.cause and event.step != "review"]
    assert [event.step for event in extra] == ["plan", "design"]
    done = {(event.step, event.attempt): event for event in play.of(e.AttemptSucceeded)}
    assert sum(done[event.step, event.attempt].usage.cost_usd for event in extra) == 1.0
    assert sum(done[event.step, event.attempt].seconds for event in extra) == 2.0


def test_a3_19_passing_work_needs_no_repair_and_a_repair_without_change_is_counted() -> None:
    assert asp(passed()).s.rounds == 0
    play = Play(flow(*ASP), {"review": [failed("x"), failed("x"), failed("x")]}).run()
    assert (play.loop().unchanged_reworks, play.s.recoveries) == (2, 2)
    artifact = play.s.steps["design"].artifact
    assert artifact is not None and (artifact.version, artifact.output) == (1, "design")


def test_a3_20_an_input_that_does_not_fit_is_refused_before_the_agent_runs() -> None:
    work = flow(step("plan"), step("design", "plan", checked=True))
    results = iter([(("plan", Finding("no units")),), ()])
    play = Play(work, {"plan": grows}, checks={"design": lambda play: next(results)}).run()
    assert play.attempts() == {"plan": 2, "design": 1}
    assert play.loop().kind is Kind.VALIDATION_FAILURE


# A4: the feedback coordinator

NODES = ("root", "model", "service", "controller", "e2e")
CHAIN = tuple(step(name, *NODES[:index][-1:]) for index, name in enumerate(NODES))


def working(**more: Any) -> Play:
    """All nodes are done but the last, which runs."""
    play = Play(flow(*CHAIN, **more), dict.fromkeys(NODES, grows))
    for name in NODES[:-1]:
        play.finish(name)
    return play


def test_a4_01_a_complete_fix_request_to_an_ancestor_is_accepted() -> None:
    play = working().raises("e2e", ask("model", suggested_fix="add a field"))
    play.finish("e2e")
    assert (play.opened(), play.loop().id, play.loop().round) == (1, "L-1", 1)
    assert play.briefings["model"][1].feedback.requests[0].suggested_fix == "add a field"


@pytest.mark.parametrize(
    ("feedback", "field"),
    [
        (ask("model", message=" "), "message"),
        (ask(), "to"),
        (MalformedFeedback(("model",), "kind 'wish' is unknown"), "kind"),
        (MalformedFeedback(("model",), "severity 'banana' is unknown"), "severity"),
    ],
)
def test_a4_02_feedback_with_a_missing_or_unknown_field_is_refused_naming_it(
    feedback: Feedback | MalformedFeedback, field: str
) -> None:
    play = working()
    before = play.s
    play.do(c.RaiseFeedback("e2e", feedback, 1))
    assert play.of(e.RefusedFeedback)[0].reason.startswith(field)
    assert (play.s.loops, play.s.rounds) == (before.loops, before.rounds)


def test_a4_04_three_hops_pass_and_a_fourth_is_refused_so_that_a_person_is_asked() -> None:
    play = working()
    for source, target in (("e2e", "controller"), ("controller", "service"), ("service", "model")):
        play.raises(source, ask(target))
        play.finish(source)
    assert [loop.depth for loop in play.s.loops.values()] == [1, 2, 3]
    before = play.s
    play.raises("model", ask("root"))
    assert "chain_depth" in play.of(e.RefusedFeedback)[0].reason
    assert (play.s.loops, play.s.steps, play.s.opened_loops) == (before.loops, before.steps, 3)
    assert play.s.escalations["E-1"].reason.startswith("refused feedback of 'model': chain_depth")
    assert play.run().outcome == "waiting"
    assert play.decide("continue").run().outcome == "done"


def test_a4_06_self_feedback_is_refused() -> None:
    assert "is the source itself" in working().raises("e2e", ask("e2e")).of(e.RefusedFeedback)[0].reason


def test_a4_08_feedback_reaches_an_earlier_sibling_that_made_the_model() -> None:
    work = flow(step("root"), step("model", "root", phase="design"), step("spec", "root", phase="test"))
    play = Play(work, {"model": grows})
    play.finish("root")
    play.finish("model")
    play.raises("spec", ask("model"))
    assert play.run().attempts()["model"] == 2


def test_a4_09_a_verified_fix_passes_through_every_state_and_is_resolved() -> None:
    play = working().raises("e2e", ask("model")).run()
    state: RunState | None = None
    seen: list[LoopState] = []
    for event in play.events:
        state = evolve(state, event)
        loop = state.loop("L-1")
        if loop is not None and loop.state not in seen:
            seen.append(loop.state)
    assert seen == ["notifying", "waiting_response", "resolving", "validating", "resolved"]
    assert play.of(e.LoopClosed)[0].at == play.now


def test_a4_11_a_fix_that_errors_fails_the_loop_without_verification() -> None:
    play = working(on_breach="error").raises("e2e", ask("model"))
    play.scripts["model"] = [Exception("broken")]
    play.run()
    assert (play.outcome, play.loop().state) == ("failed", LoopState.FAILED)
    assert play.attempts()["e2e"] == 1


def test_a4_13_a_context_request_is_answered_without_rerunning_the_target() -> None:
    play = working().raises("e2e", ask("model", kind=Kind.CONTEXT_REQUEST, requested_info="which id?"))
    play.scripts["model"] = [out("ignored", answer="uuid")]
    play.run()
    assert (play.loop().state, play.loop().answers) == (LoopState.RESOLVED, {"model": "uuid"})
    artifact = play.s.steps["model"].artifact
    assert artifact is not None and artifact.version == 1
    assert play.attempts()["service"] == 1
    assert play.briefings["e2e"][1].feedback.resolutions[0].answers == {"model": "uuid"}


def test_a4_15_the_queue_is_ordered_by_severity_then_age() -> None:
    names = ("low", "medium", "high", "later", "critical")
    play = Play(flow(*(step(name) for name in names)))
    for name in names[:-1]:
        play.finish(name)
    play.finish("critical")
    play.slots = 0
    for name in names:
        play.now += 1
        play.person_raises(name, severity=Severity("high" if name == "later" else name))
    starts = [effect.step for effect in pending(play.s, play.now) if isinstance(effect, Start)]
    assert starts == ["critical", "high", "later", "medium", "low"]
