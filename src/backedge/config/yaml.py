"""Loads YAML safely: plain values, with the position of each in the file.

Only the events of the parser are used, so that no tag creates an object. Aliases and merge keys are expanded here, up to a
maximum depth and number.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from backedge.config.nodes import MAX_DEPTH, MAX_VALUES, Composer, Node, Position
from backedge.config.problems import FILE_NAME, Flaw, Problem, Trail, WorkflowFileError, shown_trail
from backedge.config.scalars import resolved, text_problem
from backedge.config.text import decoded
from backedge.core.value import Json

MAX_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Document:
    """The values of a file, and their positions."""

    value: Json
    file: str
    problems: tuple[Problem, ...] = ()
    """Problems after which the rest could still be read: a duplicate key, a tag, a number that is not finite."""
    keys: dict[Trail, Position] = field(default_factory=dict, repr=False)
    values: dict[Trail, Position] = field(default_factory=dict, repr=False)
    texts: dict[Trail, str] = field(default_factory=dict, repr=False)

    def position(self, trail: Trail, at_key: bool = False) -> Position:
        """The position of a value or its key; for a value that is not in the file, that of its parent's key."""
        if trail in self.values and not (at_key and trail in self.keys):
            return self.values[trail]
        while trail and trail not in self.keys:
            trail = trail[:-1]
        return self.keys.get(trail) or self.values.get((), (1, 1))

    def written(self, trail: Trail) -> str:
        """A scalar exactly as the file has it: 3.10, not 3.1."""
        return self.texts.get(trail, "")

    def problem(self, flaw: Flaw) -> Problem:
        return Problem(*self.position(flaw.trail, flaw.at_key), shown_trail(flaw.trail), flaw.text, self.file)


def loaded(data: bytes, file: str = FILE_NAME) -> Document:
    """A YAML file as plain values with their positions. Raises WorkflowFileError if it cannot be read at all."""
    composer = Composer(decoded(data, MAX_BYTES, file), file)
    root = composer.document()
    builder = _Builder(file)
    value = None if root is None else builder.value(root, ())
    trails = {position: trail for trail, position in reversed(builder.values.items())}
    found = [
        Problem(*mistake.position, shown_trail((*trails.get(mistake.owner, ()), *mistake.key)), mistake.text, file)
        for mistake in composer.mistakes
    ]
    return Document(value, file, (*found, *builder.problems), builder.keys, builder.values, builder.texts)


class _Builder:
    """Turns nodes into plain values. An alias gives its value a second trail, with the position of the original."""

    def __init__(self, file: str) -> None:
        self._file = file
        self.problems: list[Problem] = []
        self.keys: dict[Trail, Position] = {}
        self.values: dict[Trail, Position] = {}
        self.texts: dict[Trail, str] = {}

    def value(self, node: Node, trail: Trail) -> Json:
        if len(trail) > MAX_DEPTH or len(self.values) >= MAX_VALUES:
            much = f"nested more than {MAX_DEPTH} deep" if len(trail) > MAX_DEPTH else f"more than {MAX_VALUES} values"
            raise WorkflowFileError([self._problem(node, trail[:3], f"{much} once aliases are expanded: use fewer")])
        # An empty value has the position of its key: the parser reports that of the next value.
        self.values[trail] = self.keys.get(trail, node.position) if node.plain and not node.text else node.position
        if node.items is not None:
            return [self.value(item, (*trail, index)) for index, item in enumerate(node.items)]
        if node.pairs is not None:
            made = {}
            for name, (position, value) in node.pairs.items():
                self.keys[*trail, name] = position
                made[name] = self.value(value, (*trail, name))
            return made
        return self._scalar(node, trail)

    def _scalar(self, node: Node, trail: Trail) -> Json:
        self.texts[trail] = node.text
        sentence = text_problem(node.text)
        if not sentence:
            try:
                return resolved(node.text) if node.plain else node.text
            except ValueError as error:
                sentence = str(error)
        self.problems.append(self._problem(node, trail, sentence))
        return None

    def _problem(self, node: Node, trail: Trail, text: str) -> Problem:
        return Problem(*node.position, shown_trail(trail), text, self._file)
