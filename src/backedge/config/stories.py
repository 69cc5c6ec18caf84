"""The settings for stories: `stories` in the workflow file, and .agentic-sdlc.json beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backedge.compat.agentic_sdlc import CREATE_PR, ON_BREACH, RefinementSettings
from backedge.config.agentic_sdlc import refinement_in
from backedge.config.source import Source

FOLDER = "stories"


@dataclass(frozen=True)
class StoriesSpec:
    """Where the stories are, and what happens to those that do not converge."""

    folder: Path
    declared: bool = False
    """The project file says that there are stories; if False, the folder shows whether there are."""
    worktree: bool = False
    on_breach: str = "manual"
    circuit_breaker: bool = True
    max_refinements: int | None = None
    """From .agentic-sdlc.json; None where the limits of the workflow apply."""
    max_iterations: int | None = None
    """From the command line: it comes before all others."""


def stories_of(source: Source) -> StoriesSpec:
    """The settings of a project. Raises WorkflowFileError for mistakes in .agentic-sdlc.json."""
    given: Mapping[str, Any] = source.value.get("stories") or {}
    found = refinement_in(source.folder)
    other, notes = found or (RefinementSettings(), ())
    source.notes += notes
    folder = source.path(("stories", "folder"), given.get("folder", FOLDER), "folder")
    own_breach = source.value.get("on_breach")
    own_breach = own_breach if own_breach in ON_BREACH else None
    return StoriesSpec(
        folder=folder or source.folder / FOLDER,
        declared="stories" in source.value or found is not None,
        worktree=given.get("worktree", False),
        on_breach=given.get("on_breach") or own_breach or other.on_breach or "manual",
        circuit_breaker=given.get("circuit_breaker", other.circuit_breaker is not False),
        max_refinements=other.max_iterations if not _bounded(source) else None,
    )


def with_last_step(value: dict[str, Any]) -> str | None:
    """Add the step that ends a story: it makes a pull request of the work of all others. Returns its name, or None if
    there is none to add."""
    stories, steps = value.get("stories"), value.get("steps")
    command = stories.get(CREATE_PR) if isinstance(stories, dict) else None
    if not command or not steps or CREATE_PR in steps:
        return None
    makers = [name for name, step in steps.items() if not step.get("reviews") and not step.get("tests")]
    steps[CREATE_PR] = {"phase": CREATE_PR, "needs": makers, "run": command, "writes": []}
    return CREATE_PR


def _bounded(source: Source) -> bool:
    return "rounds_per_loop" in (source.value.get("limits") or {})
