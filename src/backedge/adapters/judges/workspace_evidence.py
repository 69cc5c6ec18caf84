"""The evidence of all runs in one workspace, and the steps that work there now."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from backedge.adapters.agents.file_digests import FileDigests
from backedge.adapters.agents.file_name import file_name
from backedge.adapters.evidence.folder_looks import FolderLooks
from backedge.adapters.evidence.places import journal_key, rooms_of_attempts, state_home
from backedge.adapters.evidence.room import leftover_rooms
from backedge.adapters.evidence.stillness import FolderNames
from backedge.adapters.evidence.store import RunStore
from backedge.adapters.judges.report_folders import ReportFolders
from backedge.adapters.judges.run_evidence import EvidenceSettings, RunEvidence
from backedge.adapters.judges.under_way import EVERYTHING, UnderWay


def _globs(writes: Sequence[str] | None) -> Sequence[str]:
    return EVERYTHING if writes is None else writes


class WorkspaceEvidence:
    """The evidence of all runs in one workspace. All agents of a workflow file that work there share it."""

    def __init__(self, settings: EvidenceSettings, digests: FileDigests | None = None) -> None:
        self.settings = settings
        self._looks = FolderLooks(digests)
        self._runs: dict[str, RunEvidence] = {}
        self._lock = threading.Lock()
        self.home = state_home(settings.env) / journal_key(settings.journal)
        self.scratch = self.home / "rooms"
        self.reports = ReportFolders(self.home / "reports")
        self._swept = False
        self.names = FolderNames()
        self.under_way = UnderWay(self.home / "under_way" / file_name(settings.name))

    def of(self, run: str) -> RunEvidence:
        """The evidence of a run. The first call for a new run records how it begins."""
        with self._lock:
            if not self._swept:
                self._swept = True
                self._sweep(run)
            found = self._runs.get(run)
            if found is None:
                store = RunStore(self.home.parent, self.settings.journal, run, self.settings.name)
                found = self._runs[run] = RunEvidence(self.settings, store, self._looks)
            return found

    def all_others(self, step: str) -> list[Sequence[str]]:
        """The globs of all other steps that work in this workspace at any time."""
        producers = self.settings.producers.items()
        return [_globs(writes) for name, writes in producers if name != step]

    def _sweep(self, run: str) -> None:
        """Remove what killed processes left. Rooms of this run stay, so that its attempts can be adopted."""
        leftover_rooms(self.scratch, rooms_of_attempts(self.settings.state, file_name(run)))
        self.reports.sweep(self.scratch / "rooms")
