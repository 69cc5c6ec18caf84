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


def other_story(project: Stories, *, tampers: str) -> None:
    """A second story. The agent of the first one does something, and the tests fail for both."""
    work = {"phase": "code", "run": ["sh", "-c", f"{tampers}; echo {{}}"], "sandbox": "off"}
    check = {"tests": "implement", "run": ["sh", "-c", "exit 1"], "report": "exitcode"}
    project.workflow({"worktree": True}, steps={"implement": work, "check": check}, limits={"rounds_per_loop": 1})
    project.story("b")
    git(project, "commit", "-qam", "two")


def git(project: Stories, *words: str) -> None:
    who = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    subprocess.run(["git", *who, *words], cwd=project.folder, check=True)


def test_an_agent_that_edits_the_workflow_file_changes_no_other_story(project: Stories) -> None:
    other_story(project, tampers="sed -i 's/exit 1/exit 0/' ../../../backedge.yaml")
    project.auto(expect=3)
    assert "exit 0" in (project.folder / "backedge.yaml").read_text()
    assert [project.says(id)["status"] for id in "ab"] == ["blocked", "blocked"]


def test_a_story_does_not_begin_on_a_branch_that_somebody_else_has_made(project: Stories) -> None:
    other_story(project, tampers="true")
    for words in (
        ["switch", "-qc", "story/b"],
        ["commit", "-q", "--allow-empty", "-m", "three"],
        ["switch", "-q", "-"],
    ):
        git(project, *words)
    said = project.auto(expect=1)
    assert "the branch story/b has 1 commits that HEAD does not have" in said
    git(project, "branch", "-qm", "story/b", "other")
    project.auto(expect=3)
    assert project.says("b")["status"] == "blocked"


def test_a_story_does_not_begin_in_a_worktree_that_somebody_else_has_filled(project: Stories) -> None:
    other_story(project, tampers="true")
    place = project.folder / ".backedge" / "worktrees" / "b"
    git(project, "worktree", "add", "-q", "-b", "story/b", str(place), "HEAD~1")
    (place / "agent.py").write_text("weaker\n")
    said = project.auto(expect=1)
    assert "is there already, and no run of story b has made it: it has agent.py; look at it" in said
    git(project, "-C", str(place), "update-index", "--assume-unchanged", "agent.py")
    # It looks clean now: it is made again, from HEAD.
    project.auto(expect=3)
    assert (place / "agent.py").read_bytes() == (project.folder / "agent.py").read_bytes()
    assert "exit 1" in (place / "backedge.yaml").read_text()


def test_a_story_does_not_begin_in_another_repository(project: Stories) -> None:
    other_story(project, tampers="true")
    git(project, "clone", "-q", ".", ".backedge/worktrees/b")
    said = project.auto(expect=1)
    assert "no run of story b has made it: it has a repository of its own, or none" in said


def test_a_story_does_not_begin_with_hooks_that_another_one_has_left(project: Stories) -> None:
    other_story(project, tampers="echo true > ../../../.git/hooks/post-checkout")
    said = project.auto(expect=1)
    assert "git's settings have changed since this command began: .git/hooks" in said


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of its own: git's settings for all repositories are there."""
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / ".gitconfig").write_text("[user]\n name = Ann\n email = ann@localhost\n[core]\n hooksPath = ~/hooks\n")
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / ".config"))
    return folder


def test_a_story_does_not_begin_with_settings_that_another_one_has_left_at_home(project: Stories, home: Path) -> None:
    other_story(project, tampers=f"echo '[core] attributesFile = ~/weaker' >> {home}/.gitconfig")
    said = project.auto(expect=1)
    assert "git's settings have changed since this command began: ~/.gitconfig" in said


def test_a_story_does_not_begin_with_hooks_that_another_one_has_left_at_home(project: Stories, home: Path) -> None:
    other_story(project, tampers=f"mkdir {home}/hooks && echo true > {home}/hooks/post-checkout")
    said = project.auto(expect=1)
    assert "git's settings have changed since this command began: core.hooksPath" in said


def test_the_work_of_a_story_is_merged_as_it_was_judged(project: Stories) -> None:
    git(project, "config", "user.name", "t")
    git(project, "config", "user.email", "t@localhost")
    project.auto()
    assert "→ backedge merge a\n" in project.backedge("worktrees")[0]
    made = tree(project) / "made.txt"
    judged = made.read_text()
    made.write_text("edited since")
    assert "are not those that were judged" in project.backedge("merge", "a", expect=2)[1]
    made.write_text(judged)
    said = project.backedge("merge", "A")[0]
    assert said.startswith("merged s-a (verified) into ") and "begun, made.txt\n  removed: " in said
    assert (project.folder / "made.txt").read_text() == judged
    words = ["git", "log", "-1", "--format=%s %(trailers:key=Backedge-Run,separator=%x2c)"]
    log = subprocess.run(words, cwd=project.folder, check=True, capture_output=True, text=True).stdout
    assert log == "a Backedge-Run: s-a\n", "the title of the story, and its run"
    assert project.backedge("worktrees")[0].startswith("no worktrees")
    assert "it was merged as" in project.backedge("merge", "s-a", expect=2)[1]


def test_an_open_story_is_not_merged_and_what_an_earlier_run_left_is_merged_with_the_rest(project: Stories) -> None:
    git(project, "config", "user.name", "t")
    git(project, "config", "user.email", "t@localhost")
    blocked(project)
    (tree(project) / "begun").rename(tree(project) / "earlier")
    assert "run s-a has not ended, so its work is not merged" in project.backedge("merge", "a", expect=2)[1]
    project.backedge("cancel", "s-a")
    project.backedge("unblock", "a")
    project.script(a={"review": [{"verdict": "pass"}]})
    project.auto()
    assert "begun, earlier, made.txt" in project.backedge("merge", "a")[0]


def test_the_work_of_a_story_is_discarded_as_a_patch(project: Stories) -> None:
    project.auto()
    assert "2 changed files that are not merged (begun, made.txt)" in project.backedge("discard", "a", expect=2)[1]
    assert "its changes are kept in " in project.backedge("discard", "a", "--yes")[0]
    assert not tree(project).exists()


def test_a_story_says_if_the_work_it_depends_on_is_not_merged(project: Stories) -> None:
    git(project, "config", "user.name", "t")
    git(project, "config", "user.email", "t@localhost")
    project.story("b", dependencies=["A"])
    project.story("c", dependencies=["a", "b"])
    said = project.auto("--story", "a") + project.auto("--story", "b")
    why = "it does not see the work of {}, which is not merged: `backedge merge {}` first"
    assert f"b |            {why.format('a', 'a')}\n" in said
    project.backedge("merge", "a")
    said = project.auto("--story", "c")
    assert why.format("b", "b") in said and why.format("a", "a") not in said
