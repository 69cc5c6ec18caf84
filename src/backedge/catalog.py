"""The names that a workflow file can use for things that this package provides: the only list of each.

The schema of the workflow file, the commands and the docs take the names from here.
"""

from __future__ import annotations

from typing import Literal, get_args

AGENT_CLIS = ("claude", "codex", "gemini", "opencode")
"""The agent CLIs, in the order in which `init` prefers them. `adapters/agents/clis/` has a module of that name for each."""

TOKENS_ONLY = ("codex", "gemini")
"""The agent CLIs that report tokens and no cost."""

ROLES = ("plan", "design", "code", "review", "test-writer")
"""The prompts that come with backedge. `prompts/` has a file for each."""

ReportKind = Literal["junit", "unittest", "node", "jest", "gotest", "cargo", "tap", "sarif", "json", "exitcode"]
"""The reports of tools that backedge reads itself, in `adapters/reports/`."""
REPORTS: tuple[ReportKind, ...] = get_args(ReportKind)
REPORTERS: tuple[ReportKind, ...] = ("unittest", "node")
"""The reports for which backedge brings the reporter. `{reporter}` in a command is its file."""
PRINTED: tuple[ReportKind, ...] = ("gotest", "cargo", "tap")
"""The reports that are read from stdout, unless the command writes a file."""
WITHOUT_FILE: tuple[ReportKind, ...] = ("cargo", "exitcode")
"""The reports that are never in a file."""
