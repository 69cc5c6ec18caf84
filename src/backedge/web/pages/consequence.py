"""What a decision led to: the events after it in a few words, for the person who decided."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from backedge.core import events as e
from backedge.core.text import shortened

MOST = 8
"""How many events to name."""
_MODES = {"rework": "reworks", "verify": "verifies the fix", "answer": "answers", "decide": "chooses", "work": "runs"}


def consequence(events: Sequence[e.Event], escalation: str) -> list[tuple[int, str]]:
    """The decision and what came after it, each with its number in the journal."""
    return list(_told(events, escalation))[:MOST]


def _told(events: Sequence[e.Event], escalation: str) -> Iterator[tuple[int, str]]:
    decided = False
    for seq, event in enumerate(events, 1):
        if isinstance(event, e.EscalationDecided) and event.escalation == escalation:
            decided = True
            by = f" by {event.by}" if event.by else ""
            note = f": {shortened(event.note, 200)}" if event.note else ""
            chosen = f" “{shortened(event.option, 80)}”" if event.option else ""
            yield seq, f"{escalation} decided{by}: {event.choice}{chosen}{note}"
        elif decided and (line := line_of(event)):
            yield seq, line


def line_of(event: e.Event) -> str:
    """One event in words; empty for those that a person does not wait for."""
    match event:
        case e.AttemptStarted():
            about = f" {', '.join(event.loops)}" if event.loops else ""
            return f"{event.step} {_MODES[event.mode]}{about} (attempt {event.attempt})"
        case e.AttemptSucceeded():
            return f"{event.step} is done (attempt {event.attempt})"
        case e.AttemptFailed():
            return f"{event.step} broke: {shortened(event.error, 160)}"
        case e.VerdictGiven():
            return f"{event.judge} says {event.word}"
        case e.LoopClosed():
            return f"{event.loop} is {event.state}"
        case e.StepSkipped():
            return f"{event.step} is skipped"
        case e.RolledBack():
            return f"the last fix of {event.loop} is undone"
        case e.EscalationOpened():
            return f"{event.escalation} asks again: {shortened(event.reason, 160)}"
        case e.RunResumed():
            return "the run continues"
        case e.RunEnded():
            return f"the run has ended: {event.outcome}"
        case _:
            return ""
