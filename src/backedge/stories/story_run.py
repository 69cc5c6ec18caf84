"""The run of a story: with which workflow, limits and input it starts, and how it goes on."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from backedge.app import Engine, Run
from backedge.config import WorkflowFile, load
from backedge.config.workflow_file import workflow_file
from backedge.core.errors import BackedgeError
from backedge.core.value import Json, replace
from backedge.core.workflow.definition import Workflow
from backedge.core.workflow.limits import Limits
from backedge.project import FileWorkflow, Project, agents_of, file_of, keep_workflow_file, origin_of, secrets_of
from backedge.stories.author_text import author_text
from backedge.stories.backlog import story_of
from backedge.stories.entry import Entry
from backedge.stories.rules.front_matter_reader import StoryFileError
from backedge.stories.worktrees import restored, worktree_of

Views = Callable[[str], Mapping[str, str]]


def definition_for(source: WorkflowFile, entry: Entry) -> Workflow:
    """The workflow of a story's run, with the limits as they are when it starts: later changes do not reach it.

    A story that hits a limit waits for a decision, whatever the project does with such stories: so it can go on."""
    spec, told = source.stories, entry.summary
    assert spec is not None and told is not None
    most = told.max_refinements if told.max_refinements is not None else spec.max_refinements

    def bounded(limits: Limits) -> Limits:
        if not spec.circuit_breaker:
            return replace(
                limits,
                rounds_per_loop=None,
                same_finding=None,
                failures_in_a_row=None,
                no_change=None,
                oscillation=None,
                diverging=False,
            )
        return limits if most is None else replace(limits, rounds_per_loop=most)

    definition = source.definition
    steps = tuple(
        step if step.limits is None else replace(step, limits=bounded(step.limits)) for step in definition.steps
    )
    on_breach = "replan" if definition.on_breach == "replan" else "manual"
    return replace(definition, limits=bounded(definition.limits), steps=steps, on_breach=on_breach)


def story_input(source: WorkflowFile, entry: Entry, text: str) -> Json:
    """What the agents of a story are told of it."""
    story = {"id": entry.id, "title": entry.title, "path": entry.name, "text": text}
    return secrets_of(source).value({"story": story})


async def update_input(run: Run, source: WorkflowFile, entry: Entry) -> None:
    """Tell the attempts that follow what people have changed in a story since its run was told of it."""
    told = story_input(source, entry, author_text(_text(entry), entry.name))
    before = await run.input()
    if before == told:
        return
    try:
        known = {"story": {**before["story"], "text": author_text(before["story"]["text"], entry.name)}}
    except StoryFileError:
        known = None  # a secret was taken out of it
    if known != told:
        await run.change_input(told)


def _text(entry: Entry) -> str:
    return entry.path.read_bytes().decode("utf-8")


def _placed(source: WorkflowFile, spot: Project, entry: Entry) -> WorkflowFile:
    """The workflow file where the story is worked on: in its own worktree, if it has one."""
    assert source.stories is not None
    data = source.path.read_bytes()
    if not source.stories.worktree:
        return workflow_file(data, source.path)
    return workflow_file(data, worktree_of(spot, source.folder, entry.id) / source.path.name)


def workflow_file_of(spot: Project, run: str, folder: Path) -> WorkflowFile:
    """The workflow file that a run goes on with, in the place where it began: a worktree that is gone is made again.

    Raises WorkflowError."""
    restored(spot, folder, origin_of(spot, run))
    return file_of(spot, run)


async def refresh_input(spot: Project, run: Run) -> None:
    """Tell a run that goes on by its id what people have changed in its story, if it works on one."""
    try:
        found = await story_of(spot, run.id)
    except (BackedgeError, OSError):
        return  # it is told at the end, when the story is written
    if found is not None:
        await update_input(run, *found)


async def start_run(engine: Engine, source: WorkflowFile, spot: Project, entry: Entry, views: Views) -> Run:
    """Start the run of a story."""
    placed = _placed(source, spot, entry)
    bounded = dataclasses.replace(placed, definition=definition_for(source, entry))
    workflow = FileWorkflow(bounded, spot, agents_of(placed, spot, views), views)
    keep_workflow_file(spot, entry.next_run, placed)
    return await engine.start(workflow, story_input(source, entry, _text(entry)), entry.next_run)


async def resume_run(engine: Engine, source: WorkflowFile, spot: Project, entry: Entry, views: Views) -> Run:
    """Go on with the run of a story. It keeps the workflow that it started with. Raises RunHeld."""
    kept = spot.kept_file(entry.run).exists()
    placed = workflow_file_of(spot, entry.run, source.folder) if kept else _placed(source, spot, entry)
    run = await engine.resume(entry.run, FileWorkflow(placed, spot, agents_of(placed, spot, views), views))
    await update_input(run, source, entry)
    return run


def reload(path: Path) -> WorkflowFile:
    """The workflow file as it is now."""
    return load(Path(os.path.abspath(path)))
