"""The run of a story: the workflow, limits and input it starts with, and how it resumes."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from backedge.app import Engine, Run
from backedge.config import WorkflowFile, load
from backedge.config.workflow_file import workflow_file
from backedge.core.errors import BackedgeError, IllegalCommand, RunHeld
from backedge.core.value import Json, replace
from backedge.core.workflow.definition import Workflow
from backedge.core.workflow.limits import Limits
from backedge.engine.store import events_of, files_of
from backedge.project import (
    FileWorkflow,
    Project,
    agents_of,
    file_of,
    keep_workflow_file,
    kept_files,
    origin_of,
    secrets_of,
    settle_workflow_file,
)
from backedge.project.delivery import record_start
from backedge.project.git import git
from backedge.stories.author_text import author_text
from backedge.stories.backlog import story_of
from backedge.stories.entry import Entry
from backedge.stories.limits import definition_for
from backedge.stories.rules.front_matter_reader import StoryFileError
from backedge.stories.worktrees import branch_of, restored, worktree_of

Views = Callable[[str], Mapping[str, str]]


def story_input(source: WorkflowFile, entry: Entry, text: str) -> Json:
    """The input of a story's run."""
    story = {"id": entry.id, "title": entry.title, "path": entry.name, "text": text}
    return secrets_of(source).value({"story": story})


async def update_input(run: Run, source: WorkflowFile, entry: Entry) -> None:
    """Update the input of a run if the story has been edited since."""
    new = story_input(source, entry, author_text(_text(entry), entry.name))
    before = await run.input()
    if before == new:
        return
    try:
        known = {"story": {**before["story"], "text": author_text(before["story"]["text"], entry.name)}}
    except StoryFileError:
        known = None  # a secret was removed from it
    if known != new:
        await run.change_input(new)


def _text(entry: Entry) -> str:
    return entry.path.read_bytes().decode("utf-8")


def _placed(source: WorkflowFile, project: Project, entry: Entry) -> WorkflowFile:
    """The workflow file in the folder of the story: its worktree, if it has one."""
    assert source.stories is not None
    data = source.data  # not what is in the file now: an agent of another story may have changed it
    if not source.stories.worktree:
        return workflow_file(data, source.path)
    return workflow_file(data, worktree_of(project, source.folder, entry.id, first=not entry.run) / source.path.name)


def workflow_file_of(project: Project, run: str, folder: Path) -> WorkflowFile:
    """The workflow file of a run, in the folder where the run started. A missing worktree is created again.

    Raises WorkflowError."""
    restored(project, folder, run, origin_of(project, run))
    return file_of(project, run)


async def refresh_input(project: Project, run: Run) -> None:
    """Update the input of a run that is resumed by its id, if its story has been edited."""
    try:
        found = await story_of(project, run.id)
    except (BackedgeError, OSError):
        return  # reported at the end, when the story is written
    if found is not None:
        await update_input(run, *found)


async def start_run(engine: Engine, source: WorkflowFile, project: Project, entry: Entry, views: Views) -> Run:
    """Start the run of a story. Raises RunHeld if another process was faster."""
    placed = _placed(source, project, entry)
    bounded = dataclasses.replace(placed, definition=definition_for(source, entry))
    workflow = FileWorkflow(bounded, project, agents_of(placed, project, views), views)
    keep_workflow_file(project, entry.next_run, placed)
    if source.stories is not None and source.stories.worktree:
        record_start(project, entry.next_run, git(source.folder, "merge-base", "HEAD", branch_of(entry.id)))
    try:
        return await engine.start(workflow, story_input(source, entry, _text(entry)), entry.next_run)
    except IllegalCommand as error:
        if await engine.journal.read(entry.next_run):
            raise RunHeld(entry.next_run, "another process") from error
        raise


async def resume_run(engine: Engine, source: WorkflowFile, project: Project, entry: Entry, views: Views) -> Run:
    """Resume the run of a story, with the workflow that it started with. Raises RunHeld."""
    settle_workflow_file(project, entry.run, await files_of(engine.journal, await events_of(engine.journal, entry.run)))
    kept = project.kept_file(entry.run).exists()
    placed = workflow_file_of(project, entry.run, source.folder) if kept else _placed(source, project, entry)
    run = await engine.resume(entry.run, FileWorkflow(placed, project, agents_of(placed, project, views), views))
    await update_input(run, source, entry)
    return run


def outdated(source: WorkflowFile, project: Project, run: str) -> str:
    """Why a change of the workflow file does not apply to a story that is under way; empty if there is none. Changes of
    limits do apply, or are reported on their own."""
    try:
        data, files = project.kept_file(run).read_bytes(), kept_files(project, run)
        if data == source.data and files == source.files:
            return ""
        old = workflow_file(data, source.path, files)
    except (OSError, BackedgeError, msgspec.DecodeError):
        return ""
    names = [name for name in source.files.keys() & files if source.files[name] != files[name]]
    if _without_limits(old.definition) != _without_limits(source.definition) or old.agents != source.agents:
        names.insert(0, source.path.name)
    if not names:
        return ""
    have = "has" if len(names) == 1 else "have"
    return f"{', '.join(names)} {have} changed: work that has begun keeps the old version"


def _without_limits(workflow: Workflow) -> Workflow:
    steps = tuple(replace(step, limits=None) for step in workflow.steps)
    return replace(workflow, limits=Limits(), steps=steps, on_breach="manual")


def reload(path: Path) -> WorkflowFile:
    """Load the workflow file again."""
    return load(Path(os.path.abspath(path)))
