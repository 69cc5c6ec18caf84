"""A project: a folder with a workflow file, its state and its agents."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:
    from backedge.project.agents import Views, agents_of
    from backedge.project.file_workflow import FileWorkflow
    from backedge.project.inspecting import checked_file, not_imported
    from backedge.project.location import STATE, Project, find_project
    from backedge.project.missing import missing_programs
    from backedge.project.project import (
        changed_since,
        end_agent,
        file_of,
        keep_workflow_file,
        kept_files,
        origin_of,
        secrets_in,
        secrets_of,
        settle_workflow_file,
    )
    from backedge.project.protection import InForce, in_force, sandbox_words, sandboxes

# Imported when used: most commands need to know where a project is, not how its agents are started.
_HOMES = {
    "FileWorkflow": "backedge.project.file_workflow",
    "InForce": "backedge.project.protection",
    "Project": "backedge.project.location",
    "STATE": "backedge.project.location",
    "Views": "backedge.project.agents",
    "agents_of": "backedge.project.agents",
    "changed_since": "backedge.project.project",
    "checked_file": "backedge.project.inspecting",
    "end_agent": "backedge.project.project",
    "file_of": "backedge.project.project",
    "find_project": "backedge.project.location",
    "in_force": "backedge.project.protection",
    "sandbox_words": "backedge.project.protection",
    "sandboxes": "backedge.project.protection",
    "keep_workflow_file": "backedge.project.project",
    "kept_files": "backedge.project.project",
    "missing_programs": "backedge.project.missing",
    "not_imported": "backedge.project.inspecting",
    "origin_of": "backedge.project.project",
    "secrets_in": "backedge.project.project",
    "secrets_of": "backedge.project.project",
    "settle_workflow_file": "backedge.project.project",
}

__all__ = [
    "STATE",
    "FileWorkflow",
    "InForce",
    "Project",
    "Views",
    "agents_of",
    "changed_since",
    "checked_file",
    "end_agent",
    "file_of",
    "find_project",
    "in_force",
    "keep_workflow_file",
    "kept_files",
    "missing_programs",
    "not_imported",
    "origin_of",
    "sandbox_words",
    "sandboxes",
    "secrets_in",
    "secrets_of",
    "settle_workflow_file",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(_HOMES[name]), name)
