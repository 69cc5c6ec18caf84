"""The file `.agentic-sdlc.json` of the system that many stories come from: the part that says how work is refined."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backedge.config.check import flaws_of
from backedge.config.pieces import choice, flag, number, record
from backedge.config.problems import Flaw, Problem, WorkflowFileError
from backedge.config.yaml import Document, loaded
from backedge.core.suggestions import closest

FILE = ".agentic-sdlc.json"
ON_BREACH = ("manual", "error", "skip")
MOST_BYTES = 1024 * 1024
PART = "refinement"
_SCHEMA = record(
    "How work is refined.",
    {
        "maxIterations": number("The most refinements of a story.", least=0, whole=True),
        "escalateOnMaxAttempts": choice("What becomes of a story that reaches it.", *ON_BREACH),
        "enableCircuitBreaker": flag("Whether there is such a limit."),
    },
)


@dataclass(frozen=True)
class Refinement:
    """What that file says of us; empty where it says nothing."""

    there: bool = False
    max_iterations: int | None = None
    on_breach: str | None = None
    circuit_breaker: bool | None = None
    notes: tuple[Problem, ...] = ()
    """Keys that the other system has and this one does not use."""


def refinement_in(folder: Path) -> Refinement:
    """The refinement of a project, as the file beside its workflow file says. Raises WorkflowFileError."""
    path = folder / FILE
    if not os.path.isfile(path):
        return Refinement()
    text, value = _read(path)
    document = _placed(text)
    flaws = list(_flaws(value))
    twice = [each for each in document.problems if each.where.startswith(PART)]
    if flaws or twice:
        raise WorkflowFileError(sorted({*twice, *map(document.problem, flaws)}))
    given: Mapping[str, Any] = value.get(PART, {})
    most = given.get("maxIterations")
    return Refinement(
        True,
        None if most is None else int(most),
        given.get("escalateOnMaxAttempts"),
        given.get("enableCircuitBreaker"),
        tuple(document.problem(Flaw((key,), "is not used here", at_key=True)) for key in value if key != PART),
    )


def _read(path: Path) -> tuple[str, Any]:
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES).decode("utf-8-sig")
        return text, json.loads(text)
    except json.JSONDecodeError as error:
        raise _wrong(f"is not JSON: {error.msg}: correct it", error.lineno, error.colno) from None
    except (OSError, ValueError, RecursionError) as error:
        raise _wrong(f"cannot be read: {error}: correct it, or remove the file") from None


def _placed(text: str) -> Document:
    """Where everything stands: JSON is YAML, but for its tabs, which stand for spaces there."""
    try:
        return loaded(text.replace("\t", " ").encode(), FILE)
    except WorkflowFileError:
        return Document(None, FILE)


def _flaws(value: Any) -> list[Flaw]:
    if not isinstance(value, dict):
        return [Flaw((), 'expected {"refinement": {…}}: correct it, or remove the file')]
    if PART in value:
        return list(flaws_of(value[PART], _SCHEMA, trail=(PART,)))
    slips = [key for key in value if closest(key, [PART], 0.8)]
    return [Flaw((key,), f"unknown key: did you mean {PART!r}?", at_key=True) for key in slips]


def _wrong(text: str, line: int = 1, column: int = 1) -> WorkflowFileError:
    return WorkflowFileError([Problem(line, column, "", text, FILE)])
