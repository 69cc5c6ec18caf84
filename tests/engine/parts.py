"""What the tests of the engine share: a way to run a scenario that cannot hang, plain agents, a journal that is slow."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from backedge import Briefing, MemoryJournal, Step, Workflow
from backedge.core import events as e
from backedge.ports import Append

T = TypeVar("T")
E = TypeVar("E", bound=e.Fact)

PATIENCE = 20.0
"""Seconds after which a scenario hangs, as far as the tests go."""


def play(scenario: Coroutine[Any, Any, T], patience: float = PATIENCE) -> T:
    """Run a scenario on an event loop of its own; one that hangs fails."""

    async def bounded() -> T:
        return await asyncio.wait_for(scenario, patience)

    return asyncio.run(bounded())


async def until(condition: Callable[[], object], patience: float = 5.0) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(patience):
        while not condition():  # noqa: ASYNC110 - what is waited for is not the test's to signal
            await asyncio.sleep(0.001)


async def turns_until(condition: Callable[[], object]) -> int:
    """How many turns of the event loop it takes until something is so: few, unless somebody polls."""
    for turns in range(10_000):
        if condition():
            return turns
        await asyncio.sleep(0)
    raise AssertionError("it did not become so")


def only(kind: type[E], events: Sequence[e.Event]) -> list[E]:
    return [event for event in events if isinstance(event, kind)]


async def named(briefing: Briefing) -> dict[str, str]:
    """Returns a value that names the step."""
    return {"made by": briefing.step}


def flow(*steps: Step, **more: Any) -> Workflow:
    return Workflow("flow", steps, **more)


class SlowJournal:
    """A journal in memory whose appends take a while: before they are stored, or before that is known."""

    def __init__(self, before: float = 0.0, after: float = 0.0) -> None:
        self.inside = MemoryJournal()
        self.before, self.after = before, after
        self.fails: Callable[[Append], BaseException | None] = lambda entry: None
        """Says which appends fail."""

    async def append(self, entry: Append) -> int:
        await asyncio.sleep(self.before)
        error = self.fails(entry)
        if error is not None:
            raise error
        last = await self.inside.append(entry)
        await asyncio.sleep(self.after)
        return last

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inside, name)
