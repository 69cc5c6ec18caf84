"""A person at a terminal: what the command writes there, and what is typed."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.cli.project import COMMAND, environment

ORDERS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""What moves the cursor or sets a colour."""


class Terminal:
    """The command with a terminal of a given size as its stdin, stdout and stderr."""

    def __init__(self, folder: Path, *args: str, columns: int = 100, rows: int = 40, **env: str) -> None:
        self._mine, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        clean = {key: value for key, value in environment(None).items() if key not in ("COLUMNS", "LINES", "CI")}
        self.process = subprocess.Popen(
            [COMMAND, *args],
            cwd=folder,
            env={**clean, "TERM": "xterm-256color", **env},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            preexec_fn=_own_terminal,
        )
        os.close(theirs)
        self.raw = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._mine)

    @property
    def text(self) -> str:
        """What was written, without orders to the terminal."""
        return ORDERS.sub("", self.raw).replace("\r\n", "\n")

    @property
    def lines(self) -> list[str]:
        """The lines that a person can read at the end: a frame that was drawn over is not among them."""
        return Picture(self.raw).rows

    def wait_for(self, text: str, within: float = 30) -> None:
        self._read(lambda: text in self.text, within)
        assert text in self.text, self.text

    def type(self, text: str) -> None:
        os.write(self._mine, text.encode())

    def end(self, within: float = 30) -> int:
        self._read(lambda: False, within)
        return self.process.wait(within)

    def _read(self, enough: Callable[[], bool], within: float) -> None:
        end = time.monotonic() + within
        with suppress(OSError):  # the other side is gone
            while not enough() and time.monotonic() < end:
                if select.select([self._mine], [], [], 0.1)[0]:
                    self.raw += os.read(self._mine, 65536).decode("utf-8", "replace")


class Picture:
    """The rows of a terminal after some output: as much of one as rich uses."""

    def __init__(self, raw: str) -> None:
        self._rows, self._row, self._column = [""], 0, 0
        for order, letter in re.findall(r"(\x1b\[[0-9;?]*[A-Za-z])|([\s\S])", raw):
            if order:
                self._order(order)
            else:
                self._put(letter)

    @property
    def rows(self) -> list[str]:
        return "\n".join(row.rstrip() for row in self._rows).rstrip().split("\n")

    def _order(self, order: str) -> None:
        count = int(order[2:-1]) if order[2:-1].isdigit() else 1
        if order[-1] == "A":
            self._row = max(0, self._row - count)
        elif order[-1] == "K" and order[2:-1] == "2":
            self._rows[self._row] = ""

    def _put(self, letter: str) -> None:
        if letter == "\r":
            self._column = 0
        elif letter == "\n":
            self._row += 1
            if self._row == len(self._rows):
                self._rows.append("")
        elif letter != "\a":
            row = self._rows[self._row].ljust(self._column)
            self._rows[self._row] = row[: self._column] + letter + row[self._column + 1 :]
            self._column += 1


def _own_terminal() -> None:
    """Make stdin the terminal whose keys the process gets, as a shell does."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
