"""What runs keep outside their project, and how it is given back."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from backedge.adapters.agents.file_name import file_name
from backedge.adapters.evidence.places import journal_key, rooms_of_attempts, state_home
from backedge.adapters.evidence.room import leftover_rooms
from backedge.adapters.evidence.store import RunStore
from backedge.adapters.judges.report_folders import ReportFolders
from backedge.project.location import Project

NEVER_STARTED = 3600.0
"""Seconds after which the store of a run that the journal does not know is one of a run that never started."""


def evidence_files(project: Project, run: str) -> Iterator[Path]:
    """The files of the store of a run."""
    for folder, _, names in os.walk(_store(project, run).path):
        yield from (Path(folder, name) for name in names)


def remove_evidence(project: Project, run: str) -> None:
    """Remove the store of a run. It cannot be judged any more."""
    _store(project, run).remove()


def remove_rooms(project: Project, run: str) -> None:
    """Remove the rooms that the judges of a run leave when it is cancelled after a crash. Rooms of other runs stay."""
    own = rooms_of_attempts(project.state, file_name(run))
    rooms = state_home() / journal_key(project.journal) / "rooms"
    leftover_rooms(rooms, rooms_of_attempts(project.state, "*") - own)
    ReportFolders(rooms.with_name("reports")).sweep(rooms / "rooms")


def sweep_evidence(project: Project, known: Collection[str]) -> None:
    """Remove what killed processes left: rooms, reports, and stores of runs that never started. `known` are the runs of the
    journal."""
    home = state_home() / journal_key(project.journal)
    leftover_rooms(home / "rooms", rooms_of_attempts(project.state, "*"))
    ReportFolders(home / "reports").sweep(home / "rooms" / "rooms")
    names, now = {file_name(run) for run in known}, time.time()
    for store in [*(home / "runs").glob("*")]:
        if store.name not in names and now - store.stat().st_mtime > NEVER_STARTED:
            shutil.rmtree(store, ignore_errors=True)


def _store(project: Project, run: str) -> RunStore:
    return RunStore(state_home(), project.journal, run)
