"""Feedback as JSON lines in the words of systems with FEEDBACK edges: from_node, to_node, feedback_type, priority.

Their audit entries are understood too: feedback_id, type, source, target, round and status, one entry for each change of
a feedback. The last one counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any

import msgspec

from backedge.compat.contents import Contents, LoopRecord
from backedge.compat.record_fields import (
    MOST_PROBLEMS,
    RecordError,
    optional_text,
    requirement,
    text,
    texts,
    time,
    whole,
    word,
)
from backedge.core.errors import ImportRefused
from backedge.core.feedback.loop import FINAL, LoopState
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
    loops: dict[str, LoopRecord] = {}
    problems: list[str] = []
    for place, line in _lines(content):
        try:
            record = _decoded(line)
            if _is_audit_entry(record):
                found = _audited(record, loops.get(text(record, "feedback_id")))
            else:
                id = optional_text(record, "feedback_id") or _free_id(loops)
                found = _with_targets(_loop(record, id), loops.get(id))
            loops[found.id] = found
        except RecordError as error:
            problems.append(f"{place}: {error}")
            if len(problems) == MOST_PROBLEMS:
                break
    if problems:
        raise ImportRefused(tuple(problems))
    return Contents(tuple(loops.values()))


def _lines(content: str) -> Iterator[tuple[str, str]]:
    """The records and where they are: one per line, one over several lines, or the items of a list."""
    try:
        document = msgspec.json.decode(content)
    except (msgspec.DecodeError, RecursionError):
        document = None
    if isinstance(document, list):
        yield from ((f"item {number}", msgspec.json.encode(each).decode()) for number, each in enumerate(document, 1))
    elif isinstance(document, dict):
        yield f"line {1 + content[: len(content) - len(content.lstrip())].count(chr(10))}", content
    else:
        yield from ((f"line {number}", line) for number, line in enumerate(content.split("\n"), 1) if line.strip())


def _free_id(loops: Mapping[str, LoopRecord]) -> str:
    return next(id for number in count(len(loops) + 1) if (id := f"L-{number}") not in loops)


def _with_targets(found: LoopRecord, before: LoopRecord | None) -> LoopRecord:
    """Feedback to several targets has a line for each of them, with the same id."""
    if before is None:
        return found
    _same_feedback(found.id, (before.source, before.kind) == (found.source, found.kind))
    return msgspec.structs.replace(found, targets=tuple(dict.fromkeys((*before.targets, *found.targets))))


def _same_feedback(id: str, same: bool) -> None:
    if not same:
        raise RecordError(f"feedback_id {id!r} was used for other feedback above: give each feedback its own id")


def _is_audit_entry(record: dict[str, Any]) -> bool:
    return "feedback_id" in record and "from_node" not in record and "feedback_type" not in record


def _audited(record: dict[str, Any], before: LoopRecord | None) -> LoopRecord:
    """A loop as one more audit entry leaves it."""
    id = text(record, "feedback_id")
    state = STATUSES[word(record, "status", STATUSES)]
    at, kind = time(record, "timestamp"), TYPES[word(record, "type", TYPES)]
    source, target = text(record, "source"), text(record, "target")
    if before is not None:
        _same_feedback(id, (before.source, before.targets, before.kind) == (source, (target,), kind))
    return LoopRecord(
        id=id,
        source=source,
        targets=(target,),
        kind=kind,
        message=optional_text(record, "message") or (before.message if before else f"feedback {id}"),
        severity=Severity(word(record, "priority", list(Severity), before.severity if before else Severity.HIGH)),
        state=state,
        rounds=whole(record, "round", before.rounds if before else 1),
        opened_at=before.opened_at if before else at,
        closed_at=at if state in FINAL else None,
    )


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
        details=record.get("details"),
        requirement_id=requirement(record),
        earlier=_earlier(record),
        refused=optional_text(record, "refused") or "",
    )


def _earlier(record: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    rounds = record.get("earlier_rounds")
    if rounds is None:
        return ()
    if not isinstance(rounds, list) or not all(isinstance(each, dict) for each in rounds):
        raise RecordError("earlier_rounds: expected a list of objects")
    return tuple(rounds)


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
            "details": loop.details,
            "kind": loop.kind if loop.kind not in _TYPE_OF else None,
            "requirement_id": loop.requirement_id,
            "options": list(loop.options) or None,
            "findings": list(loop.findings) or None,
            "verdicts": list(loop.verdicts) or None,
            "earlier_rounds": list(loop.earlier) or None,
            "timestamp": loop.opened_at,
            "status": status,
            "refused": loop.refused or None,
            "round": loop.rounds,
            "resolved_at": loop.closed_at if status == "resolved" else None,
            "failed_at": loop.closed_at if status == "failed" else None,
        }
        yield {name: value for name, value in record.items() if value is not None}
