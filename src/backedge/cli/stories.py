"""`next`, `board`, `details` and `unblock`: the stories of a project."""

from __future__ import annotations

import asyncio
import getpass
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click

from backedge.adapters.stories import parsed, rewritten
from backedge.app import Engine
from backedge.backlog.entry import Entry, Written, date, iteration_record
from backedge.backlog.reading import Backlog, backlog_of, record_of, view_of_events
from backedge.backlog.updating import updated
from backedge.cli.board import board_lines
from backedge.cli.common import journal_option, json_option, print_json, say, shown, where
from backedge.config import WorkflowFile, find, load
from backedge.core.assessor import STATUSES, Action
from backedge.core.commands import DEFAULT_ROUNDS
from backedge.core.errors import IllegalCommand
from backedge.core.state.run import ASKED
from backedge.project import Project

T = TypeVar("T")
MOST_SHOWN = 20


def _project(journal: Path | None) -> tuple[WorkflowFile, Project]:
    source = load(find(Path.cwd()))
    return source, where(journal, source.path)


def _ask(spot: Project, ask: Callable[[Engine | None], Awaitable[T]]) -> T:
    """Ask with the journal of the project; with None if there is none yet, for looking must not make one."""

    async def go() -> T:
        if not spot.journal.exists():
            return await ask(None)
        async with Engine(spot.journal) as engine:
            return await ask(engine)

    return asyncio.run(go())


def _backlog(source: WorkflowFile, spot: Project) -> Backlog:
    return _ask(spot, lambda engine: backlog_of(source, spot, engine))


@click.command()
@click.option(
    "--limit", type=click.IntRange(1), default=MOST_SHOWN, show_default=True, help="How many rows, without --json."
)
@journal_option
@json_option
def next(limit: int, journal: Path | None, as_json: bool) -> None:
    """List the next actions on the stories, the most urgent first, with reasons. `backedge run` does the first.

    \b
    Example:
      backedge next --json
    """
    source, spot = _project(journal)
    print_next(source, spot, None, limit, as_json)


def print_next(source: WorkflowFile, spot: Project, only: str | None, limit: int, as_json: bool) -> None:
    """The actions of all stories, or of one."""
    backlog = _backlog(source, spot)
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
        click.echo(f"… and {len(actions) - limit} more: --limit")
    if not actions:
        click.echo("nothing is left to do" if backlog.entries else "there are no stories yet: put one in the folder")


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
@click.option("--width", type=click.IntRange(20), help="The width in columns. Default: that of the terminal.")
@click.option("--all", "everything", is_flag=True, help="All stories of a column, however many.")
@journal_option
@json_option
def board(width: int | None, everything: bool, journal: Path | None, as_json: bool) -> None:
    """Show the stories by status, with their used rounds, and mark those that wait for you.

    \b
    Example:
      backedge board
    """
    source, spot = _project(journal)
    backlog = _backlog(source, spot)
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
    """Show STORY (its id or its file): its phases, its reviews, and the history of its refinement.

    \b
    Example:
      backedge details first
    """
    source, spot = _project(journal)
    entry = _backlog(source, spot).find(story)
    if as_json:
        print_json(_details(entry))
        return
    for line in (*_detail_lines(entry), *_earlier_lines(record_of(spot, entry.id))):
        click.echo(line)


def _earlier_lines(record: Written | None) -> Iterator[str]:
    """What the story keeps of the time before its run."""
    for name, items in record.earlier.items() if record else ():
        yield f"  {name.replace('_', ' ')} of before:"
        for item in items:
            words = item.values() if isinstance(item, dict) else (item,)
            yield f"    {shown(', '.join(str(word) for word in words if word), 160)}"


def _details(entry: Entry) -> dict[str, Any]:
    told, view = entry.story, entry.view
    (action,) = Backlog((entry,)).actions() or (None,)
    return {
        **_card(entry),
        "research_complete": told.research_complete,
        "plan_complete": told.plan_complete,
        "implementation_complete": told.implementation_complete,
        "reviews_complete": told.reviews_complete,
        "recoveries": told.recoveries,
        "refinement_iterations": [
            {**iteration_record(each), "findings": list(each.details)} for each in (view.iterations if view else ())
        ],
        "review_history": [
            {
                "timestamp": date(each.at),
                "decision": each.decision,
                "reviewer": each.judge,
                "severity": each.severity or None,
                "feedback": each.feedback,
            }
            for each in (view.reviews if view else ())
        ],
        "last_error": (view.last_error or None) if view else None,
        "blocked_at": date(view.blocked_at) if view and view.blocked_at is not None else None,
        "diagnostic": (view.diagnostic or None) if view else None,
        "escalations": list(view.escalations) if view else [],
        "attempts": view.attempts if view else 0,
        "cost_usd": view.cost_usd if view else 0.0,
        "next": _action_json(action, entry) if action else None,
    }


