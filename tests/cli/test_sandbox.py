"""What an agent that is a command has in the sandbox of a real run: its briefing, its outcome and the views of the run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from backedge.adapters.evidence.sandbox import Sandbox

pytestmark = pytest.mark.skipif(not Sandbox().available(), reason=f"no sandbox: {Sandbox().available().reason}")

WORKFLOW = """
name: sandboxed
sandbox: bwrap
steps:
  code: {phase: code, run: [PYTHON, agent.py]}
"""
AGENT = """
import json, os, pathlib, subprocess, sys
briefing = json.load(sys.stdin)
scratchpad = pathlib.Path(briefing["scratchpad"])
seen = {"scratchpad": scratchpad.read_text()[:21], "state": sorted(os.listdir(".backedge"))}
try:
    scratchpad.write_text("forged")
except OSError as error:
    seen["error"] = error.strerror
raise_it = ["feedback", "raise", "--kind", "fix_request", "--to", "code", "--message", "hello"]
done = subprocess.run([sys.executable, "-m", "backedge.cli.main", *raise_it], capture_output=True, text=True)
seen["raised"] = [done.returncode, done.stderr]
pathlib.Path(os.environ["BACKEDGE_OUTCOME"]).write_text(json.dumps({"output": seen}))
"""


def seen_inside(folder: Path, sandbox: str) -> dict[str, Any]:
    """What the agent of a run reports about its surroundings."""
    workflow = WORKFLOW.replace("PYTHON", json.dumps(sys.executable)).replace("bwrap", sandbox)
    (folder / "backedge.yaml").write_text(workflow)
    (folder / "agent.py").write_text(AGENT)
    env = {**os.environ, "BACKEDGE_SANDBOX": ""}
    argv = [sys.executable, "-m", "backedge.cli.main", "run", "--json"]
    done = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    output: dict[str, Any] = json.loads(done.stdout)["steps"]["code"]["output"]
    return output


@pytest.mark.parametrize("sandbox", ["bwrap", "auto"])
def test_an_agent_reads_the_scratchpad_and_writes_its_outcome(tmp_path: Path, sandbox: str) -> None:
    seen = seen_inside(tmp_path, sandbox)
    assert (seen["scratchpad"], seen["error"]) == ("# Feedback scratchpad", "Read-only file system")
    assert seen["state"] == ["attempts", "runs"]


def test_the_journal_cannot_be_reached(tmp_path: Path) -> None:
    code, said = seen_inside(tmp_path, "bwrap")["raised"]
    assert code == 2
    assert "there is no journal" in said


@pytest.mark.parametrize("sandbox", ["bwrap", "off"])
def test_a_step_that_may_not_install_is_told_what_would_let_it(tmp_path: Path, sandbox: str) -> None:
    script = "echo x > .venv/pyvenv.cfg; echo 'pip: Read-only file system' >&2; exit 1"
    steps = {"code": {"phase": "code", "run": ["sh", "-c", script]}}
    workflow = {"sandbox": sandbox, "limits": {"errors_in_a_row": 1}, "steps": steps}
    (tmp_path / "backedge.yaml").write_text(json.dumps(workflow))
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "pyvenv.cfg").write_text("home = /usr\n")
    argv = [sys.executable, "-m", "backedge.cli.main", "run"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 3
    assert ("in its sandbox, which refused a write; installs: true lets it" in done.stderr) is (sandbox == "bwrap")


PROGRAMS: dict[str, str] = {
    "./not-there": "there is no such program; install it, or correct `run`",
    "./folder": "it is not executable; run chmod +x on it, or name its interpreter first",
    "./odd": "the interpreter in its #! line does not exist; install it",
    "./noise": "it is not a program and has no #! line; name its interpreter first",
}


@pytest.mark.parametrize("role", ["code", "judge"])
@pytest.mark.parametrize("sandbox", ["off", "bwrap"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_that_cannot_start_is_explained_alike_with_and_without_a_sandbox(
    tmp_path: Path, program: str, sandbox: str, role: str
) -> None:
    good, bad = json.dumps(["sh", "-c", "echo '{\"output\": 1}'"]), json.dumps([program])
    code, judge = (bad, good) if role == "code" else (good, bad)
    (tmp_path / "backedge.yaml").write_text(
        f"name: w\nsandbox: {sandbox!r}\nlimits: {{errors_in_a_row: 1}}\nsteps:\n"
        f"  code: {{phase: code, run: {code}}}\n"
        f"  judge: {{reviews: code, run: {judge}}}\n"
    )
    for name, text, mode in (("odd", "#!/no/such\n", 0o755), ("noise", "\1\2", 0o755)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    (tmp_path / "folder").mkdir()
    env = {**os.environ, "BACKEDGE_SANDBOX": ""}
    argv = [sys.executable, "-m", "backedge.cli.main", "run", "--json"]
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False)
    error = json.loads(done.stdout)["steps"][role]["last_error"]
    assert error == f"cannot start {program!r}: {PROGRAMS[program]}"


@pytest.mark.parametrize("sandbox", ["off", "bwrap"])
def test_a_workspace_that_is_gone_is_explained_alike_with_and_without_a_sandbox(tmp_path: Path, sandbox: str) -> None:
    (tmp_path / "gone").mkdir()
    (tmp_path / "backedge.yaml").write_text(
        f"name: w\nsandbox: {sandbox!r}\nlimits: {{errors_in_a_row: 1}}\nsteps:\n"
        "  plan: {phase: planning, run: [sh, -c, 'rmdir gone; echo {}']}\n"
        "  code: {phase: code, needs: [plan], workspace: gone, run: ['true']}\n"
    )
    env = {**os.environ, "BACKEDGE_SANDBOX": ""}
    argv = [sys.executable, "-m", "backedge.cli.main", "run", "--json"]
    done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False)
    error = json.loads(done.stdout)["steps"]["code"]["last_error"]
    assert error == f"the workspace '{tmp_path / 'gone'}' is not a folder; make it, or correct `workspace`"


def test_resume_says_what_confines_the_agents_as_run_does(tmp_path: Path) -> None:
    (tmp_path / "backedge.yaml").write_text(
        "name: w\nsandbox: bwrap\nsteps:\n  a: {phase: planning, run: [sh, -c, 'echo {}']}\n"
        "  b: {phase: code, needs: [a], run: [sh, -c, 'echo {}']}\n"
    )
    env = {**os.environ, "BACKEDGE_SANDBOX": ""}
    for words in (["run", "--step"], ["resume", "--step"]):
        argv = [sys.executable, "-m", "backedge.cli.main", *words]
        done = subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("agents run in bubblewrap") == 1


def test_stories_say_what_confines_their_agents_as_runs_do(tmp_path: Path) -> None:
    (tmp_path / "stories").mkdir()
    (tmp_path / "backedge.yaml").write_text(
        "name: w\nsandbox: bwrap\nstories: {}\nsteps:\n  a: {phase: code, run: [sh, -c, 'echo {}']}\n"
    )
    command = [sys.executable, "-m", "backedge.cli.main", "run"]
    for words in (["--auto"], ["--run", "one"]):
        done = subprocess.run([*command, *words], cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert "agents run in bubblewrap" in done.stderr.splitlines(), (words, done)
