"""A folder with a workflow file: where its state lives, which file a run has, and what must not be written."""

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
from backedge.config.finding import find
from backedge.config.problems import WorkflowFileError
from backedge.core.errors import WorkflowError
from backedge.project.location import Project

if TYPE_CHECKING:
    from backedge.config import WorkflowFile

GRACE = 2.0
"""Seconds that an agent has to end when it is asked to."""
ORIGIN = "origin"
"""Beside a kept workflow file: where it stood, from the folder of the journal. Its paths are relative to that."""
FILES = "files.json"
"""Beside a kept workflow file: what the files say that it names."""


def keep_workflow_file(place: Project, run: str, source: WorkflowFile) -> None:
    """Put the workflow file beside the journal, with what the files say that it names, for the resumes of this run."""
    kept = place.kept_file(run)
    kept.parent.mkdir(parents=True, exist_ok=True)
    _stand_at(place, run, source.path)
    _write_files(place, run, source.files)
    write_whole(kept, source.data)


def keep_added_files(place: Project, run: str, files: Mapping[str, str]) -> None:
    """Keep what files say that steps name which joined the run later. What it keeps already stays as it is."""
    known = kept_files(place, run)
    if files.keys() - known.keys():
        _write_files(place, run, {**files, **known})


def _write_files(place: Project, run: str, files: Mapping[str, str]) -> None:
    write_whole(place.kept_file(run).with_name(FILES), msgspec.json.format(msgspec.json.encode(files), indent=1))


def _stand_at(place: Project, run: str, path: Path) -> None:
    """Say where the workflow file of a run stands, for its resumes: its paths are relative to that."""
    # Relative, so that a project can be moved as a whole.
    origin = os.path.relpath(path.resolve(), place.state.resolve())
    write_whole(place.kept_file(run).with_name(ORIGIN), os.fsencode(origin))


def file_of(place: Project, run: str, file: Path | None = None) -> WorkflowFile:
    """The workflow file that a run was started with; the present one if that was not kept."""
    from backedge.config.workflow_file import (  # reading YAML takes its time: only where it is needed
        load,
        workflow_file,
    )

    kept = place.kept_file(run)
    if not kept.exists():
        return load(file or find(place.folder))
    return workflow_file(kept.read_bytes(), origin_of(place, run), kept_files(place, run))


def kept_files(place: Project, run: str) -> dict[str, str]:
    """What the files of a run said when it started, by their paths from the folder of its workflow file."""
    try:
        return msgspec.json.decode(place.kept_file(run).with_name(FILES).read_bytes(), type=dict[str, str])
    except FileNotFoundError:
        return {}


def changed_since(place: Project, run: str) -> list[str]:
    """The workflow file and its files that are no longer as the run keeps them."""
    kept, origin = place.kept_file(run), origin_of(place, run)
    if not kept.exists():
        return []
    said = {origin.name: kept.read_bytes(), **{name: text.encode() for name, text in kept_files(place, run).items()}}
    return [name for name, text in said.items() if not _says(origin.parent / name, text)]


def _says(path: Path, text: bytes) -> bool:
    try:
        return path.read_bytes().removeprefix(codecs.BOM_UTF8) == text.removeprefix(codecs.BOM_UTF8)
    except OSError:
        return False


def origin_of(place: Project, run: str) -> Path:
    """Where the workflow file of a run stood."""
    origin = place.kept_file(run).with_name(ORIGIN)
    if not origin.exists():
        return place.folder / "backedge.yaml"
    return Path(os.path.normpath(place.state.resolve() / os.fsdecode(origin.read_bytes())))


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


def secrets_in(place: Project, run: str) -> Secrets:
    """The secrets of a run that is answered here; none if its workflow file cannot be had any more."""
    try:
        return secrets_of(file_of(place, run)) if _may_redact(place, run) else NO_SECRETS
    except WorkflowFileError:
        return NO_SECRETS


def _may_redact(place: Project, run: str) -> bool:
    """Whether the workflow file of a run could have the key `redact`, in plain letters or escaped."""
    try:
        kept = place.kept_file(run).read_bytes()
    except OSError:
        return True
    return b"redact" in kept or b"\\" in kept or b"\0" in kept


async def end_agent(place: Project, run: str, step: str, attempt: int) -> None:
    """End the process of an attempt, whoever started it, with everything that it started."""
    process = Process.found(AttemptFolder(place.state, run, step, attempt))
    if process is not None:
        await process.cancel(GRACE)
