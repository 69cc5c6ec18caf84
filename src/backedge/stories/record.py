"""What backedge last wrote to a story file, stored next to the journal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from backedge.project import Project
from backedge.stories.files import read_file
from backedge.stories.rules.story_view import StoryView

VERSION = 1
"""Increases when the state of a story has new fields: an older record is not used as that state."""


class StoryRecord(msgspec.Struct, omit_defaults=True):
    """What was last written to a story file, and the state of the run at that time."""

    view: StoryView
    fields: dict[str, Any] = {}
    notes: int = 0
    earlier: dict[str, list[Any]] = {}
    """Refinements and reviews from before the run: from another system, or from a cancelled run."""
    version: int = 0
    max_refinements: int | None = None
    """The limit in the front matter at that time. An agent may have changed it until then, only people do after it."""


RECORDS = "stories"
"""The folder next to the journal that has a record for each story."""


def record_path(project: Project, id: str) -> Path:
    return project.state / RECORDS / f"{id}.json"


_decoder = msgspec.json.Decoder(StoryRecord)


def record_of(project: Project, id: str) -> StoryRecord | None:
    """The record of a story; None if there is none, or if this version cannot read it."""
    try:
        return _decoder.decode(read_file(f"{project.state}/{RECORDS}/{id}.json"))
    except (OSError, msgspec.DecodeError):
        return None
