"""Front matter as text with places: one value is changed, and every other byte stays as it was.

A file is parsed for where each key and its value stand. Setting a key cuts out just that; the file is never written
from parsed values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from backedge.core.errors import WorkflowError

MARK = "---"
_FIRST_LINE = re.compile(r"\ufeff?---[ \t\r]*(?:\n|\Z)")
_MARK_LINE = re.compile(r"^---[ \t\r]*(?:\n|\Z)", re.MULTILINE)
MAX_BYTES = 1024 * 1024
_INT = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][-+]?[0-9]+)?")
_WORDS: dict[str, Any] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
_WORDS |= dict.fromkeys(("true", "True", "TRUE"), True) | dict.fromkeys(("false", "False", "FALSE"), False)
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*(?: [A-Za-z0-9_./(-][A-Za-z0-9_./()-]*)*")
_HIDDEN = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""What YAML does not allow, or takes for the end of a line."""

TEXTS = ("id", "title", "blocked_reason")
"""Keys whose values are text: `id: 0042` is not 42."""

Value = Any
"""A plain value: text, number, true or false, nothing, a list or a mapping of these."""


class StoryFileError(WorkflowError):
    """A story file cannot be understood. Says the file, the line and the column, and what to do."""

    def __init__(self, file: str, line: int, column: int, text: str) -> None:
        self.line, self.column = line, column
        super().__init__(f"{file}:{line}:{column}: {text}")


@dataclass(frozen=True)
class Span:
    """Where a key and its value stand in the text."""

    key: int
    start: int
    end: int
    line_end: int
    """After the last line of the value, its line break included."""
    inline: bool
    """The value is one scalar on the line of its key."""


@dataclass(frozen=True)
class FrontMatter:
    """A story file, and what its front matter says."""

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
        """The text with these values; None takes a key out. What is so already is not touched."""
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
            return span.start, span.end, (" " if span.start == span.end else "") + scalar(value)
        return span.key, span.line_end, self._lines(name, value)

    def _lines(self, name: str, value: Value) -> str:
        return "".join(f"{self.indent}{line}{self.newline}" for line in rendered(name, value))


def rendered(name: str, value: Value) -> list[str]:
    """A key and its value as lines of YAML."""
    if isinstance(value, list) and value:
        lines = [f"{name}:"]
        for item in value:
            if isinstance(item, dict) and item:
                pairs = [f"{key}: {scalar(each)}" for key, each in item.items()]
                lines += [f"  {'- ' if not place else '  '}{pair}" for place, pair in enumerate(pairs)]
            else:
                lines.append(f"  - {scalar(item)}")
        return lines
    return [f"{name}: {scalar(value)}"]


