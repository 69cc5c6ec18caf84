"""A project: a folder with a workflow file, its state and its agents."""

from backedge.project.agents import Views, agents_of
from backedge.project.file_workflow import FileWorkflow
from backedge.project.inspecting import checked_file
from backedge.project.missing import missing_programs
from backedge.project.project import (
    STATE,
    Project,
    changed_since,
    end_agent,
    file_of,
    find_project,
    keep_workflow_file,
    origin_of,
    secrets_in,
    secrets_of,
)

__all__ = [
    "STATE",
    "FileWorkflow",
    "Project",
    "Views",
    "agents_of",
    "changed_since",
    "checked_file",
    "end_agent",
    "file_of",
    "find_project",
    "keep_workflow_file",
    "missing_programs",
    "origin_of",
    "secrets_in",
    "secrets_of",
]
