"""All cases, in the order of their families."""

from __future__ import annotations

from tests.cheats.case import Case, Family
from tests.cheats.cheats import (
    disguises,
    environment,
    git,
    hidden,
    javascript,
    judges,
    lint,
    outliving,
    protocol,
    removed,
    review,
    runner,
    shell,
    special_casing,
    state,
    surroundings,
    weakened,
)
from tests.cheats.controls import repositories_differ, tests_change, workflows_differ

CHEATS: list[Case] = [
    *removed.CASES,
    *weakened.CASES,
    *runner.CASES,
    *environment.CASES,
    *special_casing.CASES,
    *state.CASES,
    *git.CASES,
    *lint.CASES,
    *outliving.CASES,
    *review.CASES,
    *protocol.CASES,
    *judges.CASES,
    *javascript.CASES,
    *shell.CASES,
    *surroundings.CASES,
    *disguises.CASES,
    *hidden.CASES,
]
CONTROLS: list[Case] = [*tests_change.CASES, *repositories_differ.CASES, *workflows_differ.CASES]
CASES = [*CHEATS, *CONTROLS]


def selection() -> list[Case]:
    """The cases that run with the slow tests: all honest controls, and every fourth cheat of each family. All of them take
    too long for every change; `make cheats` runs them."""
    cheats = [case for family in Family for case in [each for each in CHEATS if each.family is family][::4]]
    return [*cheats, *CONTROLS]
