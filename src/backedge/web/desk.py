"""What pages and the API can ask about runs: one fold for each run, kept up to date and shared by all requests."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from backedge.analytics.attempt_errors import errors_by_step
from backedge.analytics.inbox import InboxItem
from backedge.analytics.report import Report
from backedge.analytics.rounds import loop_histories
from backedge.app import Engine
from backedge.core.errors import NotFound
from backedge.core.events import Event
from backedge.core.state.evolve import replay
from backedge.core.state.run import RunState
from backedge.core.suggestions import closest
from backedge.engine.store import events_of
from backedge.ports import RunHead
from backedge.project import Project
from backedge.reading.attempt_changes import last_changes, under_discussion
from backedge.reading.packets import RunHistory, item_of, pauses
from backedge.reading.run_report import report_of
from backedge.reading.run_status import RunStatus, run_statuses
from backedge.reading.story_runs import may_be_story

MOST_KNOWN = 32
"""How many runs are kept folded in memory."""
MOST_REMEMBERED = 64
"""How many reports, histories and inbox items are kept."""
MOST_STATUSES = 2_000
BETWEEN_MARKS = 250
"""How many events lie between two states that are kept, so that any moment of a run is a short replay away."""
LOOKED_AT = 1_000
"""How many of the newest runs a mistyped name is compared with."""
ALIKE = 0.85


@dataclass(frozen=True)
class Known:
    """A run at one sequence number. Everything that one page or one answer says comes from one of these."""

    run: str
    events: Sequence[Event]
    state: RunState

    @property
    def seq(self) -> int:
        return self.state.seq

    @property
    def mark(self) -> str:
        """Names the run and the number, for ETag and If-Match."""
        return f"{self.run}:{self.seq}"


class Desk:
    """Reads runs for requests. Changes go through `engine`."""

    def __init__(self, engine: Engine, project: Project) -> None:
        self.engine, self.project = engine, project
        self._known: dict[str, Known] = {}
        self._marks: dict[str, list[RunState]] = {}
        """States of each known run, every BETWEEN_MARKS events."""
        self._histories: dict[tuple[str, int], RunHistory] = {}
        self._reports: dict[tuple[str, int], Report] = {}
        self._items: dict[tuple[str, int], list[InboxItem]] = {}
        self._statuses: dict[str, tuple[int, str | None, float, RunStatus]] = {}

    async def known(self, run: str, at: int | None = None) -> Known:
        """A run as it is now, or as it was at an event. Raises NotFound."""
        before = self._known.get(run)
        new = await events_of(self.engine.journal, run, before.seq if before else 0)
        if before is None or new:
            before = await self._folded(run, before, new)
        self._known.pop(run, None)
        self._known[run] = before
        while len(self._known) > MOST_KNOWN:
            oldest = next(iter(self._known))
            del self._known[oldest]
            self._marks.pop(oldest, None)
        if at is None or at >= before.seq:
            return before
        return self._earlier(before, max(1, at))

    async def _folded(self, run: str, before: Known | None, new: Sequence[Event]) -> Known:
        state = before.state if before is not None else None
        marks = self._marks.setdefault(run, []) if before is not None else []
        done = 0
        while done < len(new):
            # Up to the next number at which a state is kept.
            seq = state.seq if state is not None else 0
            upto = min(len(new), done + BETWEEN_MARKS - seq % BETWEEN_MARKS)
            state = replay(new[done:upto], state)
            done = upto
            if state is not None and state.seq % BETWEEN_MARKS == 0 and len(marks) < state.seq // BETWEEN_MARKS:
                marks.append(state)
        if state is None:
            heads = await self.engine.journal.runs(LOOKED_AT)
            meant = closest(run, [head.run for head in heads], ALIKE)
            hint = f": did you mean {meant!r}?" if meant else ""
            raise NotFound(f"run {run!r} does not exist in this journal{hint}")
        self._marks[run] = marks
        return Known(run, [*(before.events if before else ()), *new], state)

    def _earlier(self, now: Known, at: int) -> Known:
        events, marks = now.events[:at], self._marks.get(now.run, [])
        place = min(at // BETWEEN_MARKS, len(marks))
        start = marks[place - 1] if place else None
        state = replay(events[start.seq if start is not None else 0 :], start)
        assert state is not None
        return Known(now.run, events, state)

    async def head(self, run: str) -> int:
        """The number of the newest event of a run. Raises NotFound."""
        return (await self.known(run)).seq

    async def history(self, known: Known) -> RunHistory:
        """What happened to each loop of a run."""
        key = known.run, known.seq
        if key not in self._histories:
            self._histories[key] = RunHistory(known.state, known.events, loop_histories(known.events))
            _trim(self._histories)
        return self._histories[key]

    async def report(self, known: Known) -> Report:
        """A run in the shape of `show --json`."""
        key = known.run, known.seq
        if key not in self._reports:
            history, journal = await self.history(known), self.engine.journal
            errors = errors_by_step(known.events)
            found, _ = await report_of(journal, known.state, self.project, history.histories, errors)
            about = under_discussion(known.state)
            changes = await last_changes(journal, self.project, known.state, known.events, about)
            self._reports[key] = replace(found, changes=changes)
            _trim(self._reports)
        return self._reports[key]

    async def items(self, run: str | None = None) -> list[InboxItem]:
        """The open escalations of all runs or of one, in the shape of `inbox --json`: those that pause their run first, then
        the oldest."""
        opened = await self.engine.journal.open_escalations()
        now, found = time.time(), []
        for name in dict.fromkeys(each.run for each in opened if run is None or each.run == run):
            known = await self.known(name)
            key = name, known.seq
            if key not in self._items:
                history = await self.history(known)
                asked = known.state.escalations.values()
                self._items[key] = [await item_of(self.engine.journal, self.project, history, each) for each in asked]
                _trim(self._items)
            found += [_at(item, now) for item in self._items[key]]
        return sorted(found, key=lambda item: (not pauses(item), item.opened_at))

    async def statuses(self, heads: Sequence[RunHead]) -> list[RunStatus]:
        """How runs are doing, in the shape of `runs --json`."""
        journal, now = self.engine.journal, time.time()
        found: dict[str, RunStatus] = {}
        for head in heads:
            known = self._statuses.get(head.run)
            if known is not None and known[0] == head.seq and known[1] == await journal.holder(head.run):
                age = round(known[3].age_seconds + now - known[2], 1)
                found[head.run] = replace(known[3], age_seconds=age)
        new = [head for head in heads if head.run not in found]
        for head, status in zip(new, await run_statuses(journal, new, self.project, self._read), strict=True):
            found[head.run] = status
            if not may_be_story(head.run):  # the status of a story's run also depends on its file
                self._statuses.pop(head.run, None)
                self._statuses[head.run] = head.seq, status.held_by, now, status
        _trim(self._statuses, MOST_STATUSES)
        return [found[head.run] for head in heads]

    async def _read(self, run: str) -> tuple[Sequence[Event], RunState]:
        known = await self.known(run)
        return known.events, known.state


def _at(item: InboxItem, now: float) -> InboxItem:
    """An item at this time: its answer may have become overdue."""
    overdue = item.due_at is not None and item.due_at <= now
    return item if overdue == item.overdue else replace(item, overdue=overdue)


def _trim(kept: dict[Any, Any], most: int = MOST_REMEMBERED) -> None:
    """Forget what was kept first."""
    while len(kept) > most:
        del kept[next(iter(kept))]
