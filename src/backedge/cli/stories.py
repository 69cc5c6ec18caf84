"""`next`, `board`, `details` and `unblock`: the stories of a project."""

from __future__ import annotations

import asyncio
import getpass
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click

from backedge.app import Engine
from backedge.cli.board import board_lines
from backedge.cli.common import journal_option, json_option, print_json, say, shown, where
from backedge.cli.people import require_person
from backedge.config import WorkflowFile, find, load
from backedge.core.commands import DEFAULT_ROUNDS
from backedge.core.errors import IllegalCommand
from backedge.core.state.run import ASKED
from backedge.project import Project
from backedge.stories.backlog import Backlog, read_backlog
from backedge.stories.entry import Entry
from backedge.stories.fields import iso_time, iteration_record
from backedge.stories.record import StoryRecord, record_of
from backedge.stories.rules.assessor import STATUSES, Action
from backedge.stories.rules.front_matter import parse_story
from backedge.stories.rules.story_view import view_of_events
from backedge.stories.story_file import rewrite
from backedge.stories.update import update_story

T = TypeVar("T")
MOST_SHOWN = 20


def _project(journal: Path | None) -> tuple[WorkflowFile, Project]:
    source = load(find(Path.cwd()))
    return source, where(journal, source.path)


def _ask(project: Project, ask: Callable[[Engine | None], Awaitable[T]]) -> T:
    """Call `ask` with an engine on the project's journal; with None if there is none yet: reading must not create one."""

    async def go() -> T:
        if not project.journal.exists():
            return await ask(None)
        async with Engine(project.journal) as engine:
            return await ask(engine)

    return asyncio.run(go())


def _backlog(source: WorkflowFile, project: Project) -> Backlog:
    return _ask(project, lambda engine: read_backlog(source, project, engine))


@click.command()
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=MOST_SHOWN,
    show_default=True,
    help="How many actions to list. --json always lists all.",
)
@journal_option
@json_option
def next(limit: int, journal: Path | None, as_json: bool) -> None:
    """List the next action for each story, most urgent first, with the reason. `backedge run` does the first action.

    \b
    Example:
      backedge next --json
    """
    source, project = _project(journal)
    print_next(source, project, None, limit, as_json)


def print_next(source: WorkflowFile, project: Project, only: str | None, limit: int, as_json: bool) -> None:
    """The actions of all stories, or of one."""
    backlog = _backlog(source, project)
    if only is not None:
        backlog = Backlog((backlog.find(only),))
    entries = {entry.id: entry for entry in backlog.entries}
    actions = backlog.actions()
    if as_json:
        print_json([_action_json(action, entries[action.story]) for action in actions])
        return
    for action in actions[:limit]:
        entry = entries[action.story]
        again = f" (iteration {action.iteration}, target: {action.target})" if action.iteration else ""
        click.echo(f"{action.priority:6}  {action.kind:9}  {shown(entry.slug, 30)}{again}: {shown(action.reason, 200)}")
    if len(actions) > limit:
        click.echo(f"… and {len(actions) - limit} more (use --limit)")
    if not actions:
        click.echo("nothing is left to do" if backlog.entries else "there are no stories yet: add one to the folder")


def _action_json(action: Action, entry: Entry) -> dict[str, Any]:
    return {
        "story": action.story,
        "title": entry.title,
        "file": entry.name,
        "kind": action.kind,
        "priority": action.priority,
        "reason": action.reason,
        "target": action.target,
        "feedback": action.feedback,
        "iteration": action.iteration or None,
        "step": entry.view.next_step if entry.view else None,
    }


@click.command()
@click.option("--width", type=click.IntRange(20), help="Width in columns. Default: the width of the terminal.")
@click.option("--all", "everything", is_flag=True, help="Show all stories of each column.")
@journal_option
@json_option
def board(width: int | None, everything: bool, journal: Path | None, as_json: bool) -> None:
    """Show the stories by status, with the rounds that each has used. Stories that wait for you are marked.

    \b
    Example:
      backedge board
    """
    source, project = _project(journal)
    backlog = _backlog(source, project)
    if as_json:
        cards = [_card(entry) for entry in backlog.entries]
        print_json({status: [card for card in cards if card["status"] == status] for status in STATUSES})
        return
    columns = width or shutil.get_terminal_size((100, 24)).columns
    for line in board_lines(backlog.entries, columns, everything):
        click.echo(line)


def _card(entry: Entry) -> dict[str, Any]:
    story, view = entry.story, entry.view
    return {
        "story": entry.id,
        "title": entry.title,
        "file": entry.name,
        "status": "blocked" if story.trouble else story.status,
        "priority": story.priority,
        "rounds": story.refinement_count,
        "max_rounds": view.max_refinements if view else None,
        "waiting": story.waiting or None,
        "blocked_reason": story.trouble or story.blocked_reason or None,
        "running": list(view.running) if view else [],
        "run": entry.run or None,
    }


