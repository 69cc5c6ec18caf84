"""`show`: what happened in a run, or in one of its steps."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from backedge.cli.common import (
    earlier,
    idle_words,
    journal_option,
    json_option,
    print_json,
    reading,
    run_id,
    shown,
    where,
)
from backedge.core import events as e
from backedge.core.errors import NotFound
from backedge.core.suggestions import did_you_mean
from backedge.ports import JournalWithClaims

if TYPE_CHECKING:
    from backedge.analytics.changes import AttemptChange
    from backedge.analytics.inbox import InboxItem
    from backedge.analytics.report import Report
    from backedge.analytics.rounds import Histories, RoundReport
    from backedge.cli.page import Page

LINES = 200
"""How many lines of the timeline `show` prints without --all."""
OF_A_LOOP = 40
"""The same for the findings and the lines of each loop."""


@dataclass(frozen=True)
class Shown:
    """What there is to show of a run."""

    report: Report
    remark: str
    events: Sequence[e.Event]
    timeline: Sequence[str]
    histories: Histories
    items: Sequence[InboxItem]
    """The open escalations."""
    diffs: Sequence[AttemptChange]


@click.command()
@click.argument("run_name", metavar="[RUN]", required=False)
@click.option("--diff", is_flag=True, help="Show everything that each attempt changed instead.")
@click.option("--step", "step_name", metavar="STEP", help="Show only this step, and the feedback from it and to it.")
@click.option("--all", "whole", is_flag=True, help="Show all of a long run and of long texts.")
@journal_option
@json_option
def show(
    run_name: str | None, diff: bool, step_name: str | None, whole: bool, journal: Path | None, as_json: bool
) -> None:
    """Show what happened in RUN, or in the newest run: the timeline, each loop with its findings and every round, what
    is open and what was changed last, the decisions, and what was accepted. For a long run it shows the last part;
    --all shows everything.

    \b
    Example:
      backedge show r-0193
    """
    from backedge.cli.difference import print_reworks

    found = reading(journal, lambda opened: read_run(opened, journal, run_name, step_name, diff))
    if diff:
        print_reworks(found.diffs, step_name, as_json)
    elif as_json:
        print_json(found.report)
    else:
        click.echo("\n".join(_lines(found, whole)))


async def read_run(
    journal: JournalWithClaims, place: Path | None, run_name: str | None, step: str | None = None, diff: bool = False
) -> Shown:
    """Read a run, or what is about one step of it; with `diff` everything that its attempts changed."""
    from backedge.analytics.attempt_errors import errors_by_step
    from backedge.analytics.rounds import loop_histories
    from backedge.cli.telling import Teller
    from backedge.engine.store import events_of
    from backedge.reading.attempt_changes import last_changes, reworks, under_discussion
    from backedge.reading.packets import RunHistory, item_of
    from backedge.reading.run_report import report_of

    spot = where(place)
    run = await run_id(journal, run_name)
    events = await events_of(journal, run)
    timeline: list[str] = []
    said: list[str] = []
    # The teller folds the events: the report uses its state, so that the run is replayed only once.
    teller = Teller(said.append)
    loops: set[str] = set()
    for event in events:
        said.clear()
        teller.tell(run, event)
        if step is None or concerns(event, step, loops):
            timeline += said
    state = teller.state(run)
    assert state is not None
    histories = loop_histories(events)
    report, remark = await report_of(journal, state, spot, histories, errors_by_step(events))
    if report.outcome == "running" and await journal.holder(run) is None:
        remark = remark or idle_words(spot, run)
    if step is not None and step not in report.everybody:
        raise NotFound(f"run {report.run} has no step {step!r}: {did_you_mean(step, report.everybody)}")
    if diff:
        return Shown(report, remark, events, (), {}, (), await reworks(journal, spot, state, events))
    report = replace(report, changes=await last_changes(journal, spot, state, events, under_discussion(state)))
    history = RunHistory(state, events, histories)
    items = [await item_of(journal, spot, history, each) for each in state.escalations.values()]
    if step is not None:
        report = narrowed(report, step)
        items = [item for item in items if any(item.id == each.id for each in report.escalations)]
    return Shown(report, remark, events, timeline, histories, items, ())


def concerns(event: e.Event, step: str, loops: set[str]) -> bool:
    """Whether an event is about a step, or about feedback from it or to it. `loops` collects that feedback."""
    match event:
        case e.RunStarted() | e.RunEnded():
            return True
        case e.LoopOpened():
            if event.source == step:
                loops.add(event.loop)
        case e.FeedbackRouted():
            if step in event.shares:
                loops.add(event.loop)
        case _:
            pass
    if getattr(event, "loop", None) in loops:
        return True
    return step in (getattr(event, "step", None), getattr(event, "judge", None), getattr(event, "source", None))


def narrowed(report: Report, step: str) -> Report:
    """The report with only what is about one step."""
    loops = [loop for loop in report.loops if step in (loop.source, *loop.targets, *_reworked(loop.history))]
    own = {id for loop in loops for id in loop.findings}
    names = {loop.id for loop in loops}
    evidence = report.evidence
    if evidence is not None:
        judges = {name: each for name, each in evidence.judges.items() if name == step and each.tool}
        evidence = replace(evidence, judges=judges) if judges else None
    return replace(
        report,
        evidence=evidence,
        steps={name: each for name, each in report.steps.items() if name == step},
        checks={name: each for name, each in report.checks.items() if name == step},
        gates={name: each for name, each in report.gates.items() if name == step},
        loops=tuple(loops),
        findings=tuple(each for each in report.findings if each.id in own or each.found_by == step),
        escalations=tuple(each for each in report.escalations if each.step == step or each.loop in names),
        refused=tuple(each for each in report.refused if step in (each.source, *each.targets)),
        protected=tuple(each for each in report.protected if each.step == step),
        changes=tuple(each for each in report.changes if each.step == step),
        baselines=tuple(each for each in report.baselines if each.judge == step),
    )


def _reworked(history: Sequence[RoundReport]) -> list[str]:
    return [target for turn in history for target in turn.targets]


def cut_words(run: str, page: Page) -> Iterator[str]:
    """What shows all of the texts that a page has cut, if it has cut any."""
    if page.has_cut:
        yield from ("… stands for text that is left out. All of it:", f"  backedge show {run} --all", "")


def _lines(found: Shown, whole: bool) -> list[str]:
    from backedge.cli.page import Page, width_of
    from backedge.cli.run_summary import closing_words
    from backedge.cli.story import story

    report, page = found.report, Page(width_of(sys.stdout), whole)
    paused = "  (paused)" if report.paused else ""
    most, of_a_loop = (None, None) if whole else (LINES, OF_A_LOOP)

    def wrapped(lines: Iterable[str], hang: int = 2) -> list[str]:
        return [line for each in lines for line in page.own_line(each, hang=hang)]

    told = wrapped(story(report, found.events, found.histories, found.items, page, of_a_loop))
    return [
        f"{shown(report.run)}  {shown(report.workflow)}  {report.outcome}{paused}",
        "",
        *earlier(found.timeline, most, "line"),
        *wrapped(found.timeline[-(most or len(found.timeline)) :], 11),
        "",
        *told,
        "",
        *cut_words(report.run, page),
        *wrapped(closing_words(report, changes=False, questions=False, width=page.width)),
        *([found.remark] if found.remark else []),
    ]
