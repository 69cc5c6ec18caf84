"""A story's file as the view of its run: brought up to date, with what people own left alone."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from backedge.adapters.agents.attempt_folder import write_whole
from backedge.adapters.stories import FrontMatter, merged, rewritten
from backedge.analytics.refinement import KEPT_ITERATIONS, KEPT_REVIEWS
from backedge.analytics.story_view import StoryView
from backedge.backlog.entry import Written, fields_of, note_of
from backedge.backlog.reading import record_of, record_path
from backedge.project import Project

KEPT = {"refinement_iterations": KEPT_ITERATIONS, "review_history": KEPT_REVIEWS}
"""The lists of a story, and how many of each it keeps."""
_BEGUN = ("research_complete", "plan_complete", "implementation_complete", "refinement_count", *KEPT)
HINTS = {
    "status": "`backedge unblock` and feedback move a story",
    "refinement_count": "`backedge unblock STORY --reset` sets it to 0",
}


def updated(spot: Project, id: str, path: Path, name: str, view: StoryView) -> list[str]:
    """Write what a run says into its story. Returns remarks: what a person had changed that the journal owns.

    Raises StoryFileError and OSError, with the story as it was."""
    touched: list[str] = []
    earlier: dict[str, list[Any]] = {}
    begun = False
    with _alone(spot, id):
        record = record_of(spot, id)
        if record is not None and record.view.run == view.run and record.view.seq > view.seq:
            return []  # another process knows more
        same_run = record is not None and record.view.run == view.run
        known = record.notes if record is not None and same_run else 0
        fresh = view.iterations[-(view.notes - known) :] if view.notes > known else ()
        fields: dict[str, Any] = {}

        def change(story: FrontMatter) -> str:
            nonlocal touched, earlier, begun, fields
            fields = fields_of(view)
            earlier = _earlier(record, view, story, fields)
            begun = record is None and view.attempts <= 1 and any(map(story.values.get, _BEGUN))
            for key, items in earlier.items():
                fields[key] = [*items, *(fields[key] or ())][-KEPT[key] :]
            text, touched = merged(story, fields, record.fields if record else None, [note_of(each) for each in fresh])
            return text

        rewritten(path, name, change)
        kept = {key: value for key, value in fields.items() if value is not None}
        write_whole(record_path(spot, id), msgspec.json.encode(Written(view, kept, view.notes, earlier)))
    remarks = (
        [f"{name}: it was begun elsewhere: here it starts at its first step, and its history stays"] if begun else []
    )
    return remarks + [f"{name}: {field} was changed by hand and is put back{_hint(field)}" for field in touched]


def _earlier(
    record: Written | None, view: StoryView, story: FrontMatter, ours: Mapping[str, Any]
) -> dict[str, list[Any]]:
    """What stands in the lists of a story from before its run."""
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
    """What tells one entry of a list from the others."""
    return (item.get("startedAt") or item.get("timestamp")) if isinstance(item, dict) else None


def _hint(field: str) -> str:
    return f": {HINTS[field]}" if field in HINTS else ": the journal has it"


@contextmanager
def _alone(spot: Project, id: str) -> Iterator[None]:
    """One process of ours at a time writes a story."""
    lock = record_path(spot, id).with_suffix(".lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
