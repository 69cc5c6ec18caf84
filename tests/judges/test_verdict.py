"""The rules of the verdict of a tool judge, one by one: for attackers, and for honest work."""

from __future__ import annotations

import time
from typing import Any

import pytest

from backedge.adapters.evidence.store import FoundBefore
from backedge.adapters.judges.runs import Judgement, Reading
from backedge.adapters.reports.tests import ReportedTests
from backedge.core.model import FindingResolution
from backedge.core.value import replace
from backedge.engine.protocol import Finding, Outcome
from tests.judges.readings import (
    CART,
    answers,
    asked,
    changed,
    described,
    is_clean,
    lint,
    open_lint,
    open_test,
    report,
    verdict,
)

T, U = "tests.test_cart::test_total", "tests.test_cart::test_half"


# What a report alone says


def test_all_tests_pass() -> None:
    found = verdict(report(f"+{T} +{U}"), baseline=f"{T} {U}")
    assert is_clean(found)
    assert found.outcome.summary == "2 tests, was 2"


def test_a_failing_test_is_a_finding_with_its_id() -> None:
    found = verdict(report(f"+{T} -{U}"), baseline=f"{T} {U}")
    assert found.outcome.verdict == "fail"
    assert [each.test for each in found.outcome.findings] == [U]
    assert found.outcome.summary == "2 tests, was 2; 1 failed"


def test_the_summary_counts_skipped_and_flaky_tests() -> None:
    found = verdict(report(f"+{T} ~{U}"), flaky=(T,))
    assert found.outcome.summary == "2 tests; 1 skipped; 1 flaky"


def test_what_failed_before_the_run_says_so() -> None:
    found = verdict(report(f"-{T} -{U}"), baseline=f"{T} {U}", failed_before=frozenset({T}))
    assert [each.evidence for each in found.outcome.findings] == ["It failed before the run began.", ""]


def test_a_stated_fail_without_findings_stands() -> None:
    assert verdict(Reading(Outcome(verdict="fail", summary="no"))).outcome.verdict == "fail"


def test_a_stated_pass_with_lesser_findings_stands() -> None:
    said = Outcome(verdict="pass", findings=(lint("long line", severity="low"),), output={"lines": 3}, summary="fine")
    found = verdict(Reading(said))
    assert (found.outcome.verdict, found.outcome.output, found.outcome.summary) == ("pass", {"lines": 3}, "fine")


def test_a_report_without_a_verdict_gets_none() -> None:
    assert verdict(Reading(Outcome(findings=(lint("x"),)))).outcome.verdict is None


def test_a_tool_that_answers_for_findings_itself_is_heard() -> None:
    said = Outcome(verdict="fail", resolutions=(FindingResolution("F-1", "not_fixed", "look again"),))
    assert answers(verdict(Reading(said), open=[open_lint("unused import")])) == {"F-1": "look again"}


def test_a_tool_cannot_call_a_finding_fixed_that_is_still_there_on_held() -> None:
    said = Outcome(verdict="pass", resolutions=(FindingResolution("F-1", "fixed"),))
    found = verdict(
        Reading(said),
        report(lint=(lint("unused import"),)),
        open=[open_lint("unused import")],
        changed=changed("ruff.toml"),
    )
    assert answers(found) == {"F-1": "it is still there with the tests as they were"}
    assert found.outcome.verdict == "fail"


# Open findings


def test_an_open_finding_is_fixed_if_its_test_ran_and_passed() -> None:
    found = verdict(report(f"+{T}"), baseline=T, open=[open_test(T)])
    assert answers(found) == {"F-1": "fixed"}
    assert is_clean(found)


@pytest.mark.parametrize(
    ("tests", "why"),
    [
        (f"~{T}", "the test is skipped"),
        (f"+{U}", "the test did not run"),
        ("", "the test did not run"),
        (f"+{T}[90]", "the test did not run"),
        (f"+{T}.x", "the test did not run"),
        (f"+{T}::x", "the test did not run"),
        (f"+{T}_2", "the test did not run"),
    ],
)
def test_an_open_finding_is_not_fixed_if_its_test_did_not_run(tests: str, why: str) -> None:
    found = verdict(report(tests), baseline=T, open=[open_test(T)])
    assert answers(found) == {"F-1": why}
    assert found.outcome.verdict == "fail"


