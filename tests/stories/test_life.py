"""What happens to stories over time: deleted, renamed, in doubt, unblocked, and files that a killed write left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from backedge.stories.left_over import clear_left_over, draft_name
from tests.stories.parts import Stories
from tests.stories.test_working import ALWAYS, SMALL, until


def test_the_run_of_a_deleted_story_does_not_stay_running(project: Stories) -> None:
    project.workflow(steps=SMALL)
    path = project.story("Gone")
    project.backedge("run")
    assert project.json("runs")[0]["outcome"] == "running"
    text = path.read_text()
    path.unlink()
    (head,) = project.json("runs")
    assert (head["outcome"], head["state"], head["next"]) == ("waiting", "no story", "backedge cancel s-Gone")
    told = project.backedge("runs")[0]
    assert "its story has been deleted: restore the file, or end the run" in told
    # The file comes back, with its id in another case: it is the same story, and its run goes on.
    path.with_name("gone.md").write_text(text.replace('"Gone"', "gone"))
    assert project.json("runs")[0]["state"] == "stopped"
    project.auto()
    assert (project.says("gone")["status"], len(project.json("runs"))) == ("done", 1)
    assert project.json("show", "S-GONE")["outcome"] == "verified"
    assert [each[1] for each in project.executions()] == ["implement", "review"]
    project.story("GONE")
    assert "is also the id of stories/gone.md" in project.json("next")[0]["reason"]


def test_a_story_in_doubt_is_asked_about_and_no_rounds_are_offered(project: Stories) -> None:
    project.workflow(steps={**SMALL, "implement": {"phase": "code", "on_doubt": "ask"}})
    project.story("a")
    project.script(a={"implement": [{"!sleep": 60}, {}]})
    going = project.start("run", "--auto")
    until(project.executions)
    until(lambda: project.says("a").get("status") == "in-progress")
    agents = _agents(project)
    assert agents
    going.kill()
    going.communicate(timeout=60)
    for agent in agents:
        os.kill(agent, signal.SIGKILL)
    said = project.auto(expect=3)
    assert "for you: a: attempt 1 of 'implement' is in doubt" in said
    details = project.backedge("details", "a")[0]
    assert "rounds, " not in details and "grants more rounds" not in details + said
    assert "`backedge decide E-1 continue|skip|cancel --run s-a` answers its question" in details
    # A1-19: it has a plan and no implementation, so it is ready again.
    assert project.backedge("unblock", "a")[0].startswith("a is ready")
    assert (project.says("a")["status"], project.says("a")["implementation_complete"]) == ("ready", False)
    project.auto()
    assert project.says("a")["status"] == "done"


def _agents(project: Stories) -> list[int]:
    """The processes of the agents of a project."""
    found = subprocess.run(["ps", "-ww", "-eo", "pid=,args="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(maxsplit=1) for line in found.splitlines()]
    return [int(pid) for pid, words in rows if words.endswith(str(project.folder / "agent.py"))]


@pytest.mark.parametrize(
    ("flags", "status"),
    [
        ({"implementation_complete": True, "plan_complete": True}, "in-progress"),
        ({"plan_complete": True}, "ready"),
        ({}, "backlog"),
    ],
)
def test_a1_19_the_status_of_a_story_without_a_run_follows_its_flags(
    project: Stories, flags: dict[str, object], status: str
) -> None:
    counts = {"refinement_count": 3, "retry_count": 2, "total_recovery_attempts": 10}
    project.story("a", status="blocked", **flags, **counts)
    project.backedge("unblock", "A", "--reset")
    story = project.says("a")
    assert (story["status"], *(story[name] for name in counts)) == (status, 0, 0, 0)


def test_for_you_keeps_the_name_of_the_story(project: Stories) -> None:
    project.workflow(steps=SMALL, limits={"rounds_per_loop": 0})
    project.story("M")
    project.script(M=ALWAYS)
    assert "for you: M: Max refinement attempts (0/0)" in project.auto(expect=3)


def test_details_name_the_worktree(tmp_path: Path) -> None:
    project = Stories(tmp_path / "p", {"worktree": True}, steps=SMALL)
    project.story("a")
    who = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    for words in (["init", "-q"], ["add", "backedge.yaml", "agent.py"], ["commit", "-qm", "one"]):
        subprocess.run(["git", *who, *words], cwd=project.folder, check=True)
    assert project.json("details", "a")["worktree"] is None
    project.backedge("run")
    tree = project.folder / ".backedge" / "worktrees" / "a"
    assert project.json("details", "a")["worktree"] == str(tree)
    assert f"worktree {tree}\n" in project.backedge("details", "a")[0]


DEAD = 2**22 - 7
"""A process that does not exist: numbers this high are not given out."""


def left(path: Path, contents: bytes, old: bytes, new: bytes, pid: int = DEAD) -> Path:
    name = draft_name(path.name, old, new).replace(f".{os.getpid()}.", f".{pid}.")
    draft = path.with_name(name)
    draft.write_bytes(contents)
    return draft


def test_what_a_killed_write_left_is_removed_and_an_edit_in_it_restored(project: Stories) -> None:
    project.workflow(steps=SMALL)
    path = project.story("a", status="done")
    old, new, edit = b"old", path.read_bytes(), path.read_bytes() + b"My edit.\n"
    drafts = [
        left(path, new[:9], old, new),  # killed while it wrote the draft, before it was exchanged
        left(path.with_name("b.md"), b"x", old, new),
        path.with_name(f".a.md.{DEAD}.new"),
    ]
    drafts[2].write_bytes(b"of an earlier version")
    path.write_bytes(old_file := new.replace(b"Make", b"Mark"))
    drafts.append(left(path, new, old_file, new))  # complete, but not exchanged
    living = left(path, b"y", old, new, os.getpid())
    assert clear_left_over(path.parent) == []
    assert [draft.exists() for draft in drafts] == [False] * 4 and living.exists()
    assert path.read_bytes() == old_file
    # Killed after the exchange: what was in the file is in the draft. It was saved at the last moment.
    path.write_bytes(new)
    left(path, old, old, new)
    left(path, edit, old, new)
    project.auto()
    assert path.read_bytes() == edit
    assert sorted(each.name for each in path.parent.iterdir()) == sorted(["a.md", living.name])


def test_the_note_of_a_refinement_has_the_evidence_and_the_words_of_the_judge(project: Stories) -> None:
    project.workflow(steps=SMALL)
    project.story("a")
    evidence = "ImportError while importing\nModuleNotFoundError: No module named 'jwt'"
    failing = {
        "verdict": "fail",
        "summary": "nothing can be tested",
        "findings": [{"description": "no tests", "evidence": evidence}],
    }
    project.script(a={"review": [failing, {"verdict": "pass"}]})
    project.auto()
    text = project.text("a")
    assert (
        "- [high] no tests\n  Evidence: ModuleNotFoundError: No module named 'jwt'\n- review says: nothing can be tested"
        in text
    )
    assert "review says" not in json.dumps(project.told("a", "implement", 2)["input"])  # a note is no part of the task


def test_the_file_of_a_story_says_no_more_about_a_held_out_check_than_agents_are_told(project: Stories) -> None:
    project.workflow(steps={**SMALL, "secret": {"tests": "implement", "hidden": True}})
    project.story("a")
    failing = {
        "verdict": "fail",
        "summary": "the total of 7 is 8",
        "findings": [{"description": "refund(7) is 8", "evidence": "7 != 8"}],
    }
    project.script(a={"secret": [failing, {"!exit": 3}, *[failing] * 3]})
    project.auto(expect=3)
    assert project.says("a")["status"] == "blocked" and "a held-out check failed" in project.text("a")
    for words in ("refund", "7 != 8", "the total of 7"):
        assert words not in project.text("a")
