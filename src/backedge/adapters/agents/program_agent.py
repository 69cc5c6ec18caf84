"""What all agents that start a program have in common: running an attempt, and recovering one after a crash."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Generic, TypeVar

from msgspec.structs import replace

from backedge.adapters.agents.artifact import ArtifactFiles
from backedge.adapters.agents.attempt_folder import AttemptFolder, Ended
from backedge.adapters.agents.execution import Program, executed, kept_before, recover
from backedge.adapters.agents.process import Bounds
from backedge.adapters.agents.step_schemas import StepSchemas
from backedge.adapters.agents.witness import Witness
from backedge.adapters.agents.workspace import Snapshot
from backedge.core.briefing import Briefing
from backedge.core.errors import AgentError
from backedge.core.evidence.values import RestoredFiles, RestoreRule
from backedge.core.value import Json
from backedge.ports import Attempt, Result

Folder = TypeVar("Folder", bound=AttemptFolder)


class ProgramAgent(ABC, Generic[Folder]):
    """Starts a program for every attempt, and recovers its attempts after a crash."""

    noun: ClassVar[str]
    """What the program is called in errors."""
    _files: ArtifactFiles

    def __init__(self, schemas: StepSchemas, bounds: Bounds, witness: Witness | None = None) -> None:
        self._schemas, self._bounds, self._witness = schemas, bounds, witness

    @abstractmethod
    def _attempt_folder(self, briefing: Briefing) -> Folder: ...

    @abstractmethod
    def _result(self, briefing: Briefing, folder: Folder, ended: Ended, before: Snapshot | None) -> Result | None:
        """The result of the attempt; None if its end is not known and it left nothing complete."""

    async def recover(self, briefing: Briefing, attempt: Attempt) -> Result | None:  # noqa: ARG002 - as in `work`
        folder = self._attempt_folder(briefing)
        ended = await recover(folder, self._bounds)
        await asyncio.to_thread(folder.scrub)
        if ended is None:
            return None
        return await asyncio.to_thread(self._read, briefing, folder, ended, kept_before(folder))

    async def restore(
        self, run: str, attempts: Sequence[tuple[str, int]], judges: Sequence[str], rule: RestoreRule
    ) -> RestoredFiles:
        if self._witness is None:
            return RestoredFiles(problem="it is not known which files the attempts changed")
        return await asyncio.to_thread(self._witness.restore, run, attempts, judges, rule)

    def input_errors(self, inputs: Mapping[str, Json]) -> Sequence[tuple[str, str, str]]:
        return self._schemas.input_errors(inputs)

    async def _ran(self, briefing: Briefing, folder: Folder, program: Program) -> Result | None:
        """Run the program to its end and read its result; None if its supervisor was killed, so that nothing shows how it
        ended, and it left nothing complete."""
        ended = await executed(folder, program, self._bounds)
        await asyncio.to_thread(folder.scrub)
        try:
            return await asyncio.to_thread(self._read, briefing, folder, ended, program.before)
        except AgentError:
            if program.before is not None and not folder.files.exists():
                # They may stay, or be undone after this: people must be able to see them in any case.
                await asyncio.to_thread(self._files.after, briefing, program.before, folder)
            raise

    def _read(self, briefing: Briefing, folder: Folder, ended: Ended, before: Snapshot | None) -> Result | None:
        """The result of the attempt, with the processes that it left and that were ended."""
        try:
            result = self._result(briefing, folder, ended, before)
        except AgentError as error:
            error.ended = ended.left
            raise
        if result is None or not ended.left:
            return result
        return replace(result, evidence=replace(result.evidence, ended=ended.left))
