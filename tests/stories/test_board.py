"""The board at any width, and stories by the thousand."""

from __future__ import annotations

import asyncio
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backedge.cli.board import _width, board_lines
from backedge.config import load
from backedge.project import find_project
from backedge.stories.backlog import read_backlog
from backedge.stories.entry import Entry
from backedge.stories.rules.assessor import STATUSES, assess
from backedge.stories.rules.summary import StorySummary
from tests.stories.parts import Stories

entries = st.builds(
    lambda slug, title, status, priority: Entry(
        f"{slug}.md",
        f"{slug}.md",
        StorySummary(slug, title, priority, status, None, "why" if status == "blocked" else ""),
    ),
    st.from_regex(r"[a-z]{1,30}", fullmatch=True),
    st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), max_size=60),
    st.sampled_from(STATUSES),
    st.integers(-5, 5),
)


@given(st.lists(entries, max_size=20), st.integers(20, 200))
def test_no_line_is_wider_than_the_terminal(stories: list[Entry], width: int) -> None:
    lines = list(board_lines(stories, width))
    assert not stories or max(map(_width, lines)) <= width


def test_columns_are_side_by_side_or_below_each_other() -> None:
    stories = [
        Entry(f"{status}.md", f"{status}.md", StorySummary(status, f"A {status} story", 0, status))
        for status in STATUSES
    ]
    wide = list(board_lines(stories, 120))
    assert wide[0].split(")")[0] == "backlog (1" and "blocked (1)" in wide[0]
    assert "✗ blocked" in wide[2]
    narrow = list(board_lines(stories, 40))
    # What somebody else had begun is ready here.
    assert [line for line in narrow if line.endswith(")")] == ["backlog (1)", "ready (2)", "done (1)", "blocked (1)"]
    assert next(board_lines([], 80)).startswith("there are no stories yet")


def test_a_long_column_says_how_much_is_left_out() -> None:
    stories = [Entry(f"s{n}.md", f"s{n}.md", StorySummary(f"s{n}", f"s{n}")) for n in range(40)]
    assert "… 28 more: --all" in "\n".join(board_lines(stories, 120))
    assert "more" not in "\n".join(board_lines(stories, 120, everything=True))


def test_details_of_a_story_that_has_not_started_or_cannot_be_read(project: Stories) -> None:
    project.story("a", title="Mine")
    (project.folder / "stories" / "b.md").write_text("---\nx: [\n---\n")
    assert project.backedge("details", "a")[0].endswith("not started yet\n")
    assert "cannot be worked on: stories/b.md:" in project.backedge("details", "b")[0]
    told = project.json("details", "a")
    assert (told["title"], told["next"]["kind"], told["refinement_iterations"]) == ("Mine", "research", [])
    assert "there is no story 'c'" in project.backedge("details", "c", expect=2)[1]
    assert "is not blocked: it is ready" in project.backedge("unblock", "a", expect=2)[1]


def test_a_story_in_a_read_only_folder_needs_a_person(project: Stories, monkeypatch: pytest.MonkeyPatch) -> None:
    project.story("a")
    source = load(project.folder / "backedge.yaml")
    monkeypatch.setattr(os, "access", lambda *_: False)
    (action,) = asyncio.run(read_backlog(source, find_project(source.path), None)).actions()
    assert (action.kind, action.priority) == ("person", 10_001)
    assert action.reason.startswith("stories/a.md cannot be written: ")


@pytest.mark.parametrize("count", [200, 2000])
def test_the_work_grows_no_faster_than_the_number_of_stories(count: int) -> None:
    looked: list[int] = []

    def counted() -> object:
        for number in range(count):
            looked.append(number)
            yield Entry("a.md", "a.md", StorySummary(f"s{number}", "t", number % 7, "ready")).story

    assert len(assess(counted())) == len(looked) == count  # type: ignore[arg-type]
