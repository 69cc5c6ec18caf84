"""Files in the folder of stories that are not stories, or invalid ones."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.stories.parts import Stories


def test_a_pipe_in_the_folder_is_reported_and_does_not_block(project: Stories) -> None:
    project.story("a")
    os.mkfifo(project.folder / "stories" / "pipe.md")
    said = {each["file"]: each["reason"] for each in project.json("next")}
    assert said["stories/pipe.md"] == "stories/pipe.md cannot be read: it is not a file: make it readable"
    assert next(iter(said)) == "stories/a.md"


@pytest.mark.parametrize("line", ["title: a\x00b", "x:\n  - a: [1", "title: [a, b]", "title: {a: b}"])
def test_next_and_run_report_the_same_error_for_an_invalid_story(project: Stories, line: str) -> None:
    path = project.story("a")
    path.write_text(f"---\nid: a\nstatus: ready\n{line}\n---\nMake it.\n")
    (said,) = project.json("next")
    assert said["kind"] == "person" and said["reason"].startswith("stories/a.md:")
    assert said["reason"] in project.auto(expect=3)
    assert not project.executions()


def test_without_its_folder_a_project_with_stories_starts_nothing(project: Stories) -> None:
    shutil.rmtree(project.folder / "stories")
    for words in (["run"], ["run", "--auto"], ["next"]):
        assert "there is no folder stories/" in project.backedge(*words, expect=2)[1]
    assert not project.executions() and not (project.folder / ".backedge").exists()
