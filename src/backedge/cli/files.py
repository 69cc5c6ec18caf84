"""`export` and `import`: files in the formats of other systems."""

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
from backedge.analytics.export import contents_of
from backedge.analytics.loop_stats import LoopTally
from backedge.analytics.report import Report
from backedge.app import Engine, Run
from backedge.cli.common import asking, journal_option, json_option, print_json, shown, the_run, where
from backedge.cli.people import require_person
from backedge.compat import FORMATS, Contents
from backedge.compat.feedback_jsonl import feedback_lines
from backedge.compat.loops_export import loop_objects
from backedge.compat.scratchpad import scratchpad_text
from backedge.config import WorkflowFileError, find, load
from backedge.core.errors import ImportRefused, NotFound
from backedge.core.events import Event
from backedge.core.feedback.loop import LoopState
from backedge.core.state.evolve import replay
from backedge.core.state.run import RunState
from backedge.core.text import counted, escaped
from backedge.project import Project, secrets_of

LARGEST = 16 * 1024 * 1024
"""The largest file to import, in bytes: it becomes part of one event."""


@click.command()
@click.argument("run_name", metavar="[RUN]", required=False)
@click.option(
    "--as",
    "--format",
    "form",
    type=click.Choice(["report", *FORMATS]),
    default="report",
    show_default=True,
    help="The format.",
)
@click.option("--html", is_flag=True, help="The page of the run as one file, to open without a server.")
@journal_option
def export(run_name: str | None, form: str, html: bool, journal: Path | None) -> None:
    """Print RUN, or the newest run, as a file.

    `report` is the output of `show --json`. `loops` has the loops with statistics; its `feedback_loops` uses the field
    names of feedback loop engines. `feedback-jsonl` has a line per feedback with from_node, to_node and feedback_type.
    `defects` is the defect log: injected, detected, attempts, cost, latency. `progress` and `scratchpad` list the
    iterations of a tight loop.

    An imported file, exported in its own format, is identical byte for byte.

    \b
    Example:
      backedge export --as loops
      backedge export --html > run.html
    """
    if html:
        return _print_page(run_name, journal)

    async def ask(engine: Engine) -> tuple[Report, RunState, Contents]:
        run = await the_run(engine, run_name)
        return await run.report(), await run.state(), contents_of(await run.events(), _iso)

    report, state, contents = asking(journal, ask)
    if state.imported is not None and state.imported.form == form:
        click.echo(state.imported.text.encode(), nl=False)
    elif form == "report":
        print_json(report)
    else:
        _PRINT[form](report, contents)
    return None


def _print_page(run_name: str | None, journal: Path | None) -> None:
    from backedge.cli.serve import require_serve

    require_serve()
    from backedge.web.pages.run_file import run_file

    async def ask(engine: Engine) -> tuple[RunState, list[Event]]:
        run = await the_run(engine, run_name)
        events = await run.events()
        state = replay(events)
        assert state is not None  # a run has a first event
        return state, events

    click.echo(run_file(*asking(journal, ask)).encode("utf-8", "replace"), nl=False)


def _iso(seconds: float) -> str:
    """Seconds since the epoch in ISO 8601, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _print_loops(report: Report, contents: Contents) -> None:
    tally = LoopTally()
    for loop in contents.loops:
        tally.add(loop.kind, loop.severity, loop.state, loop.rounds)
    tally.escalations = len(report.escalations) or sum(
        bool(loop.reason) or loop.state is LoopState.ESCALATING for loop in contents.loops
    )
    found = msgspec.to_builtins(tally.stats())
    print_json(
        {
            "run": report.run,
            "workflow": report.workflow,
            "outcome": report.outcome,
            "statistics": {**found, "by_type": found["by_kind"]},
            "feedback_loops": loop_objects(contents.loops),
            "loops": report.loops,
            "escalations": report.escalations,
        }
    )


def _print_lines(report: Report, contents: Contents) -> None:  # noqa: ARG001
    click.echo(escaped(feedback_lines((*contents.loops, *contents.refused)).encode()), nl=False)


def _print_defects(report: Report, contents: Contents) -> None:  # noqa: ARG001
    print_json(contents.defects)


def _print_progress(report: Report, contents: Contents) -> None:
    if contents.progress is None:
        raise _no_rounds(report)
    click.echo(escaped(msgspec.json.format(msgspec.json.encode(contents.progress), indent=2)))


def _print_scratchpad(report: Report, contents: Contents) -> None:
    if contents.progress is None:
        raise _no_rounds(report)
    click.echo(scratchpad_text(contents.progress, contents.notes).encode("utf-8", "replace"), nl=False)


def _no_rounds(report: Report) -> NotFound:
    return NotFound(
        f"run {report.run} was imported from a file without iterations: export it as loops or defects instead"
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
@click.option(
    "--as", "form", type=click.Choice(FORMATS), help="The format of the file. Default: detected from the content."
)
@journal_option
@json_option
def import_(file: Path, form: str | None, journal: Path | None, as_json: bool) -> None:
    """Import FILE from another system as a run of its own, for `runs`, `show`, `stats` and `export`.

    A file with errors is refused: the errors are listed, and nothing is stored. Importing the same file again changes
    nothing. Use - as FILE to read from stdin.

    \b
    Example:
      backedge import .claude/reactree-feedback.jsonl
    """
    require_person(journal)
    project = where(journal)
    data = _read(file)
    file = Path("stdin") if str(file) == "-" else file
    text = _text(data, file, _secrets(project))

    async def ask() -> tuple[Run, Report]:
        async with Engine(project.journal) as engine:
            run = await engine.import_file(file.name, text, form)
            return run, await run.report()

    try:
        run, report = asyncio.run(ask())
    except ImportRefused as error:
        raise ImportRefused(tuple(f"{file}: {problem}" for problem in error.problems)) from None
    if as_json:
        print_json(report)
        return
    found = [counted(len(report.loops), "loop")] if report.loops else []
    found += [counted(len(report.findings), "finding")] if report.findings else []
    click.echo(f"{run.id}: {' and '.join(found) or 'nothing'} in {shown(file.name)}")


def _read(file: Path) -> bytes:
    """Read a file, or stdin for a dash, but at most one byte more than the largest import. A pipe is read to its end; a
    pipe without a writer is refused. Raises ImportRefused."""
    if str(file) == "-":
        return sys.stdin.buffer.read(LARGEST + 1) if sys.stdin else b""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        raise ImportRefused(f"{file} cannot be read: {error.strerror}: name another file") from None
    os.set_blocking(handle, True)
    with open(handle, "rb") as opened:
        data = opened.read(LARGEST + 1)
        if not data and stat.S_ISFIFO(os.fstat(handle).st_mode):
            raise ImportRefused(f"{file} is a pipe without a writer: name a file, or use `backedge import -`")
        return data


def _text(data: bytes, file: Path, secrets: Secrets) -> str:
    """The text without secrets. Raises ImportRefused if it is not UTF-8 or too large."""
    if len(data) > LARGEST:
        raise ImportRefused(f"{file} has more than {LARGEST:,} bytes: import it in parts")
    try:
        return secrets.text(data.decode())
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ImportRefused(f"{file}: line {line}: not UTF-8 ({error.reason}): save it as UTF-8") from None


def _secrets(project: Project) -> Secrets:
    try:
        return secrets_of(load(find(project.folder)))
    except WorkflowFileError:
        return NO_SECRETS
