"""The fields of front matter that the journal owns, and the note of each refinement."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from backedge.stories.rules.refinement import RefinementIteration
from backedge.stories.rules.story_view import StoryView

FIELDS = (
    "status",
    "research_complete",
    "plan_complete",
    "implementation_complete",
    "reviews_complete",
    "refinement_count",
    "refinement_iterations",
    "review_history",
    "last_error",
    "blocked_reason",
    "blocked_at",
    "diagnostic",
    "open_findings",
)
"""The fields of front matter that the journal owns."""


def fields_of(view: StoryView) -> dict[str, Any]:
    """The fields and their values, in the order of the file; None leaves a field out."""
    return {
        "status": view.status,
        "research_complete": view.research_complete,
        "plan_complete": view.plan_complete,
        "implementation_complete": view.implementation_complete,
        "reviews_complete": view.reviews_complete,
        "refinement_count": view.refinement_count,
        "refinement_iterations": [iteration_record(each) for each in view.iterations] or None,
        "review_history": [
            {
                "timestamp": iso_time(review.at),
                "decision": review.decision,
                "reviewer": review.judge,
                **({"severity": review.severity} if review.severity else {}),
                **({"feedback": review.feedback} if review.feedback else {}),
            }
            for review in view.reviews
        ]
        or None,
        "last_error": view.last_error or None,
        "blocked_reason": view.blocked_reason or None,
        "blocked_at": iso_time(view.blocked_at) if view.blocked_at is not None else None,
        "diagnostic": view.diagnostic or None,
        "open_findings": [line.strip() for line in view.findings] or None,
    }


def iteration_record(iteration: RefinementIteration) -> dict[str, Any]:
    """A refinement as an item of front matter."""
    return {
        "iteration": iteration.iteration,
        "agentType": iteration.phase,
        "startedAt": iso_time(iteration.at),
        "reviewFeedback": iteration.feedback,
        "result": iteration.result,
    }


def refinement_note(iteration: RefinementIteration) -> str:
    """The note of a refinement, for the text of the story."""
    lines = [f"### Refinement Iteration {iteration.iteration}", ""]
    lines.append(f"{iso_time(iteration.at)}, {iteration.phase}: {iteration.feedback or 'done again'}")
    if iteration.details:
        lines += ["", *(each if each.startswith("  ") else f"- {each}" for each in iteration.details)]
    return "\n".join(lines) + "\n"


def iso_time(at: float) -> str:
    """A time in ISO 8601, in UTC, to the second."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
