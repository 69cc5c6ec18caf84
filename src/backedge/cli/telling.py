"""A run in words: one line per event."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from typing import Any

from backedge.core import events as e
from backedge.core.events import Event
from backedge.core.state.evolve import replay
from backedge.core.state.run import RunState
from backedge.reading.event_words import lines_of
from backedge.reading.evidence_words import noticed

LONGEST = 240
"""How many characters a line may have."""
COLOURS: dict[str, dict[str, Any]] = {
    "✓": {"fg": "green"},
    "✗": {"fg": "red"},
    "↩": {"fg": "yellow"},
    "?": {"bold": True, "fg": "magenta"},
    "⤺": {"fg": "yellow"},
    "●": {"fg": "green"},
    "■": {"bold": True},
    "▸": {"fg": "cyan"},
}
"""The colour of a line, by its mark."""


class Teller:
    """Prints the events of runs, one line each, as they happen."""

    def __init__(self, say: Callable[[str], None], past: dict[str, list[Event]] | None = None) -> None:
        self._say = say
        self._states: dict[str, RunState | None] = {run: replay(events) for run, events in (past or {}).items()}
        self._notes = {
            (run, event.step): event.evidence.notes
            for run, events in (past or {}).items()
            for event in events
            if isinstance(event, e.EvidenceRecorded)
        }
        """What was noticed in the last attempt of each step: the same is not told again."""

    def state(self, run: str) -> RunState | None:
        """The state of a run after the events so far."""
        return self._states.get(run)

    def tell(self, run: str, event: Event) -> None:
        if run not in self._states and not isinstance(event, e.RunStarted):
            return self._say(f"  {type(event).__name__}")
        state = self._states[run] = replay([event], self._states.get(run))
        assert state is not None
        if isinstance(event, e.EvidenceRecorded):
            lines = list(noticed(event, self._notes.get((run, event.step), ())))
            self._notes[run, event.step] = event.evidence.notes
        else:
            lines = list(lines_of(event, state))
        # The clock of the whole command: time at work, without the time that a run waits for a person.
        clock = f"{state.seconds_at_work(event.at):7.1f} s"
        for place, line in enumerate(lines):
            self._say(f"{clock if place == 0 else ' ' * len(clock)}  {cut(line)}")
        return None


def rows_of(line: str, width: int) -> list[str]:
    """A line as rows of a terminal, broken between words and indented as far as the words behind its time and mark."""
    if len(line) <= width:
        return [line]
    head = re.match(r"[ \d.]*(s  )? *([^\w ] )?", line)
    indent = " " * min(head.end() if head else 2, width // 3)
    return textwrap.wrap(line, max(width, 10), subsequent_indent=indent, break_on_hyphens=False) or [""]


def colour_of(line: str) -> dict[str, Any]:
    """How a line is coloured on a terminal, by its mark."""
    said = line[11:].strip() if line[9:10] == "s" or not line[:11].strip() else line.strip()
    return {"fg": "red"} if said[:2] == "! " else COLOURS.get(said[:1], {})


def cut(line: str) -> str:
    """A line that is not too long to read."""
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
