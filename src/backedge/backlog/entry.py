"""One story: its file, and where its run stands."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from backedge.adapters.stories import Glance
from backedge.analytics.refinement import Iteration, phase_of
from backedge.analytics.story_view import CREATE_PR, StoryView, assessed
from backedge.core.assessor import Story
from backedge.core.workflow.definition import Workflow
from backedge.core.workflow.graph import graph_of

RUN = "s-"
GENERATION = "~"
"""Between the id of a story and the number of its run: a cancelled run cannot go on, the next one does."""


class Written(msgspec.Struct, omit_defaults=True):
    """What we know of a story besides its file: what we wrote there last, and the run as it was then."""

    view: StoryView
    fields: dict[str, Any] = {}
    notes: int = 0
    earlier: dict[str, list[Any]] = {}
    """The refinements and reviews that the story had before its run: of another system, or of a run that was cancelled."""


@dataclass(frozen=True)
class Entry:
    """A story of the backlog."""

    file: str
    name: str
    """The file, as people are told of it."""
    glance: Glance | None = None
    trouble: str = ""
    run: str = ""
    """The run that works on it; empty if there was none yet."""
    view: StoryView | None = None
    skipped: bool = False
    """It hit a limit, and the project says to pass such stories over."""
    done_before: Mapping[str, bool] = field(default_factory=dict)
    """The phases that the workflow has no steps for."""

    @property
    def path(self) -> Path:
        return Path(self.file)

    @property
    def slug(self) -> str:
        return os.path.basename(self.file).removesuffix(".md")

    @property
    def id(self) -> str:
        """Its id; its file, for one whose id is not known or not its own."""
        return self.glance.id if self.glance and not self.trouble else self.name

    @property
    def title(self) -> str:
        return self.glance.title if self.glance else self.slug

    @property
    def next_run(self) -> str:
        """The id of the run that comes after those there were."""
        if not self.run:
            return RUN + self.id
        base, _, number = self.run.partition(GENERATION)
        return f"{base}{GENERATION}{int(number or 1) + 1}"

    @cached_property
    def story(self) -> Story:
        """The story for the assessor."""
        if self.glance is None or self.trouble:
            return Story(self.id, self.title, trouble=self.trouble or "cannot be read")
        told = self.glance
        if self.view is not None:
            return assessed(self.view, told.id, told.title, told.priority)
        # What somebody else had begun is not in the journal: it starts at its first step.
        status = "ready" if told.status == "in-progress" else told.status
        return Story(
            told.id,
            told.title,
            told.priority,
            status,
            research_complete=self.done_before.get("research", False),
            plan_complete=self.done_before.get("plan", False),
            blocked_reason=told.blocked_reason,
        )


def phases_without_steps(workflow: Workflow) -> dict[str, bool]:
    """Which phases of a story are complete from the start, because no step does them."""
    graph = graph_of(workflow)
    known = {phase_of(graph, step.name) for step in workflow.steps if step.name != CREATE_PR}
    research = "research" not in known
    return {"research": research, "plan": research and "plan" not in known}


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
)
"""What the journal owns of a story's front matter."""


def fields_of(view: StoryView) -> dict[str, Any]:
    """What a story's front matter says of its run, in this order; None is left out."""
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
                "timestamp": date(review.at),
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
        "blocked_at": date(view.blocked_at) if view.blocked_at is not None else None,
        "diagnostic": view.diagnostic or None,
    }


def iteration_record(iteration: Iteration) -> dict[str, Any]:
    """A rework as front matter tells it."""
    return {
        "iteration": iteration.iteration,
        "agentType": iteration.phase,
        "startedAt": date(iteration.at),
        "reviewFeedback": iteration.feedback,
        "result": iteration.result,
    }


def note_of(iteration: Iteration) -> str:
    """What the text of a story says of a rework."""
    lines = [f"### Refinement Iteration {iteration.iteration}", ""]
    lines.append(f"{date(iteration.at)}, {iteration.phase}: {iteration.feedback or 'done again'}")
    if iteration.details:
        lines += ["", *(each if each.startswith("  ") else f"- {each}" for each in iteration.details)]
    return "\n".join(lines) + "\n"


def date(at: float) -> str:
    """A time as people write it in front matter."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
