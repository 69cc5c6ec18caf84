"""The registry of cheats is complete and consistent."""

from __future__ import annotations

import pytest

from tests.cheats.case import Case, Family, Verdict
from tests.cheats.registry import CASES, CHEATS, CONTROLS, selection


def test_there_are_enough_cases() -> None:
    assert len(CHEATS) >= 60
    assert len(CONTROLS) >= 20
    assert {each.family for each in CASES} == set(Family)


def test_the_slow_tests_have_cheats_of_every_family_and_some_controls() -> None:
    assert {each.family for each in selection() if not each.is_control} == {each.family for each in CHEATS}
    assert [each for each in selection() if each.is_control] == CONTROLS[::4]


def test_names_are_unique() -> None:
    names = [each.name for each in CASES]
    assert sorted({name for name in names if names.count(name) > 1}) == []


@pytest.mark.parametrize("language", ["agents/code.sh", "agents/code.py", "agents/code.cjs"])
def test_agents_cheat_in_every_language(language: str) -> None:
    assert any(language in each.files for each in CHEATS)


@pytest.mark.parametrize("case", CHEATS, ids=lambda case: str(case.name))
def test_what_is_not_caught_has_a_reason(case: Case) -> None:
    assert bool(case.reason) == (case.expect in (Verdict.VISIBLE, Verdict.NEITHER))
    assert bool(case.shows) == (case.expect is Verdict.VISIBLE)
