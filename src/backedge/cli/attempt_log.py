"""What an attempt prints while it runs: its stderr, and the event stream of an agent CLI as readable lines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from unicodedata import category

from backedge.adapters.agents.clis.folder import CliFolder
from backedge.adapters.agents.clis.transcript import cli_of, transcript_lines
from backedge.core.text import clean

TAIL = 8 * 1024
"""How many bytes at the end of a log to read."""
STREAM = 256 * 1024
"""The same for a CLI's stream, where one line can contain a whole file."""
LONGEST_LINE = 500
LONGEST_EVENT = 16 * 1024 * 1024
MOST_READ = 1024 * 1024
"""How many bytes of new text to read at once."""
STDERR_LINES = 2
"""How many lines of stderr to show below the output of a CLI."""


class Log:
    """The growing output of one attempt."""

    def __init__(self, state: Path, run: str, step: str, attempt: int) -> None:
        self.step = step
        self._folder = CliFolder(state, run, step, attempt)
        self._log, self._stream = _Growing(self._folder.log, LONGEST_LINE), _Growing(self._folder.stdout, LONGEST_EVENT)
        self._known: str | None = None

    @property
    def _cli(self) -> str:
        """The agent CLI of the attempt; empty for a command, and before it has started."""
        if self._known is None and (self._folder.path / "starting").exists():
            self._known = cli_of(self._folder) or ""
        return self._known or ""

    def tail(self, most: int) -> list[str]:
        """The last lines, cleaned for a terminal."""
        lines = [line for each in self._log.tail(TAIL) if (line := _line(each).strip())]
        if cli := self._cli:
            lines = [*map(_shown, transcript_lines(cli, self._stream.tail(STREAM))), *lines[-STDERR_LINES:]]
        return lines[-most:]

    def news(self, last: bool = False) -> Iterator[str]:
        """The complete lines since the last call; with `last`, also an incomplete one."""
        if cli := self._cli:
            yield from map(_shown, transcript_lines(cli, self._stream.news(last)))
        yield from map(_line, self._log.news(last))


class _Growing:
    """A file that another process writes, line by line."""

    def __init__(self, path: Path, longest: int) -> None:
        self._path, self._longest = path, longest
        self._read, self._rest = 0, b""

    def tail(self, most: int) -> list[bytes]:
        try:
            with self._path.open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - most))
                text = file.read(most)
        except OSError:
            return []
        # The first line is cut off.
        return text.split(b"\n")[1:] if size > most else text.split(b"\n")

    def news(self, last: bool) -> list[bytes]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._read)
                text = file.read(MOST_READ)
        except OSError:
            return []
        self._read += len(text)
        *lines, self._rest = (self._rest + text).split(b"\n")
        self._rest = self._rest[: self._longest]
        if last and self._rest:
            lines, self._rest = [*lines, self._rest], b""
        return lines


def _line(text: bytes) -> str:
    return _shown(text[: 4 * LONGEST_LINE].decode("utf-8", "replace"))


def _shown(text: str) -> str:
    """A line of an agent without control characters or characters that change the writing direction."""
    line = clean(text[: 4 * LONGEST_LINE]).replace("\n", " ").expandtabs(4)[:LONGEST_LINE]
    return "".join(letter for letter in line if category(letter) != "Cf")
