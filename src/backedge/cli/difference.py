"""`show --diff`: what each version of an artifact changed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any

import click
import msgspec

from backedge.adapters.agents.attempt_folder import AttemptFolder
from backedge.cli.common import print_json, shown
from backedge.core import events as e
from backedge.core.errors import JournalDamaged
from backedge.core.model import SIDE_MODES, Change, OutputDigest
from backedge.core.text import clean
from backedge.core.workflow.graph import Graph, graph_of
from backedge.ports import Journal

MOST_LINES = 80
"""How many lines of one difference to show: a whole large artifact is too much for a terminal."""
LARGEST = 20_000
"""How many lines of a version to compare."""
WIDEST = 300


class ReworkDiff(msgspec.Struct, frozen=True):
    """One new version of an artifact."""

    step: str
    attempt: int
    version: int
    """The new version; it differs from the one before."""
    loops: tuple[str, ...]
    """The loops whose feedback it addresses; empty if only an input changed."""
    summary: str
    diff: tuple[str, ...]
    """The difference of the outputs, as unified diff lines."""
    left_out: int
    """How many lines of the difference were left out."""
    files: tuple[Change, ...]
    """The files of the workspace that changed, and where."""
    files_diff: tuple[str, ...] = ()
    """The stored differences of those files, as unified diff lines."""
    files_left_out: int = 0
    note: str = ""
    """Why there is no difference of the outputs."""


async def reworks(journal: Journal, state: Path, run: str, events: Sequence[e.Event]) -> list[ReworkDiff]:
    """Every version after the first of every artifact, in the order of their creation."""
    found: list[ReworkDiff] = []
    before: dict[str, tuple[int, OutputDigest]] = {}
    started: dict[tuple[str, int], e.AttemptStarted] = {}
    graph: Graph | None = None
    for event in events:
        match event:
            case e.RunStarted():
                graph = graph_of(event.workflow)
            case e.AttemptStarted():
                started[event.step, event.attempt] = event
            case e.AttemptSucceeded() if graph is not None and not graph.is_judge(event.step):
                start = started[event.step, event.attempt]
                version, last = before.get(event.step, (0, None))
                if start.mode in SIDE_MODES or (last is not None and last.digest == event.made.digest):
                    continue
                before[event.step] = version + 1, event.made
                if last is not None:
                    kept = AttemptFolder(state, run, event.step, event.attempt).files
                    found.append(await _rework(journal, kept, start, version + 1, last, event))
            case _:
                pass
    return found


async def _rework(
    journal: Journal, kept: Path, start: e.AttemptStarted, version: int, last: OutputDigest, event: e.AttemptSucceeded
) -> ReworkDiff:
    files = tuple(change for change in event.made.changed if change.where and not change.where.startswith("/"))
    try:
        old, new = await _lines(journal, last), await _lines(journal, event.made)
        lines = list(unified_diff(old, new, f"v{version - 1}", f"v{version}", lineterm=""))
        note = "" if lines else "the output is the same"
    except JournalDamaged:
        lines, note = [], "the outputs were pruned or never stored, so they cannot be compared"
    texts = _kept_lines(kept) if files else []
    return ReworkDiff(
        step=event.step,
        attempt=event.attempt,
        version=version,
        loops=start.loops,
        summary=event.summary,
        diff=_shortened(lines),
        left_out=max(0, len(lines) - MOST_LINES),
        files=files,
        files_diff=_shortened(texts),
        files_left_out=max(0, len(texts) - MOST_LINES),
        note=note,
    )


def _shortened(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(line[:WIDEST] for line in lines[:MOST_LINES])


def _kept_lines(path: Path) -> list[str]:
    """What the attempt changed in files; empty if that was pruned, or if the attempt ran on another machine."""
    try:
        return clean(path.read_text("utf-8", "replace")).splitlines()
    except OSError:
        return []


async def _lines(journal: Journal, made: OutputDigest) -> list[str]:
    output: Any = made.output
    if made.payload is not None:
        output = msgspec.json.decode(await journal.payload(made.payload))
    if not isinstance(output, str):
        output = msgspec.json.format(msgspec.json.encode(output, order="sorted"), indent=2).decode()
    return clean(output).splitlines()[:LARGEST]


def print_reworks(found: Sequence[ReworkDiff], step: str | None, as_json: bool) -> None:
    """Print the differences of all steps, or of one."""
    chosen = [each for each in found if step is None or each.step == step]
    if as_json:
        print_json(chosen)
        return
    if not chosen:
        click.echo(f"no rework changed anything{f' in {step}' if step else ''}")
    for place, each in enumerate(chosen):
        if place:
            click.echo()
        for line in _told(each):
            click.echo(line)


def _told(each: ReworkDiff) -> Iterator[str]:
    why = f"rework for {', '.join(each.loops)}" if each.loops else "because its input changed"
    yield _styled(f"{each.step} v{each.version - 1} → v{each.version}, attempt {each.attempt}, {why}", bold=True)
    if each.summary:
        yield f"  {shown(each.summary)}"
    for change in each.files:
        lines = ", ".join(f"{first}–{last}" if last > first else f"{first}" for first, last in change.lines[:8])
        word = "line" if lines.isdecimal() else "lines"
        yield f"  {shown(change.where)}{f': {word} {lines}' if lines else ''}"
    yield from _diff(each.files_diff, each.files_left_out)
    if each.note and not each.files_diff:
        yield f"  ({each.note})"
    yield from _diff(each.diff, each.left_out)


def _diff(lines: Sequence[str], left_out: int) -> Iterator[str]:
    for line in lines:
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        yield _styled(f"  {clean(line)}", fg=colour)
    if left_out:
        yield f"  … and {left_out} more lines"


def _styled(text: str, **style: Any) -> str:
    return text if os.environ.get("NO_COLOR") else click.style(text, **style)
