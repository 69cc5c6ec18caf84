"""`.ai-sdlc.json` and `.agentic-sdlc.json`: the settings for refinement in the project file of the system that many stories come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FILES = (".ai-sdlc.json", ".agentic-sdlc.json")
"""The names of the file: the present one, and the one it had before. They have the same format."""
SECTION = "refinement"
"""The only section of the file that is used here."""
ON_BREACH = ("manual", "error", "skip")
MAX_ITERATIONS = "maxIterations"
CREATE_PR = "create_pr"
"""The name of the step that ends a story."""


@dataclass(frozen=True)
class RefinementSettings:
    """The settings of a project; None for each that its file leaves out."""

    max_iterations: int | None = None
    on_breach: str | None = None
    circuit_breaker: bool | None = None


def settings_of(document: Mapping[str, Any]) -> RefinementSettings:
    """The settings in a document that has been checked against its schema."""
    section: Mapping[str, Any] = document.get(SECTION, {})
    most = section.get(MAX_ITERATIONS)
    return RefinementSettings(
        None if most is None else int(most), section.get("escalateOnMaxAttempts"), section.get("enableCircuitBreaker")
    )
