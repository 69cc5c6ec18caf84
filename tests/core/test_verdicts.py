"""What a judge may report, which reports are contradictions, and the verdict that follows."""

from __future__ import annotations

from typing import Any

import pytest

from backedge.core import events as e
from backedge.core.findings.verdicts import verdict_by_rule
from backedge.core.model import (
    HUMAN,
    Decision,
    Finding,
    FindingResolution,
    Kind,
    Outcome,
    Severity,
    Status,
    Usage,
    severity_of,
)
from backedge.core.workflow.definition import PassRule
from tests.core.play import Play, Reply, ask, failed, flow, grows, made, out, passed, step


def judged(*replies: Reply, **more: Any) -> Play:
    work = flow(
        step("plan", phase="planning"), step("design", "plan", phase="design"), step("review", reviews="design", **more)
    )
    return Play(work, {"design": grows, "review": list(replies)}).run()


def report(verdict: Any, *findings: Finding, **more: Any) -> Outcome:
    return Outcome(made("report"), verdict=verdict, findings=findings, **more)


def level(severity: Severity, blocking: bool = False) -> Finding:
    return Finding(f"{severity} {blocking}", severity=severity, blocking=blocking)


CRITICAL, HIGH, MEDIUM, LOW = (level(severity) for severity in Severity)
BLOCKER = level(Severity.CRITICAL, True)


@pytest.mark.parametrize(
    ("outcome", "error"),
    [
        (report(None), "no verdict: say pass, fail or needs_improvement"),
        (report("fail"), "the verdict is fail without findings"),
        (report("fail", summary="  "), "the verdict is fail without findings"),
        (report("pass", HIGH), "the verdict is pass, but 'high False' is critical or high"),
        (report("pass", MEDIUM, CRITICAL), "the verdict is pass, but 'critical False'"),
        (report("fail", Finding(" ")), "a finding has no description"),
        (
            report("fail", Finding("x", affected_phase=("desing",))),
            "affected_phase 'desing' is unknown: did you mean 'design'?",
        ),
        (
            report("fail", HIGH, resolutions=(FindingResolution("F-7", "fixed"),)),
            "which is not among the findings to verify (none)",
        ),
    ],
)
def test_a_contradiction_is_an_agent_error_and_the_judge_runs_again(outcome: Outcome, error: str) -> None:
    play = judged(outcome, passed())
    (failure,) = play.of(e.AttemptFailed)
    assert error in failure.error
    assert (play.outcome, play.attempts()["review"], play.opened()) == ("verified", 2, 0)


def test_a_judge_cannot_contest() -> None:
    play = judged(failed("x"), report("fail", resolutions=(FindingResolution("F-1", "contested"),)), passed())
    assert "resolution of F-1 is 'contested'" in play.of(e.AttemptFailed)[0].error


def test_a_pass_with_a_serious_finding_not_fixed_is_a_contradiction() -> None:
    play = judged(failed("x"), report("pass", resolutions=(FindingResolution("F-1", "not_fixed"),)), passed())
    assert "the verdict is pass, but 'F-1' is critical or high" in play.of(e.AttemptFailed)[0].error


def test_a_pass_with_a_minor_finding_not_fixed_defers_it() -> None:
    play = judged(report("fail", LOW), report("pass", resolutions=(FindingResolution("F-1", "not_fixed"),)))
    assert play.outcome == "verified"
    assert play.finding().status is Status.DEFERRED


@pytest.mark.parametrize("finding", [MEDIUM, LOW])
def test_a_pass_may_have_minor_findings(finding: Finding) -> None:
    play = judged(report("pass", finding))
    assert play.outcome == "verified"
    assert play.finding().status is Status.DEFERRED


def test_a_fail_with_only_a_summary_has_the_summary_as_its_finding() -> None:
    play = judged(report("fail", summary=" nothing works "), passed())
    assert play.finding().finding == Finding("nothing works")
    assert play.attempts()["design"] == 2


def test_a_fail_with_only_not_fixed_is_valid() -> None:
    play = judged(
        failed("x"), report("fail", resolutions=(FindingResolution("F-1", "not_fixed"),), summary="still"), passed()
    )
    assert len(play.s.findings) == 1
    assert play.attempts()["design"] == 3


