"""A canary: does a judge notice that a file is broken?

An exit code proves only that the program ended. With `canary: true`, a judge that passes runs once more for a few of the
files that were changed, each with a line at its top that must fail. A judge that passes then is blind to that file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from backedge.adapters.evidence.tree import Tree
from backedge.engine.protocol import Finding

MOST_FILES = 3
"""How many changed files are broken, in one run of the judge each."""
LARGEST = 1_000_000
"""Bytes of the largest file that is broken."""

_PYTHON, _JAVASCRIPT, _SHELL = b"raise SystemExit('canary')\n", b"throw new Error('canary');\n", b"exit 97\n"
_GARBAGE = b"canary ((( this line must not be accepted\n"
_LINES = {
    **dict.fromkeys((".py", ".pyw"), _PYTHON),
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx"), _JAVASCRIPT),
    **dict.fromkeys((".sh", ".bash", ".zsh", ".ksh"), _SHELL),
}
_SHEBANGS = (
    (re.compile(rb"#!.*python"), _PYTHON),
    (re.compile(rb"#!.*node"), _JAVASCRIPT),
    (re.compile(rb"#!.*sh"), _SHELL),
)
_DOCUMENTS = frozenset(
    (".md", ".rst", ".txt", ".adoc", ".lock", ".csv", ".svg", ".png", ".jpg", ".gif", ".ico", ".pdf", ".po", ".log")
)
"""Files that no judge runs."""


@dataclass(frozen=True)
class Trial:
    """What a judge did with one broken file."""

    file: str
    passed: bool
    opened: bool
    """Whether it read the file at all."""


def candidates(base: Tree, tree: Tree, kinds: Mapping[str, str | None]) -> list[str]:
    """The product files that changed since the start of the run: programs first. `kinds` says which are protected."""
    changed = (
        name
        for name, digest in tree.files.items()
        if base.files.get(name) != digest and digest[0] in "fx" and kinds.get(name) is None
    )
    fitting = [name for name in changed if PurePosixPath(name).suffix.lower() not in _DOCUMENTS]
    return sorted(fitting, key=lambda name: (PurePosixPath(name).suffix not in _LINES, name))


def broken(name: str, content: bytes) -> bytes | None:
    """The file with a line at its top that must fail; None if that says nothing about it, because it is not text or is
    empty."""
    if not content.strip() or b"\0" in content or len(content) > LARGEST:
        return None
    first, newline, rest = content.partition(b"\n")
    by_name = _LINES.get(PurePosixPath(name).suffix.lower())
    if not first.startswith(b"#!"):
        return (by_name or _GARBAGE) + content
    by_program = next((line for pattern, line in _SHEBANGS if pattern.match(first)), _GARBAGE)
    return first + (newline or b"\n") + (by_name or by_program) + rest


def blind_spots(trials: Iterable[Trial]) -> list[Finding]:
    """A finding for each file that the judge reads without noticing that it is broken."""
    return [
        Finding(
            f"the judge does not notice a broken {trial.file}",
            severity="high",
            category="evidence",
            evidence=f"{trial.file} began with a line that must fail, the judge read it, and passed",
            file=trial.file,
            suggested_fix="make the command of this judge fail when the file fails",
        )
        for trial in trials
        if trial.passed and trial.opened
    ]


def never_loaded(step: str, trials: Iterable[Trial]) -> list[str]:
    """A sentence about the files that the judge does not read: its pass says nothing about them."""
    unread = [trial.file for trial in trials if trial.passed and not trial.opened]
    return [f"{step} does not load {', '.join(unread)}: its pass says nothing about it"] if unread else []
