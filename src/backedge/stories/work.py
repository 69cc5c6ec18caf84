"""Works on stories: one action, or one after the other until nothing is left.

A Narrator reports the progress to people; the command line has one.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from backedge.adapters.views import RunViews
from backedge.app import Engine, Run
from backedge.compat.agentic_sdlc import FILES
from backedge.config import WorkflowFile
from backedge.core import events as e
from backedge.core.errors import AgentError, AlreadyClosed, BackedgeError, RunHeld, WorkflowError
from backedge.project import Project
from backedge.stories.advance import advance
from backedge.stories.backlog import Backlog, read_backlog, story_of
from backedge.stories.entry import Entry
from backedge.stories.files import story_files, story_folder
from backedge.stories.left_over import clear_left_over
from backedge.stories.limits import with_max_iterations
from backedge.stories.rules.assessor import NOT_OURS, Action
from backedge.stories.rules.front_matter import parse_story
from backedge.stories.rules.front_matter_reader import StoryFileError
from backedge.stories.rules.refinement import Refinement, refinement
from backedge.stories.rules.story_view import StoryView, view_of, view_of_events
from backedge.stories.story_run import outdated, reload, resume_run, start_run
from backedge.stories.update import update_story
from backedge.stories.worktrees import require_same_settings, settings_of, unmerged

INTERVAL = 0.5
"""Seconds between two checks of the files, with --watch."""

End = Literal["done", "waiting", "failed", "held"]


class Narrator(Protocol):
    """Tells people what happens to stories."""

    def remark(self, text: str) -> None:
        """A remark that is not about one story."""

    def restored(self, entry: Entry, text: str) -> None:
        """A field of the story file was restored, or a change does not apply to the story."""

    def refined(self, entry: Entry) -> None:
        """The story has left the backlog."""

    def unblocked(self, entry: Entry) -> None:
        """The story continues, because a person has raised the limit that blocked it."""

    def resumed(self, entry: Entry, run: str, events: Sequence[e.Event]) -> None:
        """The run of a story continues after these events."""

    def event(self, entry: Entry, run: str, event: e.Event) -> None: ...

    def started(self, entry: Entry, view: StoryView, reworks: bool) -> None:
        """An attempt has started; `reworks` if it starts a new refinement."""

    def stopped(self, entry: Entry, view: StoryView) -> None:
        """The action has ended."""

    def failed(self, entry: Entry, error: str) -> None:
        """The action could not be done."""

    def not_written(self, entry: Entry, error: str) -> None:
        """The file of the story could not be written."""

    def idle(self) -> None:
        """Nothing is left to do; now waiting for changes."""


@dataclass
class Done:
    """The result of one action."""

    action: Action
    status: str
    step: str = ""
    trouble: str = ""


@dataclass
class Work:
    """Works on the stories of a project."""

    source: WorkflowFile
    project: Project
    narrator: Narrator
    only: str | None = None
    """Work on this story only."""
    epic: str | None = None
    """Work on the stories of this epic only."""
    by: str = ""
    """The person whose changes of limits are decisions."""
    parallel: int = 1
    until_done: bool = False
    troubled: bool = False
    """A story could not be written."""
    done: list[Done] = field(default_factory=list)
    put_aside: dict[str, str] = field(default_factory=dict)
    """Stories that cannot be worked on now, and why."""

    _outdated: dict[str, str] = field(default_factory=dict)
    """What was said about changes of the workflow file, by run."""

    def __post_init__(self) -> None:
        self._git = settings_of(self.source.folder)

    async def backlog(self) -> Backlog:
        """The stories as they are now; with `only` or `epic`, just those."""
        if self.project.journal.exists():
            async with Engine(self.project.journal) as engine:
                found = await read_backlog(self.source, self.project, engine)
        else:
            found = await read_backlog(self.source, self.project, None)
        return found.only(self.only, self.epic)

    # One action

    async def act(self, entry: Entry, action: Action) -> Done:
        """Do one action. The story file is updated when it starts and when it ends."""
        follower = _Follower(self, entry)
        try:
            # Do not start a story whose file could not be written afterwards.
            parse_story(entry.path.read_bytes(), entry.name)
        except (StoryFileError, OSError) as error:
            self.put_aside[entry.id] = str(error)
            self.troubled = True
            return Done(action, "blocked", trouble=str(error))
        try:
            async with Engine(self.project.journal, max_parallel=256) as engine, AsyncExitStack() as beside:
                engine.allow(0)
                if self.source.definition.notify:
                    from backedge.project.notifying import notifying

                    await beside.enter_async_context(notifying(engine, self.project, warn=self.narrator.remark))
                unsubscribe = engine.subscribe(follower.tell)
                views = RunViews(lambda run: self.project.kept_file(run).parent, self.narrator.remark)
                engine.subscribe(views.tell)
                if action.kind == "unblock":
                    run = await self._unblock(engine, entry, follower, views)
                else:
                    run = await self._open(engine, entry, follower, views)
                entry = replace(entry, run=run.id)
                if action.kind == "unblock":
                    self.narrator.unblocked(entry)
                elif action.kind == "refine":
                    self.narrator.refined(entry)
                else:
                    await advance(engine, run)
                unsubscribe()
                views.flush()
                view = view_of_events(await run.events())
        except RunHeld as error:
            self.put_aside[entry.id] = str(error)
            return Done(action, "held", trouble=str(error))
        except AlreadyClosed as error:  # another process was faster
            return Done(action, "held", trouble=str(error))
        except (WorkflowError, AgentError) as error:
            self.put_aside[entry.id] = str(error)
            self.narrator.failed(entry, str(error))
            return Done(action, "failed", trouble=str(error))
        self.write(entry, view)
        self.narrator.stopped(entry, view)
        return Done(action, view.status, follower.step)

    async def _unblock(self, engine: Engine, entry: Entry, follower: _Follower, views: RunViews) -> Run:
        """Grant what a person has changed the limits to."""
        view, raised = entry.view, entry.raised
        assert view is not None and raised is not None
        run = await self._loaded(engine, entry, follower, views)
        note, choice = f"{raised.why} ({entry.name})", "revise" if raised.reset else "continue"
        await run.decide(view.blocked_by, choice, by=self.by, note=note, rounds=raised.rounds, amount=raised.amount)
        return run

    async def _open(self, engine: Engine, entry: Entry, follower: _Follower, views: RunViews) -> Run:
        if not entry.run:
            if self.source.stories is not None and self.source.stories.worktree:
                require_same_settings(self.source.folder, self._git)
                needs = entry.summary.dependencies if entry.summary else ()
                for each in unmerged(self.project, self.source.folder, needs) if needs else ():
                    why = f"it does not see the work of {each}, which is not merged: `backedge merge {each}` first"
                    self.narrator.restored(entry, why)
            return await start_run(engine, self.source, self.project, entry, views.paths)
        await self._loaded(engine, entry, follower, views)
        why = outdated(self.source, self.project, entry.run)
        if why and self._outdated.get(entry.run) != why:
            self.narrator.restored(entry, why)
        self._outdated[entry.run] = why
        return await resume_run(engine, self.source, self.project, entry, views.paths)

    async def _loaded(self, engine: Engine, entry: Entry, follower: _Follower, views: RunViews) -> Run:
        """The run of a story, after its events so far have been told to those who follow it."""
        run = await engine.find(entry.run)
        past = await run.events()
        follower.load(past)
        views.load(entry.run, past)
        return run

    def write(self, entry: Entry, view: StoryView) -> None:
        """Update the story file. A story whose file cannot be written is set aside; the others continue."""
        try:
            for remark in update_story(self.project, entry.record_id, entry.path, entry.name, view):
                self.narrator.restored(entry, remark)
        except (StoryFileError, OSError) as error:
            why = str(error) if isinstance(error, StoryFileError) else f"{entry.name}: {error.strerror}"
            self.put_aside[entry.id] = f"{why}: the file cannot be written"
            self.troubled = True
            self.narrator.not_written(entry, why)

    # Many actions

    async def one(self) -> End:
        """Do the most urgent action."""
        backlog = await self._restored()
        action = self._next(backlog, set())
        if action is None:
            return self._end(backlog)
        self.done.append(await self.act(_entry(backlog, action), action))
        return self._end(await self.backlog(), one=True)

    async def all(self) -> End:
        """Do one action after the other, `parallel` stories at once, until nothing is left."""
        busy: dict[asyncio.Task[Done], str] = {}
        backlog = await self._restored()
        try:
            while True:
                while len(busy) < self.parallel:
                    action = self._next(backlog, set(busy.values()))
                    if action is None:
                        break
                    busy[asyncio.create_task(self.act(_entry(backlog, action), action))] = action.story
                if not busy:
                    return self._end(backlog)
                ready, _ = await asyncio.wait(busy, return_when=asyncio.FIRST_COMPLETED)
                for task in ready:
                    del busy[task]
                    self.done.append(task.result())
                backlog = await self.backlog()
        finally:
            for task in busy:
                task.cancel()
            await asyncio.gather(*busy, return_exceptions=True)

    async def watch(self) -> End:
        """Continue whenever a file or a run changes: forever, or with `until_done` until nothing is left."""
        while True:
            self.put_aside.clear()
            self.troubled = False
            seen, so_far = await self._signature(), len(self.done)
            end = await self.all()
            if self.until_done and end != "waiting":
                return end
            if any(not done.trouble for done in self.done[so_far:]):
                continue  # otherwise a change made during the work would be missed
            self.narrator.idle()
            while True:
                await asyncio.sleep(INTERVAL)
                if await self._signature() != seen:
                    break
            await asyncio.sleep(INTERVAL / 5)  # an editor may save several files
            assert self.source.stories is not None
            self.source = with_max_iterations(reload(self.source.path), self.source.stories.max_iterations)

    async def _restored(self) -> Backlog:
        """The stories, after restoring what was changed by hand and what a killed process left."""
        for name in clear_left_over(story_folder(self.source)):
            self.narrator.remark(f"{name}: an edit that a killed process had set aside is restored")
        backlog = await self.backlog()
        for entry in backlog.entries:
            if entry.remark:
                self.narrator.restored(entry, entry.remark)
            if entry.view is not None and entry.summary is not None and entry.raised is None:
                written = (entry.view.status, entry.view.refinement_count)
                if (entry.summary.status, entry.summary.refinement_count) != written:
                    self.write(entry, entry.view)
        return backlog

    async def _signature(self) -> tuple[Any, ...]:
        """A value that differs after every change of the backlog."""
        files = []
        settings = (str(self.source.folder / name) for name in FILES)
        for path in (*story_files(story_folder(self.source)), str(self.source.path), *settings):
            try:
                stat = os.stat(path)
            except OSError:
                continue
            files.append((path, stat.st_mtime_ns, stat.st_size, stat.st_ino))
        if not self.project.journal.exists():
            return (*files,)
        async with Engine(self.project.journal) as engine:
            return (*files, *((head.run, head.seq) for head in await engine.runs()))

    def _next(self, backlog: Backlog, busy: set[str]) -> Action | None:
        for action in backlog.actions():
            if action.kind not in NOT_OURS and action.story not in busy and action.story not in self.put_aside:
                return action
        return None

    def _end(self, backlog: Backlog, one: bool = False) -> End:
        """The state of the backlog when this process has nothing more to do."""
        assert self.source.stories is not None
        worked = {done.action.story for done in self.done} if one else None
        left = [entry for entry in backlog.entries if worked is None or entry.id in worked]
        if any(done.status == "failed" for done in self.done):
            return "failed"
        blocked = [entry for entry in left if entry.view is not None and entry.view.status == "blocked"]
        if blocked and self.source.stories.on_breach == "error":
            return "failed"
        held = any(done.status == "held" for done in self.done)
        kinds = {action.story: action.kind for action in backlog.actions()}
        stuck = ("person",) if held else NOT_OURS  # what is held elsewhere may be what a story waits for
        waits = [entry for entry in left if kinds.get(entry.id) in stuck and not entry.skipped]
        if waits or self.troubled:
            return "waiting"
        return "held" if held else "done"


def _entry(backlog: Backlog, action: Action) -> Entry:
    return next(entry for entry in backlog.entries if entry.id == action.story)


class _Follower:
    """Follows the events of one action: reports them, and updates the story file when an attempt starts."""

    def __init__(self, work: Work, entry: Entry) -> None:
        self._work, self._entry = work, entry
        self._story: Refinement | None = None
        self.step = ""

    def load(self, events: Sequence[e.Event]) -> None:
        for event in events:
            self._story = refinement(self._story, event)
        if events:
            self._work.narrator.resumed(self._entry, self._entry.run, events)

    def tell(self, run: str, event: e.Event) -> None:
        before = self._story
        self._story = refinement(before, event)
        if isinstance(event, e.AttemptStarted):
            self.step = event.step
            self._entry = replace(self._entry, run=run)
            view = view_of(self._story)
            self._work.write(self._entry, view)
            reworks = before is not None and self._story.total > before.total
            self._work.narrator.event(self._entry, run, event)
            self._work.narrator.started(self._entry, view, reworks)
        else:
            self._work.narrator.event(self._entry, run, event)


async def refresh_story(project: Project, run: Run, remark: Callable[[str], None]) -> None:
    """Update the story file of a run after an answer; do nothing for a run without a story."""
    try:
        found = await story_of(project, run.id)
        if found is None:
            return
        _, entry = found
        for text in update_story(project, entry.record_id, entry.path, entry.name, view_of_events(await run.events())):
            remark(text)
    except (BackedgeError, OSError) as error:
        remark(f"the story of {run.id} could not be written: {error}")
