"""Conditions on artifacts: what you can write, what it means, and the errors for everything else."""

from __future__ import annotations

from typing import Any

import pytest

from backedge.core.workflow.conditions import holds, parse_condition
from backedge.core.workflow.values import MISSING, Reference, equal, parse_reference, value_at, values_at


@pytest.mark.parametrize(
    ("text", "value", "met"),
    [
        ("plan:/ui == true", True, True),
        ("plan:/ui == true", "true", False),
        ("plan:/ui == true", 1, False),
        ("plan:/ui == 1", 1.0, True),
        ("plan:/ui == null", MISSING, True),
        ("plan:/ui != null", MISSING, False),
        ("plan:/ui != web", "web", False),
        ("plan:/ui == web app", "web app", True),
        ("plan:/ui == 'true'", "true", True),
        ("plan:/ui == [a, 1]", ["a", 1], True),
        ("plan:/ui == [a, 1]", ["a"], False),
        ('plan:/ui == {"a": [1]}', {"a": [1]}, True),
        ('plan:/ui == {"a": [1]}', {"b": [1]}, False),
        ("plan:/score >= 90", 90, True),
        ("plan:/score > 90", 90, False),
        ("plan:/score < 90", 89.5, True),
        ("plan:/score <= 90", 91, False),
        ("plan:/score > 90", "99", False),
        ("plan:/score > 0", True, False),
        ("plan:/score > 0", MISSING, False),
        ("plan:/name > b", "c", True),
        ("plan:/kind in [api, ui]", "ui", True),
        ("plan:/kind in []", "ui", False),
        ("plan:/kind in apiui", "api", True),
        ("plan:/kind in [1]", True, False),
        ("plan:/parts contains ui", ["api", "ui"], True),
        ("plan:/parts contains ui", {"ui": 1}, True),
        ("plan:/parts contains ui", "server", False),
        ("plan:/parts contains 1", 12, False),
        ("plan:/ui", "yes", True),
        ("plan", {}, False),
        ("not plan:/ui", MISSING, True),
        ("not plan:", {"a": 1}, False),
        ("open_loops == 0", 0, True),
        ("feedback_from:test > 1", 2, True),
        ("not open_loops_to:code", 0, True),
        ("feedback_to:code", 0, False),
    ],
)
def test_a_condition_is_met_or_not(text: str, value: Any, met: bool) -> None:
    assert holds(parse_condition(text), value) is met


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the condition is empty: write `step:/pointer == value`"),
        ("plan:/ui = true", "operator '=': did you mean '=='"),
        ("plan:/ui contain x", "operator 'contain': did you mean 'contains'"),
        ("plan:/ui ~~ x", "operator '~~': use one of == != < <= > >= in contains"),
        ("plan:/ui ==", "nothing after ==: give the value"),
        ("plan:/ui==true", "no space around =="),
        ("plan:ui == true", "no JSON pointer after the colon: write 'plan:/ui'"),
        ("plan:/a~2 == true", "no JSON pointer after the colon: write 'plan:/name'"),
        (":/ui", "is not a reference: write step:/json/pointer"),
        ("not plan:/ui == true", "compares after `not`"),
        ("feedback_from: > 0", "names no step: write `feedback_from:step`"),
        ("feedbck_from:test > 0", "did you mean `feedback_from:test`?"),
        ("feedback_from:test==1", "no space around =="),
        ("plan:/ui in 3", "after `in`: expected a list"),
    ],
)
def test_an_invalid_condition_is_refused_with_a_hint(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=r"write|use|did|give|`in`") as error:
        parse_condition(text)
    assert why in str(error.value)


@pytest.mark.parametrize("more", ["and plan:/b == 2", "or plan:/b", "&& plan:/b == 2", "|| x", "== 2", "< 3"])
def test_two_conditions_in_one_are_refused(more: str) -> None:
    with pytest.raises(ValueError, match="write several as a list, or put the text in quotes"):
        parse_condition(f"plan:/a == 1 {more}")
    assert parse_condition(f'plan:/a == "1 {more}"').literal == f"1 {more}"


def test_a_text_of_several_words_needs_no_quotes() -> None:
    assert parse_condition("plan:/a == very fast").literal == "very fast"


def test_a_reference_prints_as_it_was_written() -> None:
    assert parse_reference("plan:/a/b") == Reference("plan", "/a/b")
    assert [str(parse_reference(text)) for text in ("plan", "plan:", "plan:/a~1b")] == ["plan", "plan", "plan:/a~1b"]
    with pytest.raises(ValueError, match="is not a reference"):
        parse_reference("two words:/a")


@pytest.mark.parametrize(
    ("pointer", "expected"),
    [
        ("", {"a": [{"b/c": None}]}),
        ("/a/0/b~1c", None),
        ("/a/1", MISSING),
        ("/a/x", MISSING),
        ("/a/0/b~1c/d", MISSING),
        ("/z", MISSING),
    ],
)
def test_null_exists_and_a_missing_value_does_not(pointer: str, expected: Any) -> None:
    document = {"a": [{"b/c": None}]}
    assert value_at(document, pointer) == expected
    assert values_at(document, (pointer,)) == ({} if expected is MISSING else {pointer: expected})
    assert repr(MISSING) == "nothing"


def test_equality_follows_json() -> None:
    assert equal({"a": [1, None]}, {"a": [1.0, None]})
    assert not equal([1, 2], [1])
    assert not equal(False, 0)
