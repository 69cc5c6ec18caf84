"""`run` in a project with stories: prints what happens, and sets the exit code."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import click

from backedge.app import Engine
from backedge.cli.common import print_json, say, shown, terminal_width
from backedge.cli.run_summary import closing_words, decide_command, summary_lines
from backedge.cli.telling import Teller, colour_of, rows_of
from backedge.core import events as e
from backedge.core.escalation.options import choice_words
from backedge.project import Project
from backedge.stories.backlog import Backlog
from backedge.stories.entry import Entry
from backedge.stories.rules.assessor import NOT_OURS, PERSON, reset_by
from backedge.stories.rules.story_view import StoryView
from backedge.stories.work import Done, End, Work
from backedge.stories.worktrees import branch_of, worktree_path

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

    def result(self, text: str, slug: str = "") -> None:
        """Print a line of the summary, about one story or about all."""
        if self._quiet:
            return
        name = f"{slug:{self._widest}} | " if slug else ""
        for row in rows_of(text, terminal_width(sys.stdout) - len(name)):
            click.echo(name + row)

    def _of(self, entry: Entry, text: str) -> None:
        """Say something about a story. Every line names it: several stories may be worked on at once."""
        if not self._quiet:
            self._print(entry, text)

    def _print(self, entry: Entry, text: str) -> None:
        self._widest = max(self._widest, len(entry.slug))
        name = f"{entry.slug:{self._widest}} | "
        for line in rows_of(text, terminal_width(sys.stderr) - len(name)):
            say(click.style(name, dim=True) + click.style(line, **colour_of(text)))

    def refined(self, entry: Entry) -> None:
        self._of(entry, "▸ leaves the backlog")

    def unblocked(self, entry: Entry) -> None:
        assert entry.raised is not None
        self._of(entry, f"▸ unblocked: {entry.raised.why}")

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
            self._of(entry, f"{BLANK}  {unblock_words(entry.id, view)}")
        elif view.waiting:
            self._of(entry, f"{BLANK}? asks you: {shown(view.waiting, 200)}")
        elif view.status == "done":
            how = f", {shown(view.diagnostic.removeprefix('done '), 200)}" if view.diagnostic else ""
            self._of(entry, f"{BLANK}✓ done{how}")

    def failed(self, entry: Entry, error: str) -> None:
        self._print(entry, f"{BLANK}! {shown(error, 400)}")

    def not_written(self, entry: Entry, error: str) -> None:
        self._print(entry, f"{BLANK}! the story file cannot be written: {shown(error, 300)}")

    def idle(self) -> None:
        self.remark("nothing to do: waiting for changes")


def unblock_words(id: str, view: StoryView) -> str:
    """How to let a blocked story continue: more rounds help only if it has reached a limit on them."""
    if view.breach is None and view.blocked_by:
        return f"`backedge decide {view.blocked_by} {'|'.join(view.choices)} --run {view.run}` answers its question"
    if view.breach is None:
        return f"`backedge unblock {id}` starts it again"
    if view.breach.limit in ("rounds_per_loop", "rounds_total"):
        return f"`backedge unblock {id}` grants more rounds, `--reset` resets the count"
    return f"`backedge unblock {id}` grants more"


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
        states = {id: await run.state() for id, run in runs.items()}
    width = terminal_width(sys.stdout)
    return {
        id: [
            decide_command(each.id, choice_words(state, each), runs[id].id, width)
            for each in state.escalations.values()
        ]
        for id, state in states.items()
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
    for slug, line in asyncio.run(_summaries(work, backlog)):
        narrator.result(line, slug)
    for story, why in work.put_aside.items():
        narrator.result(f"set aside: {story}: {shown(why, 300)}")
    actions = backlog.actions()
    people = [action for action in actions if action.priority >= PERSON and action.kind == "person"]
    worked = {done.action.story for done in work.done} if mode == "one" else set()
    for action in [each for each in people if not worked or each.story in worked]:
        about = "" if action.reason.startswith(f"{action.story}:") else f"{action.story}: "
        narrator.result(f"for you: {about}{shown(action.reason, 300)}")
        answers = asked.get(action.story, ())
        for remark in (entry.remark for entry in backlog.entries if entry.id == action.story and entry.remark):
            narrator.result(f"     {remark}")
        for line in ("     backedge inbox", *answers, "     then: backedge run --auto") if answers else ():
            narrator.result(line)
    for action in actions:
        if action.kind == "wait" and mode != "one":
            narrator.result(f"waits: {action.story}: {shown(action.reason, 300)}")
    ours = [action for action in actions if action.kind not in NOT_OURS]
    if mode == "one" and ours:
        first = ours[0]
        narrator.result(f"next: {first.kind} {first.story} ({shown(first.reason, 100)}); start it with `backedge run`")
    elif not actions:
        narrator.result("nothing is left to do")


async def _summaries(work: Work, backlog: Backlog) -> list[tuple[str, str]]:
    """What was done for each story that this command finished, or that needs a person now: as at the end of a run. Each
    line comes with the name of its story. What to type follows below, for all stories together."""
    worked = list(dict.fromkeys(done.action.story for done in work.done))
    entries = [entry for entry in backlog.entries if entry.id in worked and entry.run and entry.view is not None]
    lines: list[tuple[str, str]] = []
    if not entries:
        return lines
    async with Engine(work.project.journal) as engine:
        for entry in sorted(entries, key=lambda each: worked.index(each.id)):
            run = await engine.find(entry.run)
            report = await run.report()
            if report.outcome == "running":
                continue
            more = [*summary_lines(report, await run.events(), work.project), *_place(work.project, entry)]
            words = closing_words(report, changes=False, more=more, answers=False)
            lines += [(entry.slug, line) for line in words]
    return lines


def _place(project: Project, entry: Entry) -> Iterator[str]:
    """Where the work on a story is, if it is not in the folder of the project."""
    tree = worktree_path(project, entry.id)
    if tree is not None:
        yield f"  work: branch {branch_of(entry.id)}, in {shown(os.path.relpath(tree), 200)}"


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
