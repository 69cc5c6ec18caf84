"""A held-out judge: people see what it found, producers learn only that it failed."""

from __future__ import annotations

from typing import Any

from backedge.core.briefing import notices
from backedge.core.evidence.values import TestCounts
from backedge.core.findings.held_out import HELD_OUT
from backedge.core.model import Finding, Severity
from backedge.core.workflow.validate import problems_of
from tests.core.play import Play, failed, flow, grows, out, passed, seen, step

CODE = step("code", phase="code")
SECRET = step("secret", tests="code", hidden=True)
A = Finding("test_a fails", Severity.HIGH, category="test", evidence="assert 1 == 2", file="secret/test_a.py", test="a")
B = Finding("test_b fails", Severity.HIGH, category="test", evidence="assert 3 == 4", line=3, file="secret/test_b.py")
C = Finding("too slow", Severity.CRITICAL, category="speed", impact="test_c", suggested_fix="see test_c")
WORDS = ("test_a", "test_b", "test_c", "assert", "too slow")


def play(*steps: Any, **scripts: Any) -> Play:
    return Play(flow(*steps), scripts).run()


def tells(value: object) -> list[str]:
    return [word for word in WORDS if word in str(value)]


def test_a_producer_learns_that_it_failed_with_category_and_count_and_nothing_else() -> None:
    run = play(CODE, SECRET, code=grows, secret=[failed(A, B, C), passed()])
    briefing = run.briefings["code"][1]
    said = [(each.id, each.description, each.severity, each.category) for each in briefing.feedback.findings]
    assert said == [
        ("F-3", HELD_OUT, "critical", "speed"),
        ("F-1", f"{HELD_OUT} (2 findings)", "high", "test"),
    ]
    assert briefing.feedback.findings[1].same_as == ("F-2",)
    assert tells(briefing) == []


def test_the_judge_itself_and_people_see_everything() -> None:
    run = play(CODE, SECRET, code=grows, secret=[failed(A, B), failed(A, B), passed()])
    verify = run.briefings["secret"][1].verify
    assert [each.description for each in verify] == ["test_a fails", "test_b fails"]
    assert "test_a fails" in str(run.briefings["secret"][2].history)
    assert run.s.findings[1].finding.evidence == "assert 1 == 2"


def test_earlier_rounds_do_not_give_it_away() -> None:
    run = play(CODE, SECRET, code=grows, secret=[failed(A, B), failed(A), passed()])
    third = run.briefings["code"][2]
    assert third.history[0].findings == (f"F-1 (not_fixed): {HELD_OUT}", f"F-2 (fixed): {HELD_OUT}")
    assert tells(third) == []


def test_what_is_addressed_and_not_verified_does_not_give_it_away() -> None:
    other = step("other", reviews="code")
    run = play(
        CODE, SECRET, other, code=grows, secret=[failed(A), Exception("broke"), passed()], other=[failed("x"), passed()]
    )
    assert not any(tells(each) for each in run.briefings["code"])


def test_notices_to_a_producer_do_not_give_it_away() -> None:
    run = play(CODE, SECRET, code=grows, secret=[failed(A), passed()])
    assert [each.message for each in notices(run.s, "code")] == [HELD_OUT]


def test_the_same_finding_of_an_open_judge_is_told_in_full() -> None:
    run = play(
        CODE, SECRET, step("test", tests="code"), code=grows, secret=[failed(A), passed()], test=[failed(A), passed()]
    )
    said = [each.description for each in run.briefings["code"][1].feedback.findings]
    assert sorted(said) == [HELD_OUT, "test_a fails"]


def test_its_output_is_not_an_input_of_a_producer_but_of_a_judge() -> None:
    after, gate = step("after", "secret", phase="code"), step("gate", "secret", reviews="code")
    run = play(CODE, SECRET, after, gate, secret=[passed()], gate=[passed()])
    assert run.briefings["after"][0].inputs == {}
    assert run.briefings["gate"][0].inputs["secret"] == "pass"


def test_a_reviewer_gets_its_counts_without_the_names_of_flaky_tests() -> None:
    counts = TestCounts(3, flaky=("test_a",))
    review = step("review", "secret", reviews="code")
    run = play(
        CODE,
        SECRET,
        review,
        code=[seen(out("c"), tree="t", files=("a.py",))],
        secret=[seen(passed(), tree="t", tests=counts)],
    )
    assert run.briefings["review"][0].changes.tests == {"secret": TestCounts(3)}


def test_only_a_judge_can_be_hidden() -> None:
    problems = problems_of(flow(step("code", phase="code", hidden=True)))
    assert [str(each) for each in problems] == [
        "step 'code' is hidden but is not a judge: remove it, or add `reviews` or `tests`"
    ]
