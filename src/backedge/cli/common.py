"""What several commands share: where the project is, how a run is named, how things are printed."""

from __future__ import annotations

import asyncio
import re
import shutil
import textwrap
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TextIO, TypeVar

import click
import msgspec

from backedge.adapters.journals.opening import sqlite_path
from backedge.app import Engine, Run
from backedge.core.errors import NotFound
from backedge.core.suggestions import closest
from backedge.core.text import escaped, one_line
from backedge.engine.large import set_aside_in
from backedge.engine.store import whole
from backedge.ports import Record
from backedge.project import Project, find_project

T = TypeVar("T")
_TURNING = dict.fromkeys((0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)))

LOOKED_AT = 1000
"""How many of the newest runs a mistyped name is compared with."""
ALIKE = 0.85
"""How near the name of a run has to be: all that are made in one hour begin alike."""

EXIT = {"verified": 0, "done": 0, "accepted": 4, "failed": 1, "cancelled": 1, "waiting": 3, "running": 0, "imported": 0}


class JournalPlace(click.Path):
    """A journal by its path or its URL."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(sqlite_path(value) if isinstance(value, str) else value, param, ctx)


journal_option = click.option(
    "--journal",
    type=JournalPlace(dir_okay=False, path_type=Path),
    help="The journal, if it is not in .backedge/: a path, or sqlite:///PATH.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON value, and nothing else, on stdout.")


def print_json(value: Any) -> None:
    """One JSON value, in UTF-8 whatever the terminal speaks: it is read by programs."""
    click.echo(escaped(msgspec.json.format(msgspec.json.encode(_whole(value)), indent=1)))


def _whole(value: Any) -> Any:
    """A value with the fields that hold their default, which its own JSON leaves out: every key is always there."""
    if isinstance(value, msgspec.Struct):
        return {name: _whole(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, dict):
        return {key: _whole(each) for key, each in value.items()}
    return [_whole(each) for each in value] if isinstance(value, tuple | list) else value


def say(text: str = "") -> None:
    """Progress and remarks: on stderr, so that stdout has nothing but results."""
    click.echo(text, err=True)


def where(journal: Path | None, file: Path | None = None) -> Project:
    return find_project(file, journal)


def existing(journal: Path | None) -> Project:
    """The place of a project whose journal is there. Raises NotFound: looking for one must not make one."""
    spot = where(journal)
    if not spot.journal.exists():
        raise NotFound(f"there is no journal at {spot.journal}: `backedge run` makes one")
    return spot


def asking(journal: Path | None, ask: Callable[[Engine], Awaitable[T]]) -> T:
    """Open the journal of the project, ask, and close it again."""
    spot = existing(journal)

    return _asked(spot.journal, ask)


def listing(journal: Path | None, ask: Callable[[Engine], Awaitable[T]]) -> T:
    """Like asking, for what is about all runs: before the first there is nothing, which is no mistake."""
    spot = where(journal)
    return _asked(None, ask) if journal is None and not spot.journal.exists() else asking(journal, ask)


def _asked(journal: Path | None, ask: Callable[[Engine], Awaitable[T]]) -> T:
    async def go() -> T:
        async with Engine(journal) as engine:
            return await ask(engine)

    return asyncio.run(go())


async def event_line(engine: Engine, run: str, record: Record) -> bytes:
    """A stored event as a line of JSON, with its number and its link, its large values, and their digests: the link is
    over these."""
    names = set_aside_in(record.body)
    more = {"large": names} if names else {}
    head = msgspec.json.encode({"seq": record.seq, "run": run, "link": record.link, **more})
    body = (await whole(engine.journal, record)).body
    if record.seq == 1:  # the first event names the run itself
        body = body.replace(b'"run":' + msgspec.json.encode(run) + b",", b"", 1)
    return escaped(head[:-1] + b"," + body[1:])


def own_id(word: str) -> str:
    """An id that backedge gave to a finding, a loop or an escalation, however it was typed: e-1 is E-1."""
    return word.upper() if re.fullmatch(r"[efl]-[0-9]+", word) else word


async def the_run(engine: Engine, name: str | None) -> Run:
    """A run by its id or the beginning of it; the newest one if none is named."""
    heads = await engine.runs(1 if name is None else None)
    if not heads:
        raise NotFound("the journal has no runs: `backedge run` starts one")
    if name is None:
        return await engine.find(heads[0].run)
    exact = [head.run for head in heads if head.run == name]
    found = exact or [head.run for head in heads if head.run.startswith(name)]
    if len(found) == 1:
        return await engine.find(found[0])
    if found:
        raise NotFound(f"{name!r} is the beginning of {len(found)} runs: {', '.join(found[:5])}")
    meant = closest(name, [head.run for head in heads[:LOOKED_AT]], ALIKE)
    hint = f"did you mean {meant!r}?" if meant else f"the newest are {', '.join(head.run for head in heads[:5])}"
    raise NotFound(f"run {name!r} does not exist in this journal: {hint}")


def shown(text: str, width: int = 100) -> str:
    """Text of agents on one line of a terminal. What turns the direction of writing would hide other text."""
    line = one_line(text[: 20 * width]).translate(_TURNING)
    return line if len(line) <= width else line[: width - 1] + "…"


def idle_words(spot: Project, run: str) -> str:
    """How a run goes on that nobody executes: a story by `run`, which knows its file and its place."""
    from backedge.backlog import is_story

    return f"  nobody executes it now: backedge {'run' if is_story(spot, run) else f'resume {run}'}"


def wrapped(line: str, out: TextIO) -> str:
    """A line for people, broken between words where a terminal would break it anywhere; elsewhere lines stay whole."""
    width = shutil.get_terminal_size().columns
    if not out.isatty() or len(line) <= width:
        return line
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
