"""A folder with a workflow file: where its state is, which file a run keeps, and which secrets are redacted."""

from __future__ import annotations

import codecs
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from backedge.adapters.agents.attempt_folder import AttemptFolder, file_name, written
from backedge.adapters.agents.process import Process
from backedge.adapters.agents.secrets import NO_SECRETS, SHORTEST, Secrets
from backedge.config import WorkflowFile, WorkflowFileError, find, load
from backedge.config.workflow_file import workflow_file
from backedge.core.errors import WorkflowError

STATE = ".backedge"
JOURNAL = "journal.db"
GRACE = 2.0
"""Seconds that an agent has to end after it was asked to."""
ORIGIN = "origin"
"""Beside a kept workflow file: its original path, relative to the folder of the journal. Paths in it are relative to
that."""
FILES = "files.json"
"""Beside a kept workflow file: the contents of the files that it names."""


@dataclass(frozen=True)
class Project:
    """Where a project keeps its state: beside the workflow file, or where `--journal` says."""

    folder: Path
    journal: Path

    @property
    def state(self) -> Path:
        return self.journal.parent

    def kept_file(self, run: str) -> Path:
        """The copy of the workflow file that a run keeps from its start."""
        return self.state / "runs" / file_name(run) / "backedge.yaml"


def find_project(file: Path | None = None, journal: Path | None = None, start: Path | None = None) -> Project:
    """The project of a workflow file, of a journal, or of the current folder. Raises WorkflowFileError."""
    if file is not None:
        folder = file.parent.resolve()
    elif journal is not None:
        folder = journal.parent.resolve()
    else:
        folder = _project_folder(start or Path.cwd())
    return Project(folder, (journal or folder / STATE / JOURNAL).absolute())


def _project_folder(start: Path) -> Path:
    try:
        return find(start).parent
    except WorkflowFileError:
        # A journal whose file is gone can still be read and answered.
        for folder in (start.resolve(), *start.resolve().parents):
            if (folder / STATE / JOURNAL).exists():
                return folder
        raise


def keep_workflow_file(project: Project, run: str, source: WorkflowFile) -> None:
    """Keep a copy of the workflow file and the files it names beside the journal, so that this run can be resumed."""
    kept = project.kept_file(run)
    kept.parent.mkdir(parents=True, exist_ok=True)
    _record_origin(project, run, source.path)
    _write_files(project, run, source.files)
    written(kept, source.data)


def keep_added_files(project: Project, run: str, files: Mapping[str, str]) -> None:
    """Keep copies of the files that steps added later name. Copies that exist are not changed."""
    known = kept_files(project, run)
    if files.keys() - known.keys():
        _write_files(project, run, {**files, **known})


def _write_files(project: Project, run: str, files: Mapping[str, str]) -> None:
    written(project.kept_file(run).with_name(FILES), msgspec.json.format(msgspec.json.encode(files), indent=1))


def _record_origin(project: Project, run: str, path: Path) -> None:
    """Record the path of the workflow file of a run: paths in it are relative to that when the run is resumed."""
    # Relative, so that a project can be moved as a whole.
    origin = os.path.relpath(path.resolve(), project.state.resolve())
    written(project.kept_file(run).with_name(ORIGIN), os.fsencode(origin))


def file_of(project: Project, run: str, file: Path | None = None) -> WorkflowFile:
    """The workflow file that a run was started with; the current one if no copy was kept."""
    kept = project.kept_file(run)
    if not kept.exists():
        return load(file or find(project.folder))
    return workflow_file(kept.read_bytes(), origin_of(project, run), kept_files(project, run))


def kept_files(project: Project, run: str) -> dict[str, str]:
    """The contents of a run's files when it started, by their paths from the folder of its workflow file."""
    try:
        return msgspec.json.decode(project.kept_file(run).with_name(FILES).read_bytes(), type=dict[str, str])
    except FileNotFoundError:
        return {}


def changed_since(project: Project, run: str) -> list[str]:
    """The names of those of its files that differ from the copies that the run keeps."""
    kept, origin = project.kept_file(run), origin_of(project, run)
    if not kept.exists():
        return []
    said = {origin.name: kept.read_bytes(), **{name: text.encode() for name, text in kept_files(project, run).items()}}
    return [name for name, text in said.items() if not _says(origin.parent / name, text)]


def _says(path: Path, text: bytes) -> bool:
    try:
        return path.read_bytes().removeprefix(codecs.BOM_UTF8) == text.removeprefix(codecs.BOM_UTF8)
    except OSError:
        return False


def origin_of(project: Project, run: str) -> Path:
    """The original path of the workflow file of a run."""
    origin = project.kept_file(run).with_name(ORIGIN)
    if not origin.exists():
        return project.folder / "backedge.yaml"
    return Path(os.path.normpath(project.state.resolve() / os.fsdecode(origin.read_bytes())))


def secrets_of(source: WorkflowFile) -> Secrets:
    """The values that must never be written: those of the variables that the file names in `redact`.

    Raises WorkflowError for one that is too short to distinguish from ordinary text: it could not be removed."""
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


def secrets_in(project: Project, run: str) -> Secrets:
    """The secrets of a run that is answered here; none if its workflow file cannot be loaded any more."""
    try:
        return secrets_of(file_of(project, run))
    except WorkflowFileError:
        return NO_SECRETS


async def end_agent(project: Project, run: str, step: str, attempt: int) -> None:
    """End the process of an attempt and everything that it started, also if another process of ours started it."""
    process = Process.found(AttemptFolder(project.state, run, step, attempt))
    if process is not None:
        await process.cancel(GRACE)
