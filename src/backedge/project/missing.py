"""The programs of a workflow that are not on this machine, or cannot be started as the file names them."""

from __future__ import annotations

import os
import re
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
    "python3": "install Python 3",
    "uv": "run `pip install uv`",
    "make": "install make",
}
"""How to install programs that many workflows use."""
_INTERPRETER_OF = {".py": "python3", ".sh": "sh", ".js": "node", ".mjs": "node", ".cjs": "node", ".rb": "ruby"}
_INTERPRETERS = ("python", "python3", "sh", "bash", "node", "ruby", "perl")


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


def unusable_script(spec: AgentSpec, workspace: Path) -> str:
    """What keeps a script of the workspace from starting, with the fix; empty if nothing does.

    It looks only at files that are there: a program that is missing now may be made by an earlier step."""
    if spec.kind != "command" or _which(spec, workspace):
        return ""
    program = spec.run[0]
    if not (workspace / program).is_file():
        return ""
    instead = _with_interpreter(program, workspace / program)
    if "/" in program:
        return f"{program!r} is not executable: run `chmod +x {program}`{instead}"
    if os.access(workspace / program, os.X_OK):
        return f"{program!r} is in the workspace and not on the PATH: write './{program}'"
    return f"{program!r} is in the workspace and not on the PATH: write './{program}' and run `chmod +x {program}`{instead}"


def one_word(spec: AgentSpec) -> str:
    """The fix for a command line that was written as one word; empty if it is none."""
    program, *words = spec.run
    apart = program.split()
    return f"{program!r} is one word: write [{', '.join(apart)}]" if len(apart) > 1 and not words else ""


def _missing(spec: AgentSpec, workspace: Path) -> str:
    if spec.kind == "cli":
        package = CLIS[spec.cli].package
        return "" if _which(spec, workspace) else f"{spec.cli} is not installed: run `npm install -g {package}`"
    if spec.kind != "command":
        return ""
    program, *words = spec.run
    if _which(spec, workspace):
        script = words[0] if words and os.path.basename(program) in _INTERPRETERS else ""
        if re.fullmatch(r"[\w./-]+\.\w+", script) and not script.startswith("-") and not (workspace / script).exists():
            return f"there is no file {script!r} for {program}: correct the path, or make sure that an earlier step writes it"
        return ""
    if why := one_word(spec):
        return why
    if "/" in program and not (workspace / program).exists():
        return f"there is no file {program!r}: correct the path, or make sure that an earlier step writes it"
    return (
        unusable_script(spec, workspace) or f"{program!r} is not installed: {install_words(program)}, or correct `run`"
    )


def _which(spec: AgentSpec, workspace: Path) -> str | None:
    """Where the program of an agent is."""
    program = spec.cli if spec.kind == "cli" else spec.run[0]
    # A program with a folder in its name is relative to the workspace, where it is started.
    where = str(workspace / program) if "/" in program else program
    return shutil.which(where, path=spec.env.get("PATH", os.environ.get("PATH")))


def _with_interpreter(program: str, path: Path) -> str:
    """How to start a script without changing its rights; empty if nothing tells its language."""
    try:
        with path.open("rb") as file:
            first = file.readline(200).decode("utf-8", "replace")
    except OSError:
        first = ""
    named = os.path.basename(first[2:].split()[-1]) if first.startswith("#!") and first[2:].split() else ""
    interpreter = named or _INTERPRETER_OF.get(path.suffix, "")
    return f", or write [{interpreter}, {program}]" if interpreter else ", or name its interpreter first"
