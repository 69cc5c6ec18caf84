"""`doctor` finds what is missing or broken, and says what to do."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Make, make
from tests.cli.project import Project, passed

__all__ = ["make"]

STEPS = {"steps": {"code": {"phase": "code"}, "review": {"reviews": "code"}}}


def looked(project: Project, code: int = 0, **env: str) -> dict[str, dict[str, Any]]:
    said = project.backedge("doctor", "--json", env=env)
    assert said.code == code, said
    return {each["name"]: each for each in json.loads(said.out)}


def program(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_a_machine_that_has_all_it_needs(make: Make) -> None:
    project = make(STEPS, review=[passed()])
    assert project.run().code == 0
    found = looked(project)
    assert found["journal"]["found"].startswith("1 run, ")
    assert found["workflow file"]["found"] == "backedge.yaml"
    assert {"git", "sandbox", "rooms for judges", "disk", "pytest", "claude"} <= found.keys()
    assert all(each["todo"] for each in found.values() if each["health"] != "good")


def test_what_the_workflow_needs_and_is_not_there(make: Make, tmp_path: Path) -> None:
    project = make(
        {"steps": {"code": {"agent": "claude", "phase": "code"}, "test": {"tests": "code", "run": ["nopytest"]}}}
    )
    program(tmp_path / "bin", "git", "echo git version 2.1.0")
    found = looked(project, 1, PATH=f"{tmp_path / 'bin'}")
    assert (found["git"]["health"], found["git"]["todo"]) == ("broken", "install git 2.25 or newer")
    assert found["claude"]["health"] == "broken"
    assert "npm install -g" in found["claude"]["todo"]
    assert "'nopytest' is not installed" in found["program"]["found"]
    assert found["codex"]["health"] == "missing"


def test_the_login_of_an_agent_cli(make: Make, tmp_path: Path) -> None:
    project = make(STEPS)
    program(tmp_path / "bin", "claude", "echo 2.1.3 '(Claude Code)'")
    env = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "HOME": str(tmp_path), "ANTHROPIC_API_KEY": ""}
    found = looked(project, 0, **env)
    assert found["claude"]["found"].startswith("2.1.3 at ")
    assert found["claude login"]["health"] == "missing"
    assert "ANTHROPIC_API_KEY" in found["claude login"]["todo"]
    assert looked(project, 0, **{**env, "ANTHROPIC_API_KEY": "k"})["claude login"]["health"] == "good"
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/.credentials.json").write_text("{}")
    assert looked(project, 0, **env)["claude login"]["found"] == "~/.claude/.credentials.json"


def test_an_agent_cli_that_does_not_start_is_broken_only_if_the_workflow_uses_it(make: Make, tmp_path: Path) -> None:
    program(tmp_path / "bin", "gemini", "exit 3")
    env = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    found = looked(make(STEPS), 0, **env)
    assert (found["gemini"]["health"], found["gemini"]["todo"]) == ("missing", "try `gemini --version`")
    using = make({"steps": {"code": {"agent": "gemini", "phase": "code"}}})
    assert looked(using, 1, **env)["gemini"]["health"] == "broken"


def test_a_damaged_journal_and_a_wrong_file(make: Make) -> None:
    project = make(STEPS, review=[passed()])
    assert project.run().code == 0
    path = project.folder / ".backedge/journal.db"
    path.write_bytes(path.read_bytes().replace(b'"step":"code"', b'"step":"cobe"', 1))
    (project.folder / "backedge.yaml").write_text("steps: {code: {agnt: 1}}")
    found = looked(project, 1)
    assert (found["journal"]["health"], found["workflow file"]["health"]) == ("broken", "broken")
    assert "move journal.db out of" in found["journal"]["todo"]
    assert "then `backedge restore FILE`" in found["journal"]["todo"]


@pytest.mark.parametrize("columns", ["60", "100"])
def test_the_screen(make: Make, columns: str) -> None:
    said = make(STEPS).backedge("doctor", env={"COLUMNS": columns})
    assert said.code == 0
    assert "✓ backedge " in said.out
    assert "none yet: the first run makes it" in said.out


def test_a_machine_without_git_and_bubblewrap_and_with_an_old_node(make: Make, tmp_path: Path) -> None:
    both = {"code": {"phase": "code", "run": ["nosuch"]}, "test": {"tests": "code", "run": ["nosuch"]}}
    project = make({"steps": both})
    program(tmp_path / "bin", "node", "echo v18.19.0")
    env = {"PATH": f"{tmp_path / 'bin'}"}
    found = looked(project, 1, **env)
    assert (found["git"]["health"], found["sandbox"]["health"]) == ("missing", "missing")
    assert "install the package bubblewrap" in found["sandbox"]["todo"]
    assert (found["node"]["health"], found["node"]["found"]) == ("missing", "18.19.0 is too old")
    assert found["program"]["found"] == "'nosuch' is not installed (steps 'code', 'test')"
    program(tmp_path / "bin", "node", "echo v20.20.2")
    assert found["node"]["todo"] != looked(project, 1, **env)["node"]["todo"] != ""
    program(tmp_path / "bin", "node", "echo v24.1.0")
    assert looked(project, 1, **env)["node"]["todo"] == ""
