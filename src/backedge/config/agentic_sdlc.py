"""The file `.agentic-sdlc.json`, which projects with story files may already have: the part about refinement."""

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
        "escalateOnMaxAttempts": choice("What happens to a story that reaches it.", *ON_BREACH),
        "enableCircuitBreaker": flag("Whether that limit is on."),
    },
)


@dataclass(frozen=True)
class Refinement:
    """The part of the file that backedge uses; None for what the file does not say."""

    there: bool = False
    max_iterations: int | None = None
    on_breach: str | None = None
    circuit_breaker: bool | None = None
    notes: tuple[Problem, ...] = ()
    """Keys of the file that backedge does not use."""


def refinement_in(folder: Path) -> Refinement:
    """The refinement settings from the file beside the workflow file. Raises WorkflowFileError."""
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
    """The positions of all values. JSON is YAML, except that YAML does not allow tabs."""
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
