"""Reads front matter: plain values, and the place of each in the text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from backedge.core.errors import WorkflowError

_INT = re.compile(r"[-+]?[0-9]{1,18}")


_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][-+]?[0-9]+)?")


CONSTANTS: dict[str, Any] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
CONSTANTS |= dict.fromkeys(("true", "True", "TRUE"), True) | dict.fromkeys(("false", "False", "FALSE"), False)


TEXTS = ("id", "title", "blocked_reason", "epic", "dependencies", "labels")
"""Keys whose values are text, also in a list: `id: 0042` is not 42."""


Value = Any
"""A plain value: text, number, true or false, nothing, a list or a mapping of these."""


class StoryFileError(WorkflowError):
    """A story file cannot be read. Names the file, the line and the column, and says what to do."""

    def __init__(self, file: str, line: int, column: int, text: str) -> None:
        self.line, self.column = line, column
        super().__init__(f"{file}:{line}:{column}: {text}")


@dataclass(frozen=True)
class Span:
    """The place of a key and its value in the text."""

    key: int
    start: int
    end: int
    line_end: int
    """After the last line of the value, including its line break."""
    inline: bool
    """The value is one scalar on the line of its key."""


class FrontMatterReader:
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
                    event.start_mark, "the front matter does not consist of `key: value` lines: write one key per line"
                )
            indent = self._text[event.start_mark.index - event.start_mark.column : event.start_mark.index]
            for key in events:
                if type(key).__name__ == "MappingEndEvent":
                    break
                name = self._key(key)
                if name in values:
                    self._refuse(key.start_mark, f"{name!r} appears twice: keep one")
                first = next(events)
                self._last = first.end_mark.index
                values[name] = self._named(name, first, events)
                spans[name] = self._span(key, first)
        return values, spans, indent

    def _named(self, name: str, event: Any, events: Any) -> Value:
        value = self._value(event, events, text=name in TEXTS)
        bare = type(event).__name__ == "ScalarEvent" and event.style is None and event.tag is None
        return typed_value(name, event.value) if bare else value

    def _key(self, event: Any) -> str:
        if type(event).__name__ != "ScalarEvent" or not event.value:
            self._refuse(event.start_mark, "a key must be a word: put it in quotes, or write `key: value`")
        return str(event.value)

    def _span(self, key: Any, first: Any) -> Span:
        begin, end = key.start_mark.index, max(self._last, key.end_mark.index)
        one = type(first).__name__ == "ScalarEvent" and first.style not in ("|", ">")
        empty = one and not first.value and first.style is None
        if empty:
            # For an empty value the parser gives the place of the next key: use the end of the colon.
            end = self._text.find(":", key.end_mark.index) + 1
            return Span(begin, end, end, self._line_end(end), True)
        start = first.start_mark.index
        inline = one and "\n" not in self._text[begin:end] and first.tag is None and first.anchor is None
        at = end - 1 if end > begin and self._text[end - 1] == "\n" else end
        return Span(begin, start, end, self._line_end(at), inline)

    def _line_end(self, place: int) -> int:
        return self._text.find("\n", place) + 1 or len(self._text)

    def _value(self, event: Any, events: Any, depth: int = 0, text: bool = False) -> Value:
        kind = type(event).__name__
        if depth > 20:
            self._refuse(event.start_mark, "nested more than 20 deep: make it flatter")
        if kind == "AliasEvent":
            self._last = event.end_mark.index
            return self._anchors.get(event.anchor)
        made: Value
        if kind == "ScalarEvent":
            self._last = event.end_mark.index
            made = event.value if text or event.style is not None or event.tag is not None else plain_value(event.value)
        elif kind == "SequenceStartEvent":
            made = []
            for each in events:
                if type(each).__name__ == "SequenceEndEvent":
                    self._close(event, each)
                    break
                made.append(self._value(each, events, depth + 1, text))
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
                mark = error.context_mark  # something that starts there never ends
            problem = " ".join(str(error.problem or "not understood").split())
            self._refuse(mark, f"not valid YAML: {problem}: correct the line, or put the value in quotes")
        except (YAMLError, ValueError, OverflowError, RecursionError) as error:
            position = getattr(error, "position", 0)
            place = position if isinstance(position, int) else 0
            line = self._text.count("\n", 0, place)
            column = place - (self._text.rfind("\n", 0, place) + 1)
            why = f"it contains a character that YAML does not allow: {str(getattr(error, 'reason', '')) or 'not understood'}"
            raise StoryFileError(self._file, line + 1 + self._above, column + 1, f"{why}: remove it") from None

    def _refuse(self, mark: Any, text: str) -> None:
        line, column = (mark.line, mark.column) if mark is not None else (0, 0)
        raise StoryFileError(self._file, line + 1 + self._above, column + 1, text)


def typed_value(name: str, text: str) -> Value:
    """The value of a top-level scalar without quotes. Names are text, whatever they look like."""
    value = plain_value(text)
    return text if name in TEXTS and value is not None else value


def plain_value(text: str) -> Value:
    """The value of a scalar without quotes."""
    if text in CONSTANTS:
        return CONSTANTS[text]
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text
