"""The files that a program's stdout and stderr go to, with a filter before them where there are secrets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from backedge.adapters.agents import stream_filter
from backedge.adapters.agents.attempt_folder import AttemptFolder
from backedge.adapters.agents.companion import Companion
from backedge.adapters.agents.process_tree import Identity, row_of
from backedge.core.errors import AgentError


class Filter(Companion):
    """The process that keeps secrets out of what a program says: it ends after the program's last word."""


@contextmanager
def outputs(folder: AttemptFolder) -> Iterator[tuple[int, int, Filter | None]]:
    """The descriptors for a program's stdout and stderr. Raises AgentError if secrets could not be kept out."""
    with folder.stdout.open("ab") as stdout, folder.log.open("ab") as log:
        if not folder.secrets:
            yield stdout.fileno(), log.fileno(), None
            return
        said, complained = os.pipe(), os.pipe()
        try:
            pairs = ((said[0], stdout.fileno()), (complained[0], log.fileno()))
            yield said[1], complained[1], _started(folder, pairs)
        finally:
            for end in (*said, *complained):
                os.close(end)


def _started(folder: AttemptFolder, pairs: tuple[tuple[int, int], ...]) -> Filter:
    program = [sys.executable, "-I", "-S", stream_filter.__file__]
    try:
        child = subprocess.Popen(
            [*program, *(f"{source}:{target}" for source, target in pairs)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[each for pair in pairs for each in pair],
            env={},  # it must not look like a part of anybody's attempt
            start_new_session=True,
        )
        assert child.stdin is not None
        with child.stdin, suppress(BrokenPipeError):
            # Not among its arguments, nor in a file: everybody could read them there.
            child.stdin.write(json.dumps({name: each.hex() for name, each in folder.secrets.values.items()}).encode())
    except OSError as error:
        raise AgentError(f"the filter that keeps secrets out of the log cannot be started: {error}") from error
    row = row_of(child.pid)
    return Filter(row.identity if row is not None else Identity(child.pid, "unknown"), child)
