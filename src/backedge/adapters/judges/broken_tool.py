"""What tools print when they are not installed, or were called in a wrong way: no change of the product could help."""

from __future__ import annotations

import re

from backedge.adapters.evidence.protected import PROGRAMS, RUNNERS

_TOOLS = "|".join(sorted(re.escape(name) for name in (RUNNERS | PROGRAMS | {"ava", "tap", "c8", "nyc", "biome"})))
_MISSING = re.compile(
    rf"^(?:\S+: (?:line )?(?:\d+: )?)?(?P<shell>{_TOOLS}): (?:command )?not found$"
    rf"|^(?:\S+:)?(?:\d+: ?)? ?command not found: (?P<zsh>{_TOOLS})$"
    rf"|^(?:make|(?:\S*/)?env): [‘'`\"]?(?P<started>{_TOOLS})[’'\"]?: No such file or directory$"
    rf"|^\S*python[\d.]*: No module named '?(?P<module>{_TOOLS})\b"
    rf"|Cannot find module '[^']*/node_modules/(?:\.bin/)?(?P<package>{_TOOLS})[/'.]"
    r"|npx canceled due to missing packages[^\[]*\[\"(?P<npx>[^\"]+)\"",
    re.MULTILINE,
)
"""Only tools that are known, since a test may come before the program that it tests: `sh: 1: shop: not found`."""
_MISUSED = re.compile(rf"^.*\b(?P<misused>{_TOOLS}): error: unrecognized arguments.*$", re.MULTILINE)
_UNCLEAR = re.compile(
    r"unrecognized arguments|no such option|unknown option|unknown flag|invalid option"
    r"|No module named '?(?:pytest|unittest|ruff|mypy|flake8|pylint|xmlrunner|coverage)\b|: command not found"
)
"""A test may print these as well, so they count only if the tool wrote no report."""


def missing_tool(printed: str) -> str:
    """The name of a tool that is not installed; empty if none is missing."""
    found = _MISSING.search(printed)
    return found[found.lastgroup or 0] if found else ""


def misused_tool(printed: str) -> str:
    """The line with which a tool refuses its arguments; empty if none does."""
    found = _MISUSED.search(printed)
    return found[0][:300] if found else ""


def is_broken(problem: str) -> bool:
    """Whether a tool that wrote no report is not there, or was called in a wrong way, by what is known about it."""
    return bool(_UNCLEAR.search(problem) or "cannot start" in problem)
