"""What an agent that starts programs has to know of evidence: a witness looks before and after its attempts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

from backedge.core.briefing import Briefing
from backedge.core.errors import AgentError
from backedge.core.evidence.values import Evidence, RestoredFiles, RestoreRule


class Witness(Protocol):
    """Looks at the workspace before and after an attempt."""

    def before(self, briefing: Briefing, attempt_folder: Path) -> None:
        """Remember the workspace as it is. Called before the program starts. Raises AgentError if it must not start."""
        ...

    def after(self, briefing: Briefing, attempt_folder: Path) -> Evidence:
        """What the attempt changed. Changes that it must not make are undone; raises AgentError, which names them, if the
        attempt does not count because of them."""
        ...

    def gave_up(self, briefing: Briefing, attempt_folder: Path, goes_on: bool = False) -> str:
        """The attempt ended with an error, or was cancelled: undo its changes, unless they stay as `on_error` says, and say
        what was undone. With `goes_on`, the next attempt continues its conversation and counts on them."""
        ...

    def restore(
        self, run_id: str, attempts: Sequence[tuple[str, int]], judges: Sequence[str], rule: RestoreRule
    ) -> RestoredFiles:
        """Undo what attempts changed, the last one first, for a rollback. May be called again after a crash."""
        ...

    def argv(self, argv: Sequence[str], attempt_folder: Path, env: Mapping[str, str]) -> list[str]:
        """The command that confines the program, if something does."""
        ...

    def explained(self, printed: str) -> str:
        """What the confinement has to do with a program that failed, from what it printed; empty if nothing."""
        ...


@asynccontextmanager
async def witnessed(
    witness: Witness | None, briefing: Briefing, attempt_folder: Path, resumes: bool = False
) -> AsyncIterator[None]:
    """Have an attempt witnessed, whatever becomes of it. With `resumes`, a retry continues the conversation that an error
    names. What was undone becomes part of the error."""
    if witness is None:
        yield
        return
    try:
        await asyncio.to_thread(witness.before, briefing, attempt_folder)
        yield
    except BaseException as error:
        goes_on = resumes and isinstance(error, AgentError) and error.session is not None
        undone = await asyncio.shield(asyncio.to_thread(witness.gave_up, briefing, attempt_folder, goes_on))
        if undone and isinstance(error, AgentError):
            error.args = (f"{error}; {undone}",)
        raise
