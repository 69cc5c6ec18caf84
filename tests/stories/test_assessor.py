"""Which action each story needs, and in which order."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backedge.core.value import replace
from backedge.stories.rules.assessor import (
    PHASES,
    STATUSES,
    Action,
    Counts,
    Decision,
    Story,
    assess,
    counted,
    limit_reached,
    reset_by,
    severity_of_review,
)

STARTED = Story("a", status="ready", research_complete=True, plan_complete=True)
IMPLEMENTED = replace(STARTED, status="in-progress", implementation_complete=True)
REJECTED = replace(IMPLEMENTED, reviews=("REJECTED",), feedback="Review failed: 1 blocker(s)")


def only(story: Story) -> Action:
    (action,) = assess([story])
    return action


@pytest.mark.parametrize(
    ("story", "kind", "priority"),
    [
        (REJECTED, "rework", 0),
        (replace(STARTED, status="in-progress"), "implement", 50),
        (IMPLEMENTED, "review", 100),
        (replace(IMPLEMENTED, reviews=("FAILED",)), "review", 150),
        (replace(IMPLEMENTED, reviews=("FAILED", "FAILED")), "review", 200),
        (replace(IMPLEMENTED, reviews=("APPROVED",), reviews_complete=True), "create_pr", 150),
        (Story("a", status="ready"), "research", 200),
        (Story("a", status="ready", research_complete=True), "plan", 300),
        (STARTED, "implement", 400),
        (Story("a"), "refine", 500),
        (Story("a", status="blocked", blocked_reason="Max refinement attempts (3/3)"), "person", 10_000),
        (replace(STARTED, waiting="E-1 asks: which database?"), "person", 10_000),
        (replace(REJECTED, trouble="a.md:3:1: not valid YAML"), "person", 10_001),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_action_has_its_priority_and_the_story_adds_its_own(story: Story, kind: str, priority: int) -> None:
    assert (only(story).kind, only(story).priority) == (kind, priority)
    assert only(replace(story, priority=7)).priority == priority + 7


def test_a_finished_story_yields_no_action() -> None:
    assert assess([Story("a", status="done"), replace(REJECTED, status="done")]) == ()


def test_a1_11_a_rejected_story_yields_exactly_one_rework() -> None:
    story = replace(REJECTED, refinement_count=1, target="plan")
    assert assess([story]) == (
        Action(
            "a",
            "rework",
            0,
            "its review was rejected: Review failed: 1 blocker(s)",
            "plan",
            "Review failed: 1 blocker(s)",
            2,
        ),
    )
    assert only(replace(story, feedback="")).reason == "its review was rejected"


def test_a1_12_an_approved_story_yields_one_create_pr_and_no_rework() -> None:
    story = replace(IMPLEMENTED, reviews=("REJECTED", "APPROVED"), reviews_complete=True)
    assert [action.kind for action in assess([story])] == ["create_pr"]


@pytest.mark.parametrize("target", PHASES)
def test_a1_13_a_phase_under_rework_is_not_reworked_again(target: str) -> None:
    field = {"research": "research_complete", "plan": "plan_complete", "implement": "implementation_complete"}[target]
    assert only(replace(REJECTED, target=target, **{field: False})).kind == target


def test_a1_13_a_rework_under_way_continues_as_its_phase() -> None:
    begun = replace(REJECTED, target="plan", plan_complete=False, reworking=True, refinement_count=3)
    reason = "its rework is under way: Review failed: 1 blocker(s)"
    assert assess([begun]) == (Action("a", "plan", only(begun).priority, reason, "plan", begun.feedback, 3),)
    assert only(begun).priority == only(replace(begun, reworking=False)).priority
    assert only(replace(begun, feedback="")).reason == "its rework is under way"


def test_a_story_at_its_limit_goes_to_a_person() -> None:
    spent = replace(REJECTED, refinement_count=3)
    assert (only(spent).kind, only(spent).reason) == ("person", "Max refinement attempts (3/3)")
    assert only(replace(spent, refinement_count=2)).kind == "rework"
    assert only(replace(spent, max_refinements=5)).iteration == 4
    assert only(replace(spent, max_refinements=None, refinement_count=99)).iteration == 100
    still = replace(REJECTED, recoveries=10)
    assert (only(still).kind, only(still).reason) == ("person", "Global recovery limit exceeded (10/10)")
    assert only(replace(still, recoveries=9)).kind == "rework"
    assert only(replace(still, max_recoveries=None)).kind == "rework"
    assert limit_reached(REJECTED) == ""


def test_a_blocked_story_without_a_reason_says_so() -> None:
    assert only(Story("a", status="blocked")).reason == "blocked"


def test_a_failed_reviewer_and_a_recovery_do_not_change_the_verdict() -> None:
    assert only(replace(REJECTED, reviews=("REJECTED", "FAILED"))).kind == "rework"
    assert only(replace(REJECTED, reviews=("REJECTED", "RECOVERY"))).kind == "rework"
    assert only(replace(REJECTED, reviews=("FAILED",))).kind == "review"
    assert replace(REJECTED, reviews=("FAILED", "REJECTED")).broken_reviews == 0


def test_each_decision_counts_towards_its_own_counter() -> None:
    assert counted(("REJECTED", "FAILED", "RECOVERY", "REJECTED", "RECOVERY")) == Counts(2, 2)
    assert counted(("REJECTED", "RECOVERY", "APPROVED")) == Counts()
    assert counted(("FAILED",)) == Counts()


def test_a1_03_rework_of_a_phase_resets_all_later_phases() -> None:
    assert reset_by("research") == ("research", "plan", "implement")
    assert reset_by("plan") == ("plan", "implement")
    assert reset_by("implement") == ("implement",)


@pytest.mark.parametrize(
    ("counts", "severity"),
    [
        ((1, 0, 0), "CRITICAL"),
        ((0, 2, 0), "HIGH"),
        ((0, 1, 0), "MEDIUM"),
        ((0, 0, 1), "MEDIUM"),
        ((0, 0, 0), "LOW"),
    ],
)
def test_the_severity_of_a_review(counts: tuple[int, int, int], severity: str) -> None:
    assert severity_of_review(*counts) == severity


def test_a1_16_reject_rework_implement_approve_ends_with_create_pr() -> None:
    """The story changes as its run would change it: each rejection is reworked until the limit or an approval."""
    story, offered = IMPLEMENTED, []
    action = only(story)
    for _ in range(4):
        story = replace(story, reviews=(*story.reviews, "REJECTED"))
        action = only(story)
        if action.kind != "rework":
            break
        offered.append(action.iteration)
        story = replace(story, refinement_count=action.iteration, implementation_complete=False)
        assert only(story).kind == "implement"
        story = replace(story, implementation_complete=True)
    assert (offered, action.kind, action.reason) == ([1, 2, 3], "person", "Max refinement attempts (3/3)")
    approved = replace(story, reviews=(*story.reviews, "APPROVED"), reviews_complete=True)
    assert only(approved).kind == "create_pr"


def stories() -> st.SearchStrategy[Story]:
    flags = {f"{name}_complete": st.booleans() for name in ("research", "plan", "implementation", "reviews")}
    return st.builds(
        Story,
        st.text("abc", min_size=1),
        priority=st.integers(-100, 100),
        status=st.sampled_from(STATUSES),
        reviews=st.lists(st.sampled_from(get_args(Decision)), max_size=5).map(tuple),
        target=st.sampled_from(PHASES),
        refinement_count=st.integers(0, 5),
        recoveries=st.integers(0, 12),
        trouble=st.sampled_from(["", "broken"]),
        **flags,
    )


@given(st.lists(stories(), max_size=20))
def test_actions_are_ordered_and_each_story_has_at_most_one(given: list[Story]) -> None:
    actions = assess(given)
    assert list(actions) == sorted(actions, key=lambda action: (action.priority, action.story))
    assert len(actions) == sum(story.status != "done" or bool(story.trouble) for story in given)
    for action in actions:
        assert bool(action.iteration) is (action.kind == "rework")
