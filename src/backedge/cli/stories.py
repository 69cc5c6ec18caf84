"""`next`, `board` and `unblock`: the stories of a project."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import click

from backedge.app import Engine
from backedge.cli.board import board_lines
from backedge.cli.common import journal_option, json_option, print_json, say, shown
from backedge.cli.details import action_json, details_json, wrong_lines
from backedge.cli.people import me, require_person
from backedge.cli.story_project import backlog_of, epic_option, label_option, story_project, with_engine
from backedge.config import WorkflowFile
from backedge.core.commands import DEFAULT_ROUNDS
from backedge.core.errors import IllegalCommand
from backedge.core.state.run import ASKED
from backedge.project import Project
from backedge.reading.story_card import story_card
from backedge.stories.backlog import read_backlog
from backedge.stories.entry import Entry
from backedge.stories.rules.assessor import STATUSES
from backedge.stories.rules.front_matter import parse_story
from backedge.stories.rules.story_view import view_of_events
from backedge.stories.story_file import rewrite
from backedge.stories.update import update_story

MOST_SHOWN = 20


@click.command()
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=MOST_SHOWN,
    show_default=True,
    help="How many actions to list. --json always lists all.",
)
@epic_option
@label_option
@journal_option
@json_option
def next(limit: int, epic: str | None, label: str | None, journal: Path | None, as_json: bool) -> None:
    """List the next action for each story, most urgent first, with the reason. `backedge run` does the first action.

    \b
    Example:
      backedge next --json
    """
    source, project = story_project(journal)
    print_next(source, project, limit, as_json, epic=epic, label=label)


def print_next(source: WorkflowFile, project: Project, limit: int, as_json: bool, **only: str | None) -> None:
    """The actions of all stories, or of those named."""
    backlog = backlog_of(source, project).only(**only)
    entries = {entry.id: entry for entry in backlog.entries}
    actions = backlog.actions()
    if as_json:
        print_json([action_json(action, entries[action.story]) for action in actions])
        return
    for action in actions[:limit]:
        entry = entries[action.story]
        again = f" (iteration {action.iteration}, target: {action.target})" if action.iteration else ""
        click.echo(f"{action.priority:6}  {action.kind:9}  {shown(entry.slug, 30)}{again}: {shown(action.reason, 200)}")
        if action.kind == "person":
            for line in (*wrong_lines(entry), *([entry.remark] if entry.remark else [])):
                click.echo(f"{'':19}{line}")
    if len(actions) > limit:
        click.echo(f"… and {len(actions) - limit} more (use --limit)")
    if not actions:
        click.echo("nothing is left to do" if backlog.entries else "there are no stories yet: add one to the folder")


@click.command()
@click.option("--width", type=click.IntRange(20), help="Width in columns. Default: the width of the terminal.")
@click.option("--all", "everything", is_flag=True, help="Show all stories of each column.")
@click.option("--active", is_flag=True, help="Leave out the stories that are done.")
@epic_option
@label_option
@journal_option
@json_option
def board(
    width: int | None,
    everything: bool,
    active: bool,
    epic: str | None,
    label: str | None,
    journal: Path | None,
    as_json: bool,
) -> None:
    """Show the stories by status, with their labels, the rounds that each has used, and its next action. Stories that wait
    for you are marked.

    \b
    Example:
      backedge board --active
    """
    source, project = story_project(journal)
    backlog = backlog_of(source, project).only(epic=epic, label=label)
    statuses = [status for status in STATUSES if not (active and status == "done")]
    if as_json:
        cards = [story_card(entry) for entry in backlog.entries]
        print_json({status: [each for each in cards if each["status"] == status] for status in statuses})
        return
    columns = width or shutil.get_terminal_size((100, 24)).columns
    for line in board_lines(backlog.entries, columns, everything, statuses):
        click.echo(line)


@click.command()
@click.argument("story")
@click.option("--reset", is_flag=True, help="Reset the count to 0 instead of granting more rounds.")
@click.option(
    "--rounds", type=click.IntRange(1), default=DEFAULT_ROUNDS, show_default=True, help="How many more rounds to grant."
)
@click.option("--note", default="", help="What the agents should do differently.")
@click.option("--by", default=None, metavar="WHO", help="The person who decides. Default: you.")
@journal_option
@json_option
def unblock(
    story: str, reset: bool, rounds: int, note: str, by: str | None, journal: Path | None, as_json: bool
) -> None:
    """Let a blocked STORY continue. This is recorded as a decision; the text of the story does not change.

    \b
    Example:
      backedge unblock first --reset --note "use the session of the other service"
    """
    require_person(journal)
    from backedge.stories.story_run import start_run

    source, project = story_project(journal)
    who = me() if by is None else by

    async def unblock_story(engine: Engine | None) -> Entry:
        entry = (await read_backlog(source, project, engine)).find(story)
        if entry.trouble or entry.story.status != "blocked":
            state = entry.trouble or f"it is {entry.story.status}"
            raise IllegalCommand(f"story {entry.id!r} is not blocked: {state}")
        if entry.view is None or engine is None:
            _unblock_file(entry, reset)
        elif entry.view.outcome in ("failed", "cancelled"):
            engine.allow(0)
            run = await start_run(engine, source, project, entry, lambda _: {})
            _write(project, entry, view_of_events(await run.events()))
        else:
            await _decide(engine, project, entry, reset, rounds, note, who)
        return (await read_backlog(source, project, engine)).find(entry.id)

    entry = with_engine(project, unblock_story)
    if as_json:
        print_json(details_json(project, entry))
    else:
        click.echo(f"{entry.id} is {entry.story.status}; `backedge run` continues with the most urgent action")


async def _decide(
    engine: Engine, project: Project, entry: Entry, reset: bool, rounds: int, note: str, who: str
) -> None:
    run = await engine.find(entry.run)
    for packet in list((await run.state()).escalations.values()):
        if packet.reason == ASKED:
            continue
        if reset and "revise" in packet.options:
            await run.decide(packet.id, "revise", by=who, note=note or "unblocked: the count is reset", rounds=rounds)
        else:
            await run.decide(packet.id, "continue", by=who, note=note, rounds=rounds)
    _write(project, entry, view_of_events(await run.events()))


def _write(project: Project, entry: Entry, view: Any) -> None:
    for remark in update_story(project, entry.record_id, entry.path, entry.name, view):
        say(remark)


_COUNTS = ("refinement_count", "recovery_count", "retry_count", "total_recovery_attempts")
"""The counters of a story that has no run, as other systems call them."""


def _unblock_file(entry: Entry, reset: bool) -> None:
    """Unblock a story without a run, in its file."""
    flags = parse_story(entry.path.read_bytes(), entry.name).values
    done = [name for name in ("plan", "implementation") if flags.get(f"{name}_complete") is True]
    status = "in-progress" if "implementation" in done else "ready" if done else "backlog"
    changes: dict[str, Any] = {"status": status, "blocked_reason": None, "blocked_at": None, "diagnostic": None}
    counts = {name: 0 for name in _COUNTS if reset and flags.get(name)}
    rewrite(entry.path, entry.name, lambda story: story.changed({**changes, **counts}))
