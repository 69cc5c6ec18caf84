"""`check`, `schema` and `what-if`: what a workflow can do, without running it."""

from __future__ import annotations

import asyncio
import dataclasses
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from backedge.analytics.blast import Blast, blast_of
from backedge.analytics.costs import Costs, costs
from backedge.app import Engine
from backedge.cli.common import (
    import_option,
    journal_option,
    json_option,
    own_id,
    print_json,
    reading,
    run_id,
    say,
    shown,
    tell_not_imported,
    where,
    wrapped,
)
from backedge.config import WorkflowFile, find, mermaid, picture, schema_text
from backedge.core.errors import JournalError
from backedge.core.text import clean, counted
from backedge.core.workflow.bound import bound_of, max_attempts
from backedge.core.workflow.definition import Workflow
from backedge.engine.store import events_of
from backedge.ports import Journal
from backedge.project import Project, agents_of, checked_file, in_force, missing_programs, not_imported

LOOKED_AT = 100
"""How many of the newest runs to estimate costs from."""


@click.command()
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--mermaid", "as_mermaid", is_flag=True, help="Print the graph as Mermaid.")
@import_option
@journal_option
@json_option
def check(file: Path | None, as_mermaid: bool, imports: bool, journal: Path | None, as_json: bool) -> None:
    """Validate the workflow file, draw its graph with the back edges, and print how many attempts a run usually makes, how
    many at most, and the highest cost.

    If there are problems, it lists all of them with line and column, and exits with 2. A program that is not installed
    is only a warning. Costs are estimated from the attempts in the journal.

    Nothing of the folder is executed. With --import the modules of `python:` agents are imported, which executes them,
    and their functions are checked too.

    \b
    Example:
      backedge check --mermaid
    """
    source = checked_file(file or find(Path.cwd()), imports)
    spot = where(journal, source.path)
    agents_of(source, spot, installed=False, imports=imports)
    unchecked = [] if imports else not_imported(source)
    bound = max_attempts(source.definition)
    warnings = [*source.warnings, *missing_programs(source)]
    try:
        cost = _costs(source, spot, bound or 0)
    except JournalError as error:
        cost = None
        warnings.append(f"the cost of earlier runs is unknown: {error}")
    found = in_force(source, spot)
    warnings += found.warnings
    warnings += _story_warnings(source, spot)
    if as_json:
        steps = [step.name for step in source.definition.steps]
        told = {"workflow": source.definition.name, "valid": True, "max_attempts": bound, "steps": steps}
        told |= {"checks": [each.name for each in source.definition.checks]}
        told |= {"gates": [each.name for each in source.definition.gates], "not_imported": unchecked}
        print_json(
            {
                **told,
                "warnings": warnings,
                "cost": cost,
                "evidence": {key: each for key, each in dataclasses.asdict(found).items() if key != "warnings"},
            }
        )
        return
    click.echo(clean(mermaid(source.definition) if as_mermaid else picture(source.definition, _width())))
    if not as_mermaid:
        click.echo()
        for line in _attempt_words(source.definition, bound or 0, cost):
            click.echo(wrapped(line, sys.stdout))
        for line in _cost_words(cost, source.definition.limits.cost_usd, bound or 0):
            click.echo(wrapped(line, sys.stdout))
        said = list(found.lines())
        if said:
            click.echo("\nIn force on this machine:")
        for line in said:
            click.echo(wrapped(f"  {clean(line)}", sys.stdout))
    tell_not_imported(unchecked)
    for warning in warnings:
        say(wrapped(f"warning: {clean(warning)}", sys.stderr))


def _story_warnings(source: WorkflowFile, spot: Project) -> list[str]:
    """What is wrong with the stories of a project: a story that cannot be read, or dependencies that can never be done."""
    from backedge.stories.files import has_stories

    if not has_stories(source) or source.stories is None or not source.stories.folder.is_dir():
        return []
    from backedge.stories.backlog import read_backlog

    entries = asyncio.run(read_backlog(source, spot, None)).entries
    mistakes = [(entry, entry.hold.reason) for entry in entries if entry.hold is not None and entry.hold.mistake]
    return [entry.trouble for entry in entries if entry.trouble] + [f"{entry.name}: {why}" for entry, why in mistakes]


def _width() -> int:
    """How wide the drawing may be: as wide as the terminal, and 80 at most."""
    return min(80, shutil.get_terminal_size().columns) if sys.stdout.isatty() else 80


