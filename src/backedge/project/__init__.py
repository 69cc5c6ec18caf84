"""A project: a folder with a workflow file, its state, and those who execute it."""

from backedge.project.agents import Views, agents_of
from backedge.project.hiring import FileWorkflow
from backedge.project.missing import missing_programs
from backedge.project.place import STATE, Place, end_agent, file_of, keep_file, place, secrets_in, secrets_of, stand_at

__all__ = [
    "STATE",
    "FileWorkflow",
    "Place",
    "Views",
    "agents_of",
    "end_agent",
    "file_of",
    "keep_file",
    "missing_programs",
    "place",
    "secrets_in",
    "secrets_of",
    "stand_at",
]
