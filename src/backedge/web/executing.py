"""Executes runs in the server's process: starts new ones, and continues those that can continue and that no process
executes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import msgspec

from backedge.adapters.views import RunViews
from backedge.app import Engine, Run
from backedge.config import find, load
from backedge.core.errors import BackedgeError, IllegalCommand, RunHeld
from backedge.core.scheduling.pending import outcome_of
from backedge.core.value import Json
from backedge.engine.starting import new_run_id
from backedge.engine.store import files_of
from backedge.project import (
    FileWorkflow,
    Project,
    agents_of,
    keep_workflow_file,
    secrets_of,
    settle_workflow_file,
)
from backedge.reading.story_runs import is_story
from backedge.stories.story_run import workflow_file_of
from backedge.web.access.problem import HttpProblem

LOOK = 2.0
"""Seconds between two looks for runs whose process has died."""
HEADS = 200


class Executing:
    """What an engine executes here. Use `working` while the server runs."""

    def __init__(self, engine: Engine, project: Project, say: Callable[[str], None]) -> None:
        self._engine, self._project, self._say = engine, project, say
        self._views = RunViews(lambda run: project.kept_file(run).parent, say)
        self._starting: dict[str, asyncio.Lock] = {}
        self._wanted = asyncio.Event()
        self._refused: dict[str, int] = {}
        """Runs that could not be continued, and where they were then: they are tried again when something happened."""

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        """Continue runs until the end of the block."""
        unsubscribe = self._engine.subscribe(self._views.tell)
        following = asyncio.create_task(self._follow())
        try:
            yield
        finally:
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)
            unsubscribe()
            self._views.flush()

    def look(self) -> None:
        """Look for runs that can continue, now."""
        self._wanted.set()

    async def start(self, key: str | None, input: Json) -> tuple[str, bool]:
        """Start a run of the project's workflow. Returns its id, and whether it is new: with the key of an earlier one and
        its input, nothing is started. Raises HttpProblem for the key of an earlier one with another input."""
        name = key or new_run_id(time.time())
        lock = self._starting.setdefault(name, asyncio.Lock())
        try:
            async with lock:
                source = load(find(self._project.folder))
                given = secrets_of(source).value(input)
                if await self._engine.journal.read(name):
                    return await self._same(name, source.definition.name, given)
                agents = agents_of(source, self._project, self._views.paths)
                keep_workflow_file(self._project, name, source)
                workflow = FileWorkflow(source, self._project, agents, self._views.paths, self._say)
                await self._engine.start(workflow, given, name)
                return name, True
        finally:
            if not lock.locked():
                self._starting.pop(name, None)

    async def _same(self, name: str, workflow: str, given: Json) -> tuple[str, bool]:
        found = await self._engine.find(name)
        # As JSON: to Python, 1 and true are equal.
        same = msgspec.json.encode(await found.input()) == msgspec.json.encode(given)
        if (await found.state()).workflow.name != workflow or not same:
            raise HttpProblem(
                422, "KeyUsed", f"run {name!r} was started with another body: send that one, or choose another key"
            )
        return name, False

    async def resume(self, run: str) -> Run:
        """Continue a run with the workflow that it started with. Raises RunHeld if another process executes it, unless it
        is paused: then it goes on there."""
        found = await self._engine.find(run)
        past = await found.events()
        if (await found.state()).ended is not None:
            raise IllegalCommand(f"run {run!r} has ended: start another one")
        settle_workflow_file(self._project, run, await files_of(self._engine.journal, past))
        source = workflow_file_of(self._project, run, self._project.folder)
        agents = agents_of(source, self._project, self._views.paths)
        if not found.executed_here:
            self._views.load(run, past)
        return await self._engine.resume(run, FileWorkflow(source, self._project, agents, self._views.paths, self._say))

    async def _follow(self) -> None:
        while True:
            self._wanted.clear()
            await self._continue_all()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), LOOK)

    async def _continue_all(self) -> None:
        """Continue every run that has something to do and that no process executes. Stories are left to `backedge run`,
        which decides what comes first; so are runs that a person has paused."""
        after = None
        journal = self._engine.journal
        while heads := await journal.open_runs(HEADS, after):
            after = heads[-1].run
            for head in heads:
                if head.outcome != "running" or self._refused.get(head.run) == head.seq:
                    continue
                try:
                    if await journal.holder(head.run) is not None or is_story(self._project, head.run):
                        continue
                    state = await (await self._engine.find(head.run)).state()
                    if state.paused_by is not None or outcome_of(state) != "running":
                        continue
                    self._say(f"continuing run {head.run}")
                    await self.resume(head.run)
                except RunHeld:
                    continue  # another process was faster
                except (BackedgeError, OSError) as error:
                    self._refused[head.run] = head.seq
                    self._say(f"run {head.run} cannot be continued: {error}")
