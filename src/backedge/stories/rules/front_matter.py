"""Front matter that can be changed in place: one value changes, and every other byte stays the same.

The parser finds the place of each key and its value. A change replaces only that part of the text; the file is never
written from parsed values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from backedge.stories.rules.front_matter_reader import CONSTANTS, FrontMatterReader, Span, StoryFileError, Value

MARK = "---"
_FIRST_LINE = re.compile(r"\ufeff?---[ \t\r]*(?:\n|\Z)")
_MARK_LINE = re.compile(r"^---[ \t\r]*(?:\n|\Z)", re.MULTILINE)
MAX_BYTES = 1024 * 1024
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./(-][A-Za-z0-9_./()-]*)*")
_HIDDEN = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that YAML does not allow, or reads as the end of a line."""


@dataclass(frozen=True)
class FrontMatter:
    """A story file, with the values of its front matter."""

    text: str
    values: Mapping[str, Value]
    spans: Mapping[str, Span] = field(repr=False)
    close: int
    """Where the line that ends the front matter begins."""
    body: int
    """Where the text of the story begins."""
    newline: str = "\n"
    indent: str = ""

    def changed(self, changes: Mapping[str, Value]) -> str:
        """The text with these values; None removes a key. Values that are already the same are not touched."""
        edits: list[tuple[int, int, str]] = []
        added = ""
        for name, value in changes.items():
            span = self.spans.get(name)
            if span is None:
                added += self._lines(name, value) if value is not None else ""
            elif value is None:
                edits.append((span.key, span.line_end, ""))
            elif self.values[name] != value or type(self.values[name]) is not type(value):
                edits.append(self._edit(name, value, span))
        if added:
            edits.append((self.close, self.close, added))
        text = self.text
        for start, end, new in sorted(edits, reverse=True):
            text = text[:start] + new + text[end:]
        return text

    def _edit(self, name: str, value: Value, span: Span) -> tuple[int, int, str]:
        if span.inline and not isinstance(value, list | dict):
            return span.start, span.end, (" " if span.start == span.end else "") + yaml_scalar(value)
        return span.key, span.line_end, self._lines(name, value)

    def _lines(self, name: str, value: Value) -> str:
        return "".join(f"{self.indent}{line}{self.newline}" for line in yaml_lines(name, value))


def yaml_lines(name: str, value: Value) -> list[str]:
    """A key and its value as YAML lines."""
    if isinstance(value, list) and value:
        lines = [f"{name}:"]
        for item in value:
            if isinstance(item, dict) and item:
                pairs = [f"{key}: {yaml_scalar(each)}" for key, each in item.items()]
                lines += [f"  {'- ' if not place else '  '}{pair}" for place, pair in enumerate(pairs)]
            else:
                lines.append(f"  - {yaml_scalar(item)}")
        return lines
    return [f"{name}: {yaml_scalar(value)}"]


def yaml_scalar(value: Value) -> str:
    """A value on one line of YAML."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value not in CONSTANTS and value.lower() not in _SWITCHES:
        return value
    return _HIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))


_SWITCHES = ("yes", "no", "on", "off", "y", "n")
"""Plain words that older YAML readers take for true and false."""


def split_front_matter(data: bytes, file: str) -> tuple[str, int, int, int]:
    """The text of a file, where its front matter begins and ends, and where the text below it begins.

    Raises StoryFileError."""
    if len(data) > MAX_BYTES:
        raise StoryFileError(
            file, 1, 1, f"has more than {MAX_BYTES} bytes: keep the text of the story here and the rest in other files"
        )
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise StoryFileError(file, line, column, "is not UTF-8 text: save it as UTF-8") from None
    opens = _FIRST_LINE.match(text)
    if opens is None:
        raise StoryFileError(file, 1, 1, f"has no front matter: start the file with {MARK}, `title: …` and {MARK}")
    closes = _MARK_LINE.search(text, opens.end())
    if closes is None:
        lines = text.count("\n") + 1
        raise StoryFileError(file, lines, 1, f"the front matter does not end: put {MARK} on a line of its own after it")
    return text, opens.end(), closes.start(), closes.end()


def parse_story(data: bytes, file: str) -> FrontMatter:
    """A story file with the places of its values. Raises StoryFileError."""
    text, start, close, body = split_front_matter(data, file)
    newline = "\r\n" if text[:start].endswith("\r\n") else "\n"
    reader = FrontMatterReader(text[start:close], file, text.count("\n", 0, start))
    values, spans, indent = reader.pairs()
    moved = {
        name: Span(span.key + start, span.start + start, span.end + start, span.line_end + start, span.inline)
        for name, span in spans.items()
    }
    return FrontMatter(text, values, moved, close, body, newline, indent)