def test_a_parameter_that_changes_does_not_fix_the_test_with_the_old_one() -> None:
    was, now = f"{T}[100-10-90]", f"{T}[100-10-100]"
    held = report(f"-{was}")
    found = verdict(report(f"+{now}"), held, baseline=was, open=[open_test(was)], changed=changed(CART))
    assert answers(found) == {"F-1": "the test did not run"}


def test_the_same_test_with_another_message_is_the_same_finding() -> None:
    found = verdict(report(f"-{T}"), baseline=T, open=[open_test(T, message="assert 100 == 90")])
    assert described(found) == [f"{T}: assert 100 == 90"]
    assert found.outcome.findings[0].evidence == f"Now: {T}: it fails"
    assert answers(found) == {}


def test_the_same_finding_of_two_judges_is_answered_for_both() -> None:
    found = verdict(report(f"+{T}"), open=[replace(open_test(T), same_as=("F-7",))])
    assert answers(found) == {"F-1": "fixed", "F-7": "fixed"}


def test_a_file_that_could_not_be_loaded_is_fixed_when_its_tests_run() -> None:
    broken = open_test("tests.test_cart")
    assert answers(verdict(report(f"+{T}"), open=[broken])) == {"F-1": "fixed"}
    assert answers(verdict(report("+a", file="tests/test_other.py"), open=[broken])) == {"F-1": "the test did not run"}


@pytest.mark.parametrize(
    "id",
    ["unittest.loader._FailedTest::tests.test_cart", "tests/test_cart.py", "test::/home/ada/shop/tests/test_cart.py"],
)
def test_runners_name_a_file_that_they_cannot_load_in_many_ways(id: str) -> None:
    assert answers(verdict(report(f"+{T}"), open=[open_test(id, file=None)])) == {"F-1": "fixed"}


def test_without_files_in_the_report_new_tests_show_that_a_file_could_be_loaded() -> None:
    broken = open_test("test::tests/cart.test.js", file=None)
    known = frozenset({"test::adds"})
    assert answers(verdict(report("+test::adds", file=""), open=[broken], known=known)) == {
        "F-1": "the test did not run"
    }
    loaded = report("+test::adds +test::subtracts", file="")
    assert answers(verdict(loaded, open=[broken], known=known)) == {"F-1": "fixed"}


def test_an_error_beside_a_test_is_fixed_when_only_the_test_is_left() -> None:
    teardown = f"{T} #2"
    assert answers(verdict(report(f"+{T}"), baseline=T, open=[open_test(teardown)])) == {"F-1": "fixed"}
    assert answers(verdict(report(f"~{T}"), baseline=T, open=[open_test(teardown)])) == {"F-1": "the test did not run"}


def test_deleting_the_second_of_two_tests_with_one_name_does_not_fix_it() -> None:
    second = f"{T} #2"
    held = report()
    held = Reading(
        Outcome(verdict="fail", findings=(Finding("x", test=second, file=CART),)),
        ReportedTests({T: "passed", second: "failed"}, {T: CART, second: CART}),
    )
    found = verdict(report(f"+{T}"), held, baseline=T, open=[open_test(second)], changed=changed(CART))
    assert answers(found) == {"F-1": "it is still there with the tests as they were"}


def test_a_report_that_lists_a_test_twice_fails_if_one_of_them_failed() -> None:
    twice = Reading(
        Outcome(verdict="fail", findings=(Finding("x", test=f"{T} #2"),)),
        ReportedTests({T: "passed", f"{T} #2": "failed"}, {}),
    )
    assert verdict(twice, baseline=T).outcome.verdict == "fail"


# Held: the protected files as they were


