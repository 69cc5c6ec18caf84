"""A folder with a workflow file: where its state lives, and who executes its steps."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from backedge.adapters.agents.command import CommandAgent
from backedge.adapters.agents.function import FunctionAgent
from backedge.adapters.reports.spec import ReportSpec
from backedge.config import AgentSpec, StepExtras, WorkflowFile, WorkflowFileError, find, load
from backedge.config.workflow_file import workflow_file
from backedge.core.errors import WorkflowError
from backedge.core.model import HUMAN
from backedge.core.workflow import Step, Workflow
from backedge.ports import Agent

STATE = ".backedge"
JOURNAL = "journal.db"


@dataclass(frozen=True)
class Place:
    """Where a project keeps its state: beside the workflow file, or where the user says."""

    folder: Path
    journal: Path

    @property
    def state(self) -> Path:
        return self.journal.parent

    def kept_file(self, run: str) -> Path:
        """The workflow file as it was when the run started: a run keeps the workflow it started with."""
        safe = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in run)
        return self.state / "runs" / safe / "backedge.yaml"


@dataclass(frozen=True)
class FileWorkflow:
    """A workflow from a file, with those who execute it."""

    definition: Workflow
    agents: Mapping[str, Agent]


def place(file: Path | None = None, journal: Path | None = None, start: Path | None = None) -> Place:
    """The place of a project: by its file, by its journal, or by the folder one is in. Raises WorkflowFileError."""
    if file is not None:
        folder = file.parent.resolve()
    elif journal is not None:
        folder = journal.parent.resolve()
    else:
        folder = _project_folder(start or Path.cwd())
    return Place(folder, (journal or folder / STATE / JOURNAL).absolute())


def _project_folder(start: Path) -> Path:
    try:
        return find(start).parent
    except WorkflowFileError:
        # A journal without its file can still be asked and answered.
        for folder in (start.resolve(), *start.resolve().parents):
            if (folder / STATE / JOURNAL).exists():
                return folder
        raise


def keep_file(place: Place, run: str, source: WorkflowFile) -> None:
    """Put the workflow file beside the journal, for the resumes of this run."""
    kept = place.kept_file(run)
    if kept.exists():
        return  # a run of this id exists, and keeps what it started with
    kept.parent.mkdir(parents=True, exist_ok=True)
    draft = kept.with_name(kept.name + ".new")
    draft.write_bytes(source.path.read_bytes())
    os.replace(draft, kept)


def file_of(place: Place, run: str, file: Path | None = None) -> WorkflowFile:
    """The workflow file that a run was started with; the present one if that was not kept."""
    kept = place.kept_file(run)
    if kept.exists():
        return workflow_file(kept.read_bytes(), place.folder / "backedge.yaml")
    return load(file or find(place.folder))


def agents_of(source: WorkflowFile, place: Place) -> dict[str, Agent]:
    """Everybody who executes a step of the file, by the names that the definition has for them."""
    agents: dict[str, Agent] = {}
    problems: list[str] = []
    for step in source.definition.steps:
        for name in step.agents:
            if name == HUMAN:
                continue
            try:
                agents[name] = _agent(source.agents[name], step, source.steps[step.name], source, place)
            except (ValueError, TypeError, WorkflowError) as error:
                problems.append(f"step {step.name!r}: {error}")
    if problems:
        raise WorkflowError(tuple(problems))
    return agents


def _agent(spec: AgentSpec, step: Step, extras: StepExtras, source: WorkflowFile, place: Place) -> Agent:
    judges = bool(step.judges)
    if spec.kind == "command":
        return CommandAgent(
            spec.run,
            folder=extras.workspace,
            state=place.state,
            env=spec.env,
            report=ReportSpec(extras.report.kind, extras.report.path) if extras.report else None,
            writes=extras.writes,
            judges=judges,
            accepts=extras.accepts,
            schema=extras.schema,
            timeout=spec.timeout,
        )
    if spec.kind == "python":
        return FunctionAgent(_imported(spec.function, source.folder), judges=judges)
    raise WorkflowError(f"agent {spec.name!r} is {spec.cli or spec.kind}: agent CLIs cannot be started yet; use `run`")


def _imported(name: str, folder: Path) -> Callable[..., object]:
    import sys
    from importlib import import_module

    module, _, function = name.partition(":")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        found = getattr(import_module(module), function)
    except ImportError as error:
        raise WorkflowError(f"agent python:{name} cannot be imported: {error}") from error
    except AttributeError as error:
        raise WorkflowError(f"module {module!r} has no function {function!r}") from error
    if not callable(found):
        raise WorkflowError(f"python:{name} is not a function")
    made: Callable[..., object] = found
    return made
