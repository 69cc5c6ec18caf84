"""Safe loading of YAML: plain values, and where each of them stands in the file.

Only the events of the parser are used: no tag is ever followed and no object is made. Aliases and merge keys are
expanded here, within a bound on depth and number.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from backedge.config.nodes import MAX_DEPTH, MAX_VALUES, Composer, Node, Place
from backedge.config.problems import FILE_NAME, Flaw, Problem, Trail, WorkflowFileError, shown_trail
from backedge.config.scalars import resolved, text_problem
from backedge.config.text import decoded
from backedge.core.value import Json

MAX_BYTES = 1024 * 1024


@dataclass(frozen=True)
class Document:
    """The values of a file, and their places."""

    value: Json
    file: str
    problems: tuple[Problem, ...] = ()
    """What is wrong but did not keep the rest from being read: a key twice, a tag, a number that is not finite."""
    keys: dict[Trail, Place] = field(default_factory=dict, repr=False)
    values: dict[Trail, Place] = field(default_factory=dict, repr=False)
    texts: dict[Trail, str] = field(default_factory=dict, repr=False)

    def place(self, trail: Trail, at_key: bool = False) -> Place:
        """Where a value or its key stands; for what is not in the file, where its parent's key does."""
        if trail in self.values and not (at_key and trail in self.keys):
            return self.values[trail]
        while trail and trail not in self.keys:
            trail = trail[:-1]
        return self.keys.get(trail) or self.values.get((), (1, 1))

    def written(self, trail: Trail) -> str:
        """A scalar as it stands in the file: 3.10, not 3.1."""
        return self.texts.get(trail, "")

    def problem(self, flaw: Flaw) -> Problem:
        return Problem(*self.place(flaw.trail, flaw.at_key), shown_trail(flaw.trail), flaw.text, self.file)


def loaded(data: bytes, file: str = FILE_NAME) -> Document:
    """A YAML file as plain values with their places. Raises WorkflowFileError if it cannot be read at all."""
    composer = Composer(decoded(data, MAX_BYTES, file), file)
    root = composer.document()
    builder = _Builder(file)
    value = None if root is None else builder.value(root, ())
    trails = {place: trail for trail, place in reversed(builder.values.items())}
    found = [
        Problem(*slip.place, shown_trail((*trails.get(slip.owner, ()), *slip.key)), slip.text, file)
        for slip in composer.slips
    ]
    return Document(value, file, (*found, *builder.problems), builder.keys, builder.values, builder.texts)


class _Builder:
    """Nodes to plain values. An alias gives its value a second trail, with the place where it is written."""

    def __init__(self, file: str) -> None:
        self._file = file
        self.problems: list[Problem] = []
        self.keys: dict[Trail, Place] = {}
        self.values: dict[Trail, Place] = {}
        self.texts: dict[Trail, str] = {}

    def value(self, node: Node, trail: Trail) -> Json:
        if len(trail) > MAX_DEPTH or len(self.values) >= MAX_VALUES:
            much = f"nested more than {MAX_DEPTH} deep" if len(trail) > MAX_DEPTH else f"more than {MAX_VALUES} values"
            raise WorkflowFileError([self._problem(node, trail[:3], f"{much} once aliases are expanded: use fewer")])
        # An empty value stands where its key does: the parser only meets it at the next one.
        self.values[trail] = self.keys.get(trail, node.place) if node.plain and not node.text else node.place
        if node.items is not None:
            return [self.value(item, (*trail, index)) for index, item in enumerate(node.items)]
        if node.pairs is not None:
            made = {}
            for name, (place, value) in node.pairs.items():
                self.keys[*trail, name] = place
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
        return Problem(*node.place, shown_trail(trail), text, self._file)