def test_a_weakened_test_of_an_open_finding_is_not_fixed() -> None:
    found = verdict(report(f"+{T}"), report(f"-{T}"), baseline=T, open=[open_test(T)], changed=changed(CART))
    assert answers(found) == {"F-1": "it is still there with the tests as they were"}
    assert found.outcome.verdict == "fail"


def test_an_open_finding_whose_test_does_not_run_as_it_was_is_not_fixed() -> None:
    found = verdict(report(f"+{T}"), report(f"+{U}"), baseline=f"{T} {U}", open=[open_test(T)], changed=changed(CART))
    assert answers(found) == {"F-1": "the test did not run with the tests as they were"}


def test_a_new_test_of_an_open_finding_need_not_run_with_the_files_of_the_start() -> None:
    new = "tests.test_cart::test_new"
    found = verdict(report(f"+{new} +{T}"), report(f"+{T}"), baseline=T, open=[open_test(new)], changed=changed(CART))
    assert answers(found) == {"F-1": "fixed"}


def test_a_new_test_is_compared_with_how_it_was_when_it_failed() -> None:
    new = "tests.test_cart::test_new"
    found = verdict(
        report(f"+{new} +{T}"),
        report(f"+{T}"),
        baseline=T,
        as_failed=report(f"-{new} +{T}"),
        open=[open_test(new)],
        changed=changed(CART),
    )
    assert answers(found) == {"F-1": "it is still there with the test as it was when it failed"}


def test_an_approved_weaker_test_does_not_fix_the_finding_of_the_test_as_it_failed() -> None:
    found = verdict(report(f"+{T}"), None, baseline=T, as_failed=report(f"-{T}"), open=[open_test(T)])
    assert answers(found) == {"F-1": "it is still there with the test as it was when it failed"}


def test_a_test_that_fails_only_as_it_was_is_a_question_about_its_file() -> None:
    found = verdict(report(f"+{T}"), report(f"-{T}"), baseline=T, changed=changed(CART))
    assert found.outcome.verdict == "pass"
    assert asked(found) == {CART: f"{T} fails with this file as it was"}
    assert found.questions[0].tests == (T,)
    assert found.questions[0].digest == f"f:{CART}"


def test_a_weakening_stays_a_question_when_another_test_is_fixed_later() -> None:
    one = verdict(report(f"+{T} -{U}"), report(f"-{T} -{U}"), baseline=f"{T} {U}", changed=changed(CART))
    assert (one.outcome.verdict, list(asked(one))) == ("fail", [CART])
    two = verdict(
        report(f"+{T} +{U}"), report(f"-{T} +{U}"), baseline=f"{T} {U}", open=[open_test(U)], changed=changed(CART)
    )
    assert answers(two) == {"F-1": "fixed"}
    assert asked(two) == {CART: f"{T} fails with this file as it was"}


def test_a_test_that_nobody_changed_and_fails_as_it_was_is_a_finding() -> None:
    held = report(f"-{T}")
    found = verdict(report(f"+{T}"), held, baseline=T, changed=changed("+tests/test_patches.py"))
    assert found.outcome.verdict == "fail"
    assert found.outcome.findings[0].evidence == "It fails with the tests as they were at the start."
    assert not found.questions


def test_data_that_a_test_reads_explains_another_result() -> None:
    for name in ("tests/data/totals.json", "tests/__snapshots__/test_cart.ambr", "tests/helpers.py", "golden/a.txt"):
        found = verdict(report(f"+{T}"), report(f"-{T}"), baseline=T, changed=changed(name))
        assert list(asked(found)) == [name], name


def test_data_near_a_test_explains_more_than_data_elsewhere() -> None:
    found = verdict(
        report(f"+{T}"), report(f"-{T}"), baseline=T, changed=changed("e2e/data.json", "tests/data/totals.json")
    )
    assert list(asked(found)) == ["tests/data/totals.json"]


def test_configuration_explains_what_no_changed_test_explains() -> None:
    found = verdict(report(f"+{T}"), report(f"-{T}"), baseline=T, changed=changed("pyproject.toml"))
    assert asked(found) == {"pyproject.toml": f"{T} fails with this file as it was"}


