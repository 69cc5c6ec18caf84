"""`show --diff`: everything that each attempt changed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec.structs import replace

from backedge.adapters.agents.attempt_folder import AttemptFolder
from backedge.adapters.agents.secrets import Secrets
from backedge.adapters.evidence.writes import PATCH
from backedge.cli.common import print_json, shown
from backedge.cli.protected_diff import ProtectedDiff, RunDiffs
from backedge.core import events as e
from backedge.core.errors import JournalDamaged
from backedge.core.model import SIDE_MODES, Change, OutputDigest
from backedge.core.state.run import RunState
from backedge.core.text import clean
from backedge.ports import Journal
from backedge.project import Project, secrets_in

MOST_LINES = 80
"""How many lines of one difference to show: a whole large artifact is too much for a terminal."""
LARGEST = 20_000
"""How many lines of a version to compare."""
WIDEST = 300


class ReworkDiff(msgspec.Struct, frozen=True):
    """What one attempt changed."""

    step: str
    attempt: int
    version: int
    """The new version, or the last one if the attempt made none."""
    loops: tuple[str, ...]
    """The loops whose feedback it addresses; empty if only an input changed."""
    summary: str
    diff: tuple[str, ...]
    """The difference of the outputs, as unified diff lines."""
    left_out: int
    """How many lines of the difference were left out."""
    files: tuple[Change, ...]
    """The files of the workspace that changed, and where, if that is known."""
    files_diff: tuple[str, ...] = ()
    """The stored differences of those files, as unified diff lines."""
    files_left_out: int = 0
    note: str = ""
    """Why there is no difference of the outputs."""
    undone: tuple[str, ...] = ()
    """Changes outside its `writes`, or of a judge, that were undone, as unified diff lines."""
    undone_left_out: int = 0
    protected: tuple[ProtectedDiff, ...] = ()
    """The tests and configuration of judges that it left changed, compared with the start of the run: all of them."""
    new_version: bool = True
    """Whether the attempt made a new version of its artifact."""


async def reworks(journal: Journal, project: Project, state: RunState, events: Sequence[e.Event]) -> list[ReworkDiff]:
    """What every attempt changed, in order: its new version, its files, also those that were undone because the step may
    not change them, and the tests that it left changed. A first version is listed if it changed files."""
    found: dict[tuple[str, int], ReworkDiff] = {}
    before: dict[str, tuple[int, OutputDigest]] = {}
    started: dict[tuple[str, int], e.AttemptStarted] = {}
    secrets = secrets_in(project, state.run)
    for event in events:
        match event:
            case e.AttemptStarted():
                started[event.step, event.attempt] = event
            case e.AttemptSucceeded():
                start = started[event.step, event.attempt]
                version, last = before.get(event.step, (0, None))
                entry = _nothing(start, version, event.summary)
                judges = state.graph.is_judge(event.step) if event.step in state.graph.steps else False
                if not judges and start.mode not in SIDE_MODES and (last is None or last.digest != event.made.digest):
                    before[event.step] = version + 1, event.made
                    kept = AttemptFolder(project.state, state.run, event.step, event.attempt).files
                    entry = await _rework(journal, kept, start, version + 1, last, event)
                found[event.step, event.attempt] = entry
            case e.AttemptFailed() | e.AttemptDropped() if (event.step, event.attempt) in started:
                why = f"broke: {event.error}" if isinstance(event, e.AttemptFailed) else event.reason
                version, _ = before.get(event.step, (0, None))
                entry = _nothing(started[event.step, event.attempt], version, why)
                texts = _kept_lines(AttemptFolder(project.state, state.run, event.step, event.attempt).files)
                found[event.step, event.attempt] = replace(
                    entry, files_diff=_shortened(texts), files_left_out=max(0, len(texts) - MOST_LINES)
                )
            case e.EvidenceRecorded() if (event.step, event.attempt) in found:
                entry = found[event.step, event.attempt]
                known = {change.where for change in entry.files}
                named = tuple(Change(name) for name in event.evidence.files if name not in known)
                found[event.step, event.attempt] = replace(entry, files=(*entry.files, *named))
            case _:
                pass
    diffs = RunDiffs(project, state.run)
    for key, entry in found.items():
        undone = _undone_lines(AttemptFolder(project.state, state.run, *key).path, secrets)
        changed = [each for each in state.protected.values() if (each.step, each.attempt) == key]
        found[key] = replace(
            entry,
            undone=_shortened(undone),
            undone_left_out=max(0, len(undone) - MOST_LINES),
            protected=tuple(diffs.of(each) for each in changed),
        )
    return [entry for entry in found.values() if _is_shown(entry)]


def _nothing(start: e.AttemptStarted, version: int, summary: str) -> ReworkDiff:
    return ReworkDiff(start.step, start.attempt, version, start.loops, summary, (), 0, (), new_version=False)


def _is_shown(entry: ReworkDiff) -> bool:
    return bool(
        entry.files or entry.files_diff or entry.undone or entry.protected or (entry.new_version and entry.version > 1)
    )


def _undone_lines(folder: Path, secrets: Secrets) -> list[str]:
    """What the attempt changed outside its `writes`, and what was undone because of that."""
    patches = sorted(folder.glob(f"{Path(PATCH).stem}*{Path(PATCH).suffix}"))
    return [line for patch in patches for line in secrets.text("\n".join(_kept_lines(patch))).splitlines()]


async def _rework(
    journal: Journal,
    kept: Path,
    start: e.AttemptStarted,
    version: int,
    last: OutputDigest | None,
    event: e.AttemptSucceeded,
) -> ReworkDiff:
    files = tuple(change for change in event.made.changed if change.where and not change.where.startswith("/"))
    lines, note = await _compared(journal, last, event.made, version) if last is not None else ([], "")
    texts = _kept_lines(kept) if files or last is None else []
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


async def _compared(journal: Journal, last: OutputDigest, made: OutputDigest, version: int) -> tuple[list[str], str]:
    """The difference of two outputs, and why there is none."""
    try:
        old, new = await _lines(journal, last), await _lines(journal, made)
    except JournalDamaged:
        return [], "the outputs were pruned or never stored, so they cannot be compared"
    lines = list(unified_diff(old, new, f"v{version - 1}", f"v{version}", lineterm=""))
    return lines, "" if lines else "the output is the same"


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
        click.echo(f"no attempt changed anything{f' in {step}' if step else ''}")
    for place, each in enumerate(chosen):
        if place:
            click.echo()
        for line in _told(each):
            click.echo(line)


def _told(each: ReworkDiff) -> Iterator[str]:
    yield _styled(f"{each.step} {_version(each)}, attempt {each.attempt}{_why(each)}", bold=True)
    if each.summary:
        yield f"  {shown(each.summary)}"
    for diff in each.protected:
        yield f"  protected: {shown(diff.file)}, compared with the start of the run{f' ({diff.note})' if diff.note else ''}"
        # Never cut off: a test may have been removed in the last line.
        yield from _diff(diff.lines if not _has(each.files_diff, diff.file) else (), 0)
    for change in each.files[:MOST_LINES]:
        lines = ", ".join(f"{first}–{last}" if last > first else f"{first}" for first, last in change.lines[:8])
        word = "line" if lines.isdecimal() else "lines"
        yield f"  {shown(change.where)}{f': {word} {lines}' if lines else ''}"
    if len(each.files) > MOST_LINES:
        yield f"  … and {len(each.files) - MOST_LINES} more files"
    yield from _diff(each.files_diff, each.files_left_out)
    if each.undone:
        yield "  undone, because the step may not change it:"
        yield from _diff(each.undone, each.undone_left_out)
    if each.note and not each.files_diff:
        yield f"  ({each.note})"
    yield from _diff(each.diff, each.left_out)


def _version(each: ReworkDiff) -> str:
    if not each.new_version:
        return f"stays at v{each.version}" if each.version else "has no version"
    return f"v{each.version - 1} → v{each.version}" if each.version > 1 else "v1"


def _why(each: ReworkDiff) -> str:
    if each.loops:
        return f", rework for {', '.join(each.loops)}"
    return ", because its input changed" if each.new_version and each.version > 1 else ""


def _has(lines: Sequence[str], file: str) -> bool:
    """Whether a shown difference has this file."""
    return any(line.removeprefix(side).rstrip() == file for line in lines for side in ("--- a/", "+++ b/"))


def _diff(lines: Sequence[str], left_out: int) -> Iterator[str]:
    for line in lines:
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        yield _styled(f"  {clean(line)}", fg=colour)
    if left_out:
        yield f"  … and {left_out} more lines"


def _styled(text: str, **style: Any) -> str:
    return text if os.environ.get("NO_COLOR") else click.style(text, **style)