@pytest.mark.parametrize("word", ["pass", "conditional", "needs_improvement"])
def test_only_fail_stops_the_work(word: Any) -> None:
    assert judged(report(word)).outcome == "verified"


@pytest.mark.parametrize("reply", [out(verdict="pass"), out(findings=(HIGH,))])
def test_a_step_that_judges_nothing_gives_no_verdict(reply: Outcome) -> None:
    play = Play(flow(step("a")), {"a": [reply, out()]}).run()
    assert "is not a judge" in play.of(e.AttemptFailed)[0].error
    assert play.outcome == "done"


RULES: list[tuple[PassRule, list[Finding], str]] = [
    (PassRule("ai-sdlc"), [], "pass"),
    (PassRule("ai-sdlc"), [CRITICAL], "pass"),
    (PassRule("ai-sdlc"), [CRITICAL, CRITICAL], "fail"),
    (PassRule("ai-sdlc"), [HIGH] * 9, "pass"),
    (PassRule("ai-sdlc"), [BLOCKER], "fail"),
    (PassRule("ai-sdlc"), [level(Severity.LOW, True)], "fail"),
    (PassRule("asp-design"), [MEDIUM, LOW], "pass"),
    (PassRule("asp-design"), [HIGH], "fail"),
    (PassRule("asp-design"), [CRITICAL], "fail"),
    (PassRule("asp-code"), [], "pass"),
    (PassRule("asp-code"), [MEDIUM], "pass"),
    (PassRule("asp-code"), [HIGH], "conditional"),
    (PassRule("asp-code"), [HIGH] * 4, "conditional"),
    (PassRule("asp-code"), [HIGH] * 5, "fail"),
    (PassRule("asp-code"), [CRITICAL], "fail"),
    (PassRule(at_most=(("high", 1),)), [HIGH], "pass"),
    (PassRule(at_most=(("high", 1),)), [HIGH, HIGH], "fail"),
    (PassRule(at_most=(("high", 1),)), [CRITICAL], "pass"),
    (PassRule(at_most=(("blocking", 0),)), [BLOCKER], "fail"),
    (PassRule(at_most=(("low", 0), ("high", 3))), [LOW], "fail"),
]


@pytest.mark.parametrize(("rule", "findings", "word"), RULES)
def test_a_rule_computes_the_verdict_from_the_findings(rule: PassRule, findings: list[Finding], word: str) -> None:
    assert verdict_by_rule(rule, findings) == word


