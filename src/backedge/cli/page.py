"""Lays out text for people: wrapped between words for the width of the terminal, long text cut with a remark."""

from __future__ import annotations

import json
import shutil
import textwrap
from collections.abc import Iterator
from typing import TextIO

from backedge.core.text import as_text, clean, counted, json_text, one_line
from backedge.core.value import Json

NARROWEST = 40
QUESTION = 3
"""How many lines a question takes below what it is about."""
UNLIMITED = 10_000
"""The width where there is no terminal: lines stay whole, so that programs can search them."""
LONGEST_LINE = 300
"""How long a line of a block is, however wide the terminal."""


def width_of(out: TextIO) -> int:
    """The columns of the terminal that `out` writes to."""
    return max(NARROWEST, shutil.get_terminal_size().columns) if out.isatty() else UNLIMITED


def room_for_question(out: TextIO) -> int:
    """How many lines fit above a question, on the terminal that `out` writes to."""
    return shutil.get_terminal_size().lines - QUESTION if out.isatty() else UNLIMITED


class Page:
    """A page of a given width and the deepest detail that fits one screen; `whole` leaves nothing out."""

    def __init__(self, width: int = UNLIMITED, whole: bool = False, brief: int = 0) -> None:
        self.width, self.whole, self.brief = width, whole, brief
        self.has_cut = False
        """Whether text of others was cut so far."""

    def least(self, most: int, least: int) -> int:
        """How many to show of something: fewer, the briefer the page has to be, but not less than `least`."""
        return max(least, most >> self.brief)

    def line(self, text: str, indent: int = 0, longest: int = 400) -> Iterator[str]:
        """Text of others as one paragraph: at most `longest` characters, wrapped between words."""
        yield from self.own_line(self.cut(text, longest), indent)

    def own_line(self, text: str, indent: int = 0, hang: int = 2) -> Iterator[str]:
        """A line of our own, wrapped between words; further lines are indented by `hang` more. A command stays on one line,
        so that it can be copied."""
        if indent + len(text) <= self.width or text.lstrip().startswith("backedge "):
            yield " " * indent + text
            return
        hanging = " " * min(indent + hang + (len(text) - len(text.lstrip())), self.width // 2)
        yield from textwrap.wrap(
            text, self.width, initial_indent=" " * indent, subsequent_indent=hanging, break_on_hyphens=False
        )

    def cut(self, text: str, longest: int) -> str:
        """Text of others on one line. What is left out is told as a number of characters."""
        if self.whole:
            return one_line(text)
        line = one_line(text[: 20 * longest])
        if len(line) <= longest:
            return line
        self.has_cut = True
        return f"{line[: longest - 1].rstrip()}…"

    def text(self, label: str, text: str, indent: int, most: int = 6) -> Iterator[str]:
        """Labelled text of others. Several lines become a block of at most `most` lines; the first lines and the last one
        are kept, because the last line of an error says what it is."""
        most = self.least(most, 2)
        lines = [line.rstrip() for line in clean(text).expandtabs().splitlines() if line.strip()]
        if len(lines) < 2:
            yield from self.line(f"{label}: {text}", indent, 400)
            return
        yield f"{' ' * indent}{label}:"
        room = max(20, min(self.width, LONGEST_LINE) - indent - 4)
        wrapped = [part for line in lines for part in _wrapped(line, room)]
        yield from self.block(wrapped, indent + 2, most)

    def block(self, lines: list[str], indent: int, most: int) -> Iterator[str]:
        """Lines of others, each cut at the width."""
        kept: list[str | None] = list(lines)
        if not self.whole and len(lines) > most + 1:  # a remark about one line would take as much room as the line
            kept = [*lines[: most - 1], None, lines[-1]]
        room = max(20, min(self.width, UNLIMITED if self.whole else LONGEST_LINE) - indent - 2)
        for line in kept:
            if line is None:
                yield f"{' ' * indent}| … {counted(len(lines) - most, 'more line')} …"
            else:
                yield f"{' ' * indent}| {line if len(line) <= room else line[: room - 1] + '…'}"
            self.has_cut |= line is None or len(line) > room

    def value(self, label: str, value: Json, indent: int, most: int = 10) -> Iterator[str]:
        """A JSON value: a text as it is, an object with a line for each key, anything else as JSON."""
        flat = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if len(flat) <= 60 and "\\n" not in flat:
            yield from self.line(f"{label}: {flat}", indent)
        elif isinstance(value, dict):
            yield from self.text(label, "\n".join(_entry(key, each) for key, each in value.items()), indent, most)
        else:
            yield from self.text(label, as_text(value), indent, most)


def _wrapped(line: str, room: int) -> list[str]:
    """A line in parts that fit, broken between words if possible; the further parts are indented."""
    if len(line) <= room:
        return [line]
    start = line[: len(line) - len(line.lstrip())]
    hanging = (start + "  ")[: room // 2]
    return textwrap.wrap(line, room, subsequent_indent=hanging, break_on_hyphens=False, drop_whitespace=True) or [line]


def _entry(key: str, value: Json) -> str:
    """One key of an object: a text of several lines below its name."""
    if not isinstance(value, str):
        return f"{key}: {json_text(value)}"
    return f"{key}:\n{textwrap.indent(value.strip(chr(10)), '  ')}" if "\n" in value.strip() else f"{key}: {value}"


def ago(seconds: float) -> str:
    """A duration in the largest unit that fits: 45 s, 12 min, 3 h, 2 days."""
    if seconds < 90:
        return f"{max(0, seconds):.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.0f} h"
    return counted(round(seconds / 86400), "day")