def test_a_conftest_explains_only_the_tests_of_its_folder() -> None:
    found = verdict(report(f"+{T}"), report(f"-{T}"), baseline=T, changed=changed("e2e/conftest.py"))
    assert described(found) == [f"{T}: it fails"]
    found = verdict(report(f"+{T}"), report(f"-{T}"), baseline=T, changed=changed("tests/conftest.py"))
    assert list(asked(found)) == ["tests/conftest.py"]


def test_a_changed_conftest_beside_a_changed_test_is_asked_about_when_the_test_was_approved() -> None:
    both = changed("tests/conftest.py", CART)
    first = verdict(report(f"+{T}"), report(f"-{T}"), baseline=T, changed=both)
    assert list(asked(first)) == [CART]
    then = verdict(report(f"+{T}"), report(f"-{T}"), baseline=T, changed=changed("tests/conftest.py"))
    assert list(asked(then)) == ["tests/conftest.py"]


def test_if_it_is_not_known_where_a_test_is_all_changed_tests_are_asked_about() -> None:
    held = report(f"-{T}", file="")
    found = verdict(report(f"+{T}", file=""), held, baseline=T, files={}, changed=changed(CART, "+tests/test_b.py"))
    assert set(asked(found)) == {CART, "tests/test_b.py"}


def test_a_file_that_cannot_be_loaded_as_it_was_is_a_question() -> None:
    """A renamed function and weaker tests of it: nothing ran with the tests as they were."""
    held = report("-tests.test_cart")
    found = verdict(report(f"+{T}"), held, baseline=T, changed=changed(CART))
    assert asked(found) == {CART: "tests.test_cart fails with this file as it was"}


def test_changed_tests_that_pass_as_they_were_need_no_answer() -> None:
    assert is_clean(verdict(report(f"+{T}"), report(f"+{T}"), baseline=T, changed=changed(CART)))


def test_new_tests_need_no_answer() -> None:
    new = report(f"+{T}", new="+tests.test_new::test_a")
    assert is_clean(verdict(new, report(f"+{T}"), baseline=T, changed=changed("+tests/test_new.py")))


def test_a_test_that_fails_in_both_is_reported_once() -> None:
    found = verdict(report(f"-{T}"), report(f"-{T}"), baseline=T, changed=changed(CART))
    assert described(found) == [f"{T}: it fails"]
    assert not found.questions


# Held cannot begin


NO_START = Reading(problem="the command wrote no report {report} (junit) (exit code 4): ImportError")


def test_if_held_cannot_begin_every_changed_file_is_asked_about() -> None:
    files = changed("tests/conftest.py", "tests/data.json", "+tests/test_new.py")
    found = verdict(report(f"+{T}"), NO_START, baseline=T, changed=files)
    assert list(asked(found)) == ["tests/conftest.py", "tests/data.json"]
    assert "cannot run with the protected files as they were" in asked(found)["tests/conftest.py"]
    assert "ImportError" in asked(found)["tests/conftest.py"]


def test_if_held_cannot_begin_a_changed_test_of_an_open_finding_is_not_fixed() -> None:
    found = verdict(report(f"+{T}"), NO_START, baseline=T, open=[open_test(T)], changed=changed(CART))
    assert "the file of the test changed" in answers(found)["F-1"]
    assert found.outcome.verdict == "fail"


def test_if_held_cannot_begin_an_unchanged_test_counts_and_the_rest_is_a_question() -> None:
    found = verdict(report(f"+{T}"), NO_START, baseline=T, open=[open_test(T)], changed=changed("conftest.py"))
    assert answers(found) == {"F-1": "fixed"}
    assert list(asked(found)) == ["conftest.py"]


def test_if_held_cannot_begin_without_a_reason_in_the_files_it_is_a_finding() -> None:
    found = verdict(report(f"+{T}"), NO_START, baseline=T, changed=changed("+tests/test_new.py"))
    assert found.outcome.verdict == "fail"
    assert not found.questions


