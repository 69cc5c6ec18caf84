"""A judge with nothing but an exit code: what it printed has to agree with a pass."""

from __future__ import annotations

import pytest

from backedge.adapters.evidence.store import NOTHING_PRINTED, Printed
from backedge.adapters.judges.printed import read_printed
from backedge.adapters.judges.runs import Reading
from backedge.engine.protocol import Finding, Outcome
from tests.judges.readings import asked, changed, described, is_clean, verdict

BEFORE = Printed(8, 8, ("expected 90, got 100",))


@pytest.mark.parametrize(
    ("text", "tests"),
    [
        ("FAILED tests/a.py::b\n2 failed, 6 passed, 1 skipped in 0.05s\n", 8),
        ("\x1b[31m==== 2 failed, 6 passed in 75.30s (0:01:15) ====\x1b[0m\n", 8),
        ("Ran 9 tests in 0.001s\n\nFAILED (failures=1, skipped=1)\n", 8),
        ("# tests 9\n# suites 0\n# pass 6\n# fail 2\n# skipped 1\n", 8),
        ("ℹ tests 8\nℹ suites 0\nℹ pass 8\nℹ fail 0\n", 8),
        ("Tests:       2 failed, 6 passed, 8 total\n", 8),
        ("      Tests  2 failed | 6 passed (8)\n", 8),
        ("  7 passing (5ms)\n  1 failing\n", 8),
        ("test result: ok. 7 passed; 0 failed; 0 ignored\ntest result: ok. 1 passed; 0 failed; 0 ignored\n", 8),
        ("8 examples, 2 failures\n", 8),
        ("OK (8 tests, 10 assertions)\n", 8),
        (
            "ruff......Passed\ntypes......(no files to check)Skipped\ntest......Failed\n- exit code: 1\n2 failed in 1s\n",
            2,
        ),
        ("ruff................Passed\ntest................Passed\n", 2),
        ("no tests ran in 0.01s\n", None),
        ("all is well\n", None),
    ],
)
def test_summaries_of_runners_say_how_many_tests_ran(text: str, tests: int | None) -> None:
    found = read_printed(text.encode())
    assert (found.tests, found.last) == (tests, tests)


def test_of_several_summaries_all_count_now_and_the_last_one_counted_before() -> None:
    found = read_printed(b"5 passed in 1s\nRan 2 tests in 0.1s\n\nOK\n3 passed in 0.1s\n")
    assert (found.tests, found.last) == (10, 3)


def test_lines_that_speak_of_a_failure_are_kept_without_their_times() -> None:
    text = b"all set\nexpected 90, got 100\nFailed to find a cache, going on\n1 failed in 0.12s\n1 failed in 0.13s\n"
    assert read_printed(text).failures == ("expected 90, got 100", "1 failed in …")


def said(code: int, printed: Printed = NOTHING_PRINTED) -> Reading:
    findings = (Finding(f"exit code {code}: no", category="check"),) if code else ()
    return Reading(Outcome(verdict="fail" if code else "pass", findings=findings), printed=printed)


@pytest.mark.parametrize("printed", [Printed(), Printed(7, 7)])
def test_a_pass_with_fewer_tests_is_a_finding(printed: Printed) -> None:
    found = verdict(said(0, printed), printed_before=BEFORE)
    assert found.outcome.verdict == "fail"
    assert "and 8 tests when the run began" in described(found)[0]


def test_a_pass_with_all_tests_or_a_judge_that_prints_none_is_fine() -> None:
    assert is_clean(verdict(said(0, Printed(8, 3)), printed_before=BEFORE))
    assert is_clean(verdict(said(0)))


def test_a_pass_that_still_prints_the_failure_is_a_finding() -> None:
    found = verdict(
        said(0, Printed(failures=("expected 90, got 100", "ok"))), printed_before=Printed(failures=BEFORE.failures)
    )
    assert 'still prints "expected 90, got 100"' in described(found)[0]


@pytest.mark.parametrize(
    ("failed", "passed", "is_clean_pass"),
    [
        ("expected warning: 1 was rounded\ntotal is wrong\n", "expected warning: 1 was rounded\ndone\n", True),
        ("expected 90, got 100\nchecked in 3 s\n", "expected 90, got 100\nchecked in 4 s\nAssertionError\n", False),
        ("AssertionError: no\nNode.js v20\n", "AssertionError: no\ncaught\n", False),
    ],
    ids=["words-of-a-pass", "all-is-the-same", "never-printed-by-a-pass"],
)
def test_what_was_expected_is_a_failure_only_if_all_else_is_printed_too(
    failed: str, passed: str, is_clean_pass: bool
) -> None:
    before, now = read_printed(failed.encode()), read_printed(passed.encode())
    assert is_clean(verdict(said(0, now), printed_before=before)) is is_clean_pass


def test_a_failure_needs_no_second_finding() -> None:
    assert described(verdict(said(1), printed_before=BEFORE)) == ["exit code 1: no"]


def test_a_changed_test_that_explains_it_is_a_question_until_it_is_approved() -> None:
    files = changed("tests/test_cart.py")
    found = verdict(said(0, Printed(7, 7)), said(0, Printed(8, 8)), printed_before=BEFORE, changed=files)
    assert (found.outcome.verdict, list(asked(found))) == ("pass", ["tests/test_cart.py"])
    approved = frozenset({"tests/test_cart.py"})
    assert is_clean(verdict(said(0, Printed(7, 7)), printed_before=BEFORE, approved=approved))
    assert verdict(said(0), printed_before=BEFORE, approved=approved).outcome.verdict == "fail"


def test_new_tests_do_not_make_up_for_old_ones_that_do_not_run() -> None:
    found = verdict(
        said(0, Printed(8, 8)), said(0, Printed(6, 6)), printed_before=BEFORE, changed=changed("+tests/test_new.py")
    )
    assert described(found) == [
        "it ended with exit code 0 but printed 6 tests, and 8 tests when the run began with the tests as they were"
    ]
