"""What pages and the API can ask about runs: one fold for each run, kept up to date and shared by all requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from backedge.analytics.attempt_errors import errors_by_step
from backedge.analytics.inbox import InboxItem
from backedge.analytics.report import Report
from backedge.app import Engine
from backedge.core.errors import NotFound
from backedge.core.events import Event
from backedge.core.state.evolve import replay
from backedge.core.state.run import RunState
from backedge.engine.store import events_of
from backedge.ports import RunHead
from backedge.project import Project
from backedge.reading.packets import RunHistory, item_of, pauses
from backedge.reading.run_report import report_of
from backedge.reading.run_status import RunStatus, run_statuses

MOST_KNOWN = 32
"""How many runs are kept folded in memory."""


@dataclass(frozen=True)
class Known:
    """A run at one sequence number. Everything that one page or one answer says comes from one of these."""

    run: str
    events: Sequence[Event]
    state: RunState

    @property
    def seq(self) -> int:
        return self.state.seq


class Desk:
    """Reads runs for requests. Changes go through `engine`."""

    def __init__(self, engine: Engine, project: Project) -> None:
        self.engine, self.project = engine, project
        self._known: dict[str, Known] = {}

    async def known(self, run: str, at: int | None = None) -> Known:
        """A run as it is now, or as it was at an event. Raises NotFound."""
        before = self._known.pop(run, None)
        new = await events_of(self.engine.journal, run, before.seq if before else 0)
        if before is None or new:
            state = replay(new, before.state if before else None)
            if state is None:
                raise NotFound(f"run {run!r} does not exist in this journal")
            before = Known(run, [*(before.events if before else ()), *new], state)
        self._known[run] = before
        while len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]
        if at is None or at >= before.seq:
            return before
        events = before.events[: max(1, at)]
        earlier = replay(events)
        assert earlier is not None
        return Known(run, events, earlier)

    async def history(self, known: Known) -> RunHistory:
        from backedge.analytics.rounds import loop_histories

        return RunHistory(known.state, known.events, loop_histories(known.events))

    async def report(self, known: Known) -> Report:
        """A run in the shape of `show --json`."""
        history = await self.history(known)
        errors = errors_by_step(known.events)
        told, _ = await report_of(self.engine.journal, known.state, self.project, history.histories, errors)
        return told

    async def items(self, run: str | None = None) -> list[InboxItem]:
        """The open escalations of all runs or of one, in the shape of `inbox --json`: those that pause their run first, then
        the oldest."""
        opened = await self.engine.journal.open_escalations()
        found = []
        for name in dict.fromkeys(each.run for each in opened if run is None or each.run == run):
            history = await self.history(await self.known(name))
            for each in history.state.escalations.values():
                found.append(await item_of(self.engine.journal, self.project, history, each))
        return sorted(found, key=lambda item: (not pauses(item), item.opened_at))

    async def statuses(self, heads: Sequence[RunHead]) -> list[RunStatus]:
        """How runs are doing, in the shape of `runs --json`."""
        return await run_statuses(self.engine.journal, heads, self.project)
