"""A story with its own git worktree stays in it, however its run continues."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.stories.parts import Stories, rejected
from tests.stories.test_working import until

COMMAND = ["sh", "-c", 'touch begun; sleep 1; pwd > made.txt; echo "{\\"output\\": $BACKEDGE_ATTEMPT}"']
STEPS = {
    "implement": {"phase": "code", "run": COMMAND, "writes": ["made.txt", "begun"]},
    "review": {"reviews": "implement"},
}


@pytest.fixture
def project(tmp_path: Path) -> Stories:
    project = Stories(tmp_path / "p", {"worktree": True}, steps=STEPS, limits={"rounds_per_loop": 1})
    project.story("a")
    who = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    for words in (["init", "-q"], ["add", "backedge.yaml", "agent.py"], ["commit", "-qm", "one"]):
        subprocess.run(["git", *who, *words], cwd=project.folder, check=True)
    return project


def tree(project: Stories) -> Path:
    return project.folder / ".backedge" / "worktrees" / "a"


def stands_in_its_worktree(project: Stories) -> bool:
    return (tree(project) / "made.txt").exists() and not (project.folder / "made.txt").exists()


def blocked(project: Stories) -> None:
    project.script(a={"review": [rejected("a"), rejected("b"), {"verdict": "pass"}]})
    project.auto(expect=3)
    project.backedge("decide", "E-1", "continue")


@pytest.mark.parametrize("way", [("resume", "s-a"), ("run", "--auto", "--story", "a")])
def test_after_a_kill_a_story_continues_in_its_worktree(project: Stories, way: tuple[str, ...]) -> None:
    going = project.start("run", "--auto")
    until((tree(project) / "begun").exists)
    going.kill()
    going.communicate(timeout=60)
    project.backedge(*way)
    assert stands_in_its_worktree(project)
    assert project.says("a")["status"] == "done"


@pytest.mark.parametrize("way", [("resume", "s-a"), ("run", "--auto")])
def test_a_missing_worktree_is_created_again(project: Stories, way: tuple[str, ...]) -> None:
    blocked(project)
    shutil.rmtree(tree(project))
    said = project.backedge(*way)[1]
    assert stands_in_its_worktree(project)
    assert "has changed since" not in said


def test_a_run_stays_in_its_worktree_after_worktrees_are_switched_off(project: Stories) -> None:
    blocked(project)
    project.workflow({}, steps=STEPS, limits={"rounds_per_loop": 1})
    (tree(project) / "made.txt").unlink()
    project.auto()
    assert stands_in_its_worktree(project)


def test_resume_passes_on_edits_of_the_story(project: Stories) -> None:
    blocked(project)
    path = project.folder / "stories" / "a.md"
    path.write_text(path.read_text().replace("Make it.", "Make it blue."))
    project.backedge("resume", "s-a")
    told = json.dumps(project.told("a", "review", 3)["input"])
    assert "Make it blue." in told
