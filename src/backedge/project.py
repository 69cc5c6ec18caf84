"""A folder with a workflow file: where its state lives, and who executes its steps."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from backedge.adapters.agents.attempt_folder import AttemptFolder, file_name, written
from backedge.adapters.agents.clis.agent import CliAgent, NotInstalled, Workplace
from backedge.adapters.agents.clis.cli import Options
from backedge.adapters.agents.clis.known import CLIS
from backedge.adapters.agents.command import CommandAgent
from backedge.adapters.agents.function import FunctionAgent
from backedge.adapters.agents.process import Process
from backedge.adapters.agents.redacting import redacted
from backedge.adapters.agents.secrets import NO_SECRETS, SHORTEST, Secrets
from backedge.adapters.reports.spec import ReportSpec
from backedge.config import AgentSpec, StepExtras, WorkflowFile, WorkflowFileError, find, load
from backedge.config.workflow_file import workflow_file
from backedge.core.errors import WorkflowError
from backedge.core.model import HUMAN
from backedge.core.workflow import Step, Workflow, graph_of
from backedge.ports import Agent

STATE = ".backedge"
JOURNAL = "journal.db"
GRACE = 2.0
"""Seconds that an agent has to end when it is asked to."""
ORIGIN = "origin"
"""Beside a kept workflow file: where it stood, from the folder of the journal. Its paths are relative to that."""

_INSTALL = {
    "pytest": "run `pip install pytest`",
    "ruff": "run `pip install ruff`",
    "mypy": "run `pip install mypy`",
    "node": "install Node.js",
    "npm": "install Node.js",
    "npx": "install Node.js",
    "python": "install Python, or name `python3`",
}
"""What to do about programs that many workflows start."""

Views = Callable[[str], Mapping[str, str]]
"""The files that show a run to its agents, by their names in the briefing."""


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
        return self.state / "runs" / file_name(run) / "backedge.yaml"


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
    kept.parent.mkdir(parents=True, exist_ok=True)
    # Relative, so that a project can be moved as a whole.
    written(kept.with_name(ORIGIN), os.fsencode(os.path.relpath(source.path.resolve(), place.state.resolve())))
    written(kept, source.path.read_bytes())


def file_of(place: Place, run: str, file: Path | None = None) -> WorkflowFile:
    """The workflow file that a run was started with; the present one if that was not kept."""
    kept = place.kept_file(run)
    if not kept.exists():
        return load(file or find(place.folder))
    origin = kept.with_name(ORIGIN)
    path = place.folder / "backedge.yaml"
    if origin.exists():
        path = Path(os.path.normpath(place.state.resolve() / os.fsdecode(origin.read_bytes())))
    return workflow_file(kept.read_bytes(), path)


def secrets_of(source: WorkflowFile) -> Secrets:
    """The values that nothing may be written with: those of the variables that the file names in `redact`.

    Raises WorkflowError for one that is too short to be told from ordinary text: it would be written in silence."""
    values = {name: os.environ[name] for name in source.redact if os.environ.get(name)}
    short = [name for name, value in values.items() if len(value) < SHORTEST]
    if short:
        raise WorkflowError(
            tuple(
                f"redact: the value of {name} has {len(values[name])} characters, expected {SHORTEST} or more: "
                "use a longer secret, or take it out of `redact`"
                for name in short
            )
        )
    return Secrets(values)


def secrets_in(place: Place, run: str) -> Secrets:
    """The secrets of a run that is answered here; none if its workflow file cannot be had any more."""
    try:
        return secrets_of(file_of(place, run))
    except WorkflowFileError:
        return NO_SECRETS


async def end_agent(place: Place, run: str, step: str, attempt: int) -> None:
    """End the process of an attempt, whoever started it, with everything that it started."""
    process = Process.found(AttemptFolder(place.state, run, step, attempt))
    if process is not None:
        await process.cancel(GRACE)


def agents_of(
    source: WorkflowFile, place: Place, views: Views | None = None, installed: bool = True
) -> dict[str, Agent]:
    """Everybody who executes a step of the file, by the names that the definition has for them.

    `views` says where the scratchpad and the progress file of a run are. Without `installed` an agent CLI that is not
    on this machine is left out instead of refused: the file can be right all the same."""
    agents: dict[str, Agent] = {}
    problems: list[str] = []
    secrets = secrets_of(source)
    for step in source.definition.steps:
        for name in step.agents:
            if name == HUMAN:
                continue
            try:
                made = _agent(source.agents[name], step, source.steps[step.name], source, place, views, secrets)
                agents[name] = redacted(made, secrets)
            except NotInstalled as error:
                problems += [f"step {step.name!r}: {error}"] if installed else []
            except (ValueError, TypeError, WorkflowError) as error:
                problems.append(f"step {step.name!r}: {error}")
    if problems:
        raise WorkflowError(tuple(problems))
    return agents


def missing_programs(source: WorkflowFile) -> list[str]:
    """What is not on this machine though a step starts it: a sentence for each, with what to do."""
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
    # A program with a folder in its name is looked for from the workspace, where it is started.
    where = str(workspace / program) if "/" in program else program
    if shutil.which(where, path=path):
        return ""
    if os.path.isfile(where) and "/" in program:
        return f"{program!r} is not executable: run chmod +x on it, or name its interpreter first"
    return f"{program!r} is not installed: {_INSTALL.get(program, 'install it')}, or correct `run`"


def _agent(
    spec: AgentSpec,
    step: Step,
    extras: StepExtras,
    source: WorkflowFile,
    place: Place,
    views: Views | None,
    secrets: Secrets,
) -> Agent:
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
            views=views,
            secrets=secrets,
        )
    if spec.kind == "python":
        return FunctionAgent(_imported(spec.function, source.folder), judges=judges)
    if spec.kind == "cli":
        return _cli_agent(spec, step, extras, source, place, views, secrets)
    raise WorkflowError(f"agent {spec.name!r} is {spec.kind}: nobody can be started for it")


def _cli_agent(
    spec: AgentSpec,
    step: Step,
    extras: StepExtras,
    source: WorkflowFile,
    place: Place,
    views: Views | None,
    secrets: Secrets,
) -> Agent:
    definition, graph = source.definition, graph_of(source.definition)
    return CliAgent(
        spec.cli,
        Workplace(extras.workspace, place.state, extras.writes),
        phase=step.phase,
        judges=bool(step.judges),
        options=Options(spec.model, spec.allowed_tools, spec.permission_mode, spec.max_turns, spec.max_budget_usd),
        template=spec.prompt,
        session=spec.session,
        env=spec.env,
        accepts=extras.accepts,
        schema=extras.schema,
        phases=[phase for phase in graph.phases if phase in graph.phase_of.values()],
        steps=[*(other.name for other in definition.steps if not other.judges and other is not step), HUMAN],
        timeout=spec.timeout,
        views=views,
        secrets=secrets,
    )


def _imported(name: str, folder: Path) -> Callable[..., object]:
    import sys
    from importlib import import_module

    module, _, function = name.partition(":")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        imported = import_module(module)
    except (Exception, SystemExit) as error:
        kind = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "
        raise WorkflowError(f"agent python:{name} cannot be imported: {kind}{error}") from error
    found: object = imported
    for part in function.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise WorkflowError(f"module {module!r} has no function {function!r}: correct the name, or write it")
    made: Callable[..., object] = found
    return made
