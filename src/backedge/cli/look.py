"""`runs`, `watch` and `inbox`: read the journal, whichever process executes the runs."""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from backedge.cli.common import (
    asking,
    journal_option,
    json_option,
    listing,
    print_json,
    the_run,
    where,
)
from backedge.ports import JournalWithClaims

if TYPE_CHECKING:
    from backedge.app import Engine, Run
    from backedge.cli.live import View

GLANCE = 0.5
"""Seconds between two checks whether a process executes the run."""
WIDE = 120
"""How wide lists are where there is no terminal."""


@click.command()
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="How many runs to list. --json always lists all.",
)
@journal_option
@json_option
def runs(limit: int, journal: Path | None, as_json: bool) -> None:
    """List the runs, newest first, with their state: live (a process executes it now), stopped, paused, asks you, or how
    it ended; when it started, its cost, its step, and the command to type next.

    \b
    Example:
      backedge runs --json
    """
    from backedge.cli.run_status import status_lines
    from backedge.reading.run_status import run_statuses

    spot, count = where(journal), 0

    async def ask(journal: JournalWithClaims) -> Any:
        nonlocal count
        heads = await journal.runs()
        count = len(heads)
        return await run_statuses(journal, heads if as_json else heads[:limit], spot)

    found = listing(journal, ask)
    if as_json:
        print_json(found)
        return
    for line in status_lines(found, shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDE):
        click.echo(line)
    if count > limit:
        click.echo(f"… and {count - limit} more (use --limit)")
    if not found:
        click.echo("no runs yet: `backedge run` starts one")


@click.command()
@click.argument("run_name", metavar="[RUN]", required=False)
@click.option("--plain", is_flag=True, help="Show plain lines, even on a terminal.")
@click.option("--log", is_flag=True, help="Show plain lines, with the logs of the agents.")
@journal_option
@click.option("--json", "as_json", is_flag=True, help="Print each event as a line of JSON, as `audit export` does.")
def watch(run_name: str | None, plain: bool, log: bool, journal: Path | None, as_json: bool) -> None:
    """Follow RUN, or the newest run, until it ends. Ctrl-C stops watching; the run continues.

    \b
    Example:
      backedge watch
    """

    from backedge.cli.live import shown_by, view_on
    from backedge.engine.codec import decode_events
    from backedge.engine.store import records_of, sound_records
    from backedge.reading.event_line import event_line

    async def follow_lines(engine: Engine) -> None:
        found, seen = await the_run(engine, run_name), 0
        while True:
            for record in await sound_records(engine.journal, found.id, seen):
                click.echo(await event_line(engine.journal, found.id, record))
                seen = record.seq
            state = await found.state()
            if state.ended is not None and state.seq <= seen:
                return
            await found.changed(seen)

    async def follow(engine: Engine) -> None:
        found, seen = await the_run(engine, run_name), 0
        async with shown_by(view_on(sys.stdout, click.echo, where(journal).state, plain, log)) as view:
            executor = ExecutorWatch(engine, found, view)
            while True:
                records = await records_of(engine.journal, found.id, seen)
                for event in decode_events(records):
                    view.tell(found.id, event)
                seen = records[-1].seq if records else seen
                state = await found.state()
                if state.ended is not None and state.seq <= seen:
                    return
                await executor.changes(seen)

    try:
        asking(journal, follow_lines if as_json else follow)
    except (KeyboardInterrupt, asyncio.CancelledError):
        return


class ExecutorWatch:
    """Tells the reader of `watch` when no process executes the run, because then nothing will happen."""

    def __init__(self, engine: Engine, run: Run, view: View) -> None:
        self._engine, self._run, self._view = engine, run, view
        self._missed = False

    async def changes(self, seen: int) -> None:
        """Wait for the next event, and check regularly whether a process executes the run."""
        change = asyncio.create_task(self._run.changed(seen))
        try:
            while not change.done():
                await self._look()
                await asyncio.wait({change}, timeout=GLANCE)
            await change
        finally:
            change.cancel()

    async def _look(self) -> None:
        missing = await self._engine.journal.holder(self._run.id) is None
        if missing and not self._missed:
            self._view.remark(f"No process is running it. Continue with `backedge resume {self._run.id}`")
        self._missed = missing


@click.command()
@journal_option
@json_option
def inbox(journal: Path | None, as_json: bool) -> None:
    """List the open escalations of all runs, those that pause their run first, then the oldest.

    Each says in a sentence what is wrong, which findings every verdict saw, what the last fix changed, and what each
    choice does, the recommended one first. `backedge decide E-1 history` prints every round in full.

    \b
    Example:
      backedge inbox --json
    """
    from backedge.cli.packet_text import packet_lines
    from backedge.cli.page import Page, width_of
    from backedge.reading.packets import open_items

    items = listing(journal, partial(open_items, project=where(journal)))
    if as_json:
        print_json(items)
        return
    if not items:
        click.echo("the inbox is empty")
    page, now = Page(width_of(sys.stdout)), time.time()
    for place, each in enumerate(items):
        lines = [*([""] if place else []), *packet_lines(each, page, now)]
        click.echo("\n".join(lines))
