"""`run` in a project with stories: prints what happens, and sets the exit code."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import click

from backedge.app import Engine
from backedge.cli.common import print_json, say, shown, terminal_width
from backedge.cli.run_summary import summary_lines
from backedge.cli.telling import Teller, closing_words, colour_of, rows_of
from backedge.core import events as e
from backedge.stories.backlog import Backlog
from backedge.stories.entry import Entry
from backedge.stories.rules.assessor import PERSON, reset_by
from backedge.stories.rules.story_view import StoryView
from backedge.stories.work import Done, End, Work

INTERRUPTED = 130
BLANK = " " * 11
"""As wide as the time in front of a line."""


class TerminalNarrator:
    """Prints what happens to stories on stderr; with `quiet`, only errors."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self._tellers: dict[str, Teller] = {}
        self._widest = 0

    def remark(self, text: str) -> None:
        if not self._quiet:
            say(text)

    def restored(self, entry: Entry, text: str) -> None:
        self._of(entry, f"{BLANK}{text}")

    def result(self, text: str) -> None:
        if not self._quiet:
            click.echo(text)

    def _of(self, entry: Entry, text: str) -> None:
        """Say something about a story. Every line names it: several stories may be worked on at once."""
        if self._quiet:
            return
        self._widest = max(self._widest, len(entry.slug))
        name = f"{entry.slug:{self._widest}} | "
        for line in rows_of(text, terminal_width(sys.stderr) - len(name)):
            say(click.style(name, dim=True) + click.style(line, **colour_of(text)))

    def refined(self, entry: Entry) -> None:
        self._of(entry, "▸ leaves the backlog")

    def resumed(self, entry: Entry, run: str, events: Sequence[e.Event]) -> None:
        self._tellers[run] = Teller(partial(self._of, entry), {run: list(events)})

    def event(self, entry: Entry, run: str, event: e.Event) -> None:
        self._tellers.setdefault(run, Teller(partial(self._of, entry))).tell(run, event)

    def started(self, entry: Entry, view: StoryView, reworks: bool) -> None:
        if not reworks:
            return
        number, phase = view.refinement_count, view.iterations[-1].phase
        most = f" of {view.max_refinements}" if view.max_refinements is not None else ""
        flags = ", ".join(f"{each}_complete" for each in reset_by(phase))
        self._of(entry, f"{BLANK}story file: recorded refinement attempt {number}{most}, target {phase}; reset {flags}")

    def stopped(self, entry: Entry, view: StoryView) -> None:
        self._tellers.pop(entry.run, None)
        if view.blocked_reason:
            self._of(entry, f"{BLANK}? blocked: {shown(view.blocked_reason, 200)}")
            self._of(entry, f"{BLANK}  `backedge unblock {entry.id}` grants more rounds")
        elif view.waiting:
            self._of(entry, f"{BLANK}? asks you: {shown(view.waiting, 200)}")
        elif view.status == "done":
            how = f", {shown(view.diagnostic.removeprefix('done '), 200)}" if view.diagnostic else ""
            self._of(entry, f"{BLANK}✓ done{how}")

    def failed(self, entry: Entry, error: str) -> None:
        say(f"{entry.slug} | {BLANK}! {shown(error, 400)}")

    def not_written(self, entry: Entry, error: str) -> None:
        say(f"{entry.slug} | {BLANK}! the story file cannot be written: {shown(error, 300)}")

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
        asked = asyncio.run(_asked(work, backlog)) if end is not None else {}
        _say_left(work, narrator, backlog, asked, mode, end)
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


async def _asked(work: Work, backlog: Backlog) -> dict[str, list[str]]:
    """What to type for the stories that wait for a person, by story: the questions of their runs and the answers."""
    waiting = [entry for entry in backlog.entries if entry.view is not None and entry.view.escalations]
    if not waiting:
        return {}
    async with Engine(work.project.journal) as engine:
        runs = {entry.id: await engine.find(entry.run) for entry in waiting}
        packets = {id: (await run.state()).escalations.values() for id, run in runs.items()}
    return {
        id: [f"backedge decide {each.id} {'|'.join(each.options)} --run {runs[id].id}" for each in asked]
        for id, asked in packets.items()
    }


def _say_left(
    work: Work,
    narrator: TerminalNarrator,
    backlog: Backlog,
    asked: Mapping[str, Sequence[str]],
    mode: str,
    end: End | None,
) -> None:
    if end is None:
        narrator.remark("interrupted; continue with `backedge run`")
        return
    for line in asyncio.run(_summaries(work, backlog)):
        narrator.result(line)
    for story, why in work.put_aside.items():
        narrator.result(f"set aside: {story}: {shown(why, 300)}")
    actions = backlog.actions()
    people = [action for action in actions if action.priority >= PERSON and action.kind == "person"]
    worked = {done.action.story for done in work.done} if mode == "one" else set()
    for action in [each for each in people if not worked or each.story in worked]:
        about = "" if action.reason.startswith(action.story) else f"{action.story}: "
        narrator.result(f"for you: {about}{shown(action.reason, 300)}")
        answers = asked.get(action.story, ())
        for line in ("backedge inbox", *answers) if answers else ():
            narrator.result(f"     {line}")
    ours = [action for action in actions if action.kind != "person"]
    if mode == "one" and ours:
        first = ours[0]
        narrator.result(f"next: {first.kind} {first.story} ({shown(first.reason, 100)}); start it with `backedge run`")
    elif not actions:
        narrator.result("nothing is left to do")


async def _summaries(work: Work, backlog: Backlog) -> list[str]:
    """What was done for each story that this command finished, or that needs a person now: as at the end of a run."""
    worked = list(dict.fromkeys(done.action.story for done in work.done))
    entries = [entry for entry in backlog.entries if entry.id in worked and entry.run and entry.view is not None]
    lines: list[str] = []
    if not entries:
        return lines
    async with Engine(work.project.journal) as engine:
        for entry in sorted(entries, key=lambda each: worked.index(each.id)):
            run = await engine.find(entry.run)
            report = await run.report()
            if report.outcome == "running":
                continue
            words = closing_words(report, changes=False, more=summary_lines(report, await run.events(), work.project))
            lines += [f"{entry.slug} | {line}" for line in words]
    return lines


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
