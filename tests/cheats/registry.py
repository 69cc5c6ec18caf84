"""All cases, in the order of their families."""

from __future__ import annotations

import os

from tests.cheats.case import Case, Family
from tests.cheats.cheats import (
    commands,
    crashes,
    disguises,
    environment,
    fifth_look,
    fourth_look,
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
    second_look,
    shell,
    special_casing,
    state,
    stories,
    surroundings,
    third_look,
    weakened,
)
from tests.cheats.controls import awkward, exit_codes, repositories_differ, tests_change, workflows_differ

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
    *commands.CASES,
    *judges.CASES,
    *javascript.CASES,
    *shell.CASES,
    *surroundings.CASES,
    *disguises.CASES,
    *hidden.CASES,
    *second_look.CASES,
    *third_look.CASES,
    *fourth_look.CASES,
    *fifth_look.CASES,
    *stories.CASES,
    *crashes.CASES,
]
CONTROLS: list[Case] = [
    *tests_change.CASES,
    *repositories_differ.CASES,
    *workflows_differ.CASES,
    *exit_codes.CASES,
    *awkward.CASES,
]
CASES = [*CHEATS, *CONTROLS]


def selection() -> list[Case]:
    """The cases that run with the slow tests: every twelfth cheat of each family, and every fourth honest control. All of them
    take too long for every change: `make cheats` runs them, and BACKEDGE_CHEATS=all the tests with all of them."""
    if os.environ.get("BACKEDGE_CHEATS") == "all":
        return CASES
    cheats = [case for family in Family for case in [each for each in CHEATS if each.family is family][::12]]
    return [*cheats, *CONTROLS[::4]]
