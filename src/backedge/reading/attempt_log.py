"""What an attempt is told and prints: its prompt, its output, and the event stream of an agent CLI as readable lines."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from unicodedata import category

import msgspec

from backedge.adapters.agents.clis.folder import CliFolder
from backedge.adapters.agents.clis.transcript import Transcript, cli_of, transcript_lines
from backedge.core.text import clean, counted

TAIL = 8 * 1024
"""How many bytes at the end of a log to read."""
STREAM = 256 * 1024
"""The same for a CLI's stream, where one line can contain a whole file."""
LONGEST_LINE = 1000
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
        self._transcript: Transcript | None = None
        self._roots = re.compile(
            rf"{re.escape(str(state.absolute().parent))}/(?:{re.escape(state.name)}/worktrees/[^/ ]+/)?"
        )
        """The folders of the project: names of files in it are shown without them."""

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
            said = (self._roots.sub("", each) for each in transcript_lines(cli, self._stream.tail(STREAM)))
            lines = [*map(_shown, said), *lines[-STDERR_LINES:]]
        return lines[-most:]

    def news(self, last: bool = False) -> Iterator[str]:
        """The complete lines since the last call; with `last`, also an incomplete one."""
        yield from self._messages(last)
        yield from map(_line, self._log.news(last))

    def _messages(self, last: bool) -> Iterator[str]:
        """The new messages and tool calls of an agent CLI."""
        if cli := self._cli:
            self._transcript = self._transcript or Transcript(cli)
            for line in self._transcript.lines(self._stream.news(last)):
                yield _shown(self._roots.sub("", line))


def _first_section(prompt: Sequence[str]) -> int:
    """The line where the first section of a prompt begins; 0 if it has none."""
    return next((number for number, line in enumerate(prompt) if line.startswith("## ")), 0)


class AttemptOutput(Log):
    """Everything about one attempt that people can read: what it was told, and what it and its tools print."""

    def __init__(self, state: Path, run: str, step: str, attempt: int, prompt_lines: int | None = None) -> None:
        """At most `prompt_lines` lines of the prompt."""
        super().__init__(state, run, step, attempt)
        self._prompt_lines = prompt_lines
        self._told = False
        self._files: dict[Path, _Growing] = {}

    @property
    def kept(self) -> bool:
        """Whether its files are still there."""
        return self._folder.path.is_dir()

    def lines(self, last: bool = False) -> Iterator[tuple[str, str]]:
        """The new lines, each with its kind: prompt or output."""
        if not self._told and (told := self._prompt()) is not None:
            self._told = True
            # What a role is told first is the same in every attempt: the beginning is the first section.
            start = 0 if self._prompt_lines is None else _first_section(told)
            shown = told[start:][: self._prompt_lines]
            yield from (("prompt", _shown(line)) for line in shown)
            if len(told) > len(shown):
                yield "prompt", f"… and {counted(len(told) - len(shown), 'more line')}: --prompt shows all"
        for folder in (self._folder.path, *self._programs()):
            is_cli = folder == self._folder.path and bool(self._cli)
            if is_cli:
                yield from (("output", line) for line in self._messages(last))
            for name in ("log",) if is_cli else ("log", "stdout"):
                growing = self._files.setdefault(folder / name, _Growing(folder / name, MOST_READ))
                yield from (("output", _line(line)) for line in growing.news(last))

    def _programs(self) -> list[Path]:
        """The folders of the programs that a judge runs."""
        try:
            return sorted(path.parent for path in self._folder.path.glob("*/starting"))
        except OSError:
            return []

    def _prompt(self) -> list[str] | None:
        """What the attempt was told: the prompt of an agent CLI, the briefing of a command; None if it is not known."""
        try:
            if self._folder.briefing.exists():
                return self._folder.briefing.read_text("utf-8", "replace").splitlines()
            briefing = self._folder.whole.read_bytes()
            if self._prompt_lines is None:
                return msgspec.json.format(briefing, indent=1).decode("utf-8", "replace").splitlines()
            return [
                *_telling(msgspec.json.decode(briefing)),
                "(what is empty is left out: --prompt shows the briefing)",
            ]
        except (OSError, msgspec.DecodeError):
            return None


_NAMES = ("run", "step", "attempt", "phase", "agent", "session", "steps", "limits_left", "scratchpad", "progress")


def _telling(briefing: object) -> Iterator[str]:
    """The parts of a briefing that say what to do, one finding per line: not names, paths and limits, and not what is
    empty."""
    for key, value in briefing.items() if isinstance(briefing, dict) else ():
        said = _without_empty(value)
        if not said or key in _NAMES:
            continue
        parts = said.items() if isinstance(said, dict) else [("", said)]
        for name, part in parts:
            label = f"{key}.{name}" if name else key
            for each in part if isinstance(part, list) else [part]:
                yield f"{label}: {json.dumps(each, ensure_ascii=False)}"


def _without_empty(value: object) -> object:
    if isinstance(value, dict):
        found = {key: _without_empty(each) for key, each in value.items()}
        return {key: each for key, each in found.items() if each is not False and each not in EMPTY}
    return [_without_empty(each) for each in value] if isinstance(value, list) else value


EMPTY: tuple[object, ...] = (None, "", [], {})


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
    line = clean(text[: 4 * LONGEST_LINE]).replace("\n", " ").expandtabs(4)
    line = line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 1]}…"
    return "".join(letter for letter in line if category(letter) != "Cf")