# Tests that no longer run


@pytest.mark.parametrize("tests", [f"+{U}", f"+{U} ~{T}"])
def test_a_lost_test_is_a_question_about_its_changed_file(tests: str) -> None:
    found = verdict(report(tests), report(f"+{T} +{U}"), baseline=f"{T} {U}", changed=changed(CART))
    assert asked(found) == {CART: f"{T} no longer runs"}
    assert found.asked == {T: ((CART, f"f:{CART}"),)}
    assert found.outcome.verdict == "pass"


def test_a_removed_file_is_asked_about_with_all_its_tests() -> None:
    found = verdict(report(), report(f"+{T} +{U}"), baseline=f"{T} {U}", changed=changed(f"-{CART}"))
    assert asked(found) == {CART: f"{U}, {T} no longer run"}


def test_many_lost_tests_are_named_shortly() -> None:
    many = [f"tests.test_cart::test_{number:02}" for number in range(30)]
    held = report(" ".join(f"+{test}" for test in many))
    found = verdict(report(), held, baseline=" ".join(many), changed=changed(f"-{CART}"))
    assert asked(found)[CART].endswith("test_02 and 27 more tests no longer run")
    assert len(found.questions[0].tests) == 20
    assert len(found.asked) == 30


@pytest.mark.parametrize("tests", [f"+{U}", f"+{U} ~{T}"])
def test_a_lost_test_that_no_change_explains_is_one_high_finding(tests: str) -> None:
    """The product ends the suite early, or skips the test that calls it."""
    found = verdict(report(tests), baseline=f"{T} {U}")
    assert described(found) == [f"{T} ran before and no longer runs"]
    assert (found.outcome.verdict, found.outcome.findings[0].severity) == ("fail", "high")


@pytest.mark.parametrize("tests", [f"+{U}", f"+{U} ~{T}"])
def test_a_test_that_the_product_keeps_from_running_is_a_finding_although_its_file_changed(tests: str) -> None:
    found = verdict(report(tests), report(tests), baseline=f"{T} {U}", changed=changed(CART))
    assert described(found) == [f"{T} ran before and no longer runs"]
    assert not found.questions


def test_a_lost_test_of_a_file_that_cannot_be_loaded_as_it_was_is_a_question() -> None:
    held = report("-tests.test_cart")
    found = verdict(report(f"+{U}"), held, baseline=f"{T} {U}", changed=changed(CART))
    assert f"{T} no longer runs" in asked(found)[CART]


def test_a_lost_test_whose_file_is_not_known_is_asked_about_with_every_changed_test() -> None:
    found = verdict(report(f"+{U}", file=""), None, baseline=f"{T} {U}", files={}, changed=changed(CART))
    assert list(asked(found)) == [CART]


def test_a_question_says_where_the_lost_tests_are() -> None:
    found = verdict(report(), report(f"+{T}"), baseline=T, changed=changed("+conftest.py"))
    assert asked(found)["conftest.py"].startswith(f"{T} no longer runs (of {CART})")


def test_a_test_that_runs_only_on_held_is_lost() -> None:
    found = verdict(report(f"+{U}"), report(f"+{T} +{U}"), changed=changed(CART))
    assert asked(found) == {CART: f"{T} no longer runs"}


def test_a_skipped_test_that_is_deleted_is_not_missed() -> None:
    assert is_clean(verdict(report(f"+{U}"), report(f"+{U} ~{T}"), baseline=U, changed=changed(CART)))


def test_an_excused_test_need_not_run() -> None:
    assert is_clean(verdict(report(f"+{U}"), baseline=f"{T} {U}", excused=frozenset({T})))


def test_a_moved_test_that_passes_as_it_was_needs_no_answer() -> None:
    moved = report("+tests.unit.test_cart::test_total", file="tests/unit/test_cart.py")
    files = changed(f"-{CART}", "+tests/unit/test_cart.py")
    assert is_clean(verdict(moved, report(f"+{T}"), baseline=T, changed=files))


