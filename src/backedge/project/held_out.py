"""The files of held-out judges: outside the workspace, and out of sight of the agents that are judged by them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from backedge.config import AgentSpec, WorkflowFile

_SYSTEM = tuple(
    Path(each)
    for each in ("/bin", "/sbin", "/lib", "/lib64", "/usr", "/etc", "/opt", "/dev", "/proc", "/sys", "/run", "/nix")
)


def held_out_files(source: WorkflowFile) -> tuple[Path, ...]:
    """What a sandbox hides from all agents: the folders and files outside every workspace that the commands of hidden judges
    name, and the workspaces of hidden judges in which nobody else works."""
    open_folders = _workspaces(source, hidden=False)
    found = [path for path in _workspaces(source, hidden=True) if _can_be_hidden(path, open_folders)]
    for _, spec, workspace in _hidden_agents(source):
        for path in _named(spec, workspace):
            folder = path if path.is_dir() else path.parent
            # Beside a script there are often the tests that it runs.
            found += [each for each in (folder, path) if _can_be_hidden(each, open_folders)][:1]
    return tuple(dict.fromkeys(found))


def held_out_warnings(source: WorkflowFile, sandbox: Mapping[str, str]) -> list[str]:
    """What gives a held-out judge away."""
    found = []
    folders = _workspaces(source, hidden=False)
    for step, spec, workspace in _hidden_agents(source):
        inside = [path for path in _named(spec, workspace) if any(path.is_relative_to(each) for each in folders)]
        found += [
            f"step {step!r} is hidden, but agents can read {os.path.relpath(path, source.folder)}: "
            "keep its files outside the workspace"
            for path in inside
        ]
    free = [name for name, kind in sandbox.items() if kind == "none"]
    hidden = [step.name for step in source.definition.steps if step.hidden]
    if hidden and free:
        found.append(
            f"{', '.join(hidden)} is hidden, but nothing keeps {', '.join(free)} from reading its files: "
            "set `sandbox: bwrap`, where bubblewrap works"
        )
    return list(dict.fromkeys(found))


def _hidden_agents(source: WorkflowFile) -> Iterator[tuple[str, AgentSpec, Path]]:
    for step in source.definition.steps:
        for name in step.agents if step.hidden else ():
            spec = source.agents.get(name)
            if spec is not None and spec.run and step.name in source.steps:
                yield step.name, spec, source.steps[step.name].workspace


def _workspaces(source: WorkflowFile, hidden: bool) -> list[Path]:
    steps = (step.name for step in source.definition.steps if step.hidden is hidden and step.name in source.steps)
    return list(dict.fromkeys(_real(source.steps[name].workspace) for name in steps))


def _named(spec: AgentSpec, workspace: Path) -> Iterator[Path]:
    """The files and folders that exist and that a command or its own environment names."""
    for word in (*spec.run, *(part for value in spec.env.values() for part in value.split(os.pathsep))):
        text = word.rpartition("=")[2].partition("::")[0]
        if "/" in text and (path := workspace / text).exists():
            yield _real(path)


def _can_be_hidden(path: Path, workspaces: list[Path]) -> bool:
    """Whether agents need nothing of it: not a system folder, a Python environment, a workspace, or what holds one."""
    needed = [*workspaces, _real(Path.home()), Path("/tmp")]
    if any(each.is_relative_to(path) for each in needed) or any(path.is_relative_to(each) for each in workspaces):
        return False
    installed = any((folder / "pyvenv.cfg").is_file() for folder in (path, *path.parents))
    return not installed and not any(path.is_relative_to(each) for each in _SYSTEM)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
