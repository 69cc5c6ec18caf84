"""What all agents that start a program have in common: running an attempt, and recovering one after a crash."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Generic, TypeVar

from backedge.adapters.agents.attempt_folder import AttemptFolder, Ended
from backedge.adapters.agents.execution import Program, executed, kept_before, recover
from backedge.adapters.agents.process import Bounds
from backedge.adapters.agents.step_schemas import StepSchemas
from backedge.adapters.agents.workspace import Snapshot
from backedge.core.briefing import Briefing
from backedge.core.errors import AgentError
from backedge.core.value import Json
from backedge.ports import Attempt, Result

Folder = TypeVar("Folder", bound=AttemptFolder)


class ProgramAgent(ABC, Generic[Folder]):
    """Starts a program for every attempt, and recovers its attempts after a crash."""

    noun: ClassVar[str]
    """What the program is called in errors."""

    def __init__(self, schemas: StepSchemas, bounds: Bounds) -> None:
        self._schemas, self._bounds = schemas, bounds

    @abstractmethod
    def _attempt_folder(self, briefing: Briefing) -> Folder: ...

    @abstractmethod
    def _result(self, briefing: Briefing, folder: Folder, ended: Ended, before: Snapshot | None) -> Result | None:
        """The result of the attempt; None if its end is not known and it left nothing complete."""

    async def recover(self, briefing: Briefing, attempt: Attempt) -> Result | None:  # noqa: ARG002 - as in `work`
        folder = self._attempt_folder(briefing)
        ended = await recover(folder, self._bounds)
        if ended is None:
            return None
        return await asyncio.to_thread(self._result, briefing, folder, ended, kept_before(folder))

    def input_errors(self, inputs: Mapping[str, Json]) -> Sequence[tuple[str, str, str]]:
        return self._schemas.input_errors(inputs)

    async def _ran(self, briefing: Briefing, folder: Folder, program: Program) -> Result:
        """Run the program to its end and read its result."""
        ended = await executed(folder, program, self._bounds)
        known = ended.known
        result = await asyncio.to_thread(self._result, briefing, folder, ended, program.before) if known else None
        if result is None:
            raise AgentError(f"it is not known how {self.noun} ended: its supervisor was killed")
        return result
