"""Workflow files for tests: written to a folder, loaded, and their problems as lines."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from backedge.config import WorkflowFile, WorkflowFileError
from backedge.config.workflow_file import workflow_file

EXAMPLE = """\
name: user-management
profile: default
limits: {rounds_per_loop: 3, cost_usd: 5}
steps:
  plan:          {phase: planning, run: [python, agents/plan.py]}
  design:        {phase: design, needs: [plan], run: [python, agents/design.py]}
  design_review: {reviews: design, run: [python, agents/review.py]}
  code:          {phase: code, needs: [design], agent: claude, prompt: prompts/code.md}
  test:          {tests: code, run: [pytest, --junitxml, "{report}"], report: junit}
"""
"""The example of the design."""


def read(text: str | bytes, folder: Path) -> WorkflowFile:
    data = dedent(text).encode() if isinstance(text, str) else text
    return workflow_file(data, folder / "backedge.yaml")


def problems(text: str | bytes, folder: Path) -> list[str]:
    """The lines of the error, without the folder in front of the file's name; none if the file is fine."""
    try:
        read(text, folder)
    except WorkflowFileError as error:
        return [line.replace(f"{folder}/backedge.yaml:", "", 1) for line in str(error).splitlines()]
    return []


def step(**keys: str) -> str:
    """A file with one step `a` that has these keys, from line 4 on."""
    lines = "".join(f"    {key}: {value}\n" for key, value in keys.items())
    return f"name: w\nsteps:\n  a:\n{lines}"
