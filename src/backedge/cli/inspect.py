"""`check`, `schema` and `what-if`: what a workflow can do, before it does it."""

from __future__ import annotations

from pathlib import Path

import click

from backedge.analytics.blast import Blast, blast_of
from backedge.app import Engine
from backedge.cli.common import asking, journal_option, json_option, print_json, the_run, where
from backedge.config import find, load, mermaid, picture, schema_text
from backedge.core.bound import max_attempts
from backedge.core.wording import clean
from backedge.project import agents_of


@click.command()
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--mermaid", "as_mermaid", is_flag=True, help="Print the graph as Mermaid.")
@json_option
def check(file: Path | None, as_mermaid: bool, as_json: bool) -> None:
    """Validate the workflow file, draw its graph with the back edges, and say the largest number of attempts.

    All problems are listed, each with its line and column; the exit code is 2 then.

    \b
    Example:
      backedge check --mermaid
    """
    source = load(file or find(Path.cwd()))
    agents_of(source, where(None, source.path))
    bound = max_attempts(source.definition)
    if as_json:
        steps = [step.name for step in source.definition.steps]
        print_json({"workflow": source.definition.name, "valid": True, "max_attempts": bound, "steps": steps})
    elif as_mermaid:
        click.echo(clean(mermaid(source.definition)))
    else:
        click.echo(clean(picture(source.definition)))
        click.echo(f"\nAny run makes at most {bound} attempts, and what decisions of people add.")


@click.command()
def schema() -> None:
    """Print the JSON Schema of the workflow file, for editors.

    \b
    Example:
      backedge schema > backedge.schema.json
    """
    click.echo(schema_text())


@click.command("what-if")
@click.argument("loop")
@click.option("--run", "run_name", metavar="RUN")
@journal_option
@json_option
def what_if(loop: str, run_name: str | None, journal: Path | None, as_json: bool) -> None:
    """Say who would run again if the next round of LOOP changed its targets, and what that would cost.

    \b
    Example:
      backedge what-if L-1
    """

    async def ask(engine: Engine) -> Blast:
        run = await the_run(engine, run_name)
        return blast_of(await run.events(), loop)

    blast = asking(journal, ask)
    if as_json:
        print_json(blast)
        return
    click.echo(f"reworked: {', '.join(blast.reworks) or 'nobody'}")
    click.echo(f"again, if what they use changed: {', '.join(blast.cascades) or 'nobody'}")
    click.echo(f"verifies: {', '.join(blast.verifies) or 'nobody'}")
    click.echo(f"estimated from the attempts so far: ${blast.cost_usd:.2f}, {blast.seconds:.1f} s")
