"""Loops as one JSON document in the words of feedback loop engines: source_agent, target_agents, issue_type, state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from backedge.compat.contents import Contents, LoopRecord
from backedge.compat.record_fields import (
    KINDS,
    RecordError,
    objects,
    optional_text,
    read_records,
    requirement,
    severity,
    text,
    texts,
    time,
    whole,
    word,
)
from backedge.core.feedback.loop import FINAL, LoopState
from backedge.core.model import Option
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
_ACTIVE = ("pending", "in_progress")
LIST = "feedback_loops"


def read_loops(document: Json) -> Contents:
    """Read an object with `feedback_loops`, or the list of them. Raises ImportRefused."""
    ids: set[str] = set()

    def loop(record: dict[str, Any], number: int) -> LoopRecord:
        found = _loop(record, f"loop-{number}")
        if found.id in ids:
            raise RecordError(f"id {found.id!r} is used twice: give each loop its own id")
        ids.add(found.id)
        return found

    listed = document[LIST] if isinstance(document, dict) else document
    return Contents(tuple(read_records(listed, LIST, "loop", loop)))


def loop_objects(loops: Iterable[LoopRecord]) -> list[dict[str, Any]]:
    """The loops as the document lists them, for JSON."""
    return [_record(loop) for loop in loops]


def _loop(record: dict[str, Any], default_id: str) -> LoopRecord:
    source, targets = text(record, "source_agent"), texts(record, "target_agents")
    if not targets:
        raise RecordError("target_agents is missing: name at least one")
    level, blocking = severity(record, "severity")
    status = word(record, "status", STATUSES, "pending")
    state = STATES[word(record, "state", STATES, STATUSES[status].upper())]
    active = state not in FINAL and state is not LoopState.ESCALATING
    if record.get("status") is not None and not (active if status in _ACTIVE else STATUSES[status] is state):
        raise RecordError(f"status {status!r} contradicts state {state.upper()!r}: change one of them")
    return LoopRecord(
        id=optional_text(record, "id") or default_id,
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
        options=_options(record),
        suggested_fix=optional_text(record, "suggested_fix"),
        requested_info=optional_text(record, "requested_info"),
        artifacts=texts(record, "artifacts"),
        requirement_id=requirement(record),
    )


def _options(record: dict[str, Any]) -> tuple[Option, ...]:
    """What the targets could choose from; some systems keep it in the details. Raises RecordError."""
    details = record.get("details")
    listed = record.get("options")
    if listed is None and isinstance(details, dict):
        listed = details.get("options")
    if listed is None:
        return ()
    offered = (
        [{"option": each} if isinstance(each, str) else each for each in listed] if isinstance(listed, list) else listed
    )
    return tuple(_option(each) for each in objects(offered, "options"))


def _option(record: dict[str, Any]) -> Option:
    effort, impact = (optional_text(record, name) or "" for name in ("effort", "impact"))
    return Option(text(record, "option"), effort, impact, texts(record, "rework"), record.get("accept") is True)


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
        "requirement_id": loop.requirement_id,
        "suggested_fix": loop.suggested_fix,
        "requested_info": loop.requested_info,
        "artifacts": list(loop.artifacts) or None,
        "options": [msgspec.to_builtins(each) for each in loop.options] or None,
        "escalation_reason": loop.reason or None,
        "resolution": loop.resolution,
        "resolved_at": loop.closed_at,
    }
    return {name: value for name, value in record.items() if value is not None}
