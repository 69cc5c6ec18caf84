"""One story of the backlog: its file, and the state of its run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from backedge.compat.agentic_sdlc import CREATE_PR
from backedge.core.value import replace
from backedge.core.workflow.definition import Workflow
from backedge.core.workflow.graph import graph_of
from backedge.stories.rules.assessor import Story
from backedge.stories.rules.dependencies import Hold
from backedge.stories.rules.raised import Raised
from backedge.stories.rules.refinement import phase_of
from backedge.stories.rules.story_view import StoryView, as_story
from backedge.stories.rules.summary import StorySummary

RUN = "s-"
GENERATION = "~"
"""Separates the id of a story from the number of its run. After a cancelled run, the story gets a new one."""


@dataclass(frozen=True)
class Entry:
    """A story of the backlog."""

    file: str
    name: str
    """The path that messages show."""
    summary: StorySummary | None = None
    trouble: str = ""
    run: str = ""
    """The newest run of the story; empty before the first one."""
    view: StoryView | None = None
    skipped: bool = False
    """The story reached a limit, and the project skips such stories."""
    done_before: Mapping[str, bool] = field(default_factory=dict)
    """The phases for which the workflow has no steps."""
    raised: Raised | None = None
    """What a person has changed to let it continue, if it is blocked."""
    remark: str = ""
    """Why something that a person has changed does not apply."""
    hold: Hold | None = None
    """What its dependencies say, if they are not done."""

    @property
    def path(self) -> Path:
        return Path(self.file)

    @property
    def slug(self) -> str:
        return os.path.basename(self.file).removesuffix(".md")

    @property
    def id(self) -> str:
        """Its id; its path if the id is unknown or not unique."""
        return self.summary.id if self.summary and not self.trouble else self.name

    @property
    def record_id(self) -> str:
        """The id under which backedge keeps what it knows of the story: the one that its run started with, because a
        person may write the id in another case later."""
        return story_id(self.run) if self.run else self.id

    @property
    def title(self) -> str:
        return self.summary.title if self.summary else self.slug

    @property
    def next_run(self) -> str:
        """The id for the next run of the story."""
        if not self.run:
            return RUN + self.id
        base, _, number = self.run.partition(GENERATION)
        return f"{base}{GENERATION}{int(number or 1) + 1}"

    @cached_property
    def story(self) -> Story:
        """The story for the assessor."""
        hold, story = self.hold, self.unheld
        return replace(
            story,
            unblocks=self.raised.why if self.raised else "",
            waits_for=hold.reason if hold and not hold.mistake else "",
            misplanned=hold.reason if hold and hold.mistake else "",
        )

    @cached_property
    def unheld(self) -> Story:
        """The story without its dependencies."""
        if self.summary is None or self.trouble:
            return Story(self.id, self.title, trouble=self.trouble or "cannot be read")
        summary = self.summary
        if self.view is not None:
            return as_story(self.view, summary.id, summary.title, summary.priority)
        # Work from another system is not in the journal, so the story starts at its first step.
        status = "ready" if summary.status == "in-progress" else summary.status
        return Story(
            summary.id,
            summary.title,
            summary.priority,
            status,
            research_complete=self.done_before.get("research", False),
            plan_complete=self.done_before.get("plan", False),
            blocked_reason=summary.blocked_reason,
        )


def story_id(run: str) -> str:
    """The id of the story that a run works on."""
    return run.removeprefix(RUN).partition(GENERATION)[0]


def phases_without_steps(workflow: Workflow) -> dict[str, bool]:
    """The phases that are complete from the start because no step does them."""
    graph = graph_of(workflow)
    known = {phase_of(graph, step.name) for step in workflow.steps if step.name != CREATE_PR}
    research = "research" not in known
    return {"research": research, "plan": research and "plan" not in known}