class TestWithARule:
    """With passes_if, the engine computes the verdict. What the judge says does not count, unless it says fail."""

    def test_a_pass_with_a_blocker_is_a_fail_and_that_is_told(self) -> None:
        play = judged(report("pass", BLOCKER), report("pass"), passes_if=PassRule("ai-sdlc"))
        assert [event.word for event in play.of(e.VerdictGiven)] == ["fail", "pass"]
        first, second = (each.warning for each in play.of(e.AttemptSucceeded) if each.step == "review")
        assert first == "the verdict pass counts as fail: passes_if (ai-sdlc) does not allow what 'review' found"
        assert second == ""

    def test_needs_improvement_with_more_than_the_rule_allows_is_a_fail_and_that_is_told(self) -> None:
        rule = PassRule(at_most=(("high", 0), ("low", 3)))
        play = judged(report("needs_improvement", HIGH), report("pass"), passes_if=rule)
        (told,) = (each.warning for each in play.of(e.AttemptSucceeded) if each.warning)
        assert told.startswith(
            "the verdict needs_improvement counts as fail: passes_if (at most 0 high, at most 3 low)"
        )

    def test_a_stated_fail_stands_although_the_rule_would_pass_it(self) -> None:
        play = judged(report("fail", HIGH), report(None, MEDIUM), passes_if=PassRule("ai-sdlc"))
        assert [event.word for event in play.of(e.VerdictGiven)] == ["fail", "pass"]
        assert not any(each.warning for each in play.of(e.AttemptSucceeded))

    def test_what_the_rule_tolerates_leaves_the_run_verified(self) -> None:
        play = judged(report(None, HIGH), passes_if=PassRule("ai-sdlc"))
        assert (play.finding().status, play.outcome) == (Status.DEFERRED, "verified")

    def test_what_the_rule_forbids_and_a_policy_defers_ends_accepted(self) -> None:
        defers = (
            (Severity.CRITICAL, "rework"),
            (Severity.HIGH, "defer"),
            (Severity.MEDIUM, "defer"),
            (Severity.LOW, "defer"),
        )
        work = flow(
            step("design"), step("review", reviews="design", passes_if=PassRule("asp-design")), new_findings=defers
        )
        late = report(None, Finding("late", Severity.HIGH))
        play = Play(work, {"design": grows, "review": [report(None, CRITICAL), late]}).run()
        verdict = play.s.steps["review"].verdict
        assert verdict is not None and (verdict.word, play.outcome) == ("needs_improvement", "accepted")

    def test_a_fail_without_findings_but_with_a_summary_stays_a_fail(self) -> None:
        play = judged(report("fail", summary="broken"), report("pass"), passes_if=PassRule("ai-sdlc"))
        assert [event.word for event in play.of(e.VerdictGiven)] == ["fail", "pass"]
        assert play.finding().finding.description == "broken"

    def test_an_empty_fail_is_an_error_with_a_rule_too(self) -> None:
        play = judged(report("fail"), report("pass"), passes_if=PassRule("ai-sdlc"))
        assert "fail without findings" in play.of(e.AttemptFailed)[0].error

    def test_findings_not_fixed_count(self) -> None:
        again = report(None, resolutions=(FindingResolution("F-1", "not_fixed"),))
        play = judged(report(None, BLOCKER), again, report("pass"), passes_if=PassRule("ai-sdlc"))
        assert [event.word for event in play.of(e.VerdictGiven)] == ["fail", "fail", "pass"]

    def test_an_empty_outcome_is_not_a_pass(self) -> None:
        play = judged(report(None), report("pass"), passes_if=PassRule("ai-sdlc"))
        assert play.of(e.AttemptFailed)[0].error.startswith("no verdict")

    def test_a_conditional_pass_goes_on_and_defers(self) -> None:
        play = judged(report(None, HIGH), passes_if=PassRule("asp-code"))
        assert play.outcome == "verified"
        assert play.s.steps["review"].verdict is not None
        assert play.s.steps["review"].verdict.word == "conditional"


class TestAcceptedFindings:
    """Findings that a person accepted do not make a verdict fail again."""

    def accepted(self, *later: Reply, **more: Any) -> Play:
        work = flow(step("design"), step("review", reviews="design", **more), limits={"same_finding": 1})
        play = Play(work, {"design": grows, "review": [report("fail", HIGH), *later]}).run()
        return play.decide("accept").person_raises("design").run()

    def test_a_rule_does_not_count_them(self) -> None:
        play = self.accepted(report(None, HIGH, LOW), passes_if=PassRule("asp-design"))
        assert (play.outcome, play.of(e.VerdictGiven)[1].word) == ("accepted", "pass")

    def test_accepting_does_not_apply_to_another_judge(self) -> None:
        work = flow(
            step("design"),
            step("review", reviews="design"),
            step("audit", "review", reviews="design"),
            limits={"same_finding": 1, "rounds_per_loop": 0},
        )
        play = Play(work, {"design": grows, "review": [report("fail", HIGH)], "audit": [report("fail", HIGH)]}).run()
        play.decide("accept").run()
        assert (play.outcome, play.opened()) == ("waiting", 2)
        assert [play.finding(id).status for id in (1, 2)] == [Status.ACCEPTED, Status.OPEN]

    @pytest.mark.parametrize(("rule", "word"), [("asp-design", "fail"), (None, "fail")])
    def test_another_judge_is_not_overruled_by_what_was_accepted(self, rule: str | None, word: str) -> None:
        passes_if = PassRule(rule) if rule else None
        work = flow(
            step("design"),
            step("review", reviews="design"),
            step("audit", "review", reviews="design", passes_if=passes_if),
            limits={"rounds_per_loop": 0},
        )
        replies = [report(None if rule else "pass", HIGH), report("fail", HIGH)]
        play = Play(work, {"design": grows, "review": [report("fail", HIGH)], "audit": replies}).run()
        play.decide("accept").run()
        assert play.of(e.VerdictGiven)[-1].word == word
        assert len(play.of(e.AttemptFailed)) == (rule is None)

    def test_the_same_judge_starts_nothing_when_it_finds_it_again(self) -> None:
        play = self.accepted(report("fail", HIGH))
        assert (play.outcome, play.opened()) == ("accepted", 2)
        assert play.loop("L-2").source == "human"

    def test_a_pass_may_mention_them(self) -> None:
        play = self.accepted(report("pass", HIGH))
        assert (play.outcome, play.of(e.AttemptFailed)) == ("accepted", [])
        assert play.finding().status is Status.ACCEPTED


