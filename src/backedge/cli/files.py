"""`export` and `import`: files of other systems, in their own words."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import click
import msgspec

from backedge.adapters.agents.secrets import NO_SECRETS, Secrets
from backedge.analytics.files import FORMS, Contents
from backedge.analytics.files.feedback_lines import written_lines
from backedge.analytics.files.loop_report import report_records
from backedge.analytics.files.of_runs import contents_of
from backedge.analytics.progress import scratchpad_of
from backedge.analytics.report import Report
from backedge.analytics.statistics import LoopTally
from backedge.app import Engine, Run
from backedge.cli.common import asking, counted, journal_option, json_option, print_json, shown, the_run, where
from backedge.config import WorkflowFileError, find, load
from backedge.core.errors import ImportRefused, NotFound
from backedge.core.feedback.loop import LoopState
from backedge.core.state.run import RunState
from backedge.core.text import escaped
from backedge.project import Project, secrets_of

LARGEST = 16 * 1024 * 1024
"""Bytes of a file that is imported: it stands in one event."""


@click.command()
@click.argument("run_name", metavar="[RUN]", required=False)
@click.option(
    "--as",
    "--format",
    "form",
    type=click.Choice(["report", *FORMS]),
    default="report",
    show_default=True,
    help="What to print.",
)
@journal_option
def export(run_name: str | None, form: str, journal: Path | None) -> None:
    """Print RUN, or the newest, as a file.

    `report` is what `show --json` prints. `loops` has the loops with their statistics, also in the words of feedback loop
    engines (feedback_loops). `feedback-jsonl` has feedback as lines of from_node, to_node and feedback_type. `defects` is
    the defect log: injected, detected, attempts, cost, latency. `progress` and `scratchpad` tell the iterations of a
    tight loop.

    An imported file in its own format is printed byte for byte.

    \b
    Example:
      backedge export --as loops
    """

    async def ask(engine: Engine) -> tuple[Report, RunState, Contents]:
        run = await the_run(engine, run_name)
        return await run.report(), await run.state(), contents_of(await run.events(), _iso)

    told, state, contents = asking(journal, ask)
    if state.imported is not None and state.imported.form == form:
        click.echo(state.imported.text.encode(), nl=False)
    elif form == "report":
        print_json(told)
    else:
        _PRINT[form](told, contents)


def _iso(seconds: float) -> str:
    """Seconds since the epoch in ISO 8601, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _print_loops(told: Report, contents: Contents) -> None:
    tally = LoopTally()
    for loop in contents.loops:
        tally.add(loop.kind, loop.severity, loop.state, loop.rounds)
    tally.escalations = len(told.escalations) or sum(
        bool(loop.reason) or loop.state is LoopState.ESCALATING for loop in contents.loops
    )
    found = msgspec.to_builtins(tally.statistics())
    print_json(
        {
            "run": told.run,
            "workflow": told.workflow,
            "outcome": told.outcome,
            "statistics": {**found, "by_type": found["by_kind"]},
            "feedback_loops": report_records(contents.loops),
            "loops": told.loops,
            "escalations": told.escalations,
        }
    )


def _print_lines(told: Report, contents: Contents) -> None:  # noqa: ARG001
    click.echo(escaped(written_lines(contents.loops).encode()), nl=False)


def _print_defects(told: Report, contents: Contents) -> None:  # noqa: ARG001
    print_json(contents.defects)


def _print_progress(told: Report, contents: Contents) -> None:
    if contents.progress is None:
        raise _not_iterations(told)
    click.echo(escaped(msgspec.json.format(msgspec.json.encode(contents.progress), indent=2)))


def _print_scratchpad(told: Report, contents: Contents) -> None:
    if contents.progress is None:
        raise _not_iterations(told)
    click.echo(scratchpad_of(contents.progress, contents.notes).encode("utf-8", "replace"), nl=False)


def _not_iterations(told: Report) -> NotFound:
    return NotFound(
        f"run {told.run} was imported from a file without iterations: export it as loops or defects instead"
    )


_PRINT: dict[str, Callable[[Report, Contents], None]] = {
    "loops": _print_loops,
    "feedback-jsonl": _print_lines,
    "defects": _print_defects,
    "progress": _print_progress,
    "scratchpad": _print_scratchpad,
}


@click.command("import")
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
@click.option("--as", "form", type=click.Choice(FORMS), help="The format of the file. Default: detected.")
@journal_option
@json_option
def import_(file: Path, form: str | None, journal: Path | None, as_json: bool) -> None:
    """Import FILE from another system as a run of its own, for `runs`, `show`, `stats` and `export`.

    An invalid file is refused with a list of all wrong lines, and nothing is stored. The same file is imported only
    once. If FILE is -, it is read from stdin.

    \b
    Example:
      backedge import .claude/reactree-feedback.jsonl
    """
    spot = where(journal)
    data = _read(file)
    file = Path("stdin") if str(file) == "-" else file
    text = _text(data, file, _secrets(spot))

    async def ask() -> tuple[Run, Report]:
        async with Engine(spot.journal) as engine:
            run = await engine.import_file(file.name, text, form)
            return run, await run.report()

    try:
        run, told = asyncio.run(ask())
    except ImportRefused as error:
        raise ImportRefused(tuple(f"{file}: {problem}" for problem in error.problems)) from None
    if as_json:
        print_json(told)
        return
    found = [counted(len(told.loops), "loop")] if told.loops else []
    found += [counted(len(told.findings), "finding")] if told.findings else []
    click.echo(f"{run.id}: {' and '.join(found) or 'nothing'} in {shown(file.name)}")


def _read(file: Path) -> bytes:
    """A file, or stdin for a dash; one byte more than is imported, if it has that. A pipe is read to its end, but nobody
    waits for one to begin. Raises ImportRefused."""
    if str(file) == "-":
        return sys.stdin.buffer.read(LARGEST + 1) if sys.stdin else b""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        raise ImportRefused(f"{file} cannot be read: {error.strerror}: name a file that can") from None
    os.set_blocking(handle, True)
    with open(handle, "rb") as opened:
        data = opened.read(LARGEST + 1)
        if not data and stat.S_ISFIFO(os.fstat(handle).st_mode):
            raise ImportRefused(f"{file} is a pipe that nobody writes to: name a file, or use `backedge import -`")
        return data


def _text(data: bytes, file: Path, secrets: Secrets) -> str:
    """The text without secrets. Raises ImportRefused for what is no text, or too large."""
    if len(data) > LARGEST:
        raise ImportRefused(f"{file} has more than {LARGEST:,} bytes: import it in parts")
    try:
        return secrets.text(data.decode())
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ImportRefused(f"{file}: line {line}: not UTF-8 ({error.reason}): save it as UTF-8") from None


def _secrets(spot: Project) -> Secrets:
    try:
        return secrets_of(load(find(spot.folder)))
    except WorkflowFileError:
        return NO_SECRETS
