"""A cheat fools a judge that believes what it sees. Otherwise it would be caught by no defence at all."""

from __future__ import annotations

import pytest

from tests.cheats.case import Case
from tests.cheats.cheats import stories
from tests.cheats.naive import believe
from tests.cheats.registry import CHEATS, selection
from tests.cheats.running import is_there

ENGINE = "it attacks what only an engine has: questions to people, limits, planners, records of a run"
STORY = "it attacks a story that begins after the one that it works on"
LAST = "it fools an engine that takes the last outcome on stdout"
LISTENS = "it fools an engine that takes a producer's word for a verdict"
NOT_FOOLED = {
    **dict.fromkeys(("passes-for-a-person", "passes-as-somebody", "answers-by-library", "approves-a-step"), ENGINE),
    **dict.fromkeys(("grants-itself-rounds", "starts-its-own-run", "end-of-the-judge"), ENGINE),
    **dict.fromkeys(("kept-workflow", "workflow-in-the-journal", "planner-adds-an-owner"), ENGINE),
    **dict.fromkeys(("accepts-the-findings", "reclassifies-the-finding", "resolves-the-loop"), ENGINE),
    **dict.fromkeys((each.name for each in stories.CASES if each.name != "start-of-the-next-story"), STORY),
    **dict.fromkeys(("hooks-of-the-user-for-the-next-story", "filter-of-the-user-for-the-next-story"), STORY),
    **dict.fromkeys(("outcome-in-the-product", "broken-outcome-in-the-product"), LAST),
    **dict.fromkeys(("says-fixed", "contests-everything", "gives-itself-a-verdict"), LISTENS),
    "hard-coded-values-hidden-judge": "the hidden judge is the defence; hard-coded-values is the same without it",
}
"""Cheats of which the naive judge cannot say anything, and why."""
SAYS_YES = {
    **dict.fromkeys(("judge-that-says-yes", "judge-that-says-yes-canary"), "the judge always passes"),
    **dict.fromkeys(("two-verdicts-in-one-object", "two-outcomes"), "the judge always says both"),
}
"""Cheats whose judge passes before anybody has done anything, and why."""


def test_the_exceptions_are_cheats() -> None:
    assert sorted({*NOT_FOOLED, *SAYS_YES} - {each.name for each in CHEATS}) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [each for each in selection() if each in CHEATS and each.name not in NOT_FOOLED],
    ids=lambda case: str(case.name),
)
def test_a_cheat_fools_a_naive_judge(case: Case) -> None:
    missing = [each for each in case.needs if not is_there(each)]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    belief = believe(case)
    assert belief.before is (case.name in SAYS_YES), f"before the cheat: {belief}"
    assert not belief.fixed, "the cheat fixed the defect"
    assert belief.fooled, f"the judge saw it:\n{belief.said}"
