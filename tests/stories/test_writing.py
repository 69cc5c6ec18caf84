"""A story file with several writers: no edit is lost, and no reader ever sees half a file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from backedge.stories.rules.front_matter import parse_story
from backedge.stories.story_file import rewrite, with_journal_fields
from tests.stories.parts import Stories, environment, rejected

STORY = "---\nid: a\ntitle: mine\n---\nText.\n"

COUNTS = """\
import fcntl, os, sys
from pathlib import Path
from backedge.stories.story_file import rewrite
path, name, number = Path(sys.argv[1]), sys.argv[2], 0
print("ready", flush=True)
while not sys.argv[3:] or number < int(sys.argv[3]):
    number += 1
    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)  # as those who write stories do
    rewrite(path, "a.md", lambda story: story.changed({name: number, "pad": "x" * 5_000}))
    os.close(lock)
"""


def counting(path: Path, name: str, *times: str) -> subprocess.Popen[str]:
    """A backedge process that writes a field repeatedly."""
    going = subprocess.Popen(
        [sys.executable, "-c", COUNTS, str(path), name, *times],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert going.stdout is not None
    assert going.stdout.readline() == "ready\n"
    return going


def test_two_processes_and_a_person_lose_nothing(tmp_path: Path) -> None:
    path, draft = tmp_path / "a.md", tmp_path / "draft"
    path.write_text(STORY)
    writers = [counting(path, name, "60") for name in ("one", "two")]
    lines = 0
    while any(writer.poll() is None for writer in writers):
        # An editor reads a file, the person types, and it saves: whatever was written there meanwhile.
        lines += 1
        draft.write_bytes(path.read_bytes() + f"line {lines}\n".encode())
        os.replace(draft, path)
        time.sleep(0.04)
    for writer in writers:
        writer.communicate(timeout=30)
    assert [writer.returncode for writer in writers] == [0, 0]
    story = parse_story(path.read_bytes(), "a.md")
    assert story.values["title"] == "mine"
    assert story.text[story.body :].splitlines() == ["Text.", *(f"line {number + 1}" for number in range(lines))]
    assert lines > 3


def test_kill_9_during_a_write_leaves_the_old_or_the_new_file(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text(STORY)
    for wait in (0.0, 0.003, 0.007, 0.012, 0.02):
        going = counting(path, "count")
        time.sleep(wait)
        going.send_signal(signal.SIGKILL)
        going.communicate(timeout=30)
        story = parse_story(path.read_bytes(), "a.md")
        assert story.text.endswith("---\nText.\n") and story.values["title"] == "mine"
        assert len(str(story.values.get("pad", ""))) in (0, 5_000)
    # What a dead process left is in nobody's way.
    assert rewrite(path, "a.md", lambda each: each.changed({"count": "last"}))
    assert parse_story(path.read_bytes(), "a.md").values["count"] == "last"


def test_an_unchanged_story_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text(STORY)
    path.chmod(0o640)
    before = path.stat()
    assert not rewrite(path, "a.md", lambda story: story.changed({"title": "mine"}))
    after = path.stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_mode) == (before.st_ino, before.st_mtime_ns, before.st_mode)
    assert rewrite(path, "a.md", lambda story: story.changed({"title": "new"}))
    assert path.stat().st_mode == before.st_mode
    assert [each.name for each in tmp_path.iterdir()] == ["a.md"]


def test_journal_fields_changed_by_a_person_are_restored_and_named() -> None:
    story = parse_story(STORY.replace("id: a", "id: a\nstatus: done\ncount: 0").encode(), "a.md")
    text, touched = with_journal_fields(story, {"status": "ready", "count": 0}, {"status": "ready", "count": 0})
    assert touched == ["status"]
    assert "status: ready\ncount: 0\n" in text
    assert with_journal_fields(story, {"status": "ready"}, None)[1] == []


@pytest.mark.parametrize("end", ["Text.\n", "Text.", "Text.\n\n", "Text.\r\n"])
def test_notes_are_appended_once_whatever_the_text_ends_with(end: str) -> None:
    story = parse_story(STORY.replace("Text.\n", end).encode(), "a.md")
    text, _ = with_journal_fields(story, {}, None, ["### Note 1\n\nwords\n"])
    assert text.startswith(story.text) and text.endswith("\n\n### Note 1\n\nwords\n")
    again, _ = with_journal_fields(parse_story(text.encode(), "a.md"), {}, None, ["### Note 1\n\nwords\n"])
    assert again == text


def test_people_edit_while_the_story_is_worked_on(project: Stories) -> None:
    path = project.story("a", title="first")
    project.script(a={"review": [rejected("wrong"), {"verdict": "pass"}]})
    for _ in range(5):
        project.backedge("run")
    text = path.read_text().replace('title: "first"', "title: second  # better").replace("Make it.", "Make it well.")
    path.write_text(
        text.replace("status: in-progress", "status: done").replace("refinement_count: 1", "refinement_count: 0")
    )
    said = project.auto()
    assert "stories/a.md: status was changed by hand and has been restored" in said
    assert "refinement_count was changed by hand and has been restored: use `backedge unblock STORY --reset`" in said
    after = path.read_text()
    assert "title: second  # better\n" in after and "\nMake it well.\n" in after
    assert project.says("a")["status"] == "done" and after.count("### Refinement Iteration 1") == 1


def test_a_note_that_a_person_deleted_is_not_added_again(project: Stories) -> None:
    path = project.story("a")
    project.script(a={"review": [rejected("wrong"), {"verdict": "pass"}]})
    for _ in range(5):
        project.backedge("run")
    head, mark, _ = path.read_text().partition("\n### Refinement")
    assert mark
    path.write_text(head)
    project.auto()
    assert "### Refinement" not in path.read_text()


def test_a_story_that_cannot_be_read_or_written_needs_a_person_and_the_others_continue(project: Stories) -> None:
    project.story("good")
    (project.folder / "stories" / "broken.md").write_text("---\ntitle: [x\n---\n")
    (project.folder / "stories" / "bad-below.md").write_text("---\nid: below\nstatus: ready\nx:\n  - a\n b\n---\n")
    (project.folder / "stories" / "README.md").write_text("About these stories.\n")
    (project.folder / "stories" / "twin.md").write_text("---\nid: same\n---\n")
    (project.folder / "stories" / "other.md").write_text("---\nid: same\n---\n")
    said = project.auto(expect=3)
    assert project.says("good")["status"] == "done"
    assert "for you: stories/broken.md:2:8: not valid YAML" in said
    assert "for you: stories/bad-below.md:" in said
    actions = {action["file"]: action for action in project.json("next")}
    assert actions["stories/broken.md"]["priority"] == 10_001
    assert "is also the id of stories/twin.md" in actions["stories/other.md"]["reason"]
    assert project.executions() and {each[0] for each in project.executions()} == {"good"}
