"""The assessor: decides what to do about each story, and in which order. Rework comes first, questions to people last.

The priority of an action is the priority of its kind plus that of the story; the lowest number goes first. The assessor
does not know runs or files, only the Story that is made from both.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from backedge.core.value import Value, replace

StoryStatus = Literal["backlog", "ready", "in-progress", "done", "blocked"]
STATUSES: tuple[StoryStatus, ...] = ("backlog", "ready", "in-progress", "done", "blocked")

StoryPhase = Literal["research", "plan", "implement"]
PHASES: tuple[StoryPhase, ...] = ("research", "plan", "implement")

Decision = Literal["APPROVED", "REJECTED", "FAILED", "RECOVERY"]
"""The result of a review. FAILED means that the reviewer broke, RECOVERY that a rework changed nothing."""

ActionKind = Literal[
    "rework", "implement", "review", "create_pr", "research", "plan", "refine", "unblock", "wait", "person"
]
NOT_OURS = ("wait", "person")
"""Actions that `run` cannot do: a story waits for others, or for a person."""

REWORK, IN_PROGRESS, REVIEW, CREATE_PR, RESEARCH, PLAN, READY, REFINE = 0, 50, 100, 150, 200, 300, 400, 500
PER_RETRY = 50
"""Added to the priority of a review for each one that broke before it."""
WAIT = 9_000
"""A story that waits for others comes after all work."""
PERSON = 10_000
UNWRITABLE = 10_001
"""A story whose file cannot be read or written comes last of all."""

MAX_REFINEMENTS = 3
MAX_RECOVERIES = 10


class Counts(Value, frozen=True):
    """How many refinements and recoveries count towards the limits of a story."""

    refinements: int = 0
    recoveries: int = 0


class Story(Value, frozen=True):
    """A story as the assessor sees it."""

    id: str
    title: str = ""
    priority: int = 0
    status: StoryStatus = "backlog"
    research_complete: bool = False
    plan_complete: bool = False
    implementation_complete: bool = False
    reviews_complete: bool = False
    reviews: tuple[Decision, ...] = ()
    """Oldest first."""
    target: StoryPhase = "implement"
    """The phase that the latest rejection sends back."""
    feedback: str = ""
    """The feedback of the latest rejection."""
    reworking: bool = False
    """The rework for its latest rejection has started and is already counted."""
    refinement_count: int = 0
    max_refinements: int | None = MAX_REFINEMENTS
    """None if the circuit breaker is off."""
    recoveries: int = 0
    max_recoveries: int | None = MAX_RECOVERIES
    blocked_reason: str = ""
    waiting: str = ""
    """The question that the story waits for a person to answer."""
    trouble: str = ""
    """Why its file cannot be read or written."""
    unblocks: str = ""
    """What lets a blocked story continue, if a person has changed something."""
    waits_for: str = ""
    """The stories that must be done first."""
    misplanned: str = ""
    """Why its dependencies can never be done."""

    @property
    def rejected(self) -> bool:
        """Whether the latest review that had a result rejected the story."""
        return next((each for each in reversed(self.reviews) if each in ("APPROVED", "REJECTED")), "") == "REJECTED"

    @property
    def broken_reviews(self) -> int:
        """How many of the latest reviews broke in a row."""
        count = 0
        for decision in reversed(self.reviews):
            if decision != "FAILED":
                break
            count += 1
        return count


class Action(Value, frozen=True):
    """One thing to do about one story."""

    story: str
    kind: ActionKind
    priority: int
    reason: str
    target: StoryPhase | None = None
    feedback: str = ""
    iteration: int = 0


def counted(reviews: Iterable[Decision]) -> Counts:
    """Count the refinements (rejections) and the recoveries. A reviewer that broke does not count, and an approval resets
    both to 0."""
    refinements = recoveries = 0
    for decision in reviews:
        if decision == "APPROVED":
            refinements = recoveries = 0
        refinements += decision == "REJECTED"
        recoveries += decision == "RECOVERY"
    return Counts(refinements, recoveries)


def severity_of_review(blockers: int, critical: int, major: int) -> Literal["CRITICAL", "HIGH", "MEDIUM", "LOW"]:
    """How bad a review is as a whole."""
    if blockers:
        return "CRITICAL"
    if critical >= 2:
        return "HIGH"
    return "MEDIUM" if critical or major else "LOW"


def limit_reached(story: Story) -> str:
    """The limit that forbids another rework, in one line; empty if there is none."""
    most = story.max_refinements
    if most is not None and story.refinement_count >= most:
        return f"Max refinement attempts ({story.refinement_count}/{most})"
    most = story.max_recoveries
    if most is not None and story.recoveries >= most:
        return f"Global recovery limit exceeded ({story.recoveries}/{most})"
    return ""


def reset_by(target: StoryPhase) -> tuple[StoryPhase, ...]:
    """The phases that a rework makes incomplete: its own and all later ones, which depend on it."""
    return PHASES[PHASES.index(target) :]


def assess(stories: Iterable[Story]) -> tuple[Action, ...]:
    """All actions, most urgent first: at most one per story, and none for a story that is done."""
    found = [action for story in stories if (action := action_for(story)) is not None]
    return tuple(sorted(found, key=lambda action: (action.priority, action.story)))


def action_for(story: Story) -> Action | None:
    """The next action for one story; None if there is none."""
    if story.trouble:
        return _action(story, "person", UNWRITABLE, story.trouble)
    if story.status == "done":
        return None
    if story.misplanned:
        return _action(story, "person", PERSON, story.misplanned)
    if story.status == "blocked" and story.unblocks:
        return _action(story, "unblock", REWORK, f"{story.unblocks}: it was blocked ({story.blocked_reason})")
    if story.status == "blocked":
        return _action(story, "person", PERSON, story.blocked_reason or "blocked")
    if story.waiting:
        return _action(story, "person", PERSON, story.waiting)
    if story.waits_for:
        return _action(story, "wait", WAIT, story.waits_for)
    if story.status == "backlog":
        return _action(story, "refine", REFINE, "in the backlog: it becomes ready")
    if story.rejected and _complete(story, story.target) and not story.reworking:
        return _rework(story)
    forward = _forward(story)
    return _continued(story, forward) if story.reworking else forward


def _rework(story: Story) -> Action:
    limit = limit_reached(story)
    if limit:
        return _action(story, "person", PERSON, limit)
    action = _action(story, "rework", REWORK, _with_feedback(story, "its review was rejected"))
    return replace(action, target=story.target, feedback=story.feedback, iteration=story.refinement_count + 1)


def _continued(story: Story, forward: Action) -> Action:
    """A rework that has started is already counted, and its phase is incomplete, so it continues as that phase."""
    reason = _with_feedback(story, "its rework is under way")
    return replace(
        forward, reason=reason, target=story.target, feedback=story.feedback, iteration=story.refinement_count
    )


def _with_feedback(story: Story, why: str) -> str:
    return f"{why}: {story.feedback}" if story.feedback else why


def _forward(story: Story) -> Action:
    """The next phase that is not complete."""
    if not story.research_complete:
        return _action(story, "research", RESEARCH, "it has not been researched yet")
    if not story.plan_complete:
        return _action(story, "plan", PLAN, "it has no plan yet")
    if not story.implementation_complete:
        if story.status == "in-progress":
            return _action(story, "implement", IN_PROGRESS, "its implementation is not complete")
        return _action(story, "implement", READY, "it is planned but not implemented yet")
    if not story.reviews_complete:
        broken = story.broken_reviews
        again = f", and its last {broken} broke" if broken else ""
        return _action(story, "review", REVIEW + PER_RETRY * broken, f"it is implemented but not reviewed yet{again}")
    return _action(story, "create_pr", CREATE_PR, "its reviews are complete")


def _complete(story: Story, phase: StoryPhase) -> bool:
    return {
        "research": story.research_complete,
        "plan": story.plan_complete,
        "implement": story.implementation_complete,
    }[phase]


def _action(story: Story, kind: ActionKind, priority: int, reason: str) -> Action:
    return Action(story.id, kind, priority + story.priority, reason)
