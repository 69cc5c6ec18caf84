"""`show --diff`: everything that each attempt changed."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any

import click
import msgspec
from msgspec.structs import replace

from backedge.adapters.agents.attempt_folder import AttemptFolder
from backedge.adapters.agents.secrets import Secrets
from backedge.adapters.evidence.writes import PATCH
from backedge.analytics.changes import AttemptChange
from backedge.cli.common import print_json, shown
from backedge.cli.protected_diff import RunDiffs
from backedge.core import events as e
from backedge.core.errors import JournalDamaged
from backedge.core.model import SIDE_MODES, Change, OutputDigest
from backedge.core.state.run import Escalation, RunState
from backedge.core.text import clean, counted
from backedge.ports import Journal
from backedge.project import Project, secrets_in

MOST_LINES = 80
"""How many lines of one difference to show: a whole large artifact is too much for a terminal."""
LARGEST = 20_000
"""How many lines of a version to compare."""
WIDEST = 300


async def last_changes(
    journal: Journal, project: Project, state: RunState, events: Sequence[e.Event], steps: Collection[str]
) -> tuple[AttemptChange, ...]:
    """What the attempt that made the current version of each of these steps changed."""
    made = {name: step.artifact for name, step in state.steps.items() if name in steps}
    attempts = {(name, artifact.attempt) for name, artifact in made.items() if artifact is not None}
    return tuple(await reworks(journal, project, state, events, attempts)) if attempts else ()


def under_discussion(state: RunState) -> tuple[str, ...]:
    """The steps that open loops and open questions are about: what was reworked last, and what is to be judged."""
    asked = (name for each in state.escalations.values() for name in steps_of(state, each))
    looping = (name for loop in state.loops.values() for name in loop.involved if name in state.steps)
    return tuple(dict.fromkeys((*asked, *looping)))


def steps_of(state: RunState, packet: Escalation) -> tuple[str, ...]:
    """The steps whose last change a question is about."""
    loop = state.loop(packet.loop) if packet.loop else None
    names = [*loop.targets, *loop.shares] if loop is not None else []
    if loop is not None and loop.source in state.graph.judges:
        names += state.graph.steps[loop.source].judges
    names += packet.about.inputs if packet.about is not None else ()
    names += [each.step for each in state.protected.values() if each.id in packet.protected]
    found = (name for name in dict.fromkeys(names) if name in state.steps and name not in state.graph.judges)
    return tuple(found)


async def reworks(
    journal: Journal,
    project: Project,
    state: RunState,
    events: Sequence[e.Event],
    only: Collection[tuple[str, int]] | None = None,
) -> list[AttemptChange]:
    """What every attempt changed, in order, or `only` these: its new version, its files, also those that were undone
    because the step may not change them, and the tests that it left changed."""
    found: dict[tuple[str, int], AttemptChange] = {}
    before: dict[str, tuple[int, OutputDigest]] = {}
    started: dict[tuple[str, int], e.AttemptStarted] = {}
    secrets = secrets_in(project, state.run)
    for event in events:
        match event:
            case e.AttemptStarted():
                started[event.step, event.attempt] = event
            case e.AttemptSucceeded() if (event.step, event.attempt) in started:
                start = started[event.step, event.attempt]
                version, last = before.get(event.step, (0, None))
                entry = _nothing(start, version, event.summary)
                judges = state.graph.is_judge(event.step) if event.step in state.graph.steps else False
                if not judges and start.mode not in SIDE_MODES and (last is None or last.digest != event.made.digest):
                    before[event.step] = version + 1, event.made
                    kept = AttemptFolder(project.state, state.run, event.step, event.attempt).files
                    if only is None or (event.step, event.attempt) in only:
                        entry = await _rework(journal, kept, start, version + 1, last, event)
                found[event.step, event.attempt] = entry
            case e.AttemptFailed() | e.AttemptLimited() | e.AttemptDropped() if (event.step, event.attempt) in started:
                why = _why_over(event)
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
    found = {key: entry for key, entry in found.items() if only is None or key in only}
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


def _why_over(event: e.AttemptFailed | e.AttemptLimited | e.AttemptDropped) -> str:
    if isinstance(event, e.AttemptFailed):
        return f"broke: {event.error}"
    return f"limit of the provider: {event.message}" if isinstance(event, e.AttemptLimited) else event.reason


def _nothing(start: e.AttemptStarted, version: int, summary: str) -> AttemptChange:
    return AttemptChange(start.step, start.attempt, version, start.loops, summary, (), 0, (), new_version=False)


def _is_shown(entry: AttemptChange) -> bool:
    return bool(
        entry.files or entry.files_diff or entry.undone or entry.protected or (entry.new_version and _says(entry))
    )


def _says(entry: AttemptChange) -> bool:
    """Whether a new version is worth a look: a first version without any output is not."""
    return entry.version > 1 or bool(entry.diff)


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
) -> AttemptChange:
    files = tuple(change for change in event.made.changed if change.where and not change.where.startswith("/"))
    lines, note = await _compared(journal, last, event.made, version)
    texts = _kept_lines(kept) if files or last is None else []
    return AttemptChange(
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


async def _compared(
    journal: Journal, last: OutputDigest | None, made: OutputDigest, version: int
) -> tuple[list[str], str]:
    """The difference of two outputs, and why there is none. A first version is compared with nothing."""
    if last is None and made.payload is None and made.output is None:
        return [], ""
    try:
        old, new = await _lines(journal, last) if last is not None else [], await _lines(journal, made)
    except JournalDamaged:
        return [], "the outputs were pruned or never stored, so they cannot be compared"
    before = f"v{version - 1}" if last is not None else "nothing"
    lines = list(unified_diff(old, new, before, f"v{version}", lineterm=""))
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
    yield _styled(f"{each.step} {_version(each)}, attempt {each.attempt}{_why(each)}", bold=True)
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
        yield "  undone, because the step may not change it:"
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
