"""Problems of agents that only their adapters can find, before anything is started."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from backedge.adapters.agents.clis.cli import Options, refusals
from backedge.adapters.agents.clis.registry import CLIS
from backedge.adapters.agents.prompts import problems_of
from backedge.config import AgentSpec, WorkflowFile, load
from backedge.core.errors import WorkflowError
from backedge.project.functions import imported


def checked_file(path: Path, imports: bool = True) -> WorkflowFile:
    """A workflow file whose agents were checked as well. Raises WorkflowFileError with all problems.

    Its functions are imported, which executes their modules, unless `imports` is False.
    """
    return load(path, agent_problems if imports else _problems_without_importing)


def not_imported(source: WorkflowFile) -> list[str]:
    """The steps whose agents are Python functions."""
    return [
        step.name
        for step in source.definition.steps
        if any(name in source.agents and source.agents[name].kind == "python" for name in step.agents)
    ]


def _problems_without_importing(spec: AgentSpec, folder: Path) -> Iterator[tuple[str, str]]:
    return iter(()) if spec.kind == "python" else agent_problems(spec, folder)


def agent_problems(spec: AgentSpec, folder: Path) -> Iterator[tuple[str, str]]:
    """Each problem with the option that it is about, or with "" for the agent itself."""
    if spec.kind == "cli":
        yield from refusals(CLIS[spec.cli], options_of(spec))
        if spec.prompt is not None:
            yield from (("prompt", f"cannot be used: {problem}") for problem in problems_of(spec.prompt))
    elif spec.kind == "python":
        try:
            imported(spec.function, folder)
        except WorkflowError as error:
            yield "", str(error)


def options_of(spec: AgentSpec) -> Options:
    return Options(spec.model, spec.allowed_tools, spec.permission_mode, spec.max_turns, spec.max_budget_usd)