def _detail_lines(entry: Entry) -> list[str]:
    told, view = entry.story, entry.view
    lines = [f"{shown(entry.title)}  ({entry.id}, {entry.name})"]
    if told.trouble:
        return [*lines, f"  cannot be worked on: {shown(told.trouble, 400)}"]
    rounds = (
        f", rounds {told.refinement_count}/{'∞' if view.max_refinements is None else view.max_refinements}"
        if view
        else ""
    )
    lines.append(f"  {told.status}, priority {told.priority}{rounds}{f', run {entry.run}' if entry.run else ''}")
    flags = {"research": told.research_complete, "plan": told.plan_complete, "implement": told.implementation_complete}
    flags["reviews"] = told.reviews_complete
    lines.append("  " + "  ".join(f"{'✓' if done else '·'} {name}" for name, done in flags.items()))
    if view is None:
        return [*lines, "  not begun yet"]
    if view.blocked_reason:
        lines.append(f"  blocked: {shown(view.blocked_reason, 200)}")
        lines.append(f"           {shown(view.diagnostic, 300)}")
        lines.append(f"           `backedge unblock {entry.id}` grants more rounds, `--reset` begins anew")
    if view.status == "done" and view.diagnostic:
        lines.append(f"  {shown(view.diagnostic, 400)}")
    if view.waiting:
        lines.append(f"  waits: {shown(view.waiting, 200)}")
    if view.last_error:
        lines.append(f"  last error: {shown(view.last_error, 200)}")
    if view.iterations:
        lines.append("  refinements:")
    for each in view.iterations:
        lines.append(f"    {each.iteration}. {each.phase}, {date(each.at)}: {each.result}: {shown(each.feedback, 100)}")
        lines += [f"       {shown(finding, 160)}" for finding in each.details]
    if view.reviews:
        lines.append("  reviews:")
    for review in view.reviews:
        what = " ".join(part for part in (review.severity, shown(review.feedback, 100)) if part)
        lines.append(f"    {date(review.at)}  {review.decision:8}  {review.judge}  {what}".rstrip())
    return lines


@click.command()
@click.argument("story")
@click.option("--reset", is_flag=True, help="Reset the counter instead of granting more rounds.")
@click.option(
    "--rounds", type=click.IntRange(1), default=DEFAULT_ROUNDS, show_default=True, help="How many more rounds."
)
@click.option("--note", default="", help="What the agents should do differently, in words.")
@click.option("--by", default=None, metavar="WHO", help="The person who decides. Default: you.")
@journal_option
@json_option
def unblock(
    story: str, reset: bool, rounds: int, note: str, by: str | None, journal: Path | None, as_json: bool
) -> None:
    """Unblock STORY. The journal records this as a decision; the text of the story does not change.

    \b
    Example:
      backedge unblock first --reset --note "use the session of the other service"
    """
    from backedge.backlog.beginning import begun

    source, spot = _project(journal)
    who = _me() if by is None else by

    async def tell(engine: Engine | None) -> Entry:
        entry = (await backlog_of(source, spot, engine)).find(story)
        if entry.trouble or entry.story.status != "blocked":
            state = entry.trouble or f"it is {entry.story.status}"
            raise IllegalCommand(f"story {entry.id!r} is not blocked: {state}")
        if entry.view is None or engine is None:
            _unblock_file(entry, reset)
        elif entry.view.outcome in ("failed", "cancelled"):
            engine.allow(0)
            run = await begun(engine, source, spot, entry, lambda _: {})
            _write(spot, entry, view_of_events(await run.events()))
        else:
            await _decide(engine, spot, entry, reset, rounds, note, who)
        return (await backlog_of(source, spot, engine)).find(entry.id)

    entry = _ask(spot, tell)
    if as_json:
        print_json(_details(entry))
    else:
        click.echo(f"{entry.id} is {entry.story.status}; `backedge run` goes on with what is most urgent")


async def _decide(engine: Engine, spot: Project, entry: Entry, reset: bool, rounds: int, note: str, who: str) -> None:
    run = await engine.find(entry.run)
    for packet in list((await run.state()).escalations.values()):
        if packet.reason == ASKED:
            continue
        if reset and "revise" in packet.options:
            await run.decide(packet.id, "revise", by=who, note=note or "unblocked: begin anew", rounds=rounds)
        else:
            await run.decide(packet.id, "continue", by=who, note=note, rounds=rounds)
    _write(spot, entry, view_of_events(await run.events()))


def _write(spot: Project, entry: Entry, view: Any) -> None:
    for remark in updated(spot, entry.id, entry.path, entry.name, view):
        say(remark)


def _unblock_file(entry: Entry, reset: bool) -> None:
    """A story that has no run is what its file says."""
    flags = parsed(entry.path.read_bytes(), entry.name).values
    status = "in-progress" if flags.get("implementation_complete") is True else "ready"
    changes: dict[str, Any] = {"status": status, "blocked_reason": None, "blocked_at": None, "diagnostic": None}
    counts = {name: 0 for name in ("refinement_count", "recovery_count") if reset and flags.get(name)}
    rewritten(entry.path, entry.name, lambda story: story.changed({**changes, **counts}))


def _me() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""
