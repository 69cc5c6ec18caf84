"""Updates a story file from its run, without changing what people own."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from backedge.adapters.agents.attempt_folder import write_whole
from backedge.adapters.journals.private_files import private_folder
from backedge.project import Project
from backedge.stories.fields import fields_of, refinement_note
from backedge.stories.record import VERSION, StoryRecord, record_of, record_path
from backedge.stories.rules.front_matter import FrontMatter
from backedge.stories.rules.refinement import MOST_ITERATIONS, MOST_REVIEWS
from backedge.stories.rules.story_view import StoryView
from backedge.stories.story_file import rewrite, with_journal_fields

KEPT = {"refinement_iterations": MOST_ITERATIONS, "review_history": MOST_REVIEWS}
"""The lists in front matter, and how many items to keep in each."""
_BEGUN = ("research_complete", "plan_complete", "implementation_complete", "refinement_count", *KEPT)
HINTS = {
    "status": "use `backedge unblock` or feedback to move a story",
    "refinement_count": "use `backedge unblock STORY --reset` once it is blocked, or raise max_refinement_attempts",
}


def update_story(project: Project, id: str, path: Path, name: str, view: StoryView) -> list[str]:
    """Write the state of a run into its story file. Returns remarks on fields of the journal that a person had changed.

    Raises StoryFileError and OSError, and leaves the file as it was."""
    touched: list[str] = []
    earlier: dict[str, list[Any]] = {}
    begun = False
    most: Any = None
    with _alone(project, id):
        record = record_of(project, id)
        if record is not None and record.view.run == view.run and record.view.seq > view.seq:
            return []  # another process has written a newer state
        same_run = record is not None and record.view.run == view.run
        known = record.notes if record is not None and same_run else 0
        fresh = view.iterations[-(view.notes - known) :] if view.notes > known else ()
        fields: dict[str, Any] = {}

        def change(story: FrontMatter) -> str:
            nonlocal touched, earlier, begun, fields, most
            most = story.values.get("max_refinement_attempts")
            fields = fields_of(view)
            earlier = _earlier(record, view, story, fields)
            begun = record is None and view.attempts <= 1 and any(map(story.values.get, _BEGUN))
            for key, items in earlier.items():
                fields[key] = [*items, *(fields[key] or ())][-KEPT[key] :]
            text, touched = with_journal_fields(
                story, fields, record.fields if record else None, [refinement_note(each) for each in fresh]
            )
            return text

        rewrite(path, name, change)
        kept = {key: value for key, value in fields.items() if value is not None}
        made = StoryRecord(view, kept, view.notes, earlier, VERSION, most if type(most) is int else None)
        write_whole(record_path(project, id), msgspec.json.encode(made))
    remarks = (
        [f"{name}: work began in another system: here it starts at its first step and keeps its history"]
        if begun
        else []
    )
    return remarks + [f"{name}: {field} was changed by hand and has been restored{_hint(field)}" for field in touched]


def _earlier(
    record: StoryRecord | None, view: StoryView, story: FrontMatter, ours: Mapping[str, Any]
) -> dict[str, list[Any]]:
    """The items in the lists of a story from before its run."""
    if record is not None:
        known = record.earlier if record.view.run == view.run else record.fields
        return {name: known[name] for name in KEPT if known.get(name)}
    found: dict[str, list[Any]] = {}
    for name in KEPT:
        items = story.values.get(name)
        ours_too = {_when(each) for each in ours[name] or ()}
        left = [each for each in items if _when(each) not in ours_too] if isinstance(items, list) else []
        found |= {name: left} if left else {}
    return found


def _when(item: Any) -> Any:
    """The key that distinguishes the items of a list."""
    return (item.get("startedAt") or item.get("timestamp")) if isinstance(item, dict) else None


def _hint(field: str) -> str:
    return f": {HINTS[field]}" if field in HINTS else ": the journal sets it"


@contextmanager
def _alone(project: Project, id: str) -> Iterator[None]:
    """Let one backedge process at a time write a story."""
    lock = record_path(project, id).with_suffix(".lock")
    private_folder(project.state)
    lock.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
