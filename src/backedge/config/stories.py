"""How stories are worked on: `stories` of the workflow file, and .agentic-sdlc.json beside it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backedge.config.problems import Problem, WorkflowFileError
from backedge.config.source import Source
from backedge.core.near import nearest

FOLDER = "stories"
OTHER_FILE = ".agentic-sdlc.json"
CREATE_PR = "create_pr"
ON_BREACH = ("manual", "error", "skip")
MOST_BYTES = 1024 * 1024


@dataclass(frozen=True)
class StoriesSpec:
    """Where the stories are, and what becomes of those that do not converge."""

    folder: Path
    declared: bool = False
    """The project says that it has stories; else the folder has to show it."""
    worktree: bool = False
    on_breach: str = "manual"
    circuit_breaker: bool = True
    max_refinements: int | None = None
    """Of .agentic-sdlc.json; None where the limits of the workflow hold."""


def stories_of(source: Source) -> StoriesSpec:
    """The stories of a project, as its files say. Raises WorkflowFileError for an .agentic-sdlc.json that is wrong."""
    given: Mapping[str, Any] = source.value.get("stories") or {}
    other = _other(source.folder / OTHER_FILE)
    folder = source.path(("stories", "folder"), given.get("folder", FOLDER), "folder")
    own_breach = source.value.get("on_breach")
    own_breach = own_breach if own_breach in ON_BREACH else None
    return StoriesSpec(
        folder=folder or source.folder / FOLDER,
        declared="stories" in source.value or other is not None,
        worktree=given.get("worktree", False),
        on_breach=given.get("on_breach") or own_breach or (other or {}).get("escalateOnMaxAttempts", "manual"),
        circuit_breaker=given.get("circuit_breaker", (other or {}).get("enableCircuitBreaker", True)),
        max_refinements=(other or {}).get("maxIterations") if not _bounded(source) else None,
    )


def with_last_step(value: dict[str, Any]) -> str | None:
    """Add the step that ends a story: it makes a pull request of what all others have made. Returns its name, or None
    if there is none to add."""
    stories, steps = value.get("stories"), value.get("steps")
    command = stories.get(CREATE_PR) if isinstance(stories, dict) else None
    if not command or not steps or CREATE_PR in steps:
        return None
    makers = [name for name, step in steps.items() if not step.get("reviews") and not step.get("tests")]
    steps[CREATE_PR] = {"phase": CREATE_PR, "needs": makers, "run": command, "writes": []}
    return CREATE_PR


def _bounded(source: Source) -> bool:
    return "rounds_per_loop" in (source.value.get("limits") or {})


def _other(path: Path) -> dict[str, Any] | None:
    """The part of .agentic-sdlc.json that says how work is refined; None if there is no such file."""
    if not os.path.isfile(path):
        return None
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(MOST_BYTES).decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        raise _wrong(path, f"is not JSON: {error.msg}: correct it", error.lineno, error.colno) from None
    except (OSError, ValueError, RecursionError) as error:
        raise _wrong(path, f"cannot be read: {error}: correct it, or remove the file") from None
    refinement = found.get("refinement", {}) if isinstance(found, dict) else None
    if not isinstance(refinement, dict):
        raise _wrong(path, 'expected {"refinement": {…}}: correct it, or remove the file')
    most = refinement.get("maxIterations")
    if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 0):
        raise _wrong(path, f"refinement.maxIterations is {most!r}: expected a whole number, 0 or more")
    word = refinement.get("escalateOnMaxAttempts", "manual")
    if word not in ON_BREACH:
        raise _wrong(path, f"refinement.escalateOnMaxAttempts is {word!r}: {nearest(word, ON_BREACH)}")
    breaker = refinement.get("enableCircuitBreaker", True)
    if not isinstance(breaker, bool):
        raise _wrong(path, f"refinement.enableCircuitBreaker is {breaker!r}: expected true or false")
    return refinement


def _wrong(path: Path, text: str, line: int = 1, column: int = 1) -> WorkflowFileError:
    return WorkflowFileError([Problem(line, column, "", text, path.name)])
