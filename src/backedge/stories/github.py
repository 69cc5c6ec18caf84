"""Reads the issues of a GitHub repository with the program `gh`, and knows which of them are stories already."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from backedge.core.errors import WorkflowError
from backedge.core.ready_types import make_ready
from backedge.core.text import shortened
from backedge.stories.files import read_file

ISSUE = "issue"
"""The key in front matter that has the address of the issue."""
_FIELDS = "number,title,body,labels,milestone,url"
_PATIENCE = 120
_NO_LOGIN = 4
"""The exit code of `gh` if nobody is logged in."""
_ISSUE_LINE = re.compile(rb"^[ \t]*issue:[ \t]*[\"']?(https?://[^\s\"'#]+)[\"']?[ \t]*(?:#.*)?\r?$", re.MULTILINE)


class _Name(msgspec.Struct):
    name: str


class _Title(msgspec.Struct):
    title: str


class Issue(msgspec.Struct):
    """An issue, as `gh issue list --json` prints it."""

    number: int
    title: str
    url: str
    body: str | None = ""
    labels: list[_Name] = []
    milestone: _Title | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """What its story says in front matter: the milestone is the epic."""
        labels = [label.name for label in self.labels]
        return {"epic": self.milestone.title if self.milestone else None, "labels": labels, ISSUE: self.url}


make_ready(Issue)


def issues_from_gh(folder: Path, limit: int, options: Iterable[str]) -> list[Issue]:
    """The open issues of the repository of a folder, oldest first. Raises WorkflowError."""
    program = shutil.which("gh")
    if program is None:
        raise WorkflowError(
            "`gh` is not installed: install the GitHub CLI (https://cli.github.com) and run `gh auth login`; or add stories "
            "with `backedge story add`"
        )
    command = [program, "issue", "list", "--state", "open", "--limit", str(limit), "--json", _FIELDS, *options]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "GH_PROMPT_DISABLED": "1", "NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise WorkflowError(f"`gh issue list` did not answer within {_PATIENCE} s: try again later") from None
    except OSError as error:
        raise WorkflowError(f"`gh` cannot be started: {error.strerror}: install it again") from None
    said = shortened(done.stderr.decode("utf-8", "replace"), 300)
    if done.returncode == _NO_LOGIN:
        raise WorkflowError(f"`gh` is not logged in: run `gh auth login`; it said: {said}")
    if done.returncode:
        raise WorkflowError(f"`gh issue list` failed with exit code {done.returncode}: {said or 'it gave no reason'}")
    try:
        found = msgspec.json.decode(done.stdout, type=list[Issue])
    except msgspec.DecodeError as error:
        raise WorkflowError(f"`gh issue list` printed something else than issues: {error}: update gh") from None
    return sorted(found, key=lambda issue: issue.number)


def imported(files: Iterable[str]) -> set[str]:
    """The addresses of the issues that are stories already, also in stories that cannot be read otherwise."""
    found: set[str] = set()
    for path in files:
        try:
            head = read_file(path)
        except OSError:
            continue
        front = head.split(b"\n---", 1)[0]
        found |= {match[1].decode("utf-8", "replace").rstrip("/").casefold() for match in _ISSUE_LINE.finditer(front)}
    return found
