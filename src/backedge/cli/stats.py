"""`stats`: statistics of all runs."""

from __future__ import annotations

import csv
import gc
import re
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path

import click

from backedge.analytics.stats import Stats, rows
from backedge.cli.common import journal_option, json_option, listing, print_json, run_id, shown
from backedge.cli.page import Page, width_of
from backedge.core.text import counted
from backedge.ports import Journal
from backedge.reading.statistics import statistics

_AGO = re.compile(r"(\d+)([hdw])")
_HOURS = {"h": 1, "d": 24, "w": 168}


def _time(ctx: click.Context, param: click.Parameter, value: str | None) -> float | None:  # noqa: ARG001
    """A date, a time, or how long ago, as seconds since the epoch."""
    if value is None:
        return None
    ago = _AGO.fullmatch(value)
    try:
        if ago:
            return (datetime.now() - timedelta(hours=int(ago[1]) * _HOURS[ago[2]])).timestamp()
        return datetime.fromisoformat(value).timestamp()
    except (ValueError, OverflowError):
        raise click.BadParameter(
            f"{value!r} is not a time: use a date such as 2025-01-31, or 12h, 7d or 4w for that long ago"
        ) from None


@click.command()
@click.option("--run", "run_name", metavar="RUN", help="Count only this run.")
@click.option("--workflow", metavar="NAME", help="Count only runs of this workflow.")
@click.option(
    "--since",
    metavar="WHEN",
    callback=_time,
    help="Count only runs that started since then: a date, or 12h, 7d or 4w for that long ago.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print each number as a row: measure, subject, value.")
@journal_option
@json_option
def stats(
    run_name: str | None,
    workflow: str | None,
    since: float | None,
    as_csv: bool,
    journal: Path | None,
    as_json: bool,
) -> None:
    """Show statistics of all runs.

    They say how loops ended and after how many rounds, which phases injected and detected the findings, how many findings
    each phase let through, what rework cost by phase and agent, and which runs needed the most rework.

    \b
    Example:
      backedge stats --since 4w --csv > stats.csv
    """
    if as_csv and as_json:
        raise click.UsageError("--csv and --json cannot be combined: use one of them")

    async def ask(journal: Journal) -> Stats:
        gc.disable()  # Millions of short-lived events have no cycles: garbage collection would only cost time.
        chosen = None if run_name is None else await run_id(journal, run_name)
        return await statistics(journal, chosen, workflow, since)

    found = listing(journal, ask)
    if as_json:
        print_json(found)
    elif as_csv:
        table = csv.writer(sys.stdout, lineterminator="\n")
        table.writerow(("measure", "of", "value"))
        table.writerows((measure, _cell(of), value) for measure, of, value in rows(found))
    else:
        page = Page(width_of(sys.stdout))
        for line in _lines(found):
            for part in page.own_line(line, hang=4):
                click.echo(part)


def _cell(text: str) -> str:
    """Text for a table. Text that a spreadsheet would take for a formula is marked as text."""
    line = shown(text)
    return f"'{line}" if line.startswith(("=", "+", "-", "@")) else line


def _lines(found: Stats) -> Iterator[str]:
    loops, findings, rework = found.loops, found.findings, found.rework
    yield f"{counted(found.runs, 'run')}, {counted(found.attempts, 'attempt')}, {_took(found.cost_usd, found.seconds)}"
    yield ""
    yield (
        f"loops      {loops.total}: {loops.resolved} resolved ({loops.success_rate:g} %), {loops.active} active, "
        f"{counted(loops.escalations, 'escalation')}"
    )
    yield from _counts("by kind", loops.by_kind)
    yield from _counts("by severity", loops.by_severity)
    yield from _counts("by state", loops.by_state)
    if loops.resolved:
        after = ", ".join(f"{count} after {number}" for number, count in loops.rounds_to_resolution.items())
        yield f"  rounds to resolution: {loops.average_rounds:g} on average ({after})"
    yield f"findings   {findings.total}, {findings.persistent} of them seen in two or more rounds"
    yield from _counts("by severity", findings.by_severity)
    yield from _counts("by status", findings.by_status)
    yield from _counts("found by", findings.by_judge, MOST_JUDGES)
    yield from _counts("by kind of judge", findings.by_means)
    for origin in findings.by_phase:
        yield f"  injected in {_phase(origin.injected)}, detected in {_phase(origin.detected)}: {origin.findings}"
    for each in findings.yields:
        yield f"  {_phase(each.phase)} caught {each.caught} of {each.present} ({each.per_cent:g} %)"
    for known in findings.most_persistent:
        yield (
            f"  {known.finding} of {shown(known.run, 40)}: {known.rounds_seen} rounds, {known.status.replace('_', ' ')}: "
            f"{shown(known.description, 60)}"
        )
    yield (
        f"rework     {counted(rework.attempts, 'attempt')} ({rework.share:g} % of all), "
        f"{_took(rework.cost_usd, rework.seconds)}"
    )
    for part in rework.by_phase_and_agent:
        took = f"{counted(part.attempts, 'attempt')}, {_took(part.cost_usd, part.seconds)}"
        yield f"  {_phase(part.phase)} by {shown(part.agent, 40)}: {took}"
    if rework.most:
        yield "most rework"
    for run in rework.most:
        took = f"{counted(run.attempts, 'attempt')}, {_took(run.cost_usd, run.seconds)}"
        yield f"  {shown(run.run, 40)}  {shown(run.workflow, 30)}: {counted(run.rounds, 'round')}, {took}"


MOST_JUDGES = 10
"""How many judges to list: those that found most."""


def _counts(title: str, counts: Mapping[str, int], most: int | None = None) -> Iterator[str]:
    if not counts:
        return
    listed = sorted(counts.items(), key=lambda each: -each[1])[:most] if most else counts.items()
    words = [f"{shown(word, 40)} {count}" for word, count in listed]
    words += [f"{len(counts) - len(words)} more"] if len(words) < len(counts) else []
    yield f"  {title}: {', '.join(words)}"


def _phase(phase: str) -> str:
    return shown(phase, 30) or "an unknown phase"


def _took(cost: float, seconds: float) -> str:
    return f"${cost:.2f}, {seconds:.1f} s"
