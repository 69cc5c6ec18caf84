"""`runs`, `show`, `watch` and `inbox`: read the journal, whichever process executes the runs."""

from __future__ import annotations

import asyncio
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from backedge.cli.common import (
    asking,
    earlier,
    event_line,
    idle_words,
    journal_option,
    json_option,
    listing,
    print_json,
    reading,
    run_id,
    shown,
    the_run,
    where,
    wrapped,
)
from backedge.core.errors import NotFound
from backedge.core.suggestions import did_you_mean
from backedge.ports import JournalWithClaims

if TYPE_CHECKING:
    from backedge.analytics.report import Report
    from backedge.app import Engine, Run
    from backedge.cli.difference import ReworkDiff
    from backedge.cli.live import View
    from backedge.cli.packets import Open

GLANCE = 0.5
"""Seconds between two checks whether a process executes the run."""
LINES = 200
"""How many lines of the timeline `show` prints without --all."""
MOST_DIFF = 2_000
"""How many lines of the difference of one file `inbox --json` has."""
OF_A_LOOP = 40
"""The same for the findings and the lines of each loop."""


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
    """List the runs, newest first.

    \b
    Example:
      backedge runs --json
    """

    async def ask(journal: JournalWithClaims) -> Any:
        return await journal.runs()

    heads = listing(journal, ask)
    if as_json:
        print_json([{"run": h.run, "workflow": h.workflow, "outcome": h.outcome, "events": h.seq} for h in heads])
        return
    for head in heads[:limit]:
        click.echo(f"{shown(head.run)}  {head.outcome:9}  {head.seq:5} events  {shown(head.workflow, 40)}")
    if len(heads) > limit:
        click.echo(f"… and {len(heads) - limit} more (use --limit)")
    if not heads:
        click.echo("no runs yet: `backedge run` starts one")


@click.command()
@click.argument("run_name", metavar="[RUN]", required=False)
@click.option("--diff", is_flag=True, help="Show everything that each attempt changed instead.")
@click.option("--step", "step_name", metavar="STEP", help="With --diff: show only this step.")
@click.option("--all", "whole", is_flag=True, help="Show all of a long run, not only the last part.")
@journal_option
@json_option
def show(
    run_name: str | None, diff: bool, step_name: str | None, whole: bool, journal: Path | None, as_json: bool
) -> None:
    """Show what happened in RUN, or in the newest run: the timeline, each loop with its findings and rounds, the
    decisions, and what was accepted. For a long run it shows the last part; --all shows everything.

    \b
    Example:
      backedge show r-0193
    """

    from backedge.cli.difference import print_reworks, reworks
    from backedge.cli.prune import report_of
    from backedge.cli.story import story
    from backedge.cli.telling import Teller, closing_words
    from backedge.engine.store import events_of

    timeline: list[str] = []
    spot = where(journal)

    async def ask(journal: JournalWithClaims) -> tuple[Report, str, list[Any], list[ReworkDiff]]:
        run = await run_id(journal, run_name)
        events = await events_of(journal, run)
        # The teller folds the events: the report uses its state, so that the run is replayed only once.
        teller = Teller(timeline.append)
        for event in events:
            teller.tell(run, event)
        state = teller.state(run)
        assert state is not None
        told, remark = await report_of(journal, state, spot)
        if told.outcome == "running" and await journal.holder(run) is None:
            remark = remark or idle_words(spot, run)
        return told, remark, events, await reworks(journal, spot, state, events) if diff else []

    report, remark, events, changed = reading(journal, ask)
    if step_name is not None and step_name not in report.steps:
        raise NotFound(f"run {report.run} has no step {step_name!r}: {did_you_mean(step_name, report.steps)}")
    if diff:
        print_reworks(changed, step_name, as_json)
        return
    if as_json:
        print_json(report)
        return
    paused = "  (paused)" if report.paused else ""
    click.echo(f"{shown(report.run)}  {shown(report.workflow)}  {report.outcome}{paused}\n")
    most, of_a_loop = (None, None) if whole else (LINES, OF_A_LOOP)
    lines = [*earlier(timeline, most, "line"), *timeline[-(most or len(timeline)) :], ""]
    lines += [
        *story(report, events, of_a_loop),
        "",
        *closing_words(report, changes=False),
        *([remark] if remark else []),
    ]
    click.echo("\n".join(lines))


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
    """List the open escalations of all runs, with the reason, the numbers, the rounds so far and what each option does.

    \b
    Example:
      backedge inbox --json
    """
    from backedge.cli.packets import INDENT, open_packets, packet_lines

    packets = listing(journal, partial(open_packets, project=where(journal)))
    if as_json:
        print_json([_as_json(each) for each in packets])
        return
    if not packets:
        click.echo("the inbox is empty")
    for each in packets:
        known = each.known
        about = known.loop or known.step or "the run"
        lines = [f"{known.id}  {each.run}  {shown(each.workflow, 30)}  about {about}: {shown(known.reason)}"]
        lines += [wrapped(f"{INDENT}{line}", sys.stdout) for line in packet_lines(each.told, each.diffs)]
        lines.append(f"{INDENT}backedge decide {known.id} {'|'.join(known.options)} --run {each.run}")
        click.echo("\n".join(lines))


def _as_json(each: Open) -> dict[str, Any]:
    """The escalation as in reports, with the rest of its packet. `choices` explains the words in `options`, and `whole` of
    an input is the command that prints all of it."""
    from backedge.cli.packets import whole_of

    told, known = each.told, each.known
    more = {name: getattr(told, name) for name in told.__struct_fields__ if name not in ("escalation", "options", "by")}
    more["changes"] = [
        {**{name: getattr(changed, name) for name in changed.__struct_fields__}, "diff": _diff(each, changed.id)}
        for changed in told.changes
    ]
    more["inputs"] = [
        {**{name: getattr(made, name) for name in made.__struct_fields__}, "whole": whole_of(told, made)}
        for made in told.inputs
    ]
    plain = {name: getattr(known, name) for name in known.__struct_fields__}
    return {**more, "run": each.run, "workflow": each.workflow, "choices": told.options, **plain}


def _diff(each: Open, change: str) -> list[str]:
    return list(each.diffs[change].lines[:MOST_DIFF]) if change in each.diffs else []