def test_a_moved_test_with_a_weaker_body_is_a_question() -> None:
    moved = report("+tests.unit.test_cart::test_total", file="tests/unit/test_cart.py")
    files = changed(f"-{CART}", "+tests/unit/test_cart.py")
    found = verdict(moved, report(f"-{T}"), baseline=T, changed=files)
    assert asked(found) == {CART: f"{T} fails with this file as it was; {T} no longer runs"}


def test_a_test_of_the_same_name_that_was_there_before_is_not_where_a_lost_test_moved() -> None:
    twin = "tests.test_order::test_total"
    found = verdict(
        report("", order=f"+{twin}"),
        report(f"+{T}", order=f"+{twin}"),
        baseline=f"{T} {twin}",
        files={T: CART, twin: "tests/test_order.py"},
        changed=changed(f"-{CART}"),
    )
    assert list(asked(found)) == [CART]


def test_a_test_that_seems_to_have_moved_without_a_changed_file_is_missed() -> None:
    found = verdict(report("+elsewhere::test_total", file="x/test_cart.py"), baseline=T)
    assert described(found) == [f"{T} ran before and no longer runs"]


# Tests whose cases the product decides


ONE, TWO, THREE = (f"tests.test_cart::test_file[{name}]" for name in ("one.py", "two.py", "three.py"))


def of_unchanged_file(tests: str, baseline: str, **more: Any) -> Judgement:
    versions = dict.fromkeys(baseline.split(), "f:1")
    return verdict(report(tests), baseline=baseline, versions=versions, **more)


def test_a_new_case_takes_the_place_of_one_that_is_gone() -> None:
    """A product file was renamed, or the id has the time in it. The second judgement knows the new case already."""
    assert is_clean(of_unchanged_file(f"+{ONE} +{THREE}", f"{ONE} {TWO}"))
    assert is_clean(of_unchanged_file(f"+{ONE} +{THREE}", f"{ONE} {TWO}", known=frozenset({ONE, TWO, THREE})))


def test_new_cases_that_differ_with_the_tests_as_they_were_are_not_missed_either() -> None:
    other = changed("+tests/test_new.py")
    found = verdict(report(f"+{TWO}"), report(f"+{THREE}"), baseline=ONE, versions={ONE: "f:1"}, changed=other)
    assert is_clean(found)


def test_another_function_does_not_take_the_place_of_a_test() -> None:
    """The product is imported by the tests, and could put it there."""
    for gone, new in ((T, f"{T}_again"), (T, f"{T}[1]"), (TWO, f"{T}_again")):
        found = of_unchanged_file(f"+{ONE} +{new}", f"{ONE} {gone}")
        assert any("no longer run" in each for each in (*described(found), *asked(found).values()))


def test_a_case_that_the_product_dropped_is_a_question() -> None:
    found = of_unchanged_file(f"+{ONE}", f"{ONE} {TWO}")
    assert asked(found) == {
        CART: f"{TWO} no longer runs, although this file is as it was: the product decides which cases there are"
    }
    assert found.asked == {TWO: ((CART, "f:1"),)}
    assert found.outcome.verdict == "pass"


@pytest.mark.parametrize(
    ("tests", "more"),
    [
        (f"+{ONE} +{THREE} ~{TWO}", {}),
        (f"+{ONE} -{THREE}", {}),
        (f"+{ONE} +{THREE}", {"failed_before": frozenset({TWO})}),
        (f"+{ONE}", {"failed_before": frozenset({TWO})}),
        (f"+{T}", {}),
    ],
)
def test_a_case_that_may_hide_a_failure_is_a_finding(tests: str, more: dict[str, Any]) -> None:
    """It is skipped, the new case fails, it failed at the start, or no case of its function is left."""
    found = of_unchanged_file(tests, f"{ONE} {TWO} {T}", **more)
    assert any("no longer run" in each for each in described(found))


def test_a_file_that_cannot_be_loaded_is_the_only_finding() -> None:
    found = verdict(report("-tests.test_cart"), baseline=f"{T} {U}")
    assert described(found) == ["tests.test_cart: it fails"]


