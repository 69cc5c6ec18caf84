"""A story's file as the view of its run: brought up to date, with what people own left alone."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from backedge.adapters.agents.attempt_folder import written
from backedge.adapters.stories import FrontMatter, merged, rewritten
from backedge.analytics.refinement import StoryView
from backedge.backlog.entry import Written, fields_of, note_of
from backedge.backlog.reading import record_of, record_path
from backedge.project import Place

HINTS = {
    "status": "`backedge unblock` and feedback move a story",
    "refinement_count": "`backedge unblock STORY --reset` sets it to 0",
}


def updated(spot: Place, id: str, path: Path, name: str, view: StoryView) -> list[str]:
    """Write what a run says into its story. Returns remarks: what a person had changed that the journal owns.

    Raises StoryFileError and OSError, with the story as it was."""
    touched: list[str] = []
    with _alone(spot, id):
        record = record_of(spot, id)
        if record is not None and record.view.run == view.run and record.view.seq > view.seq:
            return []  # another process knows more
        same_run = record is not None and record.view.run == view.run
        known = record.notes if record is not None and same_run else 0
        fresh = view.iterations[-(view.notes - known) :] if view.notes > known else ()
        fields = fields_of(view)

        def change(story: FrontMatter) -> str:
            nonlocal touched
            text, touched = merged(story, fields, record.fields if record else None, [note_of(each) for each in fresh])
            return text

        rewritten(path, name, change)
        kept = {key: value for key, value in fields.items() if value is not None}
        written(record_path(spot, id), msgspec.json.encode(Written(view, kept, view.notes)))
    return [f"{name}: {field} was changed by hand and is put back{_hint(field)}" for field in touched]


def _hint(field: str) -> str:
    return f": {HINTS[field]}" if field in HINTS else ": the journal has it"


@contextmanager
def _alone(spot: Place, id: str) -> Iterator[None]:
    """One process of ours at a time writes a story."""
    lock = record_path(spot, id).with_suffix(".lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
