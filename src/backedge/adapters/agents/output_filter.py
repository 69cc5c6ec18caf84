"""The files for a program's stdout and stderr, with a filter in front of them if there are secrets to remove."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from backedge.adapters.agents import stream_filter
from backedge.adapters.agents.attempt_folder import AttemptFolder
from backedge.adapters.agents.process_tree import Identity, row_of
from backedge.core.errors import AgentError


class Filter:
    """The process that removes secrets from what a program prints. It ends when nothing can write to it any more.

    An earlier backedge may have started it: then only its identity is known."""

    def __init__(self, identity: Identity, child: subprocess.Popen[bytes] | None = None) -> None:
        self.identity = identity
        self._child = child

    def reap(self) -> None:
        """Collect its exit status if it is our child, so that it does not stay in the process table."""
        if self._child is not None:
            self._child.poll()


@contextmanager
def outputs(folder: AttemptFolder) -> Iterator[tuple[int, int, Filter | None]]:
    """The descriptors for a program's stdout and stderr. Raises AgentError if the filter cannot be started."""
    with folder.stdout.open("ab") as stdout, folder.log.open("ab") as log:
        if not folder.secrets:
            yield stdout.fileno(), log.fileno(), None
            return
        stdout_pipe, stderr_pipe = os.pipe(), os.pipe()
        try:
            pairs = ((stdout_pipe[0], stdout.fileno()), (stderr_pipe[0], log.fileno()))
            yield stdout_pipe[1], stderr_pipe[1], _started(folder, pairs)
        finally:
            for end in (*stdout_pipe, *stderr_pipe):
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
            env={},  # it must not look like a part of an attempt
            start_new_session=True,
        )
        assert child.stdin is not None
        with child.stdin, suppress(BrokenPipeError):
            # Not as arguments and not in a file: other programs could read them there.
            child.stdin.write(json.dumps({name: each.hex() for name, each in folder.secrets.values.items()}).encode())
    except OSError as error:
        raise AgentError(f"the filter that removes secrets from the log cannot be started: {error}") from error
    row = row_of(child.pid)
    return Filter(row.identity if row is not None else Identity(child.pid, "unknown"), child)
