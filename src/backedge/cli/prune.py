"""`prune`: frees disk space of runs that ended long ago. Their events are kept, so `show` still works."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from backedge.adapters.agents.attempt_folder import AttemptFolder
from backedge.adapters.journals.pruning import prune_payloads
from backedge.adapters.views import PROGRESS, SCRATCHPAD
from backedge.cli.amounts import size_words
from backedge.cli.common import existing, journal_option, json_option, print_json
from backedge.cli.people import require_person
from backedge.core.errors import RunHeld
from backedge.core.text import counted
from backedge.engine.store import events_of
from backedge.ports import RunHead
from backedge.project import Project
from backedge.project.pruning import evidence_files, remove_evidence, sweep_evidence
from backedge.reading.run_report import PRUNED

if TYPE_CHECKING:  # `show` uses a part of this module, and no engine
    from backedge.app import Engine

ENDED = ("verified", "done", "accepted", "failed", "cancelled")
KEPT = (SCRATCHPAD, PROGRESS, PRUNED)
"""Files that are kept: they are small, and people look for them first."""


class Freed(msgspec.Struct, frozen=True):
    """What pruning freed, or would free."""

    runs: tuple[str, ...]
    files: int
    payloads: int
    bytes: int
    dry_run: bool = False
    held: tuple[str, ...] = ()
    """Runs that were skipped because a process executes them."""


@click.command()
@click.option(
    "--keep", metavar="TIME", help="Keep runs that ended more recently than this, such as 30d or 12h. Default: 30d."
)
@click.option("--runs", "count", type=click.IntRange(0), help="Keep this many of the newest runs that have ended.")
@click.option("--dry-run", is_flag=True, help="List what would be removed, without removing it.")
@journal_option
@json_option
def prune(keep: str | None, count: int | None, dry_run: bool, journal: Path | None, as_json: bool) -> None:
    """Remove attempt folders, stored workflow files and large outputs of runs that ended long ago.

    Events are never removed: `show`, `audit` and `export` still work, without the large outputs. With both --keep and
    --runs, a run is kept if either of them keeps it.

    \b
    Example:
      backedge prune --keep 30d --runs 10 --dry-run
    """
    if not dry_run:
        require_person(journal)
    spot = existing(journal)
    age = None if keep is None and count is not None else _age(keep or "30d")
    freed = asyncio.run(_pruned(spot, age, count or 0, dry_run))
    if as_json:
        print_json(freed)
        return
    verb = "would free" if dry_run else "freed"
    counts = f"{counted(freed.files, 'file')}, {counted(freed.payloads, 'large value')}"
    click.echo(f"{verb} {size_words(freed.bytes)} of {counted(len(freed.runs), 'run')}: {counts}")
    for run in freed.held:
        click.echo(f"{run} was skipped: a process executes it")


def _age(text: str) -> float:
    given = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([dhms])", text.strip())
    if given is None:
        raise click.UsageError(f"--keep {text!r}: expected a time like 30d, 12h or 90m")
    return float(given[1]) * {"d": 86_400, "h": 3_600, "m": 60, "s": 1}[given[2]]


async def _pruned(spot: Project, age: float | None, count: int, dry_run: bool) -> Freed:
    from backedge.app import Engine

    async with Engine(spot.journal) as engine:
        ended = [head for head in await engine.runs() if head.outcome in ENDED][count:]
        ready: list[RunHead] = []
        held: list[str] = []
        for head in ended:
            if await _older(engine, head, age):
                if await engine.journal.holder(head.run) is None:
                    ready.append(head)
                else:
                    held.append(head.run)
        payloads = prune_payloads(spot.journal, {head.run for head in ready}, dry_run)
        files, size, done = 0, payloads.bytes, []
        for head in ready:
            try:
                more, bytes_ = await _removed(engine, spot, head, head.run in payloads.runs, dry_run)
            except RunHeld:  # a process has just claimed it
                held.append(head.run)
                continue
            files, size = files + more, size + bytes_
            done.append(head.run)
        if not dry_run:
            sweep_evidence(spot, {head.run for head in await engine.runs()})
    return Freed(tuple(done), files, payloads.count, size, dry_run, tuple(held))


async def _older(engine: Engine, head: RunHead, age: float | None) -> bool:
    if age is None:
        return True
    last = await events_of(engine.journal, head.run, head.seq - 1)
    return bool(last) and last[-1].at < time.time() - age


async def _removed(engine: Engine, spot: Project, head: RunHead, lost: bool, dry_run: bool) -> tuple[int, int]:
    """Remove the files of a run, and return their number and size. `lost` says whether the run has lost large values.

    Only one run is claimed at a time, because the system searches the list of all locks for each new one."""
    run = head.run
    files = list(_files(spot, run))
    size = sum(path.lstat().st_size for path in files)
    if dry_run or not (files or lost):
        return len(files), size
    claim = await engine.journal.claim(run)
    try:
        if await engine.journal.read(run, head.seq):
            raise RunHeld(run, "a process that has continued it")
        kept = spot.kept_file(run).parent
        kept.mkdir(parents=True, exist_ok=True)
        # Write the mark first, so that files missing after a crash are known to be pruned.
        (kept / PRUNED).write_bytes(msgspec.json.encode({"at": time.time()}) + b"\n")
        for path in files:
            path.unlink(missing_ok=True)
        shutil.rmtree(_attempts(spot, run), ignore_errors=True)
        remove_evidence(spot, run)
    finally:
        await engine.journal.release(claim)
    return len(files), size


def _attempts(spot: Project, run: str) -> Path:
    return AttemptFolder(spot.state, run, "step", 1).path.parent


def _files(spot: Project, run: str) -> Iterator[Path]:
    for folder, _, names in os.walk(_attempts(spot, run)):
        yield from (Path(folder, name) for name in names)
    yield from evidence_files(spot, run)
    kept = spot.kept_file(run).parent
    if kept.is_dir():
        yield from (path for path in kept.iterdir() if path.name not in KEPT and not path.is_dir())
