"""Feedback as JSON lines in the words of systems with FEEDBACK edges: from_node, to_node, feedback_type, priority."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from backedge.compat.contents import Contents, LoopRecord
from backedge.compat.record_fields import MOST_PROBLEMS, RecordError, optional_text, text, texts, time, whole, word
from backedge.core.errors import ImportRefused
from backedge.core.feedback.loop import LoopState
from backedge.core.model import Severity

TYPES = {
    "FIX_REQUEST": "fix_request",
    "CONTEXT_REQUEST": "context_request",
    "DEPENDENCY_MISSING": "dependency_missing",
    "ARCHITECTURE_ISSUE": "architecture_issue",
}
STATUSES = {
    "queued": LoopState.NOTIFYING,
    "routed": LoopState.WAITING_RESPONSE,
    "delivered": LoopState.WAITING_RESPONSE,
    "processing": LoopState.RESOLVING,
    "verifying": LoopState.VALIDATING,
    "resolved": LoopState.RESOLVED,
    "failed": LoopState.FAILED,
}
_TYPE_OF = {kind: name for name, kind in TYPES.items()} | {"technical_infeasibility": "ARCHITECTURE_ISSUE"}
# A loop that ended without a fix counts as failed there; one that waits for a decision is still in progress.
_STATUS_OF = {state: name for name, state in STATUSES.items()} | {
    LoopState.ESCALATING: "processing",
    LoopState.ACCEPTED: "failed",
    LoopState.CANCELLED: "failed",
}


def read_feedback(content: str) -> Contents:
    """Read the lines. Raises ImportRefused with the number of every line that is wrong."""
    loops: list[LoopRecord] = []
    problems: list[str] = []
    for number, line in enumerate(content.split("\n"), 1):
        if not line.strip():
            continue
        try:
            loops.append(_loop(_decoded(line), f"L-{len(loops) + 1}"))
        except RecordError as error:
            problems.append(f"line {number}: {error}")
            if len(problems) == MOST_PROBLEMS:
                break
    if problems:
        raise ImportRefused(tuple(problems))
    return Contents(tuple(loops))


def feedback_lines(loops: Iterable[LoopRecord]) -> str:
    """The loops as such lines, one per target."""
    return "".join(f"{msgspec.json.encode(each).decode()}\n" for loop in loops for each in _records(loop))


def _decoded(line: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError) as error:
        raise RecordError(f"not JSON ({error}): expected one object per line") from None
    if not isinstance(value, dict):
        raise RecordError("not a JSON object: expected one per line")
    return value


def _loop(record: dict[str, Any], id: str) -> LoopRecord:
    if record.get("type") is not None:
        word(record, "type", ["FEEDBACK"])
    state = STATUSES[word(record, "status", STATUSES, "queued")]
    opened, resolved, failed = (time(record, name) for name in ("timestamp", "resolved_at", "failed_at"))
    return LoopRecord(
        id=id,
        source=text(record, "from_node"),
        targets=(text(record, "to_node"),),
        kind=TYPES[word(record, "feedback_type", TYPES)],
        message=text(record, "message"),
        severity=Severity(word(record, "priority", list(Severity))),
        state=state,
        rounds=whole(record, "round", 1),
        suggested_fix=optional_text(record, "suggested_fix", "suggested_action"),
        requested_info=optional_text(record, "requested_info"),
        artifacts=texts(record, "artifacts"),
        opened_at=opened,
        closed_at=failed if state is LoopState.FAILED else resolved,
    )


def _records(loop: LoopRecord) -> Iterator[dict[str, Any]]:
    status = _STATUS_OF[loop.state]
    for target in loop.targets:
        record = {
            "type": "FEEDBACK",
            "feedback_id": loop.id,
            "from_node": loop.source,
            "to_node": target,
            "feedback_type": _TYPE_OF.get(loop.kind, "FIX_REQUEST"),
            "message": loop.message,
            "suggested_fix": loop.suggested_fix,
            "requested_info": loop.requested_info,
            "priority": loop.severity,
            "artifacts": list(loop.artifacts) or None,
            "timestamp": loop.opened_at,
            "status": status,
            "round": loop.rounds,
            "resolved_at": loop.closed_at if status == "resolved" else None,
            "failed_at": loop.closed_at if status == "failed" else None,
        }
        yield {name: value for name, value in record.items() if value is not None}
