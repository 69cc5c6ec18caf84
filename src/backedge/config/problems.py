"""The problems of a workflow file: each with its location, all of them in one error."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from backedge.core.errors import WorkflowError

Trail = tuple[str | int, ...]
"""The keys and list indices that lead to a value: ("steps", "code", "needs", 0)."""

FILE_NAME = "backedge.yaml"


@dataclass(frozen=True, order=True)
class Problem:
    """One thing to change, printed as `backedge.yaml:12:5: steps.code.nedds: unknown key: did you mean 'needs'?`.

    Lines and columns count from 1; line 0 means that it has no location in the file.
    """

    line: int
    column: int
    where: str
    text: str
    file: str = FILE_NAME

    def __str__(self) -> str:
        location = f"{self.file}:{self.line}:{self.column}: " if self.line else ""
        line = location + (f"{self.where}: " if self.where else "") + self.text
        return "".join(each if each.isprintable() else repr(each)[1:-1] for each in line)


class WorkflowFileError(WorkflowError):
    """The workflow file is wrong. `located` has the problems with their locations, `problems` the same as lines."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.located = tuple(problems)
        super().__init__(tuple(map(str, self.located)))

    def __str__(self) -> str:
        return "\n".join(self.problems)


@dataclass(frozen=True)
class Flaw:
    """A problem before its location is looked up."""

    trail: Trail
    text: str
    at_key: bool = False
    """The key is wrong, not its value."""


def shown_trail(trail: Trail) -> str:
    """A trail as users read it: steps.code.needs[0]."""
    shown = ""
    for part in trail:
        if isinstance(part, int):
            shown += f"[{part}]"
        else:
            word = part if part and part.isprintable() and not set(part) & set(" .[]:") else repr(part)
            shown += f".{word}" if shown else word
    return shown


def quoted(text: str, most: int = 40) -> str:
    """A text of the file as one short line without control characters."""
    return repr(text if len(text) <= most else text[: most - 1] + "…")
