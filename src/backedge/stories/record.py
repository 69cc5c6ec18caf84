"""What backedge wrote last to a story file, kept beside the journal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from backedge.project import Project
from backedge.stories.files import read_file
from backedge.stories.rules.story_view import StoryView


class StoryRecord(msgspec.Struct, omit_defaults=True):
    """What we know of a story besides its file: what we wrote there last, and the run as it was then."""

    view: StoryView
    fields: dict[str, Any] = {}
    notes: int = 0
    earlier: dict[str, list[Any]] = {}
    """The refinements and reviews that the story had before its run: of another system, or of a run that was cancelled."""


RECORDS = "stories"
"""The folder, beside the journal, with what we wrote last to each story."""


def record_path(spot: Project, id: str) -> Path:
    return spot.state / RECORDS / f"{id}.json"


_decoder = msgspec.json.Decoder(StoryRecord)


def record_of(spot: Project, id: str) -> StoryRecord | None:
    """What we wrote last to a story; None if there is nothing, or nothing that this version understands."""
    try:
        return _decoder.decode(read_file(f"{spot.state}/{RECORDS}/{id}.json"))
    except (OSError, msgspec.DecodeError):
        return None
