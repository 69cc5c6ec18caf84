"""Shared by the commands: finding the project, finding a run by name, printing."""

from __future__ import annotations

import asyncio
import re
import shutil
import sys
import textwrap
from collections.abc import Awaitable, Callable, Iterator, Sequence, Sized
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click
import msgspec

from backedge.adapters.journals.opening import MEMORY, open_journal, sqlite_path
from backedge.core.errors import NotFound
from backedge.core.suggestions import closest
from backedge.core.text import counted, escaped
from backedge.core.text import shown as shown
from backedge.ports import JournalWithClaims, Listings
from backedge.project import Project, find_project
from backedge.reading.clock_time import clock_time as clock_time
from backedge.reading.story_runs import is_story
from backedge.reading.whole_json import whole_json

if TYPE_CHECKING:  # most commands only read: they need no engine
    from backedge.app import Engine, Run

T = TypeVar("T")

LOOKED_AT = 1000
"""How many of the newest runs a mistyped name is compared with."""
ALIKE = 0.85
"""How similar the name of a run must be. High, because all runs of one hour begin alike."""

EXIT = {"verified": 0, "done": 0, "accepted": 4, "failed": 1, "cancelled": 1, "waiting": 3, "running": 0, "imported": 0}


class JournalPath(click.Path):
    """A journal by its path or its URL."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(sqlite_path(value) if isinstance(value, str) else value, param, ctx)


journal_option = click.option(
    "--journal",
    type=JournalPath(dir_okay=False, path_type=Path),
    help="The journal, a path or sqlite:///PATH. Default: .backedge/journal.db.",
)
import_option = click.option(
    "--import",
    "imports",
    is_flag=True,
    help="Import the modules of `python:` agents too, which executes them, and check their functions.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON value on stdout.")


def print_json(value: Any) -> None:
    """Print one JSON value, always in UTF-8: it is read by programs."""
    click.echo(escaped(msgspec.json.format(msgspec.json.encode(whole_json(value)), indent=1)))


def say(text: str = "") -> None:
    """Print progress and remarks on stderr; stdout has only results."""
    click.echo(text, err=True)


def tell_not_imported(steps: Sequence[str]) -> None:
    """Say which functions were not checked."""
    if steps:
        say(wrapped(f"python: agents are not imported ({', '.join(map(shown, steps))}); --import does", sys.stderr))


def where(journal: Path | None, file: Path | None = None) -> Project:
    return find_project(file, journal)


def existing(journal: Path | None) -> Project:
    """A project with a journal. Raises NotFound if there is none, because reading must not create one."""
    spot = where(journal)
    if not spot.journal.exists():
        raise NotFound(f"there is no journal at {spot.journal}: `backedge run` creates one")
    return spot


def asking(journal: Path | None, ask: Callable[[Engine], Awaitable[T]]) -> T:
    """Open an engine on the journal of the project, call `ask`, and close the engine."""
    from backedge.app import Engine

    spot = existing(journal)

    async def go() -> T:
        async with Engine(spot.journal) as engine:
            return await ask(engine)

    return asyncio.run(go())


def reading(journal: Path | None, ask: Callable[[JournalWithClaims], Awaitable[T]]) -> T:
    """Open the journal of the project, call `ask`, and close the journal."""
    return _read(existing(journal).journal, ask)


def listing(journal: Path | None, ask: Callable[[JournalWithClaims], Awaitable[T]]) -> T:
    """Like `reading`, but for lists of runs: before the first run, the list is empty instead of an error."""
    spot = where(journal)
    return _read(MEMORY, ask) if journal is None and not spot.journal.exists() else reading(journal, ask)


def _read(place: Path | str, ask: Callable[[JournalWithClaims], Awaitable[T]]) -> T:
    async def go() -> T:
        journal = open_journal(place)
        try:
            return await ask(journal)
        finally:
            await journal.close()

    return asyncio.run(go())


def own_id(word: str) -> str:
    """The id of a finding, a loop or an escalation, in upper case: e-1 is E-1."""
    return word.upper() if re.fullmatch(r"[efl]-[0-9]+", word) else word


async def the_run(engine: Engine, name: str | None) -> Run:
    """A run by its id or the beginning of its id; the newest run if `name` is None."""
    return await engine.find(await run_id(engine.journal, name))


async def run_id(journal: Listings, name: str | None) -> str:
    """Like `the_run`, but returns only the id, without loading the run."""
    heads = await journal.runs(1 if name is None else None)
    if not heads:
        raise NotFound("there are no runs yet: `backedge run` starts one")
    if name is None:
        return heads[0].run
    exact = [head.run for head in heads if head.run == name]
    found = exact or [head.run for head in heads if head.run.startswith(name)]
    found = found or [head.run for head in heads if head.run.casefold() == name.casefold()]
    if len(found) == 1:
        return found[0]
    if found:
        raise NotFound(f"{name!r} is ambiguous: {len(found)} runs begin with it: {', '.join(found[:5])}")
    meant = closest(name, [head.run for head in heads[:LOOKED_AT]], ALIKE)
    hint = f"did you mean {meant!r}?" if meant else f"the newest runs are {', '.join(head.run for head in heads[:5])}"
    raise NotFound(f"unknown run {name!r}: {hint}")


def idle_words(spot: Project, run: str) -> str:
    """How to continue a run that no process executes; for a story that is `run`, which also updates its file."""
    return f"  No process is running it. Continue with `backedge {'run' if is_story(spot, run) else f'resume {run}'}`"


def terminal_width(out: TextIO) -> int:
    """How wide a terminal is; very wide where there is none, because a reader of lines wants whole ones."""
    return shutil.get_terminal_size().columns if out.isatty() else 10_000


def wrapped(line: str, out: TextIO, indent: str | None = None) -> str:
    """A line wrapped between words for a terminal; elsewhere it stays one line. Without `indent`, the lines that follow are
    a little further in than the first."""
    if not out.isatty() or len(line) <= (width := shutil.get_terminal_size().columns):
        return line
    indent = " " * (len(line) - len(line.lstrip()) + 2) if indent is None else indent
    return textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def earlier(lines: Sized, most: int | None, noun: str, indent: str = "") -> Iterator[str]:
    """A remark about the lines that are left out, if only the last `most` are printed."""
    if most is not None and len(lines) > most:
        yield f"{indent}… {counted(len(lines) - most, f'earlier {noun}')}: --all shows everything"
