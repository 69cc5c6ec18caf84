"""What an agent that starts programs has to know of evidence: a witness looks before and after its attempts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

from backedge.core.briefing import Briefing
from backedge.core.evidence.values import Evidence


class Witness(Protocol):
    """Looks at the workspace before and after an attempt."""

    def before(self, briefing: Briefing, attempt_folder: Path) -> None:
        """Remember the workspace as it is. Called before the program starts. Raises AgentError if it must not start."""
        ...

    def after(self, briefing: Briefing, attempt_folder: Path) -> Evidence:
        """What the attempt changed. Changes that it must not make are undone; raises AgentError, which names them, if the
        attempt does not count because of them."""
        ...

    def gave_up(self, briefing: Briefing, attempt_folder: Path) -> None:
        """The attempt ended with an error, or was cancelled: undo changes that it must not make."""
        ...

    def argv(self, argv: Sequence[str], attempt_folder: Path, env: Mapping[str, str]) -> list[str]:
        """The command that confines the program, if something does."""
        ...

    def explained(self, printed: str) -> str:
        """What the confinement has to do with a program that failed, from what it printed; empty if nothing."""
        ...


@asynccontextmanager
async def witnessed(witness: Witness | None, briefing: Briefing, attempt_folder: Path) -> AsyncIterator[None]:
    """Have an attempt witnessed, whatever becomes of it."""
    if witness is None:
        yield
        return
    try:
        await asyncio.to_thread(witness.before, briefing, attempt_folder)
        yield
    except BaseException:
        await asyncio.shield(asyncio.to_thread(witness.gave_up, briefing, attempt_folder))
        raise
