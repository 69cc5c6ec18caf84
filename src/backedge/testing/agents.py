"""Agents that return what a test or a demo scripts."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from typing import Any

from backedge.core.briefing import Briefing


class ScriptedAgent:
    """Replies by attempt: the first reply to attempt 1, and so on; the last one is repeated.

    A reply is what a function would return; an exception is raised; a function, async or not, is called with the
    briefing. `briefings` has the briefings it received.
    """

    def __init__(self, *replies: Any, delay: float = 0.0) -> None:
        if not replies:
            raise ValueError("a ScriptedAgent needs at least one reply")
        self.replies: Sequence[Any] = replies
        self.delay = delay
        self.briefings: list[Briefing] = []

    async def __call__(self, briefing: Briefing) -> Any:
        self.briefings.append(briefing)
        if self.delay:
            await asyncio.sleep(self.delay)
        reply = self.replies[min(briefing.attempt, len(self.replies)) - 1]
        if isinstance(reply, BaseException) or (isinstance(reply, type) and issubclass(reply, BaseException)):
            raise reply
        result = reply(briefing) if callable(reply) else reply
        return await result if inspect.isawaitable(result) else result
