"""Limits that a person changes while a story is blocked or under way: they apply as a recorded decision, or it is said why
not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from backedge.core.model import Breach
from backedge.core.workflow.limits import Limits
from backedge.stories.rules.raised import Raised, lowered_limit, raised_limit
from backedge.stories.rules.story_view import StoryView
from tests.stories.parts import PASS, Stories, rejected
from tests.stories.test_working import SMALL


def blocked(project: Stories, rejections: int = 4, **fields: object) -> Path:
    """A story that has reached its limit, and would pass after one more round."""
    project.workflow(steps=SMALL)
    path = project.story("a", **fields)
    wrong = {
        "description": "no login",
        "severity": "blocker",
        "file": "src/app.py",
        "line": 7,
        "suggested_fix": "add it",
    }
    first = [rejected(f"wrong {each}") for each in range(rejections - 1)]
    project.script(a={"review": [*first, rejected({"description": "slow", "severity": "major"}, wrong), PASS]})
    project.auto(expect=3)
    return path


def decisions(project: Stories) -> list[Any]:
    events = [json.loads(line) for line in project.backedge("audit", "export", "s-a")[0].splitlines()]
    return [each for each in events if each["type"].startswith("escalation_decided")]


def test_a_blocked_story_says_what_is_wrong_now(project: Stories) -> None:
    blocked(project)
    story = project.says("a")
    why = "Max refinement attempts (3/3): [blocker] src/app.py:7 no login (and 1 more)"
    assert story["blocked_reason"] == why
    assert story["open_findings"] == ["[blocker] `src/app.py:7` no login", "Suggested fix: add it", "[major] slow"]
    (action,) = project.json("next")
    assert action["reason"] == why
    told = project.backedge("next")[0]
    assert (
        told.index("[blocker] src/app.py:7 no login\n")
        < told.index("Suggested fix: add it")
        < told.index("[major] slow")
    )
    details = project.backedge("details", "A")[0]
    assert "[blocker] src/app.py:7 no login\n" in details and "`backedge unblock a` grants more rounds" in details
    assert project.json("details", "a")["findings"][0] == "[blocker] `src/app.py:7` no login"


@pytest.mark.parametrize(
    ("way", "choice", "note"),
    [
        ("count", "revise", "refinement_count was set to 0 (stories/a.md)"),
        ("lower", "continue", "refinement_count was set to 2 (stories/a.md)"),
        ("story", "continue", "max_refinement_attempts is 5 now (stories/a.md)"),
        ("project", "continue", "maxIterations is 4 now (stories/a.md)"),
        ("workflow", "continue", "rounds_per_loop is 4 now (stories/a.md)"),
        ("breaker", "continue", "rounds_per_loop is off now (stories/a.md)"),
        ("command", "continue", "--max-iterations is 4 now (stories/a.md)"),
    ],
)
def test_a_raised_limit_lets_a_blocked_story_continue(project: Stories, way: str, choice: str, note: str) -> None:
    path = blocked(project, max_refinement_attempts=3) if way == "story" else blocked(project)
    more: tuple[str, ...] = ()
    match way:
        case "count":
            path.write_text(path.read_text().replace("refinement_count: 3", "refinement_count: 0"))
        case "lower":
            path.write_text(path.read_text().replace("refinement_count: 3", "refinement_count: 2"))
        case "story":
            path.write_text(path.read_text().replace("max_refinement_attempts: 3", "max_refinement_attempts: 5"))
        case "project":
            (project.folder / ".ai-sdlc.json").write_text('{"refinement": {"maxIterations": 4}}')
        case "workflow":
            project.workflow(steps=SMALL, limits={"rounds_per_loop": 4})
        case "breaker":
            project.workflow({"circuit_breaker": False}, steps=SMALL)
        case _:
            more = ("--max-iterations", "4")
    if not more:
        (action,) = project.json("next")
        assert (action["kind"], action["priority"]) == ("unblock", 0)
        assert action["reason"].startswith(note.partition(" (")[0])
    said = project.auto(*more)
    assert f"a | ▸ unblocked: {note.partition(' (')[0]}\n" in said
    assert [(each["choice"], each["note"]) for each in decisions(project)] == [(choice, note)]
    assert decisions(project)[0]["by"], "a person has decided"
    assert ("refinement_count was changed by hand" in said) == (way == "lower")
    story = project.says("a")
    assert (story["status"], story["refinement_count"], "open_findings" in story) == ("done", 4, False)
    assert "rounds 4, run s-a" in project.backedge("details", "a")[0], "what it took"


def test_a_limit_that_changes_under_way_says_why_it_does_not_apply(project: Stories) -> None:
    project.workflow(steps=SMALL)
    path = project.story("a", max_refinement_attempts=2)
    project.script(a={"review": [rejected(f"wrong {each}") for each in "abcdefgh"]})
    project.backedge("run")
    path.write_text(path.read_text().replace("max_refinement_attempts: 2", "max_refinement_attempts: 1"))
    kept = "max_refinement_attempts is 1 now: work that has begun keeps its limit of 2"
    assert kept in project.backedge("run")[1]
    assert kept in project.backedge("details", "a")[0]
    # An agent could have written this: while it works, the story keeps its limit, and a person confirms the new one.
    path.write_text(path.read_text().replace("max_refinement_attempts: 1", "max_refinement_attempts: 4"))
    said = project.auto(expect=3)
    assert project.says("a")["blocked_reason"].startswith("Max refinement attempts (2/2)")
    why = "max_refinement_attempts is 4 now, but was changed while agents worked: `backedge unblock a --rounds 2` applies it"
    assert f"     {why}\n" in said and why in project.backedge("next")[0] and why in project.backedge("details", "a")[0]
    path.write_text(path.read_text().replace("max_refinement_attempts: 4", "max_refinement_attempts: 5"))
    project.auto(expect=3)
    assert project.says("a")["blocked_reason"].startswith("Max refinement attempts (5/5)")
    assert [each["rounds"] for each in decisions(project)] == [3]
    # The count of a story that is not blocked belongs to the journal.
    project.backedge("unblock", "a")
    path.write_text(path.read_text().replace("refinement_count: 5", "refinement_count: 0"))
    said = project.backedge("run")[1]
    assert (
        "refinement_count was changed by hand and has been restored: use `backedge unblock STORY --reset` once" in said
    )


def test_a_higher_limit_that_is_not_the_one_that_blocks_says_so(project: Stories) -> None:
    project.workflow(steps=SMALL)
    project.story("a")
    project.script(a={"review": [rejected("the same")]})
    project.auto(expect=3)
    assert project.says("a")["blocked_reason"].startswith("limit same_finding (3/3)")
    why = "is 5 now, but same_finding blocks the story: `backedge unblock a` lets it continue"
    assert f"     --max-iterations {why}\n" in project.auto("--max-iterations", "5", expect=3)
    (project.folder / ".ai-sdlc.json").write_text('{"refinement": {"maxIterations": 5}}')
    for said in (project.auto(expect=3), project.backedge("next")[0], project.backedge("details", "a")[0]):
        assert f"maxIterations {why}\n" in said
    assert decisions(project) == []


def test_a_change_of_the_workflow_says_that_work_that_has_begun_keeps_the_old_one(project: Stories) -> None:
    more = {**SMALL, "security": {"reviews": "implement"}}
    kept = "backedge.yaml has changed: work that has begun keeps the old version\n"
    project.workflow(steps=SMALL)
    project.story("a")
    project.backedge("run")
    project.workflow(steps=SMALL, limits={"rounds_total": 9})
    assert kept not in project.backedge("details", "a")[0], "limits apply"
    project.workflow(steps=more)
    assert kept in project.backedge("details", "a")[0]
    assert project.backedge("run")[1].count(f"a |            {kept}") == 1
    assert kept not in project.backedge("details", "a")[0], "it is done"
    assert [each[1] for each in project.executions()] == ["implement", "review"]


VIEW = StoryView(
    "s-a",
    9,
    "blocked",
    refinement_count=3,
    max_refinements=3,
    first_max_refinements=3,
    breach=Breach("rounds_per_loop", 3, 3),
    choices=("continue", "revise", "cancel"),
)


@pytest.mark.parametrize(
    ("breach", "limits", "count", "expected"),
    [
        (Breach("rounds_per_loop", 3, 3), Limits(rounds_per_loop=3), None, None),
        (Breach("rounds_per_loop", 3, 3), Limits(rounds_per_loop=4), None, Raised("most is 4 now", 1)),
        (Breach("rounds_per_loop", 6, 6), Limits(rounds_per_loop=5), None, None),
        (Breach("rounds_per_loop", 3, 3), Limits(rounds_per_loop=3), 3, None),
        (Breach("rounds_per_loop", 3, 3), Limits(rounds_per_loop=3), -1, None),
        (Breach("rounds_total", 3, 3), Limits(rounds_total=3), 0, Raised("refinement_count was set to 0", reset=True)),
        (Breach("recoveries_total", 3, 3), Limits(recoveries_total=3), 0, None),
        (Breach("cost_usd", 2.5, 2), Limits(cost_usd=5.5), 0, Raised("cost_usd is 5.5 now", amount=3.5)),
        (Breach("errors_in_a_row", 3, 3), Limits(errors_in_a_row=5), None, Raised("errors_in_a_row is 5 now", 2)),
        (Breach("provider_wait", 60, 60), Limits(provider_wait=90), None, Raised("provider_wait is 90 now")),
        (Breach("diverging", 2, 1), Limits(diverging=True), None, None),
        (Breach("diverging", 2, 1), Limits(diverging=False), None, Raised("diverging is off now")),
        (Breach("repeat", 2, 2), Limits(), None, None),
    ],
)
def test_what_a_raised_limit_grants(breach: Breach, limits: Limits, count: int | None, expected: Raised | None) -> None:
    view = StoryView(**{**{name: getattr(VIEW, name) for name in VIEW.__struct_fields__}, "breach": breach})
    assert raised_limit(view, limits, "most", count) == expected


def test_without_the_choice_to_continue_nothing_is_granted_and_off_is_not_lower() -> None:
    view = StoryView("s-a", 9, "blocked", breach=VIEW.breach, choices=("cancel",))
    assert raised_limit(view, Limits(rounds_per_loop=9), "most", None) is None
    assert lowered_limit(VIEW, Limits(rounds_per_loop=None), "most") == ""
    assert lowered_limit(VIEW, Limits(rounds_per_loop=3), "most") == ""
    assert lowered_limit(VIEW, Limits(rounds_per_loop=2), "most") == (
        "most is 2 now: work that has begun keeps its limit of 3"
    )
