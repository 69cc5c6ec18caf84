"""A run keeps the files that it started with: the workflow file, prompts and schemas."""

from __future__ import annotations

import json
import shutil
from typing import Any

from tests.cli.conftest import Make
from tests.cli.project import PYTHON, Project, Said, failed, passed

SCHEMA = {"type": "object", "required": ["page"]}
WORK: dict[str, Any] = {
    "steps": {
        "a": {"phase": "code", "schema": "out.json"},
        "ask": {"needs": ["a"], "agent": "human", "prompt": "question.md"},
        "b": {"needs": ["ask", "a"], "accepts": {"a": "out.json"}, "schema": "out.json"},
    }
}


def resumed_with_other_files(project: Project) -> Said:
    """A run that waits for a person, and continues after one file was edited and another one lost."""
    (project.folder / "out.json").write_text(json.dumps(SCHEMA))
    (project.folder / "question.md").write_text("Which way?")
    assert project.run("--run", "r-1").code == 3
    (project.folder / "out.json").write_text(json.dumps({"type": "string"}))
    (project.folder / "question.md").unlink()
    project.decide("E-1", "resolve", "--note", "left")
    said = project.backedge("resume", "r-1", "--plain")
    assert said.code == 0, said
    assert "out.json has changed since run r-1 started: the run continues with the old version" in said.err
    return said


def test_editing_or_losing_a_file_does_not_change_a_running_run(make: Make) -> None:
    project = make(WORK, a=[{"output": {"page": 1}}], b=[{"output": {"page": 2}}])
    said = resumed_with_other_files(project)
    assert "question.md has changed since run r-1 started" in said.err
    assert "backedge.yaml" not in said.err


def continued_from_the_journal_alone(project: Project) -> None:
    """The copies next to the journal are gone, as on another machine, and the workflow file has changed."""
    (project.folder / "out.json").write_text(json.dumps(SCHEMA))
    (project.folder / "question.md").write_text("Which way?")
    assert project.run("--run", "r-1").code == 3
    shutil.rmtree(project.folder / ".backedge" / "runs")
    (project.folder / "out.json").unlink()
    (project.folder / "question.md").unlink()
    project.write("name: other\nsteps: {x: {run: [echo]}}\n")
    project.decide("E-1", "resolve", "--note", "left")
    said = project.backedge("resume", "r-1", "--plain")
    assert said.code == 0, said
    assert project.show("r-1").outcome == "done"
    assert project.backedge("audit", "verify").code == 0


def test_the_journal_alone_is_enough_to_continue_a_run(make: Make) -> None:
    continued_from_the_journal_alone(make(WORK, a=[{"output": {"page": 1}}], b=[{"output": {"page": 2}}]))


def test_resume_says_nothing_about_unchanged_files(make: Make) -> None:
    project = make(WORK, a=[{"output": {"page": 1}}], b=[{"output": {"page": 2}}])
    (project.folder / "out.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(SCHEMA).encode())
    (project.folder / "question.md").write_text("Which way?")
    project.run()
    project.decide("E-1", "resolve", "--note", "left")
    assert "has changed" not in project.backedge("resume", "--plain").err


def test_resume_also_names_an_edited_workflow_file(make: Make) -> None:
    project = make({"steps": {"ask": {"agent": "human"}}})
    run = project.run().run
    project.write("name: other\nsteps: {x: {run: [echo]}}\n")
    said = project.backedge("resume", "--plain")
    assert f"backedge.yaml has changed since run {run} started: the run continues with the old version" in said.err


def test_the_agents_of_a_ladder_have_their_names_from_the_file(make: Make) -> None:
    agents = {name: {"run": [*PYTHON, "agent.py"]} for name in ("coder", "coder-strong")}
    steps = {"code": {"phase": "code", "agents": [*agents]}, "review": {"reviews": "code"}}
    replies = [failed("x"), failed("y"), passed()]
    project = make({"agents": agents, "steps": steps}, code=[{"output": n} for n in range(3)], review=replies)
    assert project.run().outcome == "verified"
    assert [told["agent"] for told in project.briefings("code")] == ["coder", "coder", "coder-strong"]
    timeline = project.backedge("show").out
    assert "▸ code (attempt 3) by coder-strong reworks L-1" in timeline and "code#2" not in timeline
    told = project.backedge("stats", "--json").json
    assert [each["agent"] for each in told["rework"]["by_phase_and_agent"]] == ["coder", "coder-strong"]


def planning(make: Make) -> Project:
    """A project in which only the added steps name files."""
    project = make({"steps": {"plan": {"phase": "planning", "plans": True}}})
    added = {
        "ask": {"needs": ["plan"], "agent": "human", "prompt": "question.md"},
        "b": {"run": [*PYTHON, "agent.py"], "needs": ["ask"], "schema": "out.json"},
    }
    project.script(plan=[{"add_steps": added}], b=[{"output": {"page": 2}}])
    return project


def test_files_that_only_added_steps_name_are_kept_from_when_they_joined(make: Make) -> None:
    resumed_with_other_files(planning(make))


def test_the_journal_alone_is_enough_to_continue_a_run_with_added_steps(make: Make) -> None:
    continued_from_the_journal_alone(planning(make))