def test_a_file_that_could_not_be_loaded_at_the_start_is_not_missed_when_it_can() -> None:
    assert is_clean(verdict(report(f"+{T}"), baseline="tests.test_cart", failed_before=frozenset({"tests.test_cart"})))


def test_an_error_at_the_start_beside_a_test_is_not_missed_when_it_is_gone() -> None:
    teardown = f"{T} #2"
    found = verdict(report(f"+{T}"), required=frozenset({T, teardown}), failed_before=frozenset({teardown}))
    assert is_clean(found)
    found = verdict(report(f"+{T}"), required=frozenset({T, teardown}))
    assert described(found) == [f"{teardown} ran before and no longer runs"]


def test_the_tests_of_open_findings_are_answered_there_and_not_missed_again() -> None:
    found = verdict(report(f"+{U}"), baseline=f"{T} {U}", open=[open_test(T)])
    assert answers(found) == {"F-1": "the test did not run"}
    assert described(found) == []


# Configuration and environment


@pytest.mark.parametrize("held", [None, Reading(problem="it cannot start")])
def test_new_configuration_needs_an_answer(held: Reading | None) -> None:
    found = verdict(Reading(), held, changed=changed("+pytest.ini"))
    assert asked(found)["pytest.ini"].endswith("it is new, and a judge reads it")


def test_new_configuration_without_which_an_exit_code_is_the_same_needs_none() -> None:
    assert is_clean(verdict(Reading(), Reading(), changed=changed("+.env")))


def test_new_configuration_that_changes_no_result_needs_none() -> None:
    assert is_clean(verdict(report(f"+{T}"), report(f"+{T}"), baseline=T, changed=changed("+pytest.ini")))


def test_configuration_that_is_new_in_the_second_round_needs_an_answer() -> None:
    found = verdict(report(f"+{T}"), report(f"-{T}"), baseline=T, open=[open_test(T)], changed=changed("+pytest.ini"))
    assert answers(found) == {"F-1": "it is still there with the tests as they were"}
    assert list(asked(found)) == ["pytest.ini"]


def test_a_change_that_hides_a_failure_of_the_start_is_marked() -> None:
    now, held, both = report(f"+{T} +{U}"), report(f"-{T} -{U}"), f"{T} {U}"
    found = verdict(now, held, failed_before=frozenset({T}), baseline=both, changed=changed(CART))
    assert asked(found) == {
        CART: f"{T} fails with this file as it was, and failed when the run began; {U} fails with this file as it was"
    }
    assert found.questions[0].red
    assert not verdict(now, held, baseline=both, changed=changed(CART)).questions[0].red


@pytest.mark.parametrize(
    ("before", "red"),
    [
        (FoundBefore("", None, "exit code 1: other words"), True),
        (FoundBefore("shop/cart.py", 1, "exit code 1: FAIL"), False),
    ],
)
def test_an_exit_code_that_failed_at_the_start_is_marked(before: FoundBefore, red: bool) -> None:
    held = report(lint=(lint("exit code 1: FAIL", None, category="check"),))
    found = verdict(report(), held, changed=changed("tests/run.sh"), found_before=(before,))
    assert [each.red for each in found.questions] == [red]


def test_a_changed_environment_needs_an_answer() -> None:
    found = verdict(
        report(f"+{T}"), baseline=T, environment={".venv": ("print", "its files are not those of the start")}
    )
    assert asked(found) == {".venv": "the judge runs with it, and it changed: its files are not those of the start"}
    assert found.questions[0].digest == "print"


def test_one_file_has_one_question_with_all_reasons() -> None:
    found = verdict(report(f"+{U}"), report(f"-{T} -{U}"), baseline=f"{T} {U}", changed=changed(CART))
    assert asked(found) == {
        CART: f"{T} fails with this file as it was; {U} fails with this file as it was; {T} no longer runs"
    }
    assert found.questions[0].tests == (T, U)


# Linters and other tools without test ids


