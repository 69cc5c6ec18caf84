"""The attempt that this process is part of: an agent that runs `backedge` must not decide what people decide.

A process belongs to an attempt if one of its ancestors is the supervisor or the program of the attempt, or if its
environment says so. A daemon stays below its supervisor, whatever it removes from its environment.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from backedge.adapters.agents.attempt_folder import RunningProcess, Starting, read_record
from backedge.adapters.agents.file_name import file_name
from backedge.adapters.agents.process_tree import Identity, ancestors, command_line, working_folder
from backedge.core.errors import AgentError

SUPERVISOR = b"/adapters/agents/spawner.py"
"""How an argument of every supervisor ends."""


class EnclosingAttempt(NamedTuple):
    """The attempt that a process is part of."""

    run: str
    step: str
    attempt: int


def enclosing_attempt(journal: Path) -> EnclosingAttempt | None:
    """The attempt of a run in this journal that this process is part of; None for a person, and for attempts of other
    journals. All journals in one folder count as one, and so do links to them."""
    attempts = (_attempt_of(folder) for folder in _folders(journal))
    found = next((folder for folder in attempts if folder is not None and _is_below(folder, journal)), None)
    return None if found is None else _named(found)


def _folders(journal: Path) -> Iterator[Path]:
    """The folders of attempts that this process may be part of, the safest evidence first."""
    above = list(ancestors())
    for row in above:
        if any(word.endswith(SUPERVISOR) for word in command_line(row.identity.pid)):
            folder = working_folder(row.identity.pid)
            if folder:
                yield Path(folder)
    yield from _recorded(journal.resolve().parent, {row.identity for row in above})
    if briefing := os.environ.get("BACKEDGE_BRIEFING"):
        yield Path(briefing).parent


def _recorded(state: Path, above: set[Identity]) -> Iterator[Path]:
    """The attempts without an end whose program or supervisor is above us, or whose mark is in our environment."""
    for folder in sorted([*state.glob("attempts/*/*/"), *state.glob("attempts/*/*/*/")]):
        if (folder / "ended.json").exists():
            continue
        with suppress(AgentError):
            running = read_record(folder / "process.json", RunningProcess)
            if running is not None and above & {
                Identity(running.pid, running.began),
                Identity(*(running.supervisor or (0, ""))),
            }:
                yield folder
            starting = read_record(folder / "starting", Starting)
            name, _, value = starting.mark.partition("=") if starting is not None else ("", "", "")
            if name and os.environ.get(name) == value:
                yield folder


def _attempt_of(folder: Path) -> Path | None:
    """The folder of the attempt that a program was started for. A judge that runs several times has a folder for each of
    them, inside that of its attempt."""
    return next((each for each in (folder, folder.parent) if each.parent.parent.name == "attempts"), None)


def _is_below(folder: Path, journal: Path) -> bool:
    """Whether an attempt is one of a run in this journal."""
    state = folder.parent.parent.parent
    try:
        if os.path.samefile(state, journal.resolve().parent):
            return True
        known = journal.stat()
        links = state.iterdir() if known.st_nlink > 1 else ()
        return any(os.path.samestat(known, each.stat()) for each in links if each.is_file())
    except OSError:
        return False


def _named(folder: Path) -> EnclosingAttempt:
    """The attempt of a folder. The agent can change what is recorded in it, but not the name of the folder."""
    step, _, number = folder.name.rpartition("-")
    attempt = int(number) if number.isdecimal() else 0
    with suppress(AgentError):
        starting = read_record(folder / "starting", Starting)
        if starting and (file_name(starting.run), file_name(starting.step)) == (folder.parent.name, step):
            return EnclosingAttempt(starting.run, starting.step, attempt)
    return EnclosingAttempt(folder.parent.name, step, attempt)
