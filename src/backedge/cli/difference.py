"""`show --diff`: everything that each attempt changed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import click

from backedge.analytics.changes import AttemptChange
from backedge.cli.common import print_json, shown
from backedge.core.text import clean, counted
from backedge.reading.attempt_changes import MOST_LINES

BY_NOBODY = "changed by no attempt: by a person, or by another program"


def print_reworks(found: Sequence[AttemptChange], step: str | None, as_json: bool) -> None:
    """Print the differences of all steps, or of one."""
    chosen = [each for each in found if step is None or each.step == step]
    if as_json:
        print_json(chosen)
        return
    if not chosen:
        click.echo(f"no attempt changed anything{f' in {step}' if step else ''}")
    for place, each in enumerate(chosen):
        if place:
            click.echo()
        for line in _told(each):
            click.echo(line)


def _told(each: AttemptChange) -> Iterator[str]:
    title = f"{each.step} {_version(each)}, attempt {each.attempt}{_why(each)}" if each.step else BY_NOBODY
    yield _styled(title, bold=True)
    if each.summary:
        yield f"  {shown(each.summary)}"
    for diff in each.protected:
        yield f"  protected: {shown(diff.file)}, compared with the start of the run{f' ({diff.note})' if diff.note else ''}"
        # Never cut off: a test may have been removed in the last line.
        yield from _diff(diff.lines if not _has_all(each.files_diff, diff.lines) else (), 0)
    for change in each.files[:MOST_LINES]:
        lines = ", ".join(f"{first}–{last}" if last > first else f"{first}" for first, last in change.lines[:8])
        word = "line" if lines.isdecimal() else "lines"
        yield f"  {shown(change.where)}{f': {word} {lines}' if lines else ''}"
    if len(each.files) > MOST_LINES:
        yield f"  … and {counted(len(each.files) - MOST_LINES, 'more file')}"
    yield from _diff(each.files_diff, each.files_left_out)
    if each.undone:
        yield f"  undone, because {each.undone_because}:"
        yield from _diff(each.undone, each.undone_left_out)
    if each.note and not each.files_diff:
        yield f"  ({each.note})"
    yield from _diff(each.diff, each.left_out)


def _version(each: AttemptChange) -> str:
    if not each.new_version:
        return f"stays at v{each.version}" if each.version else "has no version"
    return f"v{each.version - 1} → v{each.version}" if each.version > 1 else "v1"


def _why(each: AttemptChange) -> str:
    if each.loops:
        return f", rework for {', '.join(each.loops)}"
    return ", because its input changed" if each.new_version and each.version > 1 else ""


def _has_all(lines: Sequence[str], part: Sequence[str]) -> bool:
    """Whether a shown difference has all of these lines, one after the other. A line that looks like the head of a file
    proves nothing: it may be a line of another file, and what follows may be cut off."""
    whole = tuple(part)
    return any(tuple(lines[at : at + len(whole)]) == whole for at in range(len(lines) - len(whole) + 1))


def _diff(lines: Sequence[str], left_out: int) -> Iterator[str]:
    for line in lines:
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        yield _styled(f"  {clean(line)}", fg=colour)
    if left_out:
        yield f"  … and {counted(left_out, 'more line')}"


def _styled(text: str, **style: Any) -> str:
    return text if os.environ.get("NO_COLOR") else click.style(text, **style)
