"""What follows when no person has answered in time: people are reminded, or the workflow's `expire` decides for them."""

from __future__ import annotations

from backedge.core import events as e
from backedge.core.commands import Decide
from backedge.core.escalation.answering import decide_escalation
from backedge.core.escalation.deadlines import Due, expiry_choice, first_due
from backedge.core.text import duration
from backedge.core.transaction import Transaction

BY_EXPIRY = "policy:expire"
"""The name under which `expire` decides."""


def keep_deadlines(tx: Transaction) -> None:
    """Remind people of what they have not answered, and decide what has expired. Each due time is met once."""
    while (due := first_due(tx.state, tx.now)) is not None:
        if due.expires:
            _expire(tx, due)
        else:
            tx.add(e.EscalationReminded(tx.now, due.escalation, due.after))


def _expire(tx: Transaction, due: Due) -> None:
    packet = tx.state.escalations[due.escalation]
    choice, waited = expiry_choice(tx.state, packet), duration(tx.now - packet.opened_at)
    tx.add(e.EscalationExpired(tx.now, packet.id, choice))
    if choice:
        note = f"no person answered for {waited}"
        decide_escalation(tx, Decide(packet.id, choice, by=BY_EXPIRY, note=note))
