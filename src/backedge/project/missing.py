"""The programs of a workflow that are not on this machine."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from backedge.adapters.agents.clis.registry import CLIS
from backedge.config import AgentSpec, WorkflowFile
from backedge.core.model import HUMAN

_INSTALL = {
    "git": "install git (`apt install git`, `brew install git`, or https://git-scm.com/downloads)",
    "pytest": "run `pip install pytest`",
    "ruff": "run `pip install ruff`",
    "mypy": "run `pip install mypy`",
    "node": "install Node.js",
    "npm": "install Node.js",
    "npx": "install Node.js",
    "python": "install Python, or name `python3`",
}
"""How to install programs that many workflows use."""


def install_words(program: str) -> str:
    """How to install a program."""
    return _INSTALL.get(program, "install it")


def missing_programs(source: WorkflowFile) -> list[str]:
    """The programs that steps start but that are not on this machine: a sentence for each, with what to do."""
    found = []
    for step in source.definition.steps:
        for name in step.agents:
            spec = source.agents.get(name) if name != HUMAN else None
            problem = _missing(spec, source.steps[step.name].workspace) if spec else ""
            if problem:
                found.append(f"step {step.name!r}: {problem}")
    return list(dict.fromkeys(found))


def _missing(spec: AgentSpec, workspace: Path) -> str:
    path = spec.env.get("PATH", os.environ.get("PATH"))
    if spec.kind == "cli":
        package = CLIS[spec.cli].package
        return (
            "" if shutil.which(spec.cli, path=path) else f"{spec.cli} is not installed: run `npm install -g {package}`"
        )
    if spec.kind != "command":
        return ""
    program = spec.run[0]
    # A program with a folder in its name is relative to the workspace, where it is started.
    where = str(workspace / program) if "/" in program else program
    if shutil.which(where, path=path):
        return ""
    if os.path.isfile(where) and "/" in program:
        return f"{program!r} is not executable: run chmod +x on it, or name its interpreter first"
    return f"{program!r} is not installed: {install_words(program)}, or correct `run`"
