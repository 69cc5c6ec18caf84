"""The files that a run changed, with how many lines it added and removed: from its start to now, as `git diff --stat` counts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from backedge.adapters.agents.attempt_folder import AttemptFolder
from backedge.core import events as e
from backedge.core.events import Event
from backedge.project import Project
from backedge.reading.attempt_changes import rolled_back, undone_patches

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
Lines = tuple[Counter[str], Counter[str]]
"""The lines that were added to a file, and those that were removed from it."""
Attempt = tuple[str, int]


def changed_files(events: Sequence[Event], project: Project, run: str) -> dict[str, tuple[int, int] | None]:
    """Every file that is not as it was when the run began, with the lines added and removed; None if those are not known.

    A line that one attempt adds and a later one removes was not changed by the run. Steps that work at the same time see
    each other's changes: these count once. What was undone does not count."""
    together: dict[str, Lines] = {}
    undone = rolled_back(events)
    for attempts in _overlapping(events):
        of_step: dict[str, dict[str, Lines]] = {}
        for step, attempt in attempts:
            if (step, attempt) in undone:
                continue
            folder = AttemptFolder(project.state, run, step, attempt)
            taken_back = dict(_lines("\n".join(map(_text, undone_patches(folder.path)))))
            for name, (plus, minus) in _lines(_text(folder.files)):
                less = taken_back.get(name, (Counter(), Counter()))
                _append(of_step.setdefault(step, {}), name, (plus - less[0], minus - less[1]))
        seen: dict[str, Lines] = {}
        for files in of_step.values():
            for name, (plus, minus) in files.items():
                most = seen.get(name, (Counter(), Counter()))
                seen[name] = most[0] | plus, most[1] | minus
        for name, lines in seen.items():
            _append(together, name, lines)
    counts: dict[str, tuple[int, int] | None] = {
        name: (plus.total(), minus.total()) for name, (plus, minus) in together.items() if plus or minus
    }
    # Differences are kept within limits; the names of files are known beyond them.
    return counts | {name: None for name in _names(events, undone) if name not in together}


def _names(events: Sequence[Event], undone: Collection[Attempt]) -> Iterator[str]:
    """The files that attempts changed, except these attempts."""
    for event in events:
        match event:
            case e.EvidenceRecorded() if (event.step, event.attempt) not in undone:
                yield from event.evidence.files
            case e.AttemptSucceeded() if (event.step, event.attempt) not in undone:
                yield from (each.where for each in event.made.changed if each.where and each.where[0] != "/")
            case _:
                pass


def _overlapping(events: Sequence[Event]) -> Iterator[list[Attempt]]:
    """The attempts in order, in groups: those that worked at the same time, directly or through others."""
    group: list[Attempt] = []
    running: set[Attempt] = set()
    for event in events:
        match event:
            case e.AttemptStarted():
                if not running and group:
                    yield group
                    group = []
                running.add((event.step, event.attempt))
                group.append((event.step, event.attempt))
            case e.AttemptSucceeded() | e.AttemptFailed() | e.AttemptLimited() | e.AttemptDropped():
                running.discard((event.step, event.attempt))
            case _:
                pass
    if group:
        yield group


def _append(files: dict[str, Lines], name: str, later: Lines) -> None:
    """Add what happened to a file later. Lines that were added and removed again cancel each other out."""
    before = files.get(name, (Counter(), Counter()))
    plus, minus = before[0] + later[0], before[1] + later[1]
    files[name] = plus - minus, minus - plus


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _lines(diff: str) -> Iterable[tuple[str, Lines]]:
    """What a unified diff adds to and removes from each of its files."""
    found: dict[str, Lines] = {}
    name, old, left = "", "", (0, 0)
    for line in diff.split("\n"):
        if any(left):
            sign = line[:1]
            if sign in ("+", "-"):
                found[name][sign == "-"][line[1:]] += 1
            left = left[0] - (sign not in ("+", "\\")), left[1] - (sign not in ("-", "\\"))
        elif line.startswith("--- "):
            old = line[4:]
        elif line.startswith("+++ "):
            name = (old if line[4:] == "/dev/null" else line[4:]).partition("/")[2]
            found.setdefault(name, (Counter(), Counter()))
        elif hunk := _HUNK.match(line):
            left = int(hunk[1] or 1), int(hunk[2] or 1)
    return found.items()
