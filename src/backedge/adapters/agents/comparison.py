"""A Python function that compares the values of a check."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from backedge.core.briefing import Briefing
from backedge.core.errors import AgentError
from backedge.core.value import Json
from backedge.engine.protocol import Outcome
from backedge.ports import Attempt


class ComparisonFunction:
    """Calls a function with the values. It returns True if they agree, else False or a text that says why not."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function

    async def work(self, briefing: Briefing, attempt: Attempt) -> Outcome:  # noqa: ARG002 - it raises no feedback
        returned = await asyncio.to_thread(self._function, *briefing.inputs.values())
        if not isinstance(returned, bool | str):
            raise AgentError(
                f"the comparison returned {type(returned).__name__}: expected True, False, or a text that says why"
            )
        return Outcome(
            verdict="pass" if returned is True else "fail", summary=returned if isinstance(returned, str) else ""
        )

    def input_errors(self, inputs: Mapping[str, Json]) -> Sequence[tuple[str, str, str]]:  # noqa: ARG002 - it accepts any value
        return ()
