"""The report file of a tool. It counts only if this attempt wrote it."""

from __future__ import annotations

from pathlib import Path

from backedge.adapters.agents.attempt_folder import AttemptFolder
from backedge.adapters.agents.execution import stamp
from backedge.adapters.agents.outcome import content
from backedge.core.errors import AgentError

LARGEST = 64 * 1024 * 1024
"""Bytes of a report that are read."""


def evidence(path: Path, workspace: Path, folder: AttemptFolder) -> bytes:
    """The text of a report. Raises AgentError if it is missing, stale, too large or outside the workspace."""
    # The name of a report in the attempt's folder is random, which says nothing to the reader.
    name = f"report{path.suffix}" if path.parent == folder.path else path.name
    if not path.resolve().is_relative_to(workspace.resolve()) and path.parent != folder.path:
        raise AgentError(f"the report {name!r} leads out of the workspace: write a file inside it")
    text = content(path, LARGEST, "the report")
    if text is None:
        raise AgentError(f"the report {name!r} is missing: the command has to write it")
    starting, now = folder.starting, stamp(path)
    untouched = starting is None or now == starting.report
    if untouched or now is None or path.stat().st_mtime_ns < folder.started_ns:
        raise AgentError(
            f"the report {name!r} is stale: it is older than the attempt; the command has to write it every time"
        )
    return folder.secrets.content(text)
