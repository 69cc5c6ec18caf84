"""What backedge wrote last to a story file, kept beside the journal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from backedge.project import Project
from backedge.stories.files import read_file
from backedge.stories.rules.story_view import StoryView


class StoryRecord(msgspec.Struct, omit_defaults=True):
    """What was written last to a story file, and the state of the run at that time."""

    view: StoryView
    fields: dict[str, Any] = {}
    notes: int = 0
    earlier: dict[str, list[Any]] = {}
    """Refinements and reviews from before the run: of another system, or of a cancelled run."""


RECORDS = "stories"
"""The folder, beside the journal, with a record per story."""


def record_path(project: Project, id: str) -> Path:
    return project.state / RECORDS / f"{id}.json"


_decoder = msgspec.json.Decoder(StoryRecord)


def record_of(project: Project, id: str) -> StoryRecord | None:
    """The record of a story; None if there is none that this version can read."""
    try:
        return _decoder.decode(read_file(f"{project.state}/{RECORDS}/{id}.json"))
    except (OSError, msgspec.DecodeError):
        return None
