"""Processes as the system shows them: their descendants, and whether a number still means the same process.

Process numbers are reused, so a process is identified by its number and its start time since the boot. What it left
behind is also recognised by its environment, which every process inherits.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import NamedTuple

PROC = "/proc"


class Identity(NamedTuple):
    """One process, and no later one with the same number."""

    pid: int
    began: str


class Row(NamedTuple):
    """What the system says about one process."""

    identity: Identity
    state: str
    parent: int
    group: int
    session: int

    @property
    def dead(self) -> bool:
        """It has ended, but its parent has not waited for it yet."""
        return self.state in "ZX"


def row_of(pid: int) -> Row | None:
    """What the system says about a process; None if there is none with that number."""
    try:
        text = _file(f"{PROC}/{pid}/stat")
    except OSError:
        return None if _has_proc() else _row_by_ps(pid)
    # The second field is the program's name in brackets, and may itself contain brackets and spaces.
    state, parent, group, session, *rest = text[text.rindex(b")") + 2 :].split()
    began = f"{_boot()}:{rest[15].decode()}"
    return Row(Identity(pid, began), state.decode(), int(parent), int(group), int(session))


def lives(identity: Identity) -> bool:
    row = row_of(identity.pid)
    return row is not None and row.identity == identity and not row.dead


def family(root: Identity, mark: bytes, supervisor: Identity | None = None) -> set[Identity]:
    """All processes that still run for an attempt: its own, the group and session that it leads, what its supervisor
    adopted, all their descendants, and every process that has the attempt's mark in its environment."""
    rows = _rows()
    there = any(row.identity == root for row in rows)
    adopter = supervisor.pid if any(row.identity == supervisor for row in rows) and supervisor else None
    found = {
        row.identity.pid
        for row in rows
        if (there and _is_led(row, root)) or row.parent == adopter or _is_marked(row, mark)
    }
    grew = True
    while grew:
        born = {row.identity.pid for row in rows if row.parent in found} - found
        found |= born
        grew = bool(born)
    return {row.identity for row in rows if row.identity.pid in found and not row.dead} - {_myself()}


def ancestors() -> Iterator[Row]:
    """This process, its parent, and so on."""
    row = row_of(os.getpid())
    while row is not None:
        yield row
        row = row_of(row.parent) if row.parent > 0 else None


def command_line(pid: int) -> list[bytes]:
    """The arguments of a process; empty if they cannot be read."""
    with suppress(OSError):
        return _file(f"{PROC}/{pid}/cmdline").split(b"\0")
    return []


def working_folder(pid: int) -> str:
    """The folder in which a process works, also if it was removed since; empty if that cannot be read."""
    with suppress(OSError):
        return os.readlink(f"{PROC}/{pid}/cwd").removesuffix(" (deleted)")
    return ""


def marked(mark: bytes) -> list[Row]:
    """Every process that carries a mark in its environment."""
    return [row for row in _rows() if not row.dead and _is_marked(row, mark)]


def send(root: Identity, members: Iterable[Identity], number: signal.Signals) -> None:
    """Signal the whole group of the root at once, so that none of it can fork away; then every member outside it."""
    row = row_of(root.pid)
    grouped = row is not None and row.identity == root and row.group == root.pid
    with suppress(ProcessLookupError, PermissionError):
        if grouped:
            os.killpg(root.pid, number)
    for member in members:
        row = row_of(member.pid)
        if row is None or row.identity != member or row.dead or (grouped and row.group == root.pid):
            continue  # many programs stop at once when they get the same signal twice
        with suppress(ProcessLookupError, PermissionError):
            os.kill(member.pid, number)


def _is_led(row: Row, root: Identity) -> bool:
    return root.pid in (row.group, row.session)


def _is_marked(row: Row, mark: bytes) -> bool:
    try:
        return mark in _file(f"{PROC}/{row.identity.pid}/environ").split(b"\0")
    except OSError:
        return False  # it has ended meanwhile, or belongs to another user


def _rows() -> list[Row]:
    if not _has_proc():
        return []
    pids = (int(name) for name in os.listdir(PROC) if name.isdigit())
    return [row for pid in pids if (row := row_of(pid)) is not None]


def _myself() -> Identity | None:
    row = row_of(os.getpid())
    return row.identity if row else None


def _file(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.readall()


@cache
def _has_proc() -> bool:
    return os.path.exists(f"{PROC}/self/stat")


@cache
def _boot() -> str:
    with suppress(OSError):
        return _file(f"{PROC}/sys/kernel/random/boot_id").decode().strip()[:8]
    return ""


def _row_by_ps(pid: int) -> Row | None:
    """The same where there is no /proc."""
    form = ["ps", "-o", "state=,ppid=,pgid=,sess=,lstart=", "-p", str(pid)]
    words = subprocess.run(form, capture_output=True, text=True, check=False).stdout.split(maxsplit=4)
    if len(words) < 5:
        return None
    state, parent, group, _, began = words
    return Row(Identity(pid, began.strip()), state[:1], int(parent), int(group), int(group))
