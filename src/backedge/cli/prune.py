"""`prune`: give back the space of runs that ended long ago. Their events stay, and so does their story."""

from __future__ import annotations

import asyncio
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import click
import msgspec

from backedge.adapters.agents.attempt_folder import AttemptFolder
from backedge.adapters.journals.pruning import prune_payloads
from backedge.adapters.views import PROGRESS, SCRATCHPAD
from backedge.analytics.report import Report, report
from backedge.app import Engine, Run
from backedge.cli.common import existing, journal_option, json_option, print_json
from backedge.core import events as e
from backedge.core.errors import JournalDamaged, RunHeld
from backedge.engine.codec import decode_events
from backedge.engine.store import events_of
from backedge.ports import Record, RunHead
from backedge.project import Project

ENDED = ("verified", "done", "accepted", "failed", "cancelled")
PRUNED = "pruned.json"
"""Stands in the folder of a run that was pruned, and says when."""
KEPT = (SCRATCHPAD, PROGRESS, PRUNED)
"""Small, and what people look for first."""


class Freed(msgspec.Struct, frozen=True):
    """What a pruning gave back, or would."""

    runs: tuple[str, ...]
    files: int
    payloads: int
    bytes: int
    dry_run: bool = False
    held: tuple[str, ...] = ()
    """Left alone because a process executes them."""


@click.command()
@click.option("--keep", metavar="TIME", help="Keep runs that ended less than this long ago: 30d, 12h. Default: 30d.")
@click.option("--runs", "count", type=click.IntRange(0), help="Keep this many of the newest ended runs.")
@click.option("--dry-run", is_flag=True, help="List what would be removed; remove nothing.")
@journal_option
@json_option
def prune(keep: str | None, count: int | None, dry_run: bool, journal: Path | None, as_json: bool) -> None:
    """Remove attempt folders, kept workflow files and large outputs of runs that ended long ago.

    Events are never removed: `show`, `audit` and `export` still work, without the large outputs. With both --keep and
    --runs, a run stays if either of them keeps it.

    \b
    Example:
      backedge prune --keep 30d --runs 10 --dry-run
    """
    spot = existing(journal)
    age = None if keep is None and count is not None else _age(keep or "30d")
    freed = asyncio.run(_pruned(spot, age, count or 0, dry_run))
    if as_json:
        print_json(freed)
        return
    would = "would give back" if dry_run else "gave back"
    click.echo(
        f"{len(freed.runs)} {'run' if len(freed.runs) == 1 else 'runs'} {would} {_size(freed.bytes)}: {freed.files} files, {freed.payloads} large outputs and logs"
    )
    for run in freed.held:
        click.echo(f"{run} is being executed: left alone")


def _age(text: str) -> float:
    given = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([dhms])", text.strip())
    if given is None:
        raise click.UsageError(f"--keep {text!r}: expected a time like 30d, 12h or 90m")
    return float(given[1]) * {"d": 86_400, "h": 3_600, "m": 60, "s": 1}[given[2]]


async def _pruned(spot: Project, age: float | None, count: int, dry_run: bool) -> Freed:
    async with Engine(spot.journal) as engine:
        ended = [head for head in await engine.runs() if head.outcome in ENDED][count:]
        ready: list[str] = []
        held: list[str] = []
        for head in ended:
            if await _older(engine, head, age):
                try:
                    engine.journal.claim(head.run)
                    ready.append(head.run)
                except RunHeld:
                    held.append(head.run)
        try:
            return _removed(spot, ready, dry_run, tuple(held))
        finally:
            for run in ready:
                engine.journal.release(run)


async def _older(engine: Engine, head: RunHead, age: float | None) -> bool:
    if age is None:
        return True
    last = await events_of(engine.journal, head.run, head.seq - 1)
    return bool(last) and last[-1].at < time.time() - age


def _removed(spot: Project, runs: Sequence[str], dry_run: bool, held: tuple[str, ...]) -> Freed:
    files = [path for run in runs for path in _files(spot, run)]
    size = sum(path.lstat().st_size for path in files)
    payloads, bytes_ = prune_payloads(spot.journal, set(runs), _named, dry_run)
    if not dry_run:
        for run in runs:
            kept = spot.kept_file(run).parent
            kept.mkdir(parents=True, exist_ok=True)
            # First the mark: whatever is missing from here on was pruned, also if we are stopped half way.
            (kept / PRUNED).write_bytes(msgspec.json.encode({"at": time.time()}) + b"\n")
            shutil.rmtree(_attempts(spot, run), ignore_errors=True)
            for path in _files(spot, run):
                path.unlink(missing_ok=True)
    return Freed(tuple(runs), len(files), payloads, size + bytes_, dry_run, held)


def _named(bodies: Iterable[bytes]) -> Iterator[str]:
    for event in decode_events([Record(0, body, "") for body in bodies]):
        match event:
            case e.RunStarted(input_payload=str(digest)) | e.AttemptFailed(log=str(digest)):
                yield digest
            case e.AttemptSucceeded():
                yield from (digest for digest in (event.made.payload, event.log) if digest is not None)
            case _:
                pass


def _attempts(spot: Project, run: str) -> Path:
    return AttemptFolder(spot.state, run, "step", 1).path.parent


def _files(spot: Project, run: str) -> Iterator[Path]:
    yield from (path for path in _attempts(spot, run).rglob("*") if not path.is_dir())
    kept = spot.kept_file(run).parent
    yield from (path for path in kept.glob("*") if path.name not in KEPT and not path.is_dir())


def _size(count: int) -> str:
    amount, unit = float(count), "bytes"
    for larger in ("KB", "MB", "GB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"


async def report_of(run: Run, spot: Project) -> tuple[Report, str]:
    """The report of a run, and a remark if its large outputs are no longer there because they were pruned."""
    try:
        return await run.report(), ""
    except JournalDamaged:
        mark = spot.kept_file(run.id).parent / PRUNED
        if not mark.exists():
            raise
        at = time.strftime("%Y-%m-%d", time.localtime(mark.stat().st_mtime))
        return report(await run.state()), f"its large outputs were pruned on {at}"
