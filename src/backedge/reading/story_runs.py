"""Which runs belong to stories."""

from __future__ import annotations

from backedge.project.location import Project

STORY = "s-"
"""The prefix of the runs of stories."""


def is_story(project: Project, run: str) -> bool:
    """Whether a run belongs to a story of the project."""
    if not may_be_story(run):
        return False
    from backedge.stories.backlog import is_story_run

    return is_story_run(project, run)


def may_be_story(run: str) -> bool:
    """Whether a run may belong to a story, judged by its name alone, so that other runs need not import the stories."""
    return run.startswith(STORY)
