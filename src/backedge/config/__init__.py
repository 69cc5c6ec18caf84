"""Workflow files: `backedge.yaml` read, checked and turned into a definition with its agents."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

if _TYPE_CHECKING:
    from backedge.config.agents import AgentSpec
    from backedge.config.drawing import back_edges, mermaid, picture
    from backedge.config.finding import find
    from backedge.config.problems import Problem, WorkflowFileError
    from backedge.config.schema import EDITOR_LINE, SCHEMA, SCHEMA_FILE, schema_text
    from backedge.config.steps import StepExtras, ToolReport
    from backedge.config.workflow_file import WorkflowFile, load

# Imported when used: a command that only looks for the workflow file does not need to read YAML.
_HOMES = {
    "AgentSpec": "backedge.config.agents",
    "EDITOR_LINE": "backedge.config.schema",
    "Problem": "backedge.config.problems",
    "ToolReport": "backedge.config.steps",
    "SCHEMA": "backedge.config.schema",
    "SCHEMA_FILE": "backedge.config.schema",
    "StepExtras": "backedge.config.steps",
    "WorkflowFile": "backedge.config.workflow_file",
    "WorkflowFileError": "backedge.config.problems",
    "back_edges": "backedge.config.drawing",
    "find": "backedge.config.finding",
    "load": "backedge.config.workflow_file",
    "mermaid": "backedge.config.drawing",
    "picture": "backedge.config.drawing",
    "schema_text": "backedge.config.schema",
}

__all__ = [
    "EDITOR_LINE",
    "SCHEMA",
    "SCHEMA_FILE",
    "AgentSpec",
    "Problem",
    "StepExtras",
    "ToolReport",
    "WorkflowFile",
    "WorkflowFileError",
    "back_edges",
    "find",
    "load",
    "mermaid",
    "picture",
    "schema_text",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(_HOMES[name]), name)