def _costs(source: WorkflowFile, spot: Project, bound: int) -> Costs | None:
    """The cost of the newest runs of this workflow; None if there are none."""
    if not spot.journal.exists():
        return None

    async def ask() -> Costs | None:
        async with Engine(spot.journal) as engine:
            names = [head.run for head in await engine.runs() if head.workflow == source.definition.name][:LOOKED_AT]
            runs = [await (await engine.find(name)).events() for name in names]
        return costs(runs, bound, source.definition.limits.cost_usd) if runs else None

    return asyncio.run(ask())


def _attempt_words(workflow: Workflow, most: int, cost: Costs | None) -> Iterator[str]:
    """How many attempts a run makes, and what multiplies the highest number."""
    if cost is not None and cost.attempts:
        usual, why = max(1, round(cost.attempts / cost.runs)), f"the average of {counted(cost.runs, 'run')}"
    else:
        usual, why = len(workflow.steps), "one for each step, and more for what comes back"
    yield f"A run usually makes about {counted(usual, 'attempt')} ({why}), at most {most}, plus any that you grant."
    product = bound_of(workflow)
    if product is None or most != product.attempts:
        yield f"The limit attempts allows no more than {most}."
        return
    rounds = {
        "rounds_total": "",
        "rounds_per_step": " for each step",
        "rounds_per_pair": " for each pair of a judge and a step",
    }[product.rounds_by]
    again = f" + {product.judges} to judge again after late changes" if product.judges else ""
    yield (
        f"What multiplies: {counted(product.executions, 'execution')}{again}, in the first pass and in each of "
        f"{counted(product.rounds, 'round')} of feedback (the limit {product.rounds_by}{rounds}), each tried up to "
        f"{counted(product.tries, 'time')} if its agent breaks (errors_in_a_row)."
    )


def _cost_words(cost: Costs | None, limit: float | None, bound: int) -> Iterator[str]:
    if cost is None or not cost.attempts:
        yield "The cost is unknown: the journal has no run of this workflow yet."
    elif not cost.total_usd:
        yield f"None of the {counted(cost.attempts, 'attempt')} so far reported a cost."
    else:
        yield (
            f"An attempt has cost ${cost.mean_usd:.2f} on average and ${cost.max_usd:.2f} at most "
            f"({counted(cost.attempts, 'attempt')} in {counted(cost.runs, 'run')}), so {bound} could cost ${cost.at_mean_usd:.2f}, "
            f"and ${cost.at_most_usd:.2f} at the highest price seen."
        )
        for name, step in cost.steps.items():
            if step.max_usd:
                yield f"  {shown(name, 30):30} ${step.mean_usd:.2f} on average, ${step.max_usd:.2f} at most"
    if limit is not None:
        yield f"The limit cost_usd stops a run at ${limit:.2f}."


@click.command()
def schema() -> None:
    """Print the JSON Schema of the workflow file, for editors.

    \b
    Example:
      backedge schema > backedge.schema.json
    """
    click.echo(schema_text())


@click.command("what-if")
@click.argument("loop", type=own_id)
@click.option("--run", "run_name", metavar="RUN", help="The run. Default: the newest.")
@journal_option
@json_option
def what_if(loop: str, run_name: str | None, journal: Path | None, as_json: bool) -> None:
    """Show which steps would run again if the next round of LOOP changed its targets, and the estimated cost.

    \b
    Example:
      backedge what-if L-1
    """

    async def ask(journal: Journal) -> Blast:
        return blast_of(await events_of(journal, await run_id(journal, run_name)), loop)

    blast = reading(journal, ask)
    if as_json:
        print_json(blast)
        return
    for line in _told(blast, "asked to choose" if blast.options else "reworked"):
        click.echo(line)
    for option, chosen in blast.options.items():
        click.echo(f"if “{shown(option)}” is chosen")
        for line in _told(chosen, "reworked"):
            click.echo(f"  {line}")


def _told(blast: Blast, doing: str) -> Iterator[str]:
    yield f"{doing}: {', '.join(blast.reworks) or 'none'}"
    yield f"again if their input changed: {', '.join(blast.cascades) or 'none'}"
    yield f"verified by: {', '.join(blast.verifies) or 'none'}"
    yield f"estimated from the attempts so far: ${blast.cost_usd:.2f}, {blast.seconds:.1f} s"
