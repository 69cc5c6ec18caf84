"""The project of a command about stories, its backlog, and the options that these commands share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import click

from backedge.app import Engine
from backedge.cli.common import where
from backedge.config import WorkflowFile, find, load
from backedge.project import Project
from backedge.stories.backlog import Backlog, read_backlog

T = TypeVar("T")

epic_option = click.option("--epic", metavar="NAME", help="Only the stories of this epic.")
label_option = click.option("--label", metavar="NAME", help="Only the stories with this label.")


def story_project(journal: Path | None) -> tuple[WorkflowFile, Project]:
    source = load(find(Path.cwd()))
    return source, where(journal, source.path)


def with_engine(project: Project, ask: Callable[[Engine | None], Awaitable[T]]) -> T:
    """Call `ask` with an engine on the project's journal; with None if there is none yet: reading must not create one."""

    async def go() -> T:
        if not project.journal.exists():
            return await ask(None)
        async with Engine(project.journal) as engine:
            return await ask(engine)

    return asyncio.run(go())


def backlog_of(source: WorkflowFile, project: Project) -> Backlog:
    return with_engine(project, lambda engine: read_backlog(source, project, engine))
