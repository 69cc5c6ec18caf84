"""`details`: one story, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from backedge.cli.backlog import unblock_words
from backedge.cli.board import rounds_text
from backedge.cli.common import journal_option, json_option, print_json, shown
from backedge.cli.story_project import backlog_of, story_project
from backedge.config import WorkflowFile
from backedge.project import Project
from backedge.reading.story_card import story_card
from backedge.stories.backlog import Backlog
from backedge.stories.entry import Entry
from backedge.stories.fields import iso_time, iteration_record
from backedge.stories.record import StoryRecord, record_of
from backedge.stories.rules.assessor import Action
from backedge.stories.story_run import outdated
from backedge.stories.worktrees import worktree_path

MOST_WRONG = 5
"""How many lines about what is wrong a list shows for one story."""


def action_json(action: Action, entry: Entry) -> dict[str, Any]:
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


def wrong_lines(entry: Entry, most: int | None = MOST_WRONG) -> Iterator[str]:
    """What the last rejection of a blocked story found."""
    findings = entry.view.findings if entry.view is not None else ()
    for line in findings[:most]:
        indent = "  " if line.startswith("  ") else ""
        yield f"{indent}{shown(line, 160)}"
    if most is not None and len(findings) > most:
        yield f"… {len(findings) - most} more: `backedge details {entry.id}`"


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
    source, project = story_project(journal)
    entry = backlog_of(source, project).find(story)
    if as_json:
        print_json(details_json(project, entry))
        return
    for line in (*_detail_lines(source, project, entry), *_earlier_lines(record_of(project, entry.record_id))):
        click.echo(line)


def _earlier_lines(record: StoryRecord | None) -> Iterator[str]:
    """The history of the story before its run."""
    for name, items in record.earlier.items() if record else ():
        yield f"  {name.replace('_', ' ')} from before its run:"
        for item in items:
            words = item.values() if isinstance(item, dict) else (item,)
            yield f"    {shown(', '.join(str(word) for word in words if word), 160)}"


def details_json(project: Project, entry: Entry) -> dict[str, Any]:
    story, view = entry.story, entry.view
    (action,) = Backlog((entry,)).actions() or (None,)
    return {
        **story_card(entry),
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
        "worktree": str(tree) if (tree := worktree_path(project, entry.record_id)) else None,
        "next": action_json(action, entry) if action else None,
    }


def _detail_lines(source: WorkflowFile, project: Project, entry: Entry) -> list[str]:
    story, view = entry.story, entry.view
    lines = [f"{shown(entry.title)}  ({entry.id}, {entry.name})"]
    summary = entry.summary
    if summary and (summary.epic or summary.labels):
        labels = f"labels {', '.join(map(shown, summary.labels))}" if summary.labels else ""
        lines.append(
            "  " + ", ".join(part for part in (summary.epic and f"epic {shown(summary.epic)}", labels) if part)
        )
    if story.trouble:
        return [*lines, f"  cannot be worked on: {shown(story.trouble, 400)}"]
    rounds = f", rounds {rounds_text(view)}" if view else ""
    lines.append(f"  {story.status}, priority {story.priority}{rounds}{f', run {entry.run}' if entry.run else ''}")
    flags = {
        "research": story.research_complete,
        "plan": story.plan_complete,
        "implement": story.implementation_complete,
    }
    flags["reviews"] = story.reviews_complete
    lines.append("  " + "  ".join(f"{'✓' if done else '·'} {name}" for name, done in flags.items()))
    if summary and summary.dependencies:
        lines.append(f"  depends on {', '.join(map(shown, summary.dependencies))}")
    if entry.hold is not None:
        lines.append(f"  {shown(entry.hold.reason, 300)}")
    if tree := worktree_path(project, entry.record_id):
        lines.append(f"  worktree {tree}")
    if view is None:
        return [*lines, "  not started yet"]
    if view.blocked_reason:
        lines.append(f"  blocked: {shown(view.blocked_reason, 200)}")
        lines += [f"           {line}" for line in wrong_lines(entry, most=None)]
        lines.append(f"           {shown(view.diagnostic, 300)}")
        how = f"{entry.raised.why}: `backedge run` continues" if entry.raised else unblock_words(entry.id, view)
        lines.append(f"           {how}")
    if entry.remark:
        lines.append(f"  {entry.remark}")
    if view.status != "done" and (why := outdated(source, project, entry.run)):
        lines.append(f"  {why}")
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
