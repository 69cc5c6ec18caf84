"""Starts the program of an attempt under a supervisor: a small process that outlives us, ends everything that the program
left, and says how it ended: on a socket while we live, in a record for the next backedge process.

All supervisors of this process come from one spawner, which starts with the first attempt and ends with this process.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
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
"""Seconds that the spawner has to end after it was told to."""
LOOK = 0.1
"""Seconds to wait for an answer of a supervisor before we look whether somebody stopped it."""
LONGEST = 64 * 1024
"""Bytes that a supervisor says at most."""


class SupervisorLost(Exception):
    """The supervisor was killed while it started the program: nobody knows whether it runs."""


class Talk:
    """Our end of the socket to a supervisor, which nothing else has: what comes from here, the supervisor said."""

    def __init__(self, socket: socket.socket) -> None:
        self._socket = socket
        self._socket.setblocking(False)
        self._heard = b""
        self.over = False
        """Whether the supervisor has said everything, or has died."""

    def fileno(self) -> int:
        return self._socket.fileno()

    def listen(self) -> None:
        """Take what it has said so far, without waiting."""
        if self.over:
            return
        try:
            while piece := self._socket.recv(LONGEST):
                self._heard += piece
        except BlockingIOError:
            return
        except OSError:
            pass  # it died while it spoke
        self.over = True
        with suppress(RuntimeError, NotImplementedError):  # no event loop watches it
            asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()

    @property
    def said(self) -> bytes:
        """How the program ended, as JSON; empty if the supervisor died before it could say it."""
        return self._heard if self._heard.endswith(b"}") else b""

    def grant(self, seconds: float) -> None:
        """Tell it that all processes were asked to end, and how long they have for that."""
        with suppress(OSError):
            self._socket.send(b"%.3f\n" % seconds)


def start_supervised(
    argv: Sequence[str], files: tuple[int, int, int], cwd: Path, env: Mapping[str, str], record: Path
) -> tuple[Identity, Identity, Talk]:
    """Start a program with these descriptors as its stdin, stdout and stderr. Returns the program, its supervisor, which
    also writes how the program ended to `record`, and the socket to it. Raises OSError or ValueError if it cannot be
    started, and SupervisorLost if that is not known."""
    request = spawner.request(
        [os.fsencode(word) for word in argv],
        {os.fsencode(key): os.fsencode(each) for key, each in env.items()},
        os.fsencode(cwd),
        os.fsencode(record),
    )
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            _SPAWNER.fork((*files, theirs.fileno()))
        with suppress(BrokenPipeError, ConnectionResetError):
            ours.sendall(request)
        ours.settimeout(LOOK)
        answer = _answer(ours)
        begun = answer.get(b"starting")
        if begun is not None:
            answer = _answer(ours, begun)
        if b"errno" in answer or begun is None:
            code = answer.get(b"errno", 0)
            raise OSError(code, os.strerror(code) if code else "its supervisor ended unexpectedly")
        # The program stays in the process table until its supervisor hears from us.
        program, supervisor = row_of(answer.get(b"pid", 0)), row_of(begun)
        if program is None or supervisor is None:
            raise SupervisorLost
        with suppress(BrokenPipeError, ConnectionResetError):
            ours.send(b"+")
    except BaseException:
        ours.close()
        raise
    return program.identity, supervisor.identity, Talk(ours)


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


def _answer(talk: socket.socket, supervisor: int | None = None) -> dict[bytes, int]:
    """The next line that the supervisor says, a word and a number; nothing if it has ended."""
    line = b""
    with suppress(ConnectionResetError):
        while not line.endswith(b"\n"):
            try:
                piece = talk.recv(1)
            except TimeoutError:
                if supervisor is not None:
                    with suppress(ProcessLookupError):
                        os.kill(supervisor, signal.SIGCONT)  # its program may have stopped it already
                continue
            if not piece:
                return {}
            line += piece
    word, _, number = line.partition(b" ")
    return {word: int(number)} if number else {}
