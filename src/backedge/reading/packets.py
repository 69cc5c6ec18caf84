"""The open escalations with everything that a person needs to decide, gathered from the journal and from disk."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from backedge.analytics.attempt_errors import last_errors
from backedge.analytics.blast import blast_in
from backedge.analytics.inbox import InboxChange, InboxInput, InboxItem, inbox_item, spent_by_step
from backedge.analytics.rounds import Histories, LoopHistory, loop_histories
from backedge.core.errors import JournalError, NotFound
from backedge.core.escalation.packet import Material, Packet, packet
from backedge.core.events import Event
from backedge.core.state.evolve import replay
from backedge.core.state.run import Escalation, RunState
from backedge.core.text import as_text
from backedge.core.value import replace
from backedge.core.workflow.limits import BUDGETS
from backedge.engine.store import events_of
from backedge.ports import Journal
from backedge.project import Project

if TYPE_CHECKING:
    from backedge.analytics.changes import ProtectedDiff

BEGINNING = 2000
"""How many characters to show of an artifact that is too large for an event."""
MOST_DIFF = 2_000
"""How many lines of the difference of one protected file `inbox --json` has."""


class RunHistory:
    """A run with its events: what the packets of its escalations are made from."""

    def __init__(self, state: RunState, events: Sequence[Event], histories: Histories) -> None:
        self.state, self.events, self.histories = state, events, histories

    @classmethod
    async def of(cls, journal: Journal, run: str) -> RunHistory:
        """Read a run. Raises NotFound if it does not exist."""
        events = await events_of(journal, run)
        state = replay(events)
        if state is None:
            raise NotFound(f"run {run!r} does not exist in this journal")
        return cls(state, events, loop_histories(events))


async def open_items(journal: Journal, project: Project) -> list[InboxItem]:
    """Every open escalation of all runs: those that pause their run first, then the oldest."""
    found = []
    for run in dict.fromkeys(each.run for each in await journal.open_escalations()):
        history = await RunHistory.of(journal, run)
        for each in history.state.escalations.values():
            found.append(await item_of(journal, project, history, each))
    return sorted(found, key=lambda item: (not pauses(item), item.opened_at))


def pauses(item: InboxItem) -> bool:
    """Whether the whole run waits for the answer."""
    return item.blocking or item.severity == "critical"


async def item_of(journal: Journal, project: Project, history: RunHistory, found: Escalation) -> InboxItem:
    """One escalation, open or decided, with its whole packet."""
    from backedge.reading.attempt_changes import changes_asked_about

    state = history.state
    told = await told_packet(journal, state, found.id)
    loop = state.loop(found.loop) if found.loop else None
    return inbox_item(
        state,
        found,
        told,
        history.histories.get(found.loop or "", LoopHistory()),
        time.time(),
        blast_in(state, history.events, loop) if loop is not None and loop.open else None,
        await changes_asked_about(journal, project, state, history.events, found),
        tuple(
            InboxInput(each.step, each.version, each.summary, each.output, each.payload, whole_of(told, each))
            for each in told.inputs
        ),
        _changes(told, diffs_of(project, state, told)),
        last_errors(history.events, found.step) if found.step is not None and found.loop is None else (),
        spent_by_step(history.events, found.breach.limit) if found.breach and found.breach.limit in BUDGETS else (),
    )


def _changes(told: Packet, diffs: dict[str, ProtectedDiff]) -> tuple[InboxChange, ...]:
    return tuple(
        InboxChange(
            each.id,
            each.file,
            each.change,
            each.step,
            each.lines,
            each.question,
            each.passed_by,
            each.tests,
            diffs[each.id].lines[:MOST_DIFF] if each.id in diffs else (),
            diffs[each.id].note if each.id in diffs else "",
        )
        for each in told.changes
    )


def diffs_of(project: Project, state: RunState, told: Packet) -> dict[str, ProtectedDiff]:
    """The differences of the files that a packet asks about."""
    if not told.changes:
        return {}
    from backedge.reading.protected_diff import RunDiffs

    asked = {each.id for each in told.changes}
    return RunDiffs(project, state.run).all_of(each for each in state.protected.values() if each.name in asked)


async def told_packet(journal: Journal, state: RunState, escalation: str) -> Packet:
    """A packet with the beginnings of its large artifacts, which are not part of the events."""
    told = packet(state, escalation)
    return replace(told, inputs=tuple([await _begun(journal, each) for each in told.inputs]))


async def _begun(journal: Journal, material: Material) -> Material:
    if material.payload is None:
        return material
    try:
        text = (await journal.payload(material.payload)).decode()
    except JournalError as error:
        return replace(material, output=f"({error})")
    return replace(material, output=f"{as_text(json.loads(text))[:BEGINNING]}…")


def whole_of(told: Packet, material: Material) -> str:
    """The command that prints all of an artifact."""
    return f"backedge context get agent_contexts.{material.step}.output --run {told.run}"
