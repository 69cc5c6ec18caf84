"""`run` in a project with stories: prints what happens, and sets the exit code."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any, Literal

import click

from backedge.cli.common import print_json, say, shown
from backedge.cli.telling import Teller
from backedge.compat.agentic_sdlc import CREATE_PR
from backedge.core import events as e
from backedge.stories.backlog import Backlog
from backedge.stories.entry import Entry
from backedge.stories.rules.assessor import PERSON, reset_by
from backedge.stories.rules.story_view import StoryView
from backedge.stories.work import Done, End, Work

INTERRUPTED = 130


class TerminalNarrator:
    """Prints what happens to stories on stderr; with `quiet`, only errors."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._tellers: dict[str, Teller] = {}

    def remark(self, text: str) -> None:
        if not self._quiet:
            say(text)

    def result(self, text: str) -> None:
        if not self._quiet:
            click.echo(text)

    def refined(self, entry: Entry) -> None:
        self.remark(f'▸ "{entry.slug}" leaves the backlog')

    def resumed(self, run: str, events: Sequence[e.Event]) -> None:
        self._tellers[run] = Teller(self.remark, {run: list(events)})

    def event(self, run: str, event: e.Event) -> None:
        self._tellers.setdefault(run, Teller(self.remark)).tell(run, event)

    def started(self, entry: Entry, event: e.AttemptStarted, view: StoryView, reworks: bool) -> None:
        remark, slug = self.remark, entry.slug
        if not reworks:
            word = "Creating the pull request of" if event.step == CREATE_PR else f"{event.step}:"
            remark(f'▸ {word} "{slug}"')
            return
        number, phase = view.refinement_count, view.iterations[-1].phase
        most = f"/{view.max_refinements}" if view.max_refinements is not None else ""
        remark(f'⟳ Reworking "{slug}" (iteration {number}{most}, target: {phase})')
        remark(f"  → Recorded refinement attempt {number}")
        remark(f"  → Added refinement iteration {number} notes to story")
        flags = [f"{each}_complete" for each in reset_by(phase)]
        remark(f"  → Reset {', '.join(flags)} flag{'s' if len(flags) > 1 else ''} for rework")
        remark(f"  ↳ Triggering {phase} agent for refinement...")

    def stopped(self, entry: Entry, view: StoryView) -> None:
        self._tellers.pop(entry.run, None)
        if view.blocked_reason.startswith("Max refinement attempts"):
            reached = view.blocked_reason.removeprefix("Max refinement attempts")
            self.remark(f'🛑 Story "{entry.slug}" reached max refinement attempts{reached}')
            self.remark(f"   Manual intervention required: `backedge unblock {entry.id}` grants more")
        elif view.blocked_reason:
            self.remark(f'🛑 Story "{entry.slug}" is blocked: {shown(view.blocked_reason, 200)}')
        elif view.waiting:
            self.remark(f'? Story "{entry.slug}" waits: {shown(view.waiting, 200)}')
        elif view.status == "done":
            how = f", {shown(view.diagnostic.removeprefix('done '), 200)}" if view.diagnostic else ""
            self.remark(f'✓ Story "{entry.slug}" is done{how}')

    def failed(self, entry: Entry, error: str) -> None:
        say(f'✗ "{entry.slug}": {shown(error, 400)}')

    def not_written(self, entry: Entry, error: str) -> None:
        say(f'✗ "{entry.slug}" cannot be written: {shown(error, 300)}')

    def idle(self) -> None:
        self.remark("nothing to do: waiting for changes")


def work_through(work: Work, narrator: TerminalNarrator, mode: Literal["one", "all", "watch"], as_json: bool) -> None:
    """Work on stories, and exit with the matching exit code."""
    end = asyncio.run(_interruptible({"one": work.one, "all": work.all, "watch": work.watch}[mode]))
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
        _say_left(work, narrator, backlog, mode, end)
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


def _say_left(work: Work, narrator: TerminalNarrator, backlog: Backlog, mode: str, end: End | None) -> None:
    if end is None:
        narrator.remark("interrupted; continue with `backedge run`")
        return
    for story, why in work.put_aside.items():
        narrator.result(f"set aside: {story}: {shown(why, 300)}")
    actions = backlog.actions()
    people = [action for action in actions if action.priority >= PERSON and action.kind == "person"]
    for action in people if mode != "one" or not work.done else ():
        about = "" if action.reason.startswith(action.story) else f"{action.story}: "
        narrator.result(f"for you: {about}{shown(action.reason, 300)}")
    ours = [action for action in actions if action.kind != "person"]
    if mode == "one" and ours:
        first = ours[0]
        narrator.result(f"next: {first.kind} {first.story} ({shown(first.reason, 100)}); start it with `backedge run`")
    elif not actions:
        narrator.result("nothing is left to do")


async def _interruptible(work: Callable[[], Any]) -> End | None:
    """Work until the end. After an interruption, stop and record what is running, and return None."""
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
