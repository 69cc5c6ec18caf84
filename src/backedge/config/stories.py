"""The settings for stories: `stories` of the workflow file, and .agentic-sdlc.json beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backedge.config.agentic_sdlc import ON_BREACH, refinement_in
from backedge.config.source import Source

FOLDER = "stories"
CREATE_PR = "create_pr"


@dataclass(frozen=True)
class StoriesSpec:
    """Where the stories are, and what happens to those that do not converge."""

    folder: Path
    declared: bool = False
    """The project says that it has stories; otherwise it has some if the folder exists."""
    worktree: bool = False
    on_breach: str = "manual"
    circuit_breaker: bool = True
    max_refinements: int | None = None
    """From .agentic-sdlc.json; None if the limits of the workflow apply."""


def stories_of(source: Source) -> StoriesSpec:
    """The story settings of a project. Raises WorkflowFileError for a wrong .agentic-sdlc.json."""
    given: Mapping[str, Any] = source.value.get("stories") or {}
    other = refinement_in(source.folder)
    source.notes += other.notes
    folder = source.path(("stories", "folder"), given.get("folder", FOLDER), "folder")
    own_breach = source.value.get("on_breach")
    own_breach = own_breach if own_breach in ON_BREACH else None
    return StoriesSpec(
        folder=folder or source.folder / FOLDER,
        declared="stories" in source.value or other.there,
        worktree=given.get("worktree", False),
        on_breach=given.get("on_breach") or own_breach or other.on_breach or "manual",
        circuit_breaker=given.get("circuit_breaker", other.circuit_breaker is not False),
        max_refinements=other.max_iterations if not _bounded(source) else None,
    )


def with_last_step(value: dict[str, Any]) -> str | None:
    """Add the step that ends a story: it makes a pull request from the work of all other steps. Returns its name, or
    None if the file asks for none."""
    stories, steps = value.get("stories"), value.get("steps")
    command = stories.get(CREATE_PR) if isinstance(stories, dict) else None
    if not command or not steps or CREATE_PR in steps:
        return None
    makers = [name for name, step in steps.items() if not step.get("reviews") and not step.get("tests")]
    steps[CREATE_PR] = {"phase": CREATE_PR, "needs": makers, "run": command, "writes": []}
    return CREATE_PR


def _bounded(source: Source) -> bool:
    return "rounds_per_loop" in (source.value.get("limits") or {})
