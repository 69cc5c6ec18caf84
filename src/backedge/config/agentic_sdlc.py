"""Reads `.ai-sdlc.json` or `.agentic-sdlc.json` beside a workflow file, and reports every mistake with its location."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from backedge.compat.agentic_sdlc import FILES, MAX_ITERATIONS, ON_BREACH, SECTION, RefinementSettings, settings_of
from backedge.config.check import flaws_of
from backedge.config.pieces import choice, flag, number, record
from backedge.config.problems import Flaw, Problem, WorkflowFileError
from backedge.config.yaml import Document, loaded
from backedge.core.suggestions import closest

MOST_BYTES = 1024 * 1024
_SCHEMA = record(
    "How work is refined.",
    {
        MAX_ITERATIONS: number("The most refinements of a story.", least=0, whole=True),
        "escalateOnMaxAttempts": choice("What happens to a story that reaches it.", *ON_BREACH),
        "enableCircuitBreaker": flag("Whether there is such a limit."),
    },
)


def refinement_in(folder: Path) -> tuple[RefinementSettings, tuple[Problem, ...]] | None:
    """The settings in the file beside a workflow file, and notes on the keys that are not used here; None if there is
    no such file. Raises WorkflowFileError, also if there are two files that differ."""
    found = {name: _settings(folder / name) for name in FILES if os.path.isfile(folder / name)}
    if len({settings for settings, _ in found.values()}) > 1:
        one, other = found
        raise _wrong(one, f"its {SECTION} differs from that of {other}: keep one of the two files")
    notes = tuple(note for _, each in found.values() for note in each)
    return next(((settings, notes) for settings, _ in found.values()), None)


def _settings(path: Path) -> tuple[RefinementSettings, tuple[Problem, ...]]:
    text, value = _read(path)
    document = _placed(text, path.name)
    flaws = list(_flaws(value))
    twice = [each for each in document.problems if each.where.startswith(SECTION)]
    if flaws or twice:
        raise WorkflowFileError(sorted({*twice, *map(document.problem, flaws)}))
    unused = [Flaw((key,), "is not used here", at_key=True) for key in value if key != SECTION]
    return settings_of(value), tuple(map(document.problem, unused))


def _read(path: Path) -> tuple[str, Any]:
    try:
        with path.open("rb") as file:
            text = file.read(MOST_BYTES).decode("utf-8-sig")
        return text, json.loads(text)
    except json.JSONDecodeError as error:
        raise _wrong(path.name, f"is not JSON: {error.msg}: correct it", error.lineno, error.colno) from None
    except (OSError, ValueError, RecursionError) as error:
        raise _wrong(path.name, f"cannot be read: {error}: correct it, or remove the file") from None


def _placed(text: str, name: str) -> Document:
    """The document with the location of each key: JSON is YAML, except for its tabs, which become spaces."""
    try:
        return loaded(text.replace("\t", " ").encode(), name)
    except WorkflowFileError:
        return Document(None, name)


def _flaws(value: Any) -> list[Flaw]:
    if not isinstance(value, dict):
        return [Flaw((), 'expected {"refinement": {…}}: correct it, or remove the file')]
    if SECTION in value:
        return list(flaws_of(value[SECTION], _SCHEMA, trail=(SECTION,)))
    slips = [key for key in value if closest(key, [SECTION], 0.8)]
    return [Flaw((key,), f"unknown key: did you mean {SECTION!r}?", at_key=True) for key in slips]


def _wrong(name: str, text: str, line: int = 1, column: int = 1) -> WorkflowFileError:
    return WorkflowFileError([Problem(line, column, "", text, name)])
