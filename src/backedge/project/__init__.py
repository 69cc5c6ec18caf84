"""A project: a folder with a workflow file, its state, and those who execute it."""

from backedge.project.agents import Views, agents_of
from backedge.project.hiring import FileWorkflow
from backedge.project.inspecting import checked_file
from backedge.project.missing import missing_programs
from backedge.project.place import (
    STATE,
    Place,
    changed_since,
    end_agent,
    file_of,
    keep_file,
    origin_of,
    place,
    secrets_in,
    secrets_of,
)

__all__ = [
    "STATE",
    "FileWorkflow",
    "Place",
    "Views",
    "agents_of",
    "changed_since",
    "checked_file",
    "end_agent",
    "file_of",
    "keep_file",
    "missing_programs",
    "origin_of",
    "place",
    "secrets_in",
    "secrets_of",
]
