"""The events of one decision while they are collected, with the state that they lead to."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from backedge.core import events as e
from backedge.core.state.evolve import evolve
from backedge.core.state.run import RunState


class Transaction:
    """Collects the events of one decision. They are appended all at once or not at all, because the state between two
    events of one decision is not a legal one."""

    def __init__(self, state: RunState, now: float, free_slots: int) -> None:
        # If the clock jumps back, new events must still not be older than earlier ones.
        self.now = max(now, state.last_at)
        self.state = state
        self.free_slots = free_slots
        """How many more attempts may start."""
        self.mentions: Mapping[str, Collection[str]] = {}
        """The steps whose artifacts mention a requirement that the command is about."""
        self.events: list[e.Event] = []

    def add(self, event: e.Event) -> None:
        self.events.append(event)
        self.state = evolve(self.state, event)

    def next_loop(self) -> str:
        return f"L-{self.state.opened_loops + 1}"

    def next_escalation(self) -> str:
        return f"E-{self.state.opened_escalations + 1}"
