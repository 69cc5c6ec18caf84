"""`doctor`: looks at everything that runs depend on, and says what to do."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import click

from backedge.adapters.agents.clis.registry import CLIS
from backedge.adapters.journals.audit import verify_all
from backedge.adapters.journals.opening import open_journal
from backedge.cli.agents import probe
from backedge.cli.amounts import size_words
from backedge.cli.common import journal_option, json_option, print_json, shown, wrapped
from backedge.config import WorkflowFile, find
from backedge.config.problems import WorkflowFileError
from backedge.core.errors import BackedgeError
from backedge.core.text import counted
from backedge.ports import OPEN
from backedge.project import Project, checked_file, find_project, missing_programs
from backedge.project.checkup import Checked, Health, login, machine

SIGNS = {"good": "✓", "missing": "·", "broken": "✗"}


@click.command()
@journal_option
@json_option
def doctor(journal: Path | None, as_json: bool) -> None:
    """Check this machine and this project: git, sandbox, agent CLIs and their logins, test tools, the workflow file and the
    journal. Each line that is not good says what to do.

    Nothing is changed and no model is called. A line with · is something that you can do without. With ✗ the command exits
    with 1.

    \b
    Example:
      backedge doctor
    """
    found = list(_checked(journal))
    if as_json:
        print_json(found)
    else:
        for each in found:
            _print(each)
    if any(each.health == "broken" for each in found):
        sys.exit(1)


def _print(each: Checked) -> None:
    click.echo(wrapped(f"{SIGNS[each.health]} {each.name:<17} {each.found}", sys.stdout, indent=" " * 20))
    if each.todo:
        click.echo(wrapped(f"{'':<19} → {each.todo}", sys.stdout, indent=" " * 22))


def _checked(journal: Path | None) -> Iterator[Checked]:
    yield Checked("backedge", "good", f"{version('backedge')} on Python {sys.version.split()[0]}")
    spot = _project(journal)
    yield from machine(spot.folder if spot is not None else Path.cwd())
    source: WorkflowFile | None = None
    try:
        path = find(Path.cwd())
        source = checked_file(path, imports=False)
        yield Checked("workflow file", "good", os.path.relpath(path))
    except WorkflowFileError as error:
        yield _without_file(error)
    yield from _agents(source)
    if source is not None:
        yield from _programs(source)
    yield _journal(spot)


def _programs(source: WorkflowFile) -> Iterator[Checked]:
    """The programs of the workflow that cannot be started, each with all steps that need it."""
    steps: dict[str, list[str]] = {}
    for each in missing_programs(source):
        step, _, problem = each.partition(": ")
        if not problem.startswith(tuple(CLIS)):
            steps.setdefault(problem, []).append(step.removeprefix("step "))
    for problem, names in steps.items():
        found, _, todo = problem.partition(": ")
        noun = "step" if len(names) == 1 else "steps"
        yield Checked("program", "broken", shown(f"{found} ({noun} {', '.join(names)})", 300), shown(todo, 300))


def _without_file(error: WorkflowFileError) -> Checked:
    text = str(error)
    try:
        find(Path.cwd())
    except WorkflowFileError:
        return Checked(
            "workflow file", "missing", "there is none in this folder or above it", "write one: `backedge init`"
        )
    return Checked("workflow file", "broken", shown(text, 300), "correct it; `backedge check` lists all problems")


def _agents(source: WorkflowFile | None) -> Iterator[Checked]:
    used = {spec.cli for spec in source.agents.values() if spec.kind == "cli"} if source is not None else set()
    with ThreadPoolExecutor(len(CLIS)) as pool:
        probes = list(pool.map(probe, CLIS.values()))
    for each in probes:
        bad: Health = "broken" if each.agent in used else "missing"
        if not each.installed:
            found = "not installed, and the workflow file uses it" if each.agent in used else "not installed"
            yield Checked(each.agent, bad, found, f"`{each.install}`")
        elif not each.works:
            yield Checked(
                each.agent, bad, f"does not start: {shown(each.problem, 200)}", f"try `{each.agent} --version`"
            )
        else:
            yield Checked(each.agent, "good", f"{each.version} at {each.path}")
            yield login(each.agent, os.environ)


def _project(journal: Path | None) -> Project | None:
    try:
        return find_project(None, journal)
    except WorkflowFileError:
        return None


def _journal(spot: Project | None) -> Checked:
    if spot is None or not spot.journal.exists():
        return Checked("journal", "good", "none yet: the first run makes it")

    async def ask() -> tuple[int, list[str]]:
        journal = open_journal(spot.journal)
        try:
            stopped = [
                head.run
                for head in await journal.open_runs()
                if head.outcome == OPEN[0] and await journal.holder(head.run) is None
            ]
            return await verify_all(journal), stopped
        finally:
            await journal.close()

    try:
        runs, stopped = asyncio.run(ask())
    except BackedgeError as error:
        todo = (
            f"move {spot.journal.name} out of {spot.state}, with its -wal and -shm files; then `backedge restore FILE`"
        )
        return Checked("journal", "broken", shown(str(error), 300), f"{todo} makes it from a backup")
    size = size_words(spot.journal.stat().st_size)
    found = f"{counted(runs, 'run')}, {size}, every link is valid"
    if stopped:
        more = f"; {counted(len(stopped), 'run')} stopped in the middle"
        return Checked("journal", "good", found + more, f"continue with `backedge resume {stopped[0]}`")
    return Checked("journal", "good", found)
