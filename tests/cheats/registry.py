"""All cases, in the order of their families."""

from __future__ import annotations

from tests.cheats.case import Case
from tests.cheats.cheats import (
    environment,
    git,
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
]
CONTROLS: list[Case] = [*tests_change.CASES, *repositories_differ.CASES, *workflows_differ.CASES]
CASES = [*CHEATS, *CONTROLS]
