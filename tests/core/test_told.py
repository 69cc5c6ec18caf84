"""What an agent is told: the same rules that its answer is held to, and everything that happened so far."""

from __future__ import annotations

import pytest

from backedge.core.feedback.guidelines import ASKS_FOR, MOST_TARGETS, answer_rules, guidelines, rule_in_words
from backedge.core.findings.verdicts import verdict_by_rule
from backedge.core.model import HUMAN, Kind
from backedge.core.state.attempts import LONGEST_SUMMARY, MAX_TRIED
from backedge.core.value import replace
from backedge.core.wording import feedback_text
from backedge.core.workflow.definition import PASS_RULES, PassRule
from backedge.core.workflow.graph import Graph
from tests.core.play import (
    Finding,
    FindingResolution,
    Play,
    Reply,
    Severity,
    ask,
    failed,
    flow,
    grows,
    out,
    passed,
    step,
)

PLAN, DESIGN, CODE = (
    step("plan", phase="planning"),
    step("design", "plan", phase="design"),
    step("code", "design", phase="code"),
)
CHAIN = (PLAN, DESIGN, CODE, step("review", reviews="code"), step("test", tests="code"))


def summarised(*summaries: str) -> list[Reply]:
    return [out(f"v{n}", summary=text) for n, text in enumerate(summaries)]


def coded(review: list[Reply], test: list[Reply] | None = None, *summaries: str, **limits: object) -> Play:
    scripts = {
        "code": summarised(*(summaries or ("one", "two", "three"))),
        "review": review,
        "test": test or [passed()],
    }
    return Play(flow(*CHAIN, limits=limits), scripts).run()


def test_an_attempt_is_told_the_legal_targets_of_its_feedback() -> None:
    play = coded([passed()])
    assert play.briefings["code"][0].rules.targets == ("plan", "design", HUMAN)
    assert play.briefings["review"][0].rules.targets == ("plan", "design", "code", HUMAN)
    assert play.briefings["plan"][0].rules.targets == (HUMAN,)


def test_a_large_workflow_does_not_repeat_all_steps_in_each_briefing() -> None:
    graph = Graph(flow(*(step(f"s{n}") for n in range(MOST_TARGETS + 1))))
    assert answer_rules(graph, "s5").targets == ()


def test_only_judges_attribute_findings_to_phases_that_can_get_them() -> None:
    play = coded([passed()])
    assert play.briefings["review"][0].rules.phases == ("planning", "design", "code")
    assert play.briefings["code"][0].rules.phases == ()


def test_the_kinds_of_the_workflow_are_told() -> None:
    work = flow(step("a"), kinds=(("security_block", Kind.FIX_REQUEST),))
    assert Play(work).briefings["a"][0].rules.kinds == ("security_block",)


@pytest.mark.parametrize("name", PASS_RULES)
def test_the_words_of_a_rule_are_about_what_it_counts(name: str) -> None:
    words = rule_in_words(PassRule(name))
    for severity, finding in (("critical", Finding("x", Severity.CRITICAL)), ("high", Finding("x", Severity.HIGH))):
        counts = verdict_by_rule(PassRule(name), [finding] * 9) == "fail"
        assert (severity in words) is counts


def test_a_judge_is_told_the_rule_that_computes_its_verdict() -> None:
    rule = PassRule(at_most=(("critical", 0), ("high", 1), ("medium", 5)))
    assert rule_in_words(rule) == "none is critical, and at most 1 is high, and at most 5 are medium"
    play = Play(flow(step("code"), step("review", reviews="code", passes_if=rule)))
    play.finish("code")
    assert play.briefings["review"][0].rules.passes_if == rule_in_words(rule)


def test_the_guidelines_name_the_phases_of_the_workflow_and_what_to_do_when_uncertain() -> None:
    text = guidelines(("planning", "design", "build"), "build")
    assert [line.partition(":")[0] for line in text.splitlines()[:3]] == ["- planning", "- design", "- build"]
    assert "name the phase under review (build)" in text.replace("\n", " ")
    assert guidelines(("code",), "code") == ""