def scalar(value: Value) -> str:
    """A value on one line of YAML."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value not in _WORDS and value.lower() not in _SWITCHES:
        return value
    return _HIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))


_SWITCHES = ("yes", "no", "on", "off", "y", "n")
"""Plain words that older readers take for true and false."""


def split(data: bytes, file: str) -> tuple[str, int, int, int]:
    """The text of a file, where its front matter begins and ends, and where the text below it begins.

    Raises StoryFileError."""
    if len(data) > MAX_BYTES:
        raise StoryFileError(file, 1, 1, f"has more than {MAX_BYTES} bytes: a story is text, keep the rest in files")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise StoryFileError(file, line, column, "is not UTF-8 text: save it as UTF-8") from None
    opens = _FIRST_LINE.match(text)
    if opens is None:
        raise StoryFileError(file, 1, 1, f"has no front matter: begin it with {MARK}, `title: …` and {MARK}")
    closes = _MARK_LINE.search(text, opens.end())
    if closes is None:
        lines = text.count("\n") + 1
        raise StoryFileError(file, lines, 1, f"the front matter does not end: put {MARK} on a line of its own after it")
    return text, opens.end(), closes.start(), closes.end()


def parsed(data: bytes, file: str) -> FrontMatter:
    """A story file with the places of its values. Raises StoryFileError."""
    text, start, close, body = split(data, file)
    newline = "\r\n" if text[:start].endswith("\r\n") else "\n"
    reader = _Reader(text[start:close], file, text.count("\n", 0, start))
    values, spans, indent = reader.pairs()
    moved = {
        name: Span(span.key + start, span.start + start, span.end + start, span.line_end + start, span.inline)
        for name, span in spans.items()
    }
    return FrontMatter(text, values, moved, close, body, newline, indent)


class _Reader:
    """The events of the YAML parser as plain values with places."""

    def __init__(self, text: str, file: str, above: int) -> None:
        self._text, self._file, self._above = text, file, above
        self._anchors: dict[str, Value] = {}
        self._last = 0

    def pairs(self) -> tuple[dict[str, Value], dict[str, Span], str]:
        values: dict[str, Value] = {}
        spans: dict[str, Span] = {}
        indent = ""
        events = self._events()
        for event in events:
            kind = type(event).__name__
            if kind in ("StreamStartEvent", "DocumentStartEvent", "DocumentEndEvent", "StreamEndEvent"):
                continue
            if kind != "MappingStartEvent" or event.flow_style:
                self._refuse(
                    event.start_mark, "the front matter is no list of `key: value` lines: write one key a line"
                )
            indent = self._text[event.start_mark.index - event.start_mark.column : event.start_mark.index]
            for key in events:
                if type(key).__name__ == "MappingEndEvent":
                    break
                name = self._key(key)
                if name in values:
                    self._refuse(key.start_mark, f"{name!r} is here twice: keep one")
                first = next(events)
                self._last = first.end_mark.index
                values[name] = self._named(name, first, events)
                spans[name] = self._span(key, first)
        return values, spans, indent

    def _named(self, name: str, event: Any, events: Any) -> Value:
        value = self._value(event, events)
        bare = type(event).__name__ == "ScalarEvent" and event.style is None and event.tag is None
        return meant(name, event.value) if bare else value

    def _key(self, event: Any) -> str:
        if type(event).__name__ != "ScalarEvent" or not event.value:
            self._refuse(event.start_mark, "a key must be a word: put it in quotes, or write `key: value`")
        return str(event.value)

    def _span(self, key: Any, first: Any) -> Span:
        begin, end = key.start_mark.index, max(self._last, key.end_mark.index)
        one = type(first).__name__ == "ScalarEvent" and first.style not in ("|", ">")
        empty = one and not first.value and first.style is None
        if empty:
            # The parser meets nothing only at the next key: it stands behind the colon.
            end = self._text.find(":", key.end_mark.index) + 1
            return Span(begin, end, end, self._line_end(end), True)
        start = first.start_mark.index
        inline = one and "\n" not in self._text[begin:end] and first.tag is None and first.anchor is None
        at = end - 1 if end > begin and self._text[end - 1] == "\n" else end
        return Span(begin, start, end, self._line_end(at), inline)

    def _line_end(self, place: int) -> int:
        return self._text.find("\n", place) + 1 or len(self._text)

    def _value(self, event: Any, events: Any, depth: int = 0) -> Value:
        kind = type(event).__name__
        if depth > 20:
            self._refuse(event.start_mark, "nested more than 20 deep: make it flatter")
        if kind == "AliasEvent":
            self._last = event.end_mark.index
            return self._anchors.get(event.anchor)
        made: Value
        if kind == "ScalarEvent":
            self._last = event.end_mark.index
            made = plain(event.value) if event.style is None and event.tag is None else event.value
        elif kind == "SequenceStartEvent":
            made = []
            for each in events:
                if type(each).__name__ == "SequenceEndEvent":
                    self._close(event, each)
                    break
                made.append(self._value(each, events, depth + 1))
        else:
            made = {}
            for each in events:
                if type(each).__name__ == "MappingEndEvent":
                    self._close(event, each)
                    break
                key = self._value(each, events, depth + 1)
                made[key if isinstance(key, str) else str(key)] = self._value(next(events), events, depth + 1)
        if event.anchor is not None:
            self._anchors[event.anchor] = made
        return made

    def _close(self, start: Any, end: Any) -> None:
        # The end of a block is where the next thing begins; that of a flow is its bracket.
        if start.flow_style:
            self._last = end.end_mark.index

    def _events(self) -> Any:
        from ruamel.yaml import YAML
        from ruamel.yaml.error import MarkedYAMLError, YAMLError

        try:
            yield from YAML(typ="safe", pure=True).parse(self._text)
        except MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            if error.context_mark is not None and "stream end" in str(error.problem):
                mark = error.context_mark  # what was begun there never ends
            problem = " ".join(str(error.problem or "not understood").split())
            self._refuse(mark, f"not valid YAML: {problem}: correct the line, or put the value in quotes")
        except (YAMLError, ValueError, OverflowError, RecursionError) as error:
            position = getattr(error, "position", 0)
            place = position if isinstance(position, int) else 0
            line = self._text.count("\n", 0, place)
            column = place - (self._text.rfind("\n", 0, place) + 1)
            why = f"a character that YAML does not allow: {str(getattr(error, 'reason', '')) or 'not understood'}"
            raise StoryFileError(self._file, line + 1 + self._above, column + 1, f"{why}: take it out") from None

    def _refuse(self, mark: Any, text: str) -> None:
        line, column = (mark.line, mark.column) if mark is not None else (0, 0)
        raise StoryFileError(self._file, line + 1 + self._above, column + 1, text)


def meant(name: str, text: str) -> Value:
    """What a scalar without quotes at the top stands for: names are text, whatever they look like."""
    value = plain(text)
    return text if name in TEXTS and value is not None else value


def plain(text: str) -> Value:
    """What a scalar without quotes stands for."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text
