"""Which tests have to run, and whose absence somebody has answered for."""

from __future__ import annotations

from backedge.adapters.evidence.store import KnownTests
from backedge.adapters.judges.known import excused, required

T, CART = "tests.test_cart::test_total", "tests/test_cart.py"
NOTHING: frozenset[str] = frozenset()


def known(file: str = CART, **more: object) -> KnownTests:
    given = {"baseline": (T,), "before": 1, "complete": True, "versions": {T: "f:old"}}
    return KnownTests({T: file}, **{**given, **more})  # type: ignore[arg-type]


def test_the_tests_of_the_start_have_to_run() -> None:
    assert required(known(), {}) == {T}


def test_a_test_that_a_step_wrote_and_took_away_again_does_not() -> None:
    assert required(known(baseline=()), {}) == NOTHING


def test_a_test_of_a_file_that_somebody_approved_does() -> None:
    assert required(known(baseline=()), {CART: "f:old"}) == {T}


def test_without_a_complete_baseline_every_test_that_ran_has_to_run() -> None:
    assert required(known(baseline=(), complete=False), {}) == {T}


def test_nothing_is_excused_without_an_approval() -> None:
    assert excused(known(asked={T: ((CART, "f:new"),)}), {}, NOTHING) == NOTHING


def test_an_approved_change_excuses_the_tests_that_its_question_was_about() -> None:
    asked = known(asked={T: (("pyproject.toml", "f:new"),)})
    assert excused(asked, {"pyproject.toml": "f:new"}, NOTHING) == {T}
    assert excused(asked, {"pyproject.toml": "f:newer"}, NOTHING) == NOTHING


def test_another_approved_change_excuses_nothing() -> None:
    assert excused(known(), {"pyproject.toml": "f:new"}, NOTHING) == NOTHING


def test_the_owner_of_a_test_file_may_take_tests_away() -> None:
    assert excused(known(), {CART: "f:new"}, frozenset({CART})) == {T}
    assert excused(known(), {CART: ""}, frozenset({CART})) == {T}


def test_a_version_of_the_file_with_which_the_test_ran_does_not_excuse_it() -> None:
    assert excused(known(versions={T: "f:new"}), {CART: "f:new"}, frozenset({CART})) == NOTHING


def test_a_test_of_an_unknown_file_is_excused_by_any_approved_change_of_tests() -> None:
    assert excused(known(file=""), {CART: "f:new"}, frozenset({CART})) == {T}
    assert excused(known(file=""), {"pyproject.toml": "f:new"}, NOTHING) == NOTHING
