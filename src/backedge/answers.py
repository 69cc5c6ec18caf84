"""What people do to runs, from the command line and from the page: decide, raise feedback, cancel. If a process executes the
run, that process reacts at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from backedge.adapters.views import RunViews
from backedge.app import Engine, Run
from backedge.core.errors import FeedbackRefused, RunHeld
from backedge.core.events import LoopOpened
from backedge.core.feedback.raising import feedback_problem, missing_words
from backedge.core.feedback.routing import NO_TARGET
from backedge.core.model import HUMAN, ROOTS, MalformedFeedback
from backedge.core.workflow.definition import Workflow
from backedge.engine.protocol import Feedback, to_feedback
from backedge.engine.store import events_of
from backedge.project import Project, end_agent, secrets_in
from backedge.project.pruning import remove_rooms
from backedge.reading.story_runs import may_be_story

Say = Callable[[str], None]


@dataclass(frozen=True)
class Answer:
    """A decision as it was given: the choice, and the arguments with it."""

    choice: str
    given: Mapping[str, str]
    rounds: int
    amount: float | None
    by: str


async def submit(engine: Engine, project: Project, run: Run, escalation: str, answer: Answer, say: Say) -> bool:
    """Decide one escalation. Returns whether the run could continue and no process executes it."""
    said: dict[str, Any] = secrets_in(project, run.id).value(dict(answer.given))
    await run.decide(escalation, answer.choice, by=answer.by, rounds=answer.rounds, amount=answer.amount, **said)
    await end_agents(project, run)
    await refresh_views(project, run, say)
    return await is_idle(engine, run)


async def send_feedback(
    engine: Engine, project: Project, run: Run, item: Feedback, source: str, say: Say
) -> tuple[str, list[str]]:
    """Raise feedback. Returns its loop, and warnings about how it is routed. A person who mistypes a target can type it again:
    that is refused with FeedbackRefused, and the journal need not keep it."""
    state = await run.state()
    before = state.seq
    read = to_feedback(item, state.workflow.kinds)
    if source == HUMAN and any(name not in (*state.steps, *ROOTS, HUMAN) for name in read.to):
        raise FeedbackRefused(feedback_problem(state, source, read, {}) or NO_TARGET)
    loop = await run.raise_feedback(secrets_in(project, run.id).value(item), source)
    await refresh_views(project, run, say)
    since = await events_of(engine.journal, run.id, before)
    opened = (each for each in since if isinstance(each, LoopOpened) and each.loop == loop)
    return loop, [each.warning for each in opened if each.warning]


def require_words(item: Feedback, workflow: Workflow) -> None:
    """Refuse a mistyped or missing word of a person at once: they can type it again, and the journal need not keep it.
    Raises FeedbackRefused."""
    read = to_feedback(item, workflow.kinds)
    problem = read.reason if isinstance(read, MalformedFeedback) else missing_words(read)
    if problem:
        raise FeedbackRefused(problem)


async def cancel_run(project: Project, run: Run, by: str, reason: str, say: Say) -> None:
    """End a run, and the attempts that a dead process left running."""
    await run.cancel(by, secrets_in(project, run.id).text(reason))
    await end_agents(project, run)
    remove_rooms(project, run.id)
    await refresh_views(project, run, say)


async def end_agents(project: Project, run: Run) -> None:
    """End the attempts that a dead process left running in a run that has ended."""
    with suppress(RunHeld):  # the process that executes the run stops them
        await run.end_attempts(partial(end_agent, project))


async def refresh_views(project: Project, run: Run, say: Say) -> None:
    """Update the files of a run after an answer, in case no process executes it and would do that."""
    await RunViews(lambda name: project.kept_file(name).parent, say).refresh(run.id, run.events)
    if may_be_story(run.id):
        from backedge.stories.work import refresh_story

        await refresh_story(project, run, say)


async def is_idle(engine: Engine, run: Run) -> bool:
    """Whether a run could continue and no process executes it."""
    state = await run.state()
    return state.ended is None and not state.escalations and await engine.journal.holder(run.id) is None
