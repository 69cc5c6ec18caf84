"""`run` in a project with stories: one action, or one after the other until nothing is left."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import click

from backedge.adapters.stories import StoryFileError, parsed
from backedge.adapters.views import RunViews
from backedge.analytics.refinement import Refinement, refinement
from backedge.analytics.story_view import CREATE_PR, StoryView, view_of
from backedge.app import Engine, Run
from backedge.backlog.beginning import begun, gone_on, reloaded
from backedge.backlog.entry import Entry
from backedge.backlog.reading import Backlog, backlog_of, story_files, story_folder, story_of, view_of_events
from backedge.backlog.updating import updated
from backedge.cli.common import print_json, say, shown
from backedge.cli.stepping import finished
from backedge.cli.telling import Teller
from backedge.config import WorkflowFile
from backedge.core import events as e
from backedge.core.assessor import PERSON, Action, reset_by
from backedge.core.errors import AgentError, BackedgeError, RunHeld, WorkflowError
from backedge.core.scheduling.pending import CheckInputs, pending
from backedge.core.scheduling.scheduler import Start
from backedge.project import Project

INTERRUPTED = 130
GLANCE = 0.5
"""Seconds between two looks at the files, with --watch."""

End = Literal["done", "waiting", "failed", "held"]


@dataclass
class Done:
    """What one action came to."""

    action: Action
    status: str
    step: str = ""
    trouble: str = ""


@dataclass
class Work:
    """How stories are worked on, as the options say."""

    source: WorkflowFile
    spot: Project
    only: str | None = None
    parallel: int = 1
    quiet: bool = False
    until_done: bool = False
    troubled: bool = False
    """A story turned out to be one that cannot be written."""
    done: list[Done] = field(default_factory=list)
    put_aside: dict[str, str] = field(default_factory=dict)
    """Stories that cannot be worked on now, and why."""

    def say(self, text: str) -> None:
        if not self.quiet:
            say(text)

    def tell(self, result: str) -> None:
        if not self.quiet:
            click.echo(result)

    async def backlog(self) -> Backlog:
        """The stories as they are now; only one of them, if that was asked for."""
        if self.spot.journal.exists():
            async with Engine(self.spot.journal) as engine:
                found = await backlog_of(self.source, self.spot, engine)
        else:
            found = await backlog_of(self.source, self.spot, None)
        if self.only is None:
            return found
        return Backlog((found.find(self.only),))

    # One action

    async def act(self, entry: Entry, action: Action) -> Done:
        """Do one thing about one story. Its file says so, before and after."""
        follow = _Follow(self, entry)
        try:
            # A story that could not be written afterwards is not begun.
            parsed(entry.path.read_bytes(), entry.name)
        except (StoryFileError, OSError) as error:
            self.put_aside[entry.id] = str(error)
            self.troubled = True
            return Done(action, "blocked", trouble=str(error))
        try:
            async with Engine(self.spot.journal, max_parallel=256) as engine:
                engine.allow(0)
                unsubscribe = engine.subscribe(follow.tell)
                views = RunViews(lambda run: self.spot.kept_file(run).parent, self.say)
                engine.subscribe(views.tell)
                run = await self._opened(engine, entry, follow, views)
                entry = replace(entry, run=run.id)
                if action.kind == "refine":
                    self.say(f'▸ "{entry.slug}" leaves the backlog')
                else:
                    await _step(engine, run)
                unsubscribe()
                views.flush()
                view = view_of_events(await run.events())
        except RunHeld as error:
            self.put_aside[entry.id] = str(error)
            return Done(action, "held", trouble=str(error))
        except (WorkflowError, AgentError) as error:
            self.put_aside[entry.id] = str(error)
            say(f'✗ "{entry.slug}": {shown(str(error), 400)}')
            return Done(action, "failed", trouble=str(error))
        self.write(entry, view)
        self._say_end(entry, view)
        return Done(action, view.status, follow.step)

    async def _opened(self, engine: Engine, entry: Entry, follow: _Follow, views: RunViews) -> Run:
        if not entry.run:
            return await begun(engine, self.source, self.spot, entry, views.paths)
        past = await (await engine.find(entry.run)).events()
        follow.load(past)
        views.load(entry.run, past)
        return await gone_on(engine, self.source, self.spot, entry, views.paths)

    def write(self, entry: Entry, view: StoryView) -> None:
        """Bring the story's file up to date. One that cannot be written is put aside: the others go on."""
        try:
            for remark in updated(self.spot, entry.id, entry.path, entry.name, view):
                self.say(f"  {remark}")
        except (StoryFileError, OSError) as error:
            why = str(error) if isinstance(error, StoryFileError) else f"{entry.name}: {error.strerror}"
            self.put_aside[entry.id] = f"{why}: it cannot be written"
            self.troubled = True
            say(f'✗ "{entry.slug}" cannot be written: {shown(why, 300)}')

    def _say_end(self, entry: Entry, view: StoryView) -> None:
        if view.blocked_reason.startswith("Max refinement attempts"):
            reached = view.blocked_reason.removeprefix("Max refinement attempts")
            self.say(f'🛑 Story "{entry.slug}" reached max refinement attempts{reached}')
            self.say(f"   Manual intervention required: `backedge unblock {entry.id}` grants more")
        elif view.blocked_reason:
            self.say(f'🛑 Story "{entry.slug}" is blocked: {shown(view.blocked_reason, 200)}')
        elif view.waiting:
            self.say(f'? Story "{entry.slug}" waits: {shown(view.waiting, 200)}')
        elif view.status == "done":
            how = f", {shown(view.diagnostic.removeprefix('done '), 200)}" if view.diagnostic else ""
            self.say(f'✓ Story "{entry.slug}" is done{how}')

    # Many

    async def opened(self) -> Backlog:
        """The stories, where their files say what the journal says: a status that was changed by hand is put back."""
        backlog = await self.backlog()
        for entry in backlog.entries:
            if entry.view is not None and entry.glance is not None and entry.glance.status != entry.view.status:
                self.write(entry, entry.view)
        return backlog

    async def one(self) -> End:
        """The most urgent action."""
        backlog = await self.opened()
        action = self._next(backlog, set())
        if action is None:
            return self._end(backlog)
        self.done.append(await self.act(_entry(backlog, action), action))
        return self._end(await self.backlog(), one=True)

    async def all(self) -> End:
        """One action after the other, several stories at once if that was asked for, until nothing is left."""
        busy: dict[asyncio.Task[Done], str] = {}
        backlog = await self.opened()
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

    async def watched(self) -> End:
        """Go on whenever a file or a run has changed: for ever, or until all is done if that was asked for."""
        while True:
            self.put_aside.clear()
            self.troubled = False
            seen, so_far = await self._signature(), len(self.done)
            end = await self.all()
            if self.until_done and end != "waiting":
                return end
            if any(not done.trouble for done in self.done[so_far:]):
                continue  # what came while we worked would be missed
            self.say("nothing to do: waiting for changes")
            while True:
                await asyncio.sleep(GLANCE)
                if await self._signature() != seen:
                    break
            await asyncio.sleep(GLANCE / 5)  # whoever saves one file may save another
            self.source = reloaded(self.source.path)

    async def _signature(self) -> tuple[Any, ...]:
        """What a change of the backlog shows in."""
        files = []
        for path in (*story_files(story_folder(self.source)), str(self.source.path)):
            try:
                stat = os.stat(path)
            except OSError:
                continue
            files.append((path, stat.st_mtime_ns, stat.st_size, stat.st_ino))
        if not self.spot.journal.exists():
            return (*files,)
        async with Engine(self.spot.journal) as engine:
            return (*files, *((head.run, head.seq) for head in await engine.runs()))

    def _next(self, backlog: Backlog, busy: set[str]) -> Action | None:
        for action in backlog.actions():
            if action.kind != "person" and action.story not in busy and action.story not in self.put_aside:
                return action
        return None

    def _end(self, backlog: Backlog, one: bool = False) -> End:
        """How the backlog stands when there is nothing more to do here."""
        assert self.source.stories is not None
        worked = {done.action.story for done in self.done} if one else None
        left = [entry for entry in backlog.entries if worked is None or entry.id in worked]
        if any(done.status == "failed" for done in self.done):
            return "failed"
        blocked = [entry for entry in left if entry.view is not None and entry.view.status == "blocked"]
        if blocked and self.source.stories.on_breach == "error":
            return "failed"
        people = {action.story for action in backlog.actions() if action.kind == "person"}
        waits = [entry for entry in left if entry.id in people and not entry.skipped]
        if waits or self.troubled:
            return "waiting"
        return "held" if any(done.status == "held" for done in self.done) else "done"