def test_a_linter_that_finds_nothing_more_has_its_findings_fixed() -> None:
    found = verdict(report(), open=[open_lint("unused import")])
    assert answers(found) == {"F-1": "fixed"}
    assert found.outcome.summary == "0 failed"


def test_a_silenced_warning_is_not_fixed() -> None:
    found = verdict(report(), open=[open_lint("unused import")], silenced={"F-1": "import os  # noqa"})
    assert answers(found) == {"F-1": "silenced, not fixed: import os  # noqa"}


def test_a_warning_that_is_configured_away_is_a_question() -> None:
    found = verdict(report(), report(lint=(lint("unused import"),)), changed=changed("pyproject.toml"))
    assert asked(found) == {"pyproject.toml": "with this file as it was: unused import"}


def test_an_open_warning_that_is_configured_away_is_not_fixed() -> None:
    held = report(lint=(lint("unused import"),))
    found = verdict(report(), held, open=[open_lint("unused import")], changed=changed("pyproject.toml"))
    assert answers(found) == {"F-1": "it is still there with the tests as they were"}


def test_the_same_words_about_another_file_are_another_finding() -> None:
    held = report(lint=(lint("unused import", "shop/new.py"),))
    found = verdict(report(), held, open=[open_lint("unused import")], changed=changed("pyproject.toml"))
    assert answers(found) == {"F-1": "fixed"}
    assert asked(found) == {"pyproject.toml": "with this file as it was: unused import"}


def test_the_same_warning_twice_on_held_counts_twice() -> None:
    one = lint("unused import")
    found = verdict(report(lint=(one,)), report(lint=(one, one)), changed=changed("pyproject.toml"))
    assert list(asked(found)) == ["pyproject.toml"]


def test_removing_a_file_with_an_open_finding_is_a_question() -> None:
    found = verdict(
        report(),
        open=[open_lint("unused import")],
        gone={"shop/cart.py": ("", "F-1 was found in this file, which was removed")},
    )
    assert asked(found) == {"shop/cart.py": "F-1 was found in this file, which was removed"}


def test_an_exit_code_that_fails_as_it_was_does_not_fix_another_failure() -> None:
    held = report(lint=(lint("exit code 1: FAIL half", None, category="check"),))
    was = open_lint("exit code 1: FAIL total", None, category="check")
    found = verdict(report(), held, open=[was], changed=changed("tests/run.sh"))
    assert answers(found) == {"F-1": "it is still there with the tests as they were"}


def test_an_exit_code_that_fails_only_as_it_was_is_a_question() -> None:
    held = report(lint=(lint("exit code 1: FAIL", None, category="check"),))
    found = verdict(report(), held, changed=changed("tests/run.sh"))
    assert asked(found) == {"tests/run.sh": "with this file as it was: exit code 1: FAIL"}
    assert found.outcome.verdict == "pass"


def test_a_lesser_finding_that_no_change_explains_only_worsens_a_pass() -> None:
    held = report(lint=(lint("long line", severity="low"),))
    found = verdict(report(), held, changed=changed("+tests/test_new.py"), files={})
    assert found.outcome.verdict in ("pass", "needs_improvement")
    found = verdict(report(), held, changed={})
    assert found.outcome.verdict == "needs_improvement"
    assert found.outcome.summary == "0 failed; 1 with the tests as they were"


def test_five_thousand_tests_are_compared_in_a_moment() -> None:
    ids = [f"tests.test_{number % 100}::test_{number}" for number in range(5_000)]
    files = {id: f"tests/test_{number % 100}.py" for number, id in enumerate(ids)}
    all_pass = Reading(Outcome(verdict="pass"), ReportedTests(dict.fromkeys(ids, "passed"), files))
    began = time.process_time()
    found = verdict(
        Reading(Outcome(verdict="pass"), ReportedTests(dict.fromkeys(ids[:10], "passed"), files)),
        all_pass,
        baseline=" ".join(ids),
        files=files,
        changed=changed(*sorted(set(files.values()))),
    )
    assert time.process_time() - began < 1.0
    assert len(found.questions) == 100