@pytest.mark.parametrize(
    ("word", "severity", "blocking"),
    [
        ("blocker", "critical", True),
        ("Blocking ", "critical", True),
        ("critical", "critical", False),
        ("major", "high", False),
        ("ERROR", "high", False),
        ("high", "high", False),
        ("warning", "medium", False),
        ("medium", "medium", False),
        ("minor", "low", False),
        ("info", "low", False),
        ("low", "low", False),
    ],
)
def test_words_for_severities(word: str, severity: str, blocking: bool) -> None:
    assert severity_of(word) == (Severity(severity), blocking)


def test_an_unknown_word_for_a_severity_is_refused() -> None:
    with pytest.raises(ValueError, match="severity 'banana' is unknown: use one of: blocker"):
        severity_of("banana")


def test_the_default_severity_is_high() -> None:
    assert Finding("x").severity is Severity.HIGH


@pytest.mark.parametrize(
    "usage",
    [
        {"cost_usd": -1.0},
        {"tokens_in": -1},
        {"cost_usd": float("nan")},
        {"cost_usd": float("inf")},
        {"cost_usd": 1e308},
        {"tokens_out": 10**5000},
    ],
)
def test_usage_is_finite_and_not_negative(usage: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected a number from 0 to 1000000000000"):
        Usage(**usage)


def test_usage_adds_up() -> None:
    assert Usage(0.5, 1, 2) + Usage(0.25, 3, 4) == Usage(0.75, 4, 6)


def test_the_sum_of_usage_has_a_maximum() -> None:
    most = Usage(1e12, 10**12, 10**12)
    assert most + most == most


class TestWhatTheModeDoesNotAskFor:
    """Fields that a mode does not ask for are ignored, and the journal has a warning."""

    def warned(self, play: Play) -> list[str]:
        return [event.warning for event in play.of(e.AttemptSucceeded)]

    def test_an_answer_and_a_decision_without_a_question(self) -> None:
        outcome = out("a", answer="so", decision=Decision("x"))
        play = Play(flow(step("a"), step("r", reviews="a")), {"a": [outcome], "r": [passed(answer=0)]}).run()
        assert self.warned(play) == [
            "answer, decision: ignored, because mode work does not ask for it",
            "answer: ignored, because mode work does not ask for it",
        ]

    def test_fields_that_a_question_does_not_ask_for(self) -> None:
        question = ask("a", kind=Kind.CONTEXT_REQUEST)
        outcome = out(
            "b", answer="so", verdict="pass", findings=(Finding("x"),), resolutions=(FindingResolution("F-1", "fixed"),)
        )
        play = Play(
            flow(step("a"), step("b", "a")), {"a": [out(1), outcome], "b": [out(2, feedback=(question,)), out(3)]}
        )
        play.run()
        assert (
            self.warned(play)[2] == "verdict, findings, resolutions: ignored, because mode answer does not ask for it"
        )
        assert play.outcome == "done"

    def test_fields_that_a_choice_does_not_ask_for(self) -> None:
        question = ask("a", kind=Kind.CONSTRAINT_VIOLATION)
        outcome = out(None, answer="so", decision=Decision("x"))
        play = Play(
            flow(step("a"), step("b", "a")), {"a": [out(1), outcome], "b": [out(2, feedback=(question,)), out(3)]}
        )
        play.run()
        assert self.warned(play)[2] == "answer: ignored, because mode decide does not ask for it"

    def test_work_done_by_a_person_has_no_ignored_fields(self) -> None:
        play = Play(flow(step("a", agents=(HUMAN,)))).decide("resolve", note="done")
        assert self.warned(play) == [""]
