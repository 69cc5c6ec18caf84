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
