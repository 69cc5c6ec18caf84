"""Loops as one JSON document, in the words of feedback loop engines: source_agent, target_agents, issue_type, state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from backedge.analytics.files.contents import (
    KINDS,
    MOST_PROBLEMS,
    Contents,
    LoopRecord,
    Trouble,
    objects,
    optional_text,
    severity,
    text,
    texts,
    time,
    whole,
    word,
)
from backedge.core.errors import ImportRefused
from backedge.core.feedback.loop import FINAL, LoopState
from backedge.core.value import Json

STATES = {state.value.upper(): state for state in LoopState}
STATUSES = {
    "pending": LoopState.NOTIFYING,
    "in_progress": LoopState.RESOLVING,
    "escalated": LoopState.ESCALATING,
    **{state.value: state for state in (LoopState.RESOLVED, LoopState.ACCEPTED, LoopState.CANCELLED, LoopState.FAILED)},
}
_STATUS_OF = {state: status for status, state in STATUSES.items()} | {
    LoopState.WAITING_RESPONSE: "pending",
    LoopState.VALIDATING: "in_progress",
}
_AT_WORK = ("pending", "in_progress")
LIST = "feedback_loops"


def read_report(document: Json) -> Contents:
    """What the document says: an object with `feedback_loops`, or their list. Raises ImportRefused."""
    try:
        listed = objects(document[LIST] if isinstance(document, dict) else document, LIST)
    except Trouble as trouble:
        raise ImportRefused(str(trouble)) from None
    loops: dict[str, LoopRecord] = {}
    problems: list[str] = []
    for place, record in enumerate(listed, 1):
        try:
            loop = _loop(record, f"loop-{place}")
            if loop.id in loops:
                raise Trouble(f"id {loop.id!r} is there twice: ids are unique")
            loops[loop.id] = loop
        except Trouble as trouble:
            problems.append(f"loop {place}: {trouble}")
    if problems:
        raise ImportRefused(tuple(problems[:MOST_PROBLEMS]))
    return Contents(tuple(loops.values()))


def report_records(loops: Iterable[LoopRecord]) -> list[dict[str, Any]]:
    """The loops as the document lists them."""
    return [_record(loop) for loop in loops]


def _loop(record: dict[str, Any], unnamed: str) -> LoopRecord:
    source, targets = text(record, "source_agent"), texts(record, "target_agents")
    if not targets:
        raise Trouble("target_agents is missing: name at least one")
    level, blocking = severity(record, "severity")
    status = word(record, "status", STATUSES, "pending")
    state = STATES[word(record, "state", STATES, STATUSES[status].upper())]
    at_work = state not in FINAL and state is not LoopState.ESCALATING
    if record.get("status") is not None and not (at_work if status in _AT_WORK else STATUSES[status] is state):
        raise Trouble(f"status {status!r} contradicts state {state.upper()!r}: change one of them")
    return LoopRecord(
        id=optional_text(record, "id") or unnamed,
        source=source,
        targets=targets,
        kind=word(record, "issue_type", KINDS),
        message=text(record, "description"),
        severity=level,
        blocking=blocking,
        state=state,
        rounds=whole(record, "rounds", 0),
        opened_at=time(record, "triggered_at"),
        closed_at=time(record, "resolved_at"),
        reason=optional_text(record, "escalation_reason") or "",
        resolution=record.get("resolution"),
        details=record.get("details"),
    )


def _record(loop: LoopRecord) -> dict[str, Any]:
    record = {
        "id": loop.id,
        "triggered_at": loop.opened_at,
        "source_agent": loop.source,
        "target_agents": list(loop.targets),
        "issue_type": loop.kind,
        "description": loop.message,
        "severity": "blocking" if loop.blocking else loop.severity,
        "status": _STATUS_OF[loop.state],
        "state": loop.state.upper(),
        "rounds": loop.rounds,
        "details": loop.details,
        "escalation_reason": loop.reason or None,
        "resolution": loop.resolution,
        "resolved_at": loop.closed_at,
    }
    return {name: value for name, value in record.items() if value is not None}
