"""The process that starts an attempt's program and writes down how it ended; it outlives us."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from backedge.adapters.agents import keeper
from backedge.adapters.agents.companion import Companion
from backedge.adapters.agents.process_tree import Identity, row_of


class Keeper(Companion):
    """The process that started a program: it ends right after it."""


def kept(
    argv: Sequence[str], files: tuple[int, int, int], cwd: Path, env: Mapping[str, str], record: Path
) -> tuple[Identity, Keeper]:
    """Start a program, with these descriptors as its stdin, stdout and stderr; how it ends will stand in the record.
    Raises OSError or ValueError if it cannot be started."""
    told = keeper.told(
        [os.fsencode(word) for word in argv], {os.fsencode(key): os.fsencode(each) for key, each in env.items()}
    )
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", keeper.__file__, *map(str, files), str(record)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pass_fds=files,
        cwd=cwd,
        env={},  # it must not look like a part of anybody's attempt
        start_new_session=True,
    )
    assert child.stdin is not None and child.stdout is not None
    with child.stdout, suppress(BrokenPipeError), child.stdin:
        child.stdin.write(told)
        child.stdin.flush()
        word, _, number = child.stdout.readline().partition(b" ")
        # It stays in the table of the system until its keeper hears the end of stdin.
        program, own = row_of(int(number or 0)) if word == b"pid" else None, row_of(child.pid)
    if program is None or own is None:
        child.wait()
        code = int(number or 0) if word == b"errno" else 0
        raise OSError(code, os.strerror(code) if code else "the process that keeps it has ended")
    return program.identity, Keeper(own.identity, child)
