"""`backup` and `restore`: a copy of the journal that can be taken while runs go on."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import click

from backedge.adapters.journals.audit import verify_all
from backedge.adapters.journals.backup import copy_journal
from backedge.adapters.journals.opening import open_journal
from backedge.cli.amounts import size_words
from backedge.cli.common import existing, journal_option, json_option, print_json, where
from backedge.cli.people import require_person
from backedge.core.errors import JournalError, NotFound
from backedge.core.text import counted


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path), required=False)
@journal_option
@json_option
def backup(file: Path | None, journal: Path | None, as_json: bool) -> None:
    """Copy the journal with everything that its runs need to FILE, while runs go on.

    Without FILE the copy lies beside the journal, with the time in its name. An existing file is never overwritten. The
    copy is verified before it gets its name.

    \b
    Example:
      backedge backup /mnt/backups/journal-monday.db
    """
    spot = existing(journal)
    target = (file or spot.journal.with_name(time.strftime("backup-%Y%m%d-%H%M%S.db"))).absolute()
    runs = copy_journal(spot.journal, target, _verified)
    size = target.stat().st_size
    if as_json:
        print_json({"file": str(target), "bytes": size, "runs": runs})
    else:
        click.echo(f"{counted(runs, 'run')}, {size_words(size)}, verified: {target}")


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@journal_option
@json_option
def restore(file: Path, journal: Path | None, as_json: bool) -> None:
    """Make the journal of this project from the backup FILE. The backup itself stays as it is.

    The project must have no journal: move a damaged one away first, with its -wal and -shm files. A run that was under way
    when the backup was made continues with `backedge resume`.

    \b
    Example:
      backedge restore /mnt/backups/journal-monday.db
    """
    require_person(journal)
    if not file.exists():
        raise NotFound(f"there is no backup at {file}: name a file that `backedge backup` wrote")
    spot = where(journal)
    left = [path for path in (spot.journal, *_beside(spot.journal)) if path.exists()]
    if left:
        names = ", ".join(map(str, left))
        raise JournalError(f"there is a journal already: {names}; move it away first, so that nothing is overwritten")
    runs = copy_journal(file, spot.journal, _verified)
    if as_json:
        print_json({"file": str(spot.journal), "bytes": spot.journal.stat().st_size, "runs": runs})
    else:
        click.echo(f"restored {counted(runs, 'run')} to {spot.journal}: see `backedge runs`")


def _beside(path: Path) -> list[Path]:
    """The files that SQLite keeps beside a database: with another database they would be taken for its own."""
    return [path.with_name(path.name + ending) for ending in ("-wal", "-shm")]


def _verified(path: Path) -> int:
    """How many runs a backup has, with every link and every large value checked."""

    async def ask() -> int:
        journal = open_journal(path)
        try:
            return await verify_all(journal, None)
        finally:
            await journal.close()

    return asyncio.run(ask())
