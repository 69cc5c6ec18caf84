"""What a person can do to any open loop, escalated or not: resolve it, escalate it, withdraw it."""

from __future__ import annotations

from backedge.core.commands import Decide, EscalateLoop, ResolveLoop, WithdrawLoop
from backedge.core.errors import AlreadyClosed, NotFound
from backedge.core.escalation.answering import decide_escalation
from backedge.core.escalation.opening import escalate_loop
from backedge.core.feedback.closing import close_loop, settle_findings
from backedge.core.feedback.loop import Loop, LoopState
from backedge.core.model import Resolution, Status
from backedge.core.state.run import ASKED, Escalation, RunState
from backedge.core.text import printable_line
from backedge.core.transaction import Transaction


def open_loop(state: RunState, id: str, left: str = "decide") -> Loop:
    """An open loop. Raises NotFound or AlreadyClosed."""
    loop = state.loop(id)
    if loop is None:
        known = f"open loops: {', '.join(state.loops)}" if state.loops else "no loops are open"
        raise NotFound(f"unknown loop {id!r} ({known})")
    if not loop.open:
        by = f" by {loop.resolution.by}" if loop.resolution is not None and loop.resolution.by else ""
        raise AlreadyClosed(f"loop {loop.id} is {loop.state}{by}: there is nothing left to {left}")
    return loop


def resolve_loop(tx: Transaction, command: ResolveLoop) -> None:
    """Answer a loop, as if it had been escalated."""
    loop = open_loop(tx.state, command.loop)
    by = printable_line(command.by)
    if not any("resolve" in packet.options for packet in _about(tx.state, loop)):
        escalate_loop(tx, loop, None, f"{by or 'a person'} resolves it")
    packet = next(each for each in _about(tx.state, loop) if "resolve" in each.options)
    decide_escalation(tx, Decide(packet.id, "resolve", by, command.note, option=command.option))


def escalate_by_hand(tx: Transaction, command: EscalateLoop) -> None:
    """Hand a loop to a person who decides about it."""
    loop = open_loop(tx.state, command.loop)
    for packet in _about(tx.state, loop):
        if packet.reason != ASKED:
            raise AlreadyClosed(f"loop {loop.id} is escalated already: decide {packet.id} ({packet.reason})")
    why = f": {command.note}" if command.note else ""
    escalate_loop(tx, loop, None, f"escalated by {printable_line(command.by) or 'a person'}{why}")


def withdraw_loop(tx: Transaction, command: WithdrawLoop) -> None:
    """Close a loop whose feedback is no longer wanted. Its findings are withdrawn, and its source runs once more."""
    loop = open_loop(tx.state, command.loop)
    by = printable_line(command.by) or "a person"
    text = f"withdrawn: {command.note}" if command.note else "withdrawn"
    settle_findings(tx, loop, Status.WITHDRAWN)
    close_loop(tx, loop, LoopState.CANCELLED, Resolution(LoopState.CANCELLED, by, text))


def _about(state: RunState, loop: Loop) -> list[Escalation]:
    """The open escalations about a loop."""
    return [packet for packet in state.escalations.values() if packet.loop == loop.id]
