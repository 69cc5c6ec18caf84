"""The events of the YAML parser as a tree of nodes: aliases looked up, merge keys merged, keys checked."""

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

Place = tuple[int, int]
"""Line and column, from 1."""


@dataclass
class Node:
    """A scalar with its text, a list with its items or a mapping with its pairs."""

    place: Place
    text: str = ""
    plain: bool = False
    """A scalar without quotes or tag: it may be a number, true, false or nothing."""
    items: list[Node] | None = None
    pairs: dict[str, tuple[Place, Node]] | None = None


class Slip(NamedTuple):
    """A mistake that does not keep the rest from being read."""

    place: Place
    owner: Place
    """Where the value stands that it is in."""
    key: tuple[str, ...]
    text: str


class Composer:
    """Events to nodes. An anchor is known once its value is complete, so nothing can contain itself."""

    def __init__(self, text: str, file: str) -> None:
        self._events, self._file = _events(text, file), file
        self._anchors: dict[str, Node] = {}
        self._count = 0
        self.slips: list[Slip] = []

    def document(self) -> Node | None:
        """The one document of the file; None if there is nothing in it."""
        root: Node | None = None
        for event in self._events:
            kind = type(event).__name__
            if kind == "DocumentStartEvent" and root is not None:
                self._stop(_place(event), "a second document starts here: a workflow file has one")
            if kind in ("ScalarEvent", "AliasEvent", "MappingStartEvent", "SequenceStartEvent"):
                root = self._node(event, 0)
        return root

    def _node(self, event: Any, depth: int) -> Node:
        place = _place(event)
        if depth > MAX_DEPTH:
            self._stop(place, f"nested more than {MAX_DEPTH} deep: make it flatter")
        self._counted(1, place)
        kind = type(event).__name__
        if kind == "AliasEvent":
            return self._aliased(event.anchor, place)
        if event.tag is not None:
            self._slip(
                place, f"the tag {quoted(str(event.tag))} is not used here: put text that starts with ! in quotes"
            )
        if kind == "ScalarEvent":
            node = Node(place, text=event.value, plain=event.style is None and event.tag is None)
        elif kind == "SequenceStartEvent":
            node = Node(place, items=list(self._children("SequenceEndEvent", depth)))
        else:
            flat = list(self._children("MappingEndEvent", depth))
            node = Node(place, pairs=self._pairs(place, list(zip(flat[::2], flat[1::2], strict=True))))
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _aliased(self, anchor: str, place: Place) -> Node:
        known = self._anchors.get(anchor)
        if known is None:
            self._slip(place, f"no anchor &{anchor} stands before this: put text that starts with * in quotes")
        return known or Node(place, text=f"*{anchor}")

    def _children(self, end: str, depth: int) -> Iterator[Node]:
        for event in self._events:
            if type(event).__name__ == end:
                return
            yield self._node(event, depth + 1)

    def _pairs(self, owner: Place, written: list[tuple[Node, Node]]) -> dict[str, tuple[Place, Node]]:
        pairs: dict[str, tuple[Place, Node]] = {}
        merged: list[Node] = []
        merge: Place | None = None
        for key, value in written:
            first = merge if key.plain and key.text == _MERGE else pairs[key.text][0] if key.text in pairs else None
            if first is not None:
                (line, column), (again, there) = first, key.place
                self.slips.append(Slip(key.place, owner, (key.text,), _twice(line, column, again, there)))
            elif key.plain and key.text == _MERGE:
                merge = key.place
                merged += value.items if value.items is not None else [value]
            elif problem := _key_problem(key):
                self.slips.append(Slip(key.place, owner, (), problem))
            else:
                pairs[key.text] = (key.place, value)
        for source in merged:
            if source.pairs is None:
                self._slip(source.place, "only a mapping can be merged: write <<: *anchor", owner)
                continue
            self._counted(len(source.pairs), source.place)
            pairs = {**pairs, **{name: pair for name, pair in source.pairs.items() if name not in pairs}}
        return pairs

    def _slip(self, place: Place, text: str, owner: Place | None = None) -> None:
        self.slips.append(Slip(place, owner or place, (), text))

    def _counted(self, more: int, place: Place) -> None:
        self._count += more
        if self._count > MAX_VALUES:
            self._stop(place, f"more than {MAX_VALUES} values: move what is long into files of its own")

    def _stop(self, place: Place, text: str) -> NoReturn:
        raise WorkflowFileError([Problem(*place, "", text, self._file)])


def _twice(line: int, column: int, again: int, there: int) -> str:
    return f"is here twice, in line {line}, column {column} and in line {again}, column {there}: keep one"


def _key_problem(key: Node) -> str:
    if key.items is not None or key.pairs is not None:
        return 'a key must be text: put braces and brackets in quotes, as in "{name}"'
    try:
        value = resolved(key.text) if key.plain else key.text
    except ValueError:
        value = 0
    if value is None:
        return "a key is missing before the colon"
    if not isinstance(value, str):
        return f'the key {key.text} is not text: write "{key.text}" in quotes'
    problem = text_problem(value)
    return f"a key {problem}" if problem else ""


def _events(text: str, file: str) -> Iterator[Any]:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    last: Place = (1, 1)
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            last = _place(event)
            yield event
    except MarkedYAMLError as error:
        line, column, sentence = in_words(error)
        raise WorkflowFileError([Problem(line, column, "", sentence, file)]) from error
    except (YAMLError, ValueError, OverflowError) as error:
        # An escape such as "\Uffffffff" names no character, and the parser does not say where.
        sentence = "not valid YAML: an escape in this or the next value names no character"
        raise WorkflowFileError([Problem(*last, "", sentence, file)]) from error


def _place(event: Any) -> Place:
    return event.start_mark.line + 1, event.start_mark.column + 1