def test_review_issues_and_test_failures_are_apart_by_judge_with_the_words_of_the_judge() -> None:
    review, test = failed("no login", summary="The session is never checked."), failed("test_a fails")
    text = feedback_text(coded([review, passed()], [test, passed()]).briefings["code"][1], "/pad.md")
    first, second = (
        text.index("### Review issues to address, from review"),
        text.index("### Test failures to fix, from test"),
    )
    assert first < text.index("The session is never checked.") < text.index("no login") < second
    assert second < text.index("test_a fails")
    assert "Review and tests failed: 2 high (2 in total)" in text
    assert "Read first what happened so far: /pad.md" in text


def test_a_judge_that_passed_is_told_too() -> None:
    review = passed(summary="Fine, except for the names.")
    text = feedback_text(coded([review], [failed("x"), passed()]).briefings["code"][1])
    assert "Tests failed: 1 high (1 in total)" in text
    assert (
        "### Other verdicts on this work\nThe verdict of review is pass:\n```\nFine, except for the names.\n```" in text
    )


def test_the_words_of_a_held_out_judge_stay_hidden() -> None:
    hidden = step("oracle", tests="code", hidden=True)
    review = [failed("x", summary="the secret is 7"), passed()]
    play = Play(flow(CODE_ALONE, hidden), {"code": grows, "oracle": review}).run()
    assert "secret" not in feedback_text(play.briefings["code"][1])


CODE_ALONE = step("code", phase="code")


def test_what_earlier_attempts_did_is_told_to_the_next_one_and_to_the_judge() -> None:
    play = coded([failed("x"), failed("x"), passed()], None, "a cache", "a larger cache", "no cache")
    third = play.briefings["code"][2]
    assert [(each.attempt, each.round, each.summary) for each in third.tried] == [
        (1, 0, "a cache"),
        (2, 1, "a larger cache"),
    ]
    assert "- code, attempt 2, iteration 1: a larger cache" in feedback_text(third)
    assert [each.summary for each in play.briefings["review"][1].tried] == ["a cache", "a larger cache"]


def test_a_judge_reads_its_own_earlier_summaries() -> None:
    play = coded([failed("x", summary="not yet"), passed()])
    assert ("review", "not yet") in [(each.step, each.summary) for each in play.briefings["review"][1].tried]


def test_only_the_last_attempts_are_remembered_and_long_summaries_are_cut() -> None:
    play = coded([failed("x", f"y{n}") for n in range(8)], None, *("s" * 5000 for _ in range(9)), rounds_per_loop=None)
    tried = play.briefings["code"][-1].tried
    assert len(tried) == MAX_TRIED
    assert {len(each.summary) for each in tried} == {LONGEST_SUMMARY}


def test_the_last_round_is_named() -> None:
    play = coded([failed("x"), failed("y"), failed("z")], rounds_per_loop=2)
    first, last = (feedback_text(each) for each in play.briefings["code"][1:3])
    assert "last round" not in first and "rounds_per_loop 1" in first
    assert "This is the last round (rounds_per_loop): if it is not enough, the work stops and a person decides." in last


def test_the_round_in_which_the_same_finding_may_not_return_is_the_last() -> None:
    play = coded([failed("x")] * 4, same_finding=2)
    assert "This is the last round (same_finding)" in feedback_text(play.briefings["code"][1])


def test_nothing_is_said_about_limits_that_are_off() -> None:
    rework = coded([failed("x"), passed()]).briefings["code"][1]
    assert "Left of the limits" in feedback_text(rework)
    assert "Left of the limits" not in feedback_text(replace(rework, left={"errors_in_a_row": 3}))


def test_a_first_attempt_has_no_part_about_earlier_ones() -> None:
    play = coded([passed()])
    assert feedback_text(play.briefings["code"][0], "/pad.md") == ""


def test_a_request_is_complete() -> None:
    play = Play(flow(*CHAIN)).run()
    play.person_raises("design", blocking=True, artifacts=("spec.md:42",), requirement_id="REQ-7")
    text = feedback_text(play.briefings["design"][1])
    assert "### fix_request from human (high, blocking, L-1)" in text
    assert "Where it shows:\n```\nspec.md:42\n```\nRequirement:\n```\nREQ-7\n```" in text


