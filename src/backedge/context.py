"""The context bus of a run: one tree of values, read by path, in which agents and people can store their own values."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from backedge.analytics.context import changes, context, value_at
from backedge.core import commands as c
from backedge.core.context import unread
from backedge.core.errors import AgentError, IllegalCommand, JournalError
from backedge.core.state.evolve import replay
from backedge.core.state.run import RunState
from backedge.core.value import Json
from backedge.engine.codec import canonical
from backedge.engine.engine import LiveEngine
from backedge.engine.store import events_of, outputs

LARGEST = 64 * 1024
"""The most bytes of one value: larger ones belong in outputs of steps or in files."""

Called = Callable[[Json, Json, str], object]
"""Called with the new value, the old one and the path."""


class Context:
    """A run as a tree: agent_contexts, feedback_loops, workflow_state, and the values that agents and people store."""

    def __init__(self, engine: LiveEngine, run: str) -> None:
        self._engine, self._run = engine, run

    async def get(self, path: str = "") -> Json:
        """The value at a path such as `agent_contexts.code.status`. Raises NotFound."""
        return value_at(await self._tree(await self._engine.state_of(self._run)), path)

    async def set(self, path: str, value: Json, by: str = "") -> None:
        """Store a value with the run. It is recorded in the journal, and read under `values.<path>`."""
        try:
            canonical(value, LARGEST, "the value")
        except AgentError as error:
            raise IllegalCommand(str(error)) from error
        await self._engine.submit(self._run, c.SetValue(path.removeprefix("values."), value, by))

    async def checkpoint(self, name: str, by: str = "") -> None:
        """Save all stored values under a name."""
        await self._engine.submit(self._run, c.SaveCheckpoint(name, by))

    async def restore(self, name: str, by: str = "") -> None:
        """Replace all stored values by those of a checkpoint. Raises NotFound."""
        await self._engine.submit(self._run, c.RestoreCheckpoint(name, by))

    async def read(self, step: str) -> list[Json]:
        """The feedback that a step has received since the last call. Reading clears its inbox; the journal still has
        everything."""
        state = await self._engine.state_of(self._run)
        waiting: list[Json] = []
        if unread(state, step):
            waiting = (await self._tree(state))["agent_contexts"][step]["feedback_received"]
        await self._engine.submit(self._run, c.ReadFeedback(step))
        return waiting

    async def subscribe(self, pattern: str, called: Called) -> Callable[[], None]:
        """Call `called` with (new, old, path) whenever a value whose path matches the pattern changes, whichever
        process executes the run. `*` matches any one name. Returns a function that unsubscribes."""
        follower = _Follower(self, self._engine, self._run, await self._engine.state_of(self._run), pattern, called)
        await follower.begin()
        return follower.end

    async def _tree(self, state: RunState) -> dict[str, Json]:
        large = [name for name, step in state.steps.items() if step.artifact and step.artifact.payload]
        return context(state, await outputs(self._engine.journal, state, large))


class _Follower:
    """One subscription. It follows every event of the run in order, so that it misses no change."""

    def __init__(
        self, bus: Context, engine: LiveEngine, run: str, state: RunState, pattern: str, called: Called
    ) -> None:
        self._bus, self._engine, self._run, self._state = bus, engine, run, state
        self._pattern, self._called = pattern, called
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._commits = {state.seq}
        """The numbers of the events that end a decision: between two events of one, there is no outcome yet."""
        self._tree: dict[str, Json] = {}
        self._unsubscribe: Callable[[], None] | None = None

    async def begin(self) -> None:
        self._tree = await self._bus._tree(self._state)
        self._unsubscribe = self._engine.journal.subscribe(self._written)
        await self._follow()

    def end(self) -> None:
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        for task in self._tasks:
            task.cancel()

    def _written(self, run: str, seq: int) -> None:
        if run == self._run and seq > self._state.seq:
            self._commits.add(seq)
            task = asyncio.create_task(self._notice())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _notice(self) -> None:
        with suppress(JournalError):  # the journal was closed: there are no more changes
            await self._follow()

    async def _follow(self) -> None:
        async with self._turn:
            events = await events_of(self._engine.journal, self._run, self._state.seq)
            self._commits.add(self._state.seq + len(events))  # what can be read is whole decisions
            for event in events:
                self._state = replay([event], self._state) or self._state
                before, self._tree = self._tree, await self._bus._tree(self._state)
                if self._state.seq not in self._commits:
                    self._tree["workflow_state"]["outcome"] = before["workflow_state"]["outcome"]
                self._commits.discard(self._state.seq)
                for path, new, old in changes(before, self._tree, self._pattern):
                    self._called(new, old, path)
