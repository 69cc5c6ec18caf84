"""A folder with a workflow file: where its state is, which file a run keeps, and which secrets are redacted."""

from __future__ import annotations

import codecs
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from backedge.adapters.agents.attempt_folder import AttemptFolder, write_whole
from backedge.adapters.agents.process import Process
from backedge.adapters.agents.secrets import NO_SECRETS, SHORTEST, Secrets
from backedge.adapters.journals.private_files import private_folder
from backedge.config.finding import find
from backedge.config.problems import WorkflowFileError
from backedge.core.errors import WorkflowError
from backedge.core.text import counted
from backedge.project.location import Project

if TYPE_CHECKING:
    from backedge.config import WorkflowFile

GRACE = 2.0
"""Seconds that an agent has to end after it was told to."""
ORIGIN = "origin"
"""Beside a kept workflow file: its original path, relative to the folder of the journal. Paths in it are relative to
that."""
FILES = "files.json"
"""Beside a kept workflow file: the contents of the files that it names."""


def keep_workflow_file(project: Project, run: str, source: WorkflowFile) -> None:
    """Keep a copy of the workflow file and the files it names beside the journal, so that this run can be resumed."""
    kept = project.kept_file(run)
    private_folder(project.state)
    kept.parent.mkdir(parents=True, exist_ok=True)
    _record_origin(project, run, source.path)
    _write_files(project, run, source.files)
    write_whole(kept, source.data)


def _restore_workflow_file(project: Project, run: str, files: Mapping[str, bytes]) -> None:
    """Keep the files that the journal stored with a run whose copies are not here: it was started on another machine, or
    they were deleted. Nothing is kept for a run without a file."""
    if not files:
        return
    kept = project.kept_file(run)
    (name, data), *named = files.items()
    kept.parent.mkdir(parents=True, exist_ok=True)
    _record_origin(project, run, project.folder / name)
    _write_files(project, run, {path: text.decode() for path, text in named})
    write_whole(kept, data)


def settle_workflow_file(project: Project, run: str, files: Mapping[str, bytes]) -> list[str]:
    """Make the copies of a run's files say what the journal stored when the run started. Returns the names of those that
    said something else: an agent can write them, but the journal is what the run keeps to."""
    if not files or not project.kept_file(run).exists():
        _restore_workflow_file(project, run, files)
        return []
    (name, data), *named = files.items()
    stored = {path: text.decode() for path, text in named}
    try:
        known = kept_files(project, run)
    except msgspec.DecodeError:
        known = {}
    changed = [path for path, text in stored.items() if known.get(path) != text]
    if changed:
        _write_files(project, run, {**known, **stored})
    if project.kept_file(run).read_bytes() != data:
        write_whole(project.kept_file(run), data)
        changed.insert(0, name)
    return changed


def keep_added_files(project: Project, run: str, files: Mapping[str, str]) -> None:
    """Keep copies of the files that steps added later name. Copies that exist are not changed."""
    known = kept_files(project, run)
    if files.keys() - known.keys():
        _write_files(project, run, {**files, **known})


def _write_files(project: Project, run: str, files: Mapping[str, str]) -> None:
    write_whole(project.kept_file(run).with_name(FILES), msgspec.json.format(msgspec.json.encode(files), indent=1))


def _record_origin(project: Project, run: str, path: Path) -> None:
    """Record the path of the workflow file of a run: paths in it are relative to that when the run is resumed."""
    # Relative, so that a project can be moved as a whole.
    origin = os.path.relpath(path.resolve(), project.state.resolve())
    write_whole(project.kept_file(run).with_name(ORIGIN), os.fsencode(origin))


def file_of(project: Project, run: str, file: Path | None = None) -> WorkflowFile:
    """The workflow file that a run was started with; the current one if no copy was kept."""
    from backedge.config.workflow_file import load, workflow_file  # reading YAML is slow: only where it is needed

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
    copies = {
        origin.name: kept.read_bytes(),
        **{name: text.encode() for name, text in kept_files(project, run).items()},
    }
    return [name for name, text in copies.items() if not _has_content(origin.parent / name, text)]


def _has_content(path: Path, text: bytes) -> bool:
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
                f"redact: the value of {name} has {counted(len(values[name]), 'character')}, expected {SHORTEST} or more: "
                "use a longer secret, or take it out of `redact`"
                for name in short
            )
        )
    return Secrets(values)


def secrets_in(project: Project, run: str) -> Secrets:
    """The secrets of a run that is answered here; none if its workflow file cannot be loaded any more."""
    try:
        return secrets_of(file_of(project, run)) if _may_redact(project, run) else NO_SECRETS
    except WorkflowFileError:
        return NO_SECRETS


def _may_redact(project: Project, run: str) -> bool:
    """Whether the workflow file of a run could have the key `redact`, in plain letters or escaped."""
    kept = project.kept_file(run)
    try:
        said = (kept if kept.exists() else find(project.folder)).read_bytes()
    except OSError:
        return True
    return b"redact" in said or b"\\" in said or b"\0" in said


async def end_agent(project: Project, run: str, step: str, attempt: int) -> None:
    """End the process of an attempt and everything that it started, also if another process of ours started it, and remove
    secrets from what it wrote."""
    secrets = secrets_in(project, run)
    folder = AttemptFolder(project.state, run, step, attempt, secrets)
    # A tool judge runs its program several times, each in a folder of its own: on delivered, on held, once more.
    parts = sorted(each.parent.name for each in folder.path.glob("*/starting"))
    for part in (folder, *(AttemptFolder(project.state, run, step, attempt, secrets, part=name) for name in parts)):
        process = Process.found(part)
        if process is not None:
            await process.cancel(GRACE)
        part.scrub()  # it may have ended before, while no backedge process was there