def test_a_finding_is_complete() -> None:
    found = Finding("slow", category="performance", test="test_pool", requirement_id="REQ-1", affected_phase=("code",))
    text = feedback_text(coded([failed(found), passed()]).briefings["code"][1])
    assert "Category: performance\nTest: test_pool\nRequirement: REQ-1\nCaused in: code" in text


def test_the_status_and_the_twins_of_a_finding_are_told() -> None:
    judges = (step("r1", reviews="code"), step("r2", reviews="code"))
    twin = Finding("x", file="a.py", line=1)
    play = Play(
        flow(CODE_ALONE, *judges), {"code": grows, "r1": [failed(twin), passed()], "r2": [failed(twin), passed()]}
    )
    text = feedback_text(play.run().briefings["code"][1])
    assert "### Review issues to address, from r1, r2" in text
    assert "- **F-1** (the same as F-2)" in text
    fixed = [FindingResolution("F-1", "fixed")]
    replies = [failed("y"), failed("z", resolutions=tuple(fixed)), failed("y"), passed()]
    regressed = Play(flow(*CHAIN), {"code": grows, "review": replies}).run().briefings["code"][3]
    assert "- **F-1** (status regressed)" in feedback_text(regressed).replace(SEEN, "")


SEEN = "seen before: the last fix did not resolve it; "


def test_who_answered_is_named() -> None:
    play = Play(flow(*CHAIN), {"code": [out("1", feedback=(ask(HUMAN, kind=Kind.CONTEXT_REQUEST),)), out("2")]}).run()
    play.decide("resolve", note="seven", by="ann").run()
    assert "(L-1, context_request) is resolved by ann" in feedback_text(play.briefings["code"][1])


def test_the_findings_of_two_reviewers_are_listed_apart() -> None:
    judges = (step("r1", reviews="code"), step("r2", reviews="code"))
    play = Play(
        flow(CODE_ALONE, *judges), {"code": grows, "r1": [failed("one"), passed()], "r2": [failed("two"), passed()]}
    )
    text = feedback_text(play.run().briefings["code"][1])
    first, second = (
        text.index("### Review issues to address, from r1"),
        text.index("### Review issues to address, from r2"),
    )
    assert first < text.index("[high] one") < second < text.index("[high] two")


def test_a_judge_reads_what_the_author_did_already_the_first_time() -> None:
    text = feedback_text(coded([passed()]).briefings["review"][0], "/pad.md")
    assert "- code, attempt 1: one" in text
    assert "This is attempt" not in text and "/pad.md" not in text


def test_the_details_of_a_request_are_told() -> None:
    play = Play(flow(*CHAIN)).run()
    play.person_raises("design", details={"cent": 0.5})
    assert 'Details:\n```\n{"cent": 0.5}\n```' in feedback_text(play.briefings["design"][1])


def test_an_attempt_is_told_which_findings_its_resolutions_may_name() -> None:
    play = coded([failed("x", "y"), failed("z", resolutions=(FindingResolution("F-1", "fixed"),)), passed()])
    assert [each.rules.findings for each in play.briefings["code"]] == [(), ("F-1", "F-2"), ("F-3",)]
    assert play.briefings["review"][1].rules.findings == ("F-1", "F-2")
    unmentioned = play.briefings["review"][2].rules.findings
    assert unmentioned == ("F-3", "F-2"), "a judge may answer for what its last verdict did not mention"
    assert [each.id for each in play.briefings["review"][2].verify] == ["F-3"]


def test_a_step_that_only_answers_has_no_findings_to_resolve() -> None:
    question = ask("plan", kind=Kind.CONTEXT_REQUEST)
    play = Play(
        flow(*CHAIN), {"plan": [out("p", answer="7")], "code": [out("1", feedback=(question,)), out("2")]}
    ).run()
    assert play.briefings["plan"][1].mode == "answer" and play.briefings["plan"][1].rules.findings == ()


