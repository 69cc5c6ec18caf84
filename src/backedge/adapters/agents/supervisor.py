"""Starts the program of an attempt under a supervisor: a small process that outlives us and records how the program ended.

All supervisors of this process come from one spawner, which starts with the first attempt and ends with this process.
"""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from backedge.adapters.agents import spawner
from backedge.adapters.agents.process_tree import Identity, row_of

ENDING = 5.0
"""Seconds that the spawner has to end."""


def start_supervised(
    argv: Sequence[str], files: tuple[int, int, int], cwd: Path, env: Mapping[str, str], record: Path
) -> tuple[Identity, Identity]:
    """Start a program with these descriptors as its stdin, stdout and stderr. Returns the program and its supervisor, which
    writes how the program ended to `record`. Raises OSError or ValueError if it cannot be started."""
    request = spawner.request(
        [os.fsencode(word) for word in argv],
        {os.fsencode(key): os.fsencode(each) for key, each in env.items()},
        os.fsencode(cwd),
        os.fsencode(record),
    )
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            _SPAWNER.fork((*files, theirs.fileno()))
        with suppress(BrokenPipeError, ConnectionResetError):
            ours.sendall(request)
        word, *numbers = _line(ours).split() or [b""]
        # The program stays in the process table until its supervisor sees that we hung up.
        program, supervisor = map(row_of, map(int, numbers)) if word == b"pid" else (None, None)
    if program is None or supervisor is None:
        code = int(numbers[0]) if word == b"errno" else 0
        raise OSError(code, os.strerror(code) if code else "its supervisor ended unexpectedly")
    return program.identity, supervisor.identity


def stop_spawner() -> None:
    """End the spawner of this process and wait for it. Supervisors go on; the next attempt starts another spawner."""
    _SPAWNER.stop()


class _Spawner:
    """The spawner of this process, started when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._channel: socket.socket | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def fork(self, files: Sequence[int]) -> None:
        """Make the spawner fork a supervisor with these descriptors."""
        with self._lock:
            if self._channel is not None and self._owner == os.getpid():
                with suppress(BrokenPipeError, ConnectionResetError):
                    socket.send_fds(self._channel, [b"+"], files)
                    return
                self._end()  # the spawner was killed: start another one
            socket.send_fds(self._begin(), [b"+"], files)

    def stop(self) -> None:
        with self._lock:
            self._end()

    def _begin(self) -> socket.socket:
        channel, theirs = socket.socketpair()
        with theirs:
            self._child = subprocess.Popen(
                [sys.executable, "-I", "-S", os.path.abspath(spawner.__file__)],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},  # it must not look like a part of an attempt
                start_new_session=True,
            )
        if not self._owner:
            atexit.register(self.stop)
        self._channel, self._owner = channel, os.getpid()
        return channel

    def _end(self) -> None:
        channel, child = self._channel, self._child
        self._channel = self._child = None
        if channel is not None:
            channel.close()
        # After a fork of our process, the spawner is the child of another process, which waits for it.
        if child is not None and self._owner == os.getpid():
            try:
                child.wait(ENDING)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()


_SPAWNER = _Spawner()


def _line(talk: socket.socket) -> bytes:
    """The answer of the supervisor; empty if it ended without one."""
    found = b""
    with suppress(ConnectionResetError):
        while not found.endswith(b"\n") and (piece := talk.recv(4096)):
            found += piece
    return found