async def _step(engine: Engine, run: Run) -> None:
    """Let a run do the next thing: one attempt, or all judges that can speak now."""
    while True:
        state = await run.state()
        under_way = sum(step.running is not None for step in state.steps.values())
        starts = [each.step for each in pending(state, time.time()) if isinstance(each, Start | CheckInputs)]
        if starts or under_way:
            judges = [step for step in starts if state.graph.is_judge(step)]
            count = len(judges) if starts and starts[0] in judges else min(1, len(starts))
            count = 0 if under_way else count
            engine.allow(count)
            await finished(engine, run, state.attempts + count)
            return
        await finished(engine, run, state.attempts)
        if (await run.state()).seq == state.seq and not await _soon(run):
            return


async def _soon(run: Run) -> bool:
    """Wait for a try again that is due; False if none is."""
    from backedge.core.scheduling.pending import next_wake

    state = await run.state()
    wake = next_wake(state, time.time())
    if wake is None or state.escalations or state.ended is not None:
        return False
    await asyncio.sleep(max(0.01, wake - time.time()))
    return True


def _entry(backlog: Backlog, action: Action) -> Entry:
    return next(entry for entry in backlog.entries if entry.id == action.story)


class _Follow:
    """Tells of a story as it is worked on, and keeps its file current."""

    def __init__(self, work: Work, entry: Entry) -> None:
        self._work, self._entry = work, entry
        self._told: Refinement | None = None
        self._teller = Teller(work.say)
        self.step = ""

    def load(self, events: list[e.Event]) -> None:
        for event in events:
            self._told = refinement(self._told, event)
        if events:
            self._teller = Teller(self._work.say, {self._entry.run: events})

    def tell(self, run: str, event: e.Event) -> None:
        before = self._told
        self._told = refinement(before, event)
        if isinstance(event, e.AttemptStarted):
            self.step = event.step
            self._entry = replace(self._entry, run=run)
            view = view_of(self._told)
            self._work.write(self._entry, view)
            self._say_start(event, view, new=before is not None and self._told.total > before.total)
        self._teller.tell(run, event)

    def _say_start(self, event: e.AttemptStarted, view: StoryView, new: bool) -> None:
        say, slug = self._work.say, self._entry.slug
        if not new:
            word = "Creating the pull request of" if event.step == CREATE_PR else f"{event.step}:"
            say(f'▸ {word} "{slug}"')
            return
        number, phase = view.refinement_count, view.iterations[-1].phase
        most = f"/{view.max_refinements}" if view.max_refinements is not None else ""
        say(f'⟳ Reworking "{slug}" (iteration {number}{most}, target: {phase})')
        say(f"  → Recorded refinement attempt {number}")
        say(f"  → Added refinement iteration {number} notes to story")
        flags = [f"{each}_complete" for each in reset_by(phase)]
        say(f"  → Reset {', '.join(flags)} flag{'s' if len(flags) > 1 else ''} for rework")
        say(f"  ↳ Triggering {phase} agent for refinement...")


