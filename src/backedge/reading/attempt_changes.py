"""What each attempt of a run changed: its new version, its files, and what was undone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from backedge.adapters.agents.attempt_folder import AttemptFolder
from backedge.adapters.agents.secrets import Secrets
from backedge.adapters.evidence.writes import PATCH
from backedge.analytics.changes import AttemptChange
from backedge.core import events as e
from backedge.core.errors import JournalDamaged
from backedge.core.model import SIDE_MODES, Change, OutputDigest
from backedge.core.state.run import Escalation, RunState
from backedge.core.text import clean
from backedge.ports import Journal
from backedge.project import Project, secrets_in
from backedge.reading.protected_diff import RunDiffs

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


async def changes_asked_about(
    journal: Journal, project: Project, state: RunState, events: Sequence[e.Event], packet: Escalation
) -> tuple[AttemptChange, ...]:
    """What a question is about: the last change of each of its steps, or all changes that a person has to approve."""
    approver = state.graph.steps.get(packet.step or "")
    if approver is None or not approver.approver:
        return await last_changes(journal, project, state, events, steps_of(state, packet))
    since: set[tuple[str, int]] = set()
    for event in events:
        if isinstance(event, e.AttemptStarted) and event.step in approver.judges:
            since.add((event.step, event.attempt))
        elif isinstance(event, e.VerdictGiven) and event.judge == approver.name and not event.unasked:
            since.clear()
    return tuple(await reworks(journal, project, state, events, since - rolled_back(events)))


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
    because the step may not change them, and the tests that it left changed. Without `only`, an entry without a step has the
    tests that no attempt changed, but a judge saw changed."""
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
                    entry,
                    files_diff=_shortened(texts),
                    files_left_out=max(0, len(texts) - MOST_LINES),
                    undone_because="the attempt gave no result",
                )
            case e.EvidenceRecorded() if (event.step, event.attempt) in found:
                entry = found[event.step, event.attempt]
                known = {change.where for change in entry.files}
                named = tuple(Change(name) for name in event.evidence.files if name not in known)
                found[event.step, event.attempt] = replace(entry, files=(*entry.files, *named))
            case _:
                pass
    diffs, rollbacks = RunDiffs(project, state.run), rolled_back(events)
    found = {key: entry for key, entry in found.items() if only is None or key in only}
    for key, entry in found.items():
        because = "it was rolled back" if key in rollbacks else entry.undone_because or "the step may not change it"
        undone = _undone_lines(AttemptFolder(project.state, state.run, *key).path, secrets)
        changed = [each for each in state.protected.values() if (each.step, each.attempt) == key]
        found[key] = replace(
            entry,
            undone=_shortened(undone),
            undone_because=because if undone else "",
            undone_left_out=max(0, len(undone) - MOST_LINES),
            protected=tuple(diffs.of(each) for each in changed),
        )
    entries = [entry for entry in found.values() if _is_shown(entry)]
    by_nobody = tuple(diffs.of(each) for each in state.protected.values() if not each.attempt) if only is None else ()
    if by_nobody:
        entries.append(AttemptChange("", 0, 0, (), "", (), 0, (), protected=by_nobody, new_version=False))
    return entries


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


def rolled_back(events: Sequence[e.Event]) -> frozenset[tuple[str, int]]:
    """The attempts whose changes of files were undone by rollbacks."""
    found: set[tuple[str, int]] = set()
    last: set[tuple[str, int]] = set()
    for event in events:
        if isinstance(event, e.RolledBack):
            last = {attempt for attempts in event.undo.values() for attempt in attempts}
        elif isinstance(event, e.FilesRestored) and not event.kept:
            found |= last
    return frozenset(found)


def undone_patches(folder: Path) -> list[Path]:
    """What was undone of an attempt, as patches."""
    return sorted(folder.glob(f"{Path(PATCH).stem}*{Path(PATCH).suffix}"))


def _undone_lines(folder: Path, secrets: Secrets) -> list[str]:
    patches = undone_patches(folder)
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
    return await compared(journal, last, made, f"v{version - 1}" if last is not None else "nothing", f"v{version}")


async def compared(
    journal: Journal, old: OutputDigest | None, new: OutputDigest, before: str, after: str
) -> tuple[list[str], str]:
    """The difference of two outputs as unified diff lines under these names, and why there is none."""
    try:
        one, other = await _lines(journal, old) if old is not None else [], await _lines(journal, new)
    except JournalDamaged:
        return [], "the outputs were pruned or never stored, so they cannot be compared"
    lines = list(unified_diff(one, other, before, after, lineterm=""))
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
