"""Builds a tree of nodes from the events of the YAML parser: resolves aliases, merges merge keys, checks keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

from backedge.config.problems import Problem, WorkflowFileError, quoted
from backedge.config.scalars import resolved, text_problem
from backedge.config.text import in_words

MAX_DEPTH = 50
MAX_VALUES = 100_000
_MERGE = "<<"

Position = tuple[int, int]
"""Line and column, from 1."""


@dataclass
class Node:
    """A scalar with its text, a list with its items or a mapping with its pairs."""

    position: Position
    text: str = ""
    plain: bool = False
    """A scalar without quotes or tag: it may be a number, true, false or nothing."""
    items: list[Node] | None = None
    pairs: dict[str, tuple[Position, Node]] | None = None


class Mistake(NamedTuple):
    """A mistake after which the rest can still be read."""

    position: Position
    owner: Position
    """The position of the value that contains it."""
    key: tuple[str, ...]
    text: str


class Composer:
    """Turns events into nodes. An anchor is known once its value is complete, so that no value can contain itself."""

    def __init__(self, text: str, file: str) -> None:
        self._events, self._file = _events(text, file), file
        self._anchors: dict[str, Node] = {}
        self._count = 0
        self.mistakes: list[Mistake] = []

    def document(self) -> Node | None:
        """The one document of the file; None if it is empty."""
        root: Node | None = None
        for event in self._events:
            kind = type(event).__name__
            if kind == "DocumentStartEvent" and root is not None:
                self._stop(_position(event), "a second document starts here: a workflow file has one")
            if kind in ("ScalarEvent", "AliasEvent", "MappingStartEvent", "SequenceStartEvent"):
                root = self._node(event, 0)
        return root

    def _node(self, event: Any, depth: int) -> Node:
        position = _position(event)
        if depth > MAX_DEPTH:
            self._stop(position, f"nested more than {MAX_DEPTH} deep: make it flatter")
        self._counted(1, position)
        kind = type(event).__name__
        if kind == "AliasEvent":
            return self._aliased(event.anchor, position)
        if event.tag is not None:
            self._note(
                position, f"the tag {quoted(str(event.tag))} is not supported: put text that starts with ! in quotes"
            )
        if kind == "ScalarEvent":
            node = Node(position, text=event.value, plain=event.style is None and event.tag is None)
        elif kind == "SequenceStartEvent":
            node = Node(position, items=list(self._children("SequenceEndEvent", depth)))
        else:
            flat = list(self._children("MappingEndEvent", depth))
            node = Node(position, pairs=self._pairs(position, list(zip(flat[::2], flat[1::2], strict=True))))
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _aliased(self, anchor: str, position: Position) -> Node:
        known = self._anchors.get(anchor)
        if known is None:
            self._note(position, f"there is no anchor &{anchor} above: put text that starts with * in quotes")
        return known or Node(position, text=f"*{anchor}")

    def _children(self, end: str, depth: int) -> Iterator[Node]:
        for event in self._events:
            if type(event).__name__ == end:
                return
            yield self._node(event, depth + 1)

    def _pairs(self, owner: Position, written: list[tuple[Node, Node]]) -> dict[str, tuple[Position, Node]]:
        pairs: dict[str, tuple[Position, Node]] = {}
        merged: list[Node] = []
        merge: Position | None = None
        for key, value in written:
            first = merge if key.plain and key.text == _MERGE else pairs[key.text][0] if key.text in pairs else None
            if first is not None:
                (line, column), (other_line, other_column) = first, key.position
                self.mistakes.append(
                    Mistake(key.position, owner, (key.text,), _duplicate(line, column, other_line, other_column))
                )
            elif key.plain and key.text == _MERGE:
                merge = key.position
                merged += value.items if value.items is not None else [value]
            elif problem := _key_problem(key):
                self.mistakes.append(Mistake(key.position, owner, (), problem))
            else:
                pairs[key.text] = (key.position, value)
        for source in merged:
            if source.pairs is None:
                self._note(source.position, "only a mapping can be merged: write <<: *anchor", owner)
                continue
            self._counted(len(source.pairs), source.position)
            pairs = {**pairs, **{name: pair for name, pair in source.pairs.items() if name not in pairs}}
        return pairs

    def _note(self, position: Position, text: str, owner: Position | None = None) -> None:
        self.mistakes.append(Mistake(position, owner or position, (), text))

    def _counted(self, more: int, position: Position) -> None:
        self._count += more
        if self._count > MAX_VALUES:
            self._stop(position, f"more than {MAX_VALUES} values: move long parts into separate files")

    def _stop(self, position: Position, text: str) -> NoReturn:
        raise WorkflowFileError([Problem(*position, "", text, self._file)])


def _duplicate(line: int, column: int, other_line: int, other_column: int) -> str:
    return (
        f"is defined twice, in line {line}, column {column} and in line {other_line}, column {other_column}: keep one"
    )


def _key_problem(key: Node) -> str:
    if key.items is not None or key.pairs is not None:
        return 'a key must be text: put braces and brackets in quotes, as in "{name}"'
    try:
        value = resolved(key.text) if key.plain else key.text
    except ValueError:
        value = 0
    if value is None:
        return "there is no key before the colon"
    if not isinstance(value, str):
        return f'the key {key.text} is not text: write "{key.text}" in quotes'
    problem = text_problem(value)
    return f"a key {problem}" if problem else ""


def _events(text: str, file: str) -> Iterator[Any]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    last: Position = (1, 1)
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            last = _position(event)
            yield event
    except MarkedYAMLError as error:
        line, column, sentence = in_words(error)
        raise WorkflowFileError([Problem(line, column, "", sentence, file)]) from error
    except (YAMLError, ValueError, OverflowError) as error:
        # The parser does not say where an invalid escape such as "\Uffffffff" is.
        sentence = "not valid YAML: this value or the next one has an escape that is not a character"
        raise WorkflowFileError([Problem(*last, "", sentence, file)]) from error


def _position(event: Any) -> Position:
    return event.start_mark.line + 1, event.start_mark.column + 1
