"""A recorded series of review rounds that did not converge, played under each policy: where the engine stops."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

TOOLS = Path(__file__).parents[2] / "tools"


@pytest.fixture
def rounds(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(TOOLS))
    return importlib.import_module("replay_rounds")


@pytest.mark.parametrize(
    ("policy", "reworks", "deferred", "stops"),
    [
        ("default", 5, 9, "limit rounds_per_loop (5/5)"),
        ("new_findings: rework", 5, 0, "limit rounds_per_loop (5/5)"),
        ("new_findings: defer", 5, 13, "limit rounds_per_loop (5/5)"),
        ("new_findings: ask", 1, 0, "the judge reported new findings that it could have reported earlier"),
        ("rounds_per_loop: false", 12, 17, "verified"),
        (
            "rounds_per_loop: false, diverging: true",
            4,
            6,
            "limit diverging (4/4): the last two fixes introduced 4 findings and removed 4",
        ),
        ("new_findings: rework, no limit but attempts", 21, 0, "verified"),
        ("profile: tight-loop", 4, 6, "limit rounds_per_step (4/4)"),
    ],
)
def test_where_a_policy_stops_the_series(
    rounds: ModuleType, policy: str, reworks: int, deferred: int, stops: str
) -> None:
    row = rounds.told(policy, rounds.replayed(**rounds.POLICIES[policy]))
    assert (row[1], row[4], row[5]) == (str(reworks), str(deferred), stops)


def test_two_in_five_of_the_series_were_written_by_the_fix_before(rounds: ModuleType) -> None:
    report = rounds.replayed(**rounds.POLICIES["new_findings: rework, no limit but attempts"])
    assert len(report.findings) == sum(rounds.ROUNDS) == 71
    assert sum(each.fix_authored for each in report.findings) == 26
