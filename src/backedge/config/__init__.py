"""Workflow files: `backedge.yaml` read, checked and turned into a definition with its agents."""

from backedge.config.agents import AgentSpec
from backedge.config.drawing import back_edges, mermaid, picture
from backedge.config.problems import Problem, WorkflowFileError
from backedge.config.schema import EDITOR_LINE, SCHEMA, SCHEMA_FILE, schema_text
from backedge.config.steps import Report, StepExtras
from backedge.config.workflow_file import WorkflowFile, find, load

__all__ = [
    "EDITOR_LINE",
    "SCHEMA",
    "SCHEMA_FILE",
    "AgentSpec",
    "Problem",
    "Report",
    "StepExtras",
    "WorkflowFile",
    "WorkflowFileError",
    "back_edges",
    "find",
    "load",
    "mermaid",
    "picture",
    "schema_text",
]
