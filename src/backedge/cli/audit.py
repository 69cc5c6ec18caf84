"""`audit`: exports and verifies the events of runs."""

from __future__ import annotations

from pathlib import Path

import click

from backedge.adapters.journals.audit import verify, verify_all
from backedge.cli.common import journal_option, json_option, print_json, reading, run_id
from backedge.core.text import counted
from backedge.engine.store import sound_records
from backedge.ports import Audited, Journal
from backedge.reading.event_line import event_line


@click.group()
def audit() -> None:
    """Export or verify the events of a run.

    \b
    Example:
      backedge audit verify
    """


@audit.command("export")
@click.argument("run_name", metavar="[RUN]", required=False)
@journal_option
def export_events(run_name: str | None, journal: Path | None) -> None:
    """Print the events of RUN, or of the newest run, as JSON lines with their numbers and links.

    \b
    Example:
      backedge audit export r-0193 > events.jsonl
    """

    async def ask(journal: Journal) -> list[bytes]:
        run = await run_id(journal, run_name)
        return [await event_line(journal, run, record) for record in await sound_records(journal, run)]

    for line in reading(journal, ask):
        click.echo(line)


@audit.command("verify")
@click.argument("run_name", metavar="[RUN]", required=False)
@click.option(
    "--head", help="A link, or the head of the whole journal, that you kept elsewhere. It must be in the chain."
)
@journal_option
@json_option
def verify_events(run_name: str | None, head: str | None, journal: Path | None, as_json: bool) -> None:
    """Verify the hash chain of RUN, or of all runs, and check that no run is missing. If an event does not fit, the
    command names the first one and exits with 2.

    The chain alone cannot prove that the newest events were not deleted. For that, keep a head elsewhere: the "head" of
    `--json` for the whole journal, or any link of RUN.

    \b
    Example:
      backedge audit verify --head 3f5a…
    """

    async def ask(journal: Journal) -> tuple[int, str | None]:
        if not run_name and (not head or ":" in head):
            count = await verify_all(journal, head)
            return count, await journal.head() if isinstance(journal, Audited) else None
        run = await run_id(journal, run_name)
        await verify(journal, run, head)
        return 1, (await journal.read(run))[-1].link

    count, end = reading(journal, ask)
    if as_json:
        print_json({"runs": count, "valid": True, "head": end})
    else:
        click.echo(f"{counted(count, 'run')}: the chain is valid")
