"""The board in a terminal: one column per status, as wide as the terminal allows."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from backedge.cli.common import shown
from backedge.stories.entry import Entry
from backedge.stories.rules.assessor import STATUSES, action_for
from backedge.stories.rules.story_view import StoryView

NARROWEST = 16
"""The least characters per column. In a narrower terminal, the columns are listed one below the other."""
MOST_CARDS = 12


def board_lines(
    entries: Sequence[Entry], width: int, everything: bool = False, statuses: Sequence[str] = STATUSES
) -> Iterator[str]:
    """The stories by status, most urgent first."""
    if not entries:
        yield "there are no stories yet: add one to the folder, a Markdown file that begins with ---, `title: …` and ---"
        return
    columns: dict[str, list[Entry]] = {status: [] for status in statuses}
    for entry in sorted(entries, key=lambda each: (each.story.priority, each.id)):
        columns.get("blocked" if entry.story.trouble else entry.story.status, []).append(entry)
    room = (width - 2 * (len(columns) - 1)) // len(columns)
    if room < NARROWEST:
        yield from _below_each_other(columns, width, everything)
        return
    cells = [_column(status, stories, room, everything) for status, stories in columns.items()]
    for row in zip_longest(*cells, fillvalue=""):
        yield "  ".join(_padded(cell, room) for cell in row).rstrip()


def _below_each_other(columns: dict[str, list[Entry]], width: int, everything: bool) -> Iterator[str]:
    for status, stories in columns.items():
        if stories:
            yield from _column(status, stories, width, everything)
            yield ""


def _column(status: str, stories: list[Entry], room: int, everything: bool) -> list[str]:
    lines = [_cut(f"{status} ({len(stories)})", room), "─" * room]
    kept = stories if everything else stories[:MOST_CARDS]
    for entry in kept:
        lines += [_cut(line, room) for line in _card(entry)]
    if len(stories) > len(kept):
        lines.append(_cut(f"… {len(stories) - len(kept)} more: --all", room))
    return lines


def _card(entry: Entry) -> Iterator[str]:
    story, view = entry.story, entry.view
    mark = "✗ " if story.trouble or story.misplanned or story.status == "blocked" else "? " if story.waiting else ""
    yield f"{mark}{entry.slug}"
    if entry.title != entry.slug:
        yield f"  {shown(entry.title, 200)}"
    if view is not None and view.running:
        yield f"  ▸ {', '.join(view.running)}"
    summary = entry.summary
    if summary is not None and (summary.labels or summary.epic):
        words = [*([f"[{summary.epic}]"] if summary.epic else []), *(f"#{label}" for label in summary.labels)]
        yield f"  {shown(' '.join(words), 200)}"
    if view is not None and (story.refinement_count or story.status == "blocked"):
        yield f"  ⟳ {rounds_text(view)}"
    left = view.diagnostic if view is not None and story.status == "done" else ""
    why = story.trouble or story.misplanned or story.blocked_reason or story.waiting or left
    if why:
        yield f"  {shown(why, 200)}"
    action = action_for(story)
    if action is not None and action.kind != "person":
        yield f"  → {shown(action.reason, 200)}" if action.kind == "wait" else f"  → {action.kind}"


def rounds_text(view: StoryView) -> str:
    """The refinements of a story and its limit; for one that is done, what it took in all."""
    if view.status == "done":
        return str(view.refinement_count)
    return f"{view.refinement_count}/{'∞' if view.max_refinements is None else view.max_refinements}"


def _wide(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _width(text: str) -> int:
    return len(text) if text.isascii() else sum(map(_wide, text))


def _cut(text: str, room: int) -> str:
    if _width(text) <= room:
        return text
    kept, used = "", 0
    for char in text:
        if used + _wide(char) > room - 1:
            break
        kept, used = kept + char, used + _wide(char)
    return kept + "…"


def _padded(text: str, room: int) -> str:
    return text + " " * (room - _width(text))
