"""What was changed, in the words that a reviewer reads."""

from __future__ import annotations

import pytest

from backedge.core.briefing import BriefedChange, BriefedChanges, Briefing
from backedge.core.evidence.values import TestCounts
from backedge.core.wording import DATA, MOST_FILES, changes_text
from backedge.core.wording import tests_text as counted_tests


def briefing(changes: BriefedChanges) -> Briefing:
    return Briefing("r", "review", "code", 1, "work", changes=changes)


def test_nothing_is_said_where_nothing_changed() -> None:
    assert changes_text(briefing(BriefedChanges()), "/whole") == ""


def test_each_part_stands_alone() -> None:
    assert changes_text(briefing(BriefedChanges(files=("a.py",))), "/whole").endswith(
        "### All changed files (1)\n```\na.py\n```"
    )
    assert changes_text(briefing(BriefedChanges(notes=("it left a process",))), "/whole").endswith(
        "### What else was noticed\n```\nit left a process\n```"
    )
    assert changes_text(briefing(BriefedChanges(tests={"test": TestCounts(1)})), "/whole").endswith(
        "### Tests, now and at the start\n```\ntest: 1 test\n```"
    )


def test_protected_changes_have_their_question_and_their_tests() -> None:
    asked = BriefedChange("P-1", "tests/a.py", "removed", "code", "-3", "a\nno longer runs", ("a", "b"))
    silent = BriefedChange("P-2", ".venv", "changed", "")
    text = changes_text(briefing(BriefedChanges((asked, silent))), "/whole")
    assert DATA in text
    assert text.endswith(
        "```\nP-1 removed by code: tests/a.py (-3)\n    in question: a no longer runs\n    test: a\n    test: b\n"
        "P-2 changed: .venv\n```"
    )


@pytest.mark.parametrize(
    ("count", "cut"), [(MOST_FILES, ""), (MOST_FILES + 2, "… and 2 more: all of them are in /whole")]
)
def test_a_long_list_of_files_is_cut(count: int, cut: str) -> None:
    text = changes_text(briefing(BriefedChanges(files=tuple(f"{number}.py" for number in range(count)))), "/whole")
    assert ("more: all" in text, f"{MOST_FILES - 1}.py" in text, f"{MOST_FILES}.py" in text) == (bool(cut), True, False)
    assert cut in text


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        (TestCounts(1), "1 test"),
        (TestCounts(8, before=8), "8 tests, was 8"),
        (TestCounts(8, 2, 1, 9, ("t",)), "8 tests, was 9; 2 failed; 1 skipped; 1 flaky"),
    ],
)
def test_tests_are_counted_in_words(counts: TestCounts, words: str) -> None:
    assert counted_tests(counts) == words
