"""Where a project keeps its state. Most commands need no more of a project than this, so it imports little."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from backedge.adapters.agents.file_name import file_name
from backedge.adapters.journals.private_files import STATE_FOLDER
from backedge.config.finding import find
from backedge.config.problems import WorkflowFileError

STATE = STATE_FOLDER
JOURNAL = "journal.db"


@dataclass(frozen=True)
class Project:
    """Where a project keeps its state: beside the workflow file, or where the user says."""

    folder: Path
    journal: Path

    @property
    def state(self) -> Path:
        return self.journal.parent

    def kept_file(self, run: str) -> Path:
        """The workflow file as it was when the run started: a run keeps the workflow it started with."""
        return self.state / "runs" / file_name(run) / "backedge.yaml"


def find_project(file: Path | None = None, journal: Path | None = None, start: Path | None = None) -> Project:
    """The location of a project: given by its file, by its journal, or by the current folder. Raises
    WorkflowFileError."""
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
        # A journal without its workflow file can still be read, and its questions answered.
        for folder in (start.resolve(), *start.resolve().parents):
            if (folder / STATE / JOURNAL).exists():
                return folder
        raise