def test_what_each_of_two_judges_says_about_the_same_finding_is_kept() -> None:
    one = Finding("x", file="a.py", evidence="line 3", suggested_fix="lock it")
    two = Finding("x", file="a.py", evidence="log: deadlock", suggested_fix="lock it", severity=Severity.LOW)
    judges = (step("r1", reviews="code"), step("r2", reviews="code"))
    play = Play(
        flow(CODE_ALONE, *judges), {"code": grows, "r1": [failed(one), passed()], "r2": [failed(two), passed()]}
    )
    (found,) = play.run().briefings["code"][1].feedback.findings
    assert (found.evidence, found.suggested_fix, found.impact) == ("line 3\nlog: deadlock", "lock it", "")


def test_advice_alone_is_told_and_is_to_be_followed() -> None:
    first = coded([passed()]).briefings["code"][0]
    text = feedback_text(replace(first, feedback=replace(first.feedback, advice=("use a queue",))))
    assert "### Advice from a person\n```\nuse a queue\n```\nA person who decides about this run wrote that" in text


def test_amounts_of_limits_have_their_units() -> None:
    play = coded([failed("x"), passed()], cost_usd=5.0, wall_clock=7200.0, tokens=1000)
    text = feedback_text(play.briefings["code"][1])
    assert "cost_usd $5.00, tokens 1000, wall_clock 1 h 59 min, rounds_total 19" in text


def test_the_count_of_the_scratchpad_is_explained() -> None:
    text = feedback_text(coded([failed("x"), passed()]).briefings["code"][1], "/pad.md")
    assert "Read first what happened so far: /pad.md\n(It counts whole cycles: its iteration 1 is" in text


def test_the_other_targets_of_a_request_are_named() -> None:
    play = Play(flow(*CHAIN)).run()
    play.person_raises("plan", "design")
    assert "Sent to plan, design. Do your part of it.\n" in feedback_text(play.briefings["plan"][1])


def test_without_a_phase_under_review_an_uncertain_judge_leaves_the_phase_out() -> None:
    told = guidelines(("planning", "code"), "")
    assert "If you are not certain, leave `affected_phase` empty, and say" in told


def test_every_kind_of_feedback_is_explained() -> None:
    assert set(ASKS_FOR) == set(Kind)


def test_a_judge_of_several_steps_is_told_what_each_of_them_did() -> None:
    names = ("a", "b", "c")
    judge = replace(step("review", reviews="a"), judges=names)
    scripts = {name: [out(f"{name}{n}", summary=f"{name} {n}") for n in range(6)] for name in names}
    replies = [failed("x", f"y{n}", summary=f"no {n}") for n in range(5)]
    play = Play(flow(*(step(name) for name in names), judge), {**scripts, "review": [*replies, passed()]}).run()
    tried = [each.step for each in play.briefings["review"][-1].tried]
    assert {name: tried.count(name) for name in tried} == {"a": 2, "b": 2, "c": 2, "review": 2}


def test_a_judge_is_not_told_that_the_fix_it_looks_at_failed() -> None:
    insists = failed(resolutions=(FindingResolution("F-1", "not_fixed", "line 3"),))
    text = feedback_text(coded([failed("x"), insists, passed()]).briefings["review"][2])
    assert "- **F-1** (you found it in more than one round)" in text and "You said last: line 3" in text
    assert "did not resolve it" not in text


def test_the_answer_to_feedback_stays_known_to_later_attempts() -> None:
    """A fresh conversation knows nothing of what an earlier attempt was told."""
    asks = out("v1", feedback=(ask("plan", kind=Kind.CONTEXT_REQUEST, message="which currency?"),))
    play = Play(
        flow(*CHAIN[:4]),
        {
            "plan": [out("p"), out(None, answer="EUR")],
            "code": [asks, out("v2"), out("v3")],
            "review": [failed("no login"), passed()],
        },
    ).run()
    told = [play.briefings["code"][n].feedback for n in (1, 2)]
    assert [len(each.resolutions) for each in told] == [1, 0]
    assert [[result.answers for result in each.answered] for each in told] == [[], [{"plan": "EUR"}]]
    said = feedback_text(play.briefings["code"][2])
    assert "### Feedback that you raised in an earlier attempt (L-1, context_request) is answered" in said
    assert "which currency?\nplan: EUR" in said
