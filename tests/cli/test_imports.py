"""Interactive commands import only what they need. These tests check modules, not times."""

from __future__ import annotations

import subprocess
import sys

import pytest

from backedge.reading.story_runs import STORY
from backedge.stories.entry import RUN
from tests.cli.conftest import Make
from tests.cli.project import Project, failed

HEAVY = (
    "ruamel",
    "jsonschema",
    "pydantic",
    "rich",
    "backedge.stories",
    "backedge.config",
    "backedge.adapters.agents.clis",
)
"""Slow imports: YAML, declared types, the live frame, stories, workflow files and agent CLIs."""
LIGHT = {"backedge.config", "backedge.config.finding", "backedge.config.problems"}
"""Enough to find the workflow file."""
EXECUTING = {
    "backedge.app",
    "backedge.definition",
    "backedge.core.decide",
    "backedge.engine.engine",
    "backedge.engine.live_run",
    "backedge.engine.protocol",
}
"""What executes runs and answers them: the list of runs and its like need none of it."""

PROGRAM = """
import sys
from backedge.cli.running import code_of
sys.argv = ["backedge", *sys.argv[1:]]
code = code_of()
print("\\n".join(sys.modules), file=sys.stderr)
raise SystemExit(code)
"""


@pytest.fixture
def waiting(make: Make) -> Project:
    """A project with a run that waits for a decision."""
    project = make(
        {"steps": {"a": {"phase": "code"}, "b": {"reviews": "a"}}, "limits": {"rounds_per_loop": 1}},
        b=[failed("no login")],
    )
    assert project.run("--run", "only").code == 3
    return project


def imported(project: Project, *words: str) -> set[str]:
    """The modules that a command has imported when it ends."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        cwd=project.folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return set(done.stderr.split())


def is_heavy(module: str) -> bool:
    return module not in LIGHT and any(module == heavy or module.startswith(f"{heavy}.") for heavy in HEAVY)


@pytest.mark.parametrize(
    "words", [["runs"], ["inbox"], ["show"], ["decide", "E-1", "accept"], ["pause"], ["feedback", "list"]], ids=" ".join
)
def test_a_command_imports_only_what_it_uses(words: list[str], waiting: Project) -> None:
    assert sorted(filter(is_heavy, imported(waiting, *words))) == []


@pytest.mark.parametrize("words", [["runs", "--json"], ["inbox", "--json"], ["show"], ["stats"]], ids=" ".join)
def test_a_command_that_only_reads_imports_no_engine(words: list[str], waiting: Project) -> None:
    modules = imported(waiting, *words)
    assert sorted(module for module in modules if module in EXECUTING) == []


def test_an_answer_imports_the_engine(waiting: Project) -> None:
    assert imported(waiting, "pause") >= EXECUTING


def test_commands_that_need_a_workflow_file_import_its_reader(waiting: Project) -> None:
    assert any(map(is_heavy, imported(waiting, "check")))


def test_the_run_of_a_story_is_recognised_by_its_name() -> None:
    assert STORY == RUN
