"""Stories that depend on others, and epics: what waits, what can never start, and which stories a command works on."""

from __future__ import annotations

import pytest

from backedge.stories.rules.assessor import Story
from backedge.stories.rules.dependencies import Dependent, Hold, holds
from tests.stories.parts import Stories, rejected
from tests.stories.test_working import SMALL


def dependents(**needs: str) -> list[Dependent]:
    """Stories with their needs; those that begin with d are done, with s skipped."""
    return [
        Dependent(Story(id, status="done" if id[0] == "d" else "ready"), tuple(words.split()), skipped=id[0] == "s")
        for id, words in needs.items()
    ]


@pytest.mark.parametrize(
    ("stories", "expected"),
    [
        (dependents(a="done", done=""), {}),
        (dependents(a="B", B=""), {"a": Hold("waits for B (ready)")}),
        (dependents(a="b C done", b="", c="", done="a"), {"a": Hold("waits for b (ready), c (ready)")}),
        (dependents(a="s b", b="", s=""), {"a": Hold("waits for s (ready), b (ready)", skipped=True)}),
        (
            dependents(a="b", b="s", s="")[:1],
            {"a": Hold("dependencies: there is no story 'b': add it, or remove the dependency", mistake=True)},
        ),
        (
            dependents(a="cart", card=""),
            {"a": Hold("dependencies: there is no story 'cart': did you mean 'card'?", mistake=True)},
        ),
        (dependents(a="A"), {"a": Hold("dependencies form a circle: a → a: remove one of them", mistake=True)}),
        (
            dependents(a="b", b="c", c="b"),
            {
                "a": Hold("waits for b (ready)"),
                "b": Hold("dependencies form a circle: b → c → b: remove one of them", mistake=True),
                "c": Hold("dependencies form a circle: c → b → c: remove one of them", mistake=True),
            },
        ),
        (dependents(a="done", done="a"), {}),
        (dependents(done="nothing"), {}),
    ],
)
def test_what_holds_a_story(stories: list[Dependent], expected: dict[str, Hold]) -> None:
    assert holds(stories) == expected


def test_a_long_chain_is_looked_at_once() -> None:
    chain = dependents(**{f"n{each}": f"n{each + 1}" for each in range(20_000)}, n20000="")
    assert len(holds(chain)) == 20_000
    below = Dependent(Story("b", status="blocked", blocked_reason="why"), ())
    broken = Dependent(Story("t", trouble="not valid"), ())
    stopped = Dependent(Story("n", status="blocked"), ())
    (hold,) = holds([Dependent(Story("a"), ("b", "t", "n")), below, broken, stopped]).values()
    assert hold.reason == "waits for b, which is blocked: why, t, which cannot be worked on, n (blocked)"
    (skipped,) = holds([*dependents(a="b", b="", s="")[:1], Dependent(Story("b"), (), skipped=True)]).values()
    assert skipped.skipped


def test_a_story_waits_for_its_dependencies(project: Stories) -> None:
    project.workflow(steps=SMALL)
    project.story("First", priority=50)
    project.story("then", priority=1, dependencies=["FIRST"])
    project.story("last", priority=0, dependencies=["then", "first"], status="backlog")
    told = {each["story"]: each for each in project.json("next")}
    assert list(told) == ["First", "last", "then"]
    assert (told["then"]["kind"], told["then"]["priority"]) == ("wait", 9_001)
    assert told["last"]["reason"] == "waits for then (ready), First (ready)"
    assert "→ waits for First (ready)" in project.backedge("board", "--width", "160")[0]
    alone = project.auto("--story", "THEN", expect=3)
    assert "waits: then: waits for First (ready)" in alone and not project.executions()
    project.auto("--max-parallel", "3")
    assert [each[0] for each in project.executions()] == ["First", "First", "then", "then", "last", "last"]
    assert project.json("details", "LAST")["dependencies"] == ["then", "first"]


def test_a_blocked_dependency_and_mistakes_are_named_and_the_others_continue(project: Stories) -> None:
    project.workflow(steps=SMALL, limits={"rounds_per_loop": 0})
    project.story("bad")
    project.story("above", dependencies="bad")
    project.story("one", dependencies=["two"])
    project.story("two", dependencies=["one"])
    project.story("lost", dependencies=["badd"])
    project.story("good")
    project.script(bad={"review": [rejected("no login")]})
    said = project.auto(expect=3)
    assert "waits: above: waits for bad, which is blocked: Max refinement attempts (0/0): [blocker] no login" in said
    assert "for you: one: dependencies form a circle: one → two → one: remove one of them" in said
    assert "for you: lost: dependencies: there is no story 'badd': did you mean 'bad'?" in said
    assert {each[0] for each in project.executions()} == {"bad", "good"}
    warnings = project.json("check")["warnings"]
    assert "stories/lost.md: dependencies: there is no story 'badd': did you mean 'bad'?" in warnings
    assert "✗ lost" in project.backedge("board", "--width", "160")[0]
    assert "dependencies form a circle" in project.backedge("details", "two")[0]
    project.workflow({"on_breach": "skip"}, steps=SMALL, limits={"rounds_per_loop": 0})
    for name in ("one", "two", "lost"):
        (project.folder / "stories" / f"{name}.md").unlink()
    project.auto()  # what waits for a story that is skipped is skipped too


def test_epics_and_labels_select_stories(project: Stories) -> None:
    project.workflow(steps=SMALL)
    project.story("pay", epic="Checkout", labels=["shop", "Big one"], priority=9)
    project.story("cart", "# A cart\n", epic="checkout")
    project.story("other", epic="Search")
    assert [each["story"] for each in project.json("next", "--epic", "CHECKOUT")] == ["cart", "pay"]
    assert [each["story"] for each in project.json("next", "--label", "big one")] == ["pay"]
    assert "no story has the epic 'chekout': did you mean" in project.backedge("next", "--epic", "chekout", expect=2)[1]
    project.auto("--epic", "checkout")
    assert {each[0] for each in project.executions()} == {"pay", "cart"}
    board = project.backedge("board", "--width", "200")[0]
    assert "[Checkout] #shop #Big one" in board and "→ implement" in board and "A cart" in board
    active = project.backedge("board", "--active", "--width", "200")[0]
    assert "done" not in active and "pay" not in active and "other" in active
    cards = project.json("board", "--active", "--epic", "search")
    assert "done" not in cards
    assert [(each["epic"], each["next"], each["labels"]) for each in cards["ready"]] == [("Search", "implement", [])]
    details = project.backedge("details", "pay")[0]
    assert "epic Checkout, labels shop, Big one" in details
    assert "exclude each other" in project.backedge("run", "--epic", "search", "--story", "pay", expect=2)[1]
    assert "exclude each other" in project.backedge("run", "--auto", "--step", expect=2)[1]
    assert "--epic works on stories" in project.backedge("run", "--epic", "search", "--input", "a=1", expect=2)[1]


def test_a_story_that_cannot_be_read_is_not_missing(project: Stories) -> None:
    project.workflow(steps=SMALL)
    project.story("Broken", max_refinement_attempts=12)
    project.story("then", dependencies=["broken"])
    told = {each["story"]: each["reason"] for each in project.json("next")}
    assert told["then"] == "waits for Broken, which cannot be worked on"