def work_through(work: Work, mode: Literal["one", "all", "watch"], as_json: bool) -> None:
    """Work on stories, and leave with the exit code of what came of it."""
    end = asyncio.run(_interruptible({"one": work.one, "all": work.all, "watch": work.watched}[mode]))
    backlog = asyncio.run(work.backlog()) if end is not None else Backlog(())
    if as_json:
        print_json(
            {
                "outcome": end or "interrupted",
                "actions": [_json(each) for each in work.done],
                "left": [{"story": each.story, "kind": each.kind, "reason": each.reason} for each in backlog.actions()],
            }
        )
    else:
        _say_left(work, backlog, mode, end)
    sys.exit({"done": 0, "held": 0, "waiting": 3, "failed": 1, None: INTERRUPTED}[end])


def _json(done: Done) -> dict[str, Any]:
    action = done.action
    return {
        "story": action.story,
        "kind": action.kind,
        "iteration": action.iteration or None,
        "step": done.step,
        "status": done.status,
        "trouble": done.trouble or None,
    }


def _say_left(work: Work, backlog: Backlog, mode: str, end: End | None) -> None:
    if end is None:
        work.say("interrupted; `backedge run` goes on")
        return
    for story, why in work.put_aside.items():
        work.tell(f"put aside: {story}: {shown(why, 300)}")
    actions = backlog.actions()
    people = [action for action in actions if action.priority >= PERSON and action.kind == "person"]
    for action in people if mode != "one" or not work.done else ():
        about = "" if action.reason.startswith(action.story) else f"{action.story}: "
        work.tell(f"for you: {about}{shown(action.reason, 300)}")
    ours = [action for action in actions if action.kind != "person"]
    if mode == "one" and ours:
        work.tell(f"next: {ours[0].kind} {ours[0].story} ({shown(ours[0].reason, 100)}); `backedge run` does it")
    elif not actions:
        work.tell("nothing is left to do")


async def _interruptible(work: Callable[[], Any]) -> End | None:
    """Work until the end; None if it was interrupted. What runs is stopped and recorded then."""
    loop = asyncio.get_running_loop()
    task = asyncio.create_task(work())

    def interrupted() -> None:
        task.cancel()

    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(each) is not signal.SIG_IGN:
            loop.add_signal_handler(each, interrupted)
    try:
        end: End = await task
    except asyncio.CancelledError:
        return None
    return end


async def refreshed(spot: Project, run: Run, remark: Callable[[str], None]) -> None:
    """Bring the story of a run up to date after an answer; nothing for a run that is not that of a story."""
    try:
        found = await story_of(spot, run.id)
        if found is None:
            return
        _, entry = found
        for text in updated(spot, entry.id, entry.path, entry.name, view_of_events(await run.events())):
            remark(text)
    except (BackedgeError, OSError) as error:
        remark(f"the story of {run.id} could not be written: {error}")