@click.command()
@click.argument("story")
@journal_option
@json_option
def details(story: str, journal: Path | None, as_json: bool) -> None:
    """Show the phases, reviews and refinements of STORY, an id or a file.

    \b
    Example:
      backedge details first
    """
    source, project = _project(journal)
    entry = _backlog(source, project).find(story)
    if as_json:
        print_json(_details(entry))
        return
    for line in (*_detail_lines(entry), *_earlier_lines(record_of(project, entry.id))):
        click.echo(line)


def _earlier_lines(record: StoryRecord | None) -> Iterator[str]:
    """The history of the story before its run."""
    for name, items in record.earlier.items() if record else ():
        yield f"  {name.replace('_', ' ')} from before its run:"
        for item in items:
            words = item.values() if isinstance(item, dict) else (item,)
            yield f"    {shown(', '.join(str(word) for word in words if word), 160)}"


def _details(entry: Entry) -> dict[str, Any]:
    story, view = entry.story, entry.view
    (action,) = Backlog((entry,)).actions() or (None,)
    return {
        **_card(entry),
        "research_complete": story.research_complete,
        "plan_complete": story.plan_complete,
        "implementation_complete": story.implementation_complete,
        "reviews_complete": story.reviews_complete,
        "recoveries": story.recoveries,
        "refinement_iterations": [
            {**iteration_record(each), "findings": list(each.details)} for each in (view.iterations if view else ())
        ],
        "review_history": [
            {
                "timestamp": iso_time(each.at),
                "decision": each.decision,
                "reviewer": each.judge,
                "severity": each.severity or None,
                "feedback": each.feedback,
            }
            for each in (view.reviews if view else ())
        ],
        "last_error": (view.last_error or None) if view else None,
        "blocked_at": iso_time(view.blocked_at) if view and view.blocked_at is not None else None,
        "diagnostic": (view.diagnostic or None) if view else None,
        "escalations": list(view.escalations) if view else [],
        "attempts": view.attempts if view else 0,
        "cost_usd": view.cost_usd if view else 0.0,
        "next": _action_json(action, entry) if action else None,
    }


def _detail_lines(entry: Entry) -> list[str]:
    story, view = entry.story, entry.view
    lines = [f"{shown(entry.title)}  ({entry.id}, {entry.name})"]
    if story.trouble:
        return [*lines, f"  cannot be worked on: {shown(story.trouble, 400)}"]
    rounds = (
        f", rounds {story.refinement_count}/{'∞' if view.max_refinements is None else view.max_refinements}"
        if view
        else ""
    )
    lines.append(f"  {story.status}, priority {story.priority}{rounds}{f', run {entry.run}' if entry.run else ''}")
    flags = {
        "research": story.research_complete,
        "plan": story.plan_complete,
        "implement": story.implementation_complete,
    }
    flags["reviews"] = story.reviews_complete
    lines.append("  " + "  ".join(f"{'✓' if done else '·'} {name}" for name, done in flags.items()))
    if view is None:
        return [*lines, "  not started yet"]
    if view.blocked_reason:
        lines.append(f"  blocked: {shown(view.blocked_reason, 200)}")
        lines.append(f"           {shown(view.diagnostic, 300)}")
        lines.append(f"           `backedge unblock {entry.id}` grants more rounds, `--reset` resets the count")
    if view.status == "done" and view.diagnostic:
        lines.append(f"  {shown(view.diagnostic, 400)}")
    if view.waiting:
        lines.append(f"  waits: {shown(view.waiting, 200)}")
    if view.last_error:
        lines.append(f"  last error: {shown(view.last_error, 200)}")
    if view.iterations:
        lines.append("  refinements:")
    for each in view.iterations:
        lines.append(
            f"    {each.iteration}. {each.phase}, {iso_time(each.at)}: {each.result}: {shown(each.feedback, 100)}"
        )
        lines += [f"       {shown(finding, 160)}" for finding in each.details]
    if view.reviews:
        lines.append("  reviews:")
    for review in view.reviews:
        what = " ".join(part for part in (review.severity, shown(review.feedback, 100)) if part)
        lines.append(f"    {iso_time(review.at)}  {review.decision:8}  {review.judge}  {what}".rstrip())
    return lines


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

    source, project = _project(journal)
    who = _me() if by is None else by

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

    entry = _ask(project, unblock_story)
    if as_json:
        print_json(_details(entry))
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
    for remark in update_story(project, entry.id, entry.path, entry.name, view):
        say(remark)


def _unblock_file(entry: Entry, reset: bool) -> None:
    """Unblock a story without a run, in its file."""
    flags = parse_story(entry.path.read_bytes(), entry.name).values
    status = "in-progress" if flags.get("implementation_complete") is True else "ready"
    changes: dict[str, Any] = {"status": status, "blocked_reason": None, "blocked_at": None, "diagnostic": None}
    counts = {name: 0 for name in ("refinement_count", "recovery_count") if reset and flags.get(name)}
    rewrite(entry.path, entry.name, lambda story: story.changed({**changes, **counts}))


def _me() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
