"""The iterations of a tight loop as loops and defects: one loop of the failed reviews, one of the failed tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from backedge.compat.contents import Contents, Defect, LoopRecord
from backedge.compat.progress import STATUSES, LoopStatus, Progress, read_progress
from backedge.compat.record_fields import RecordError, word
from backedge.core.errors import ImportRefused
from backedge.core.feedback.loop import LoopState
from backedge.core.model import Kind, Severity, Status
from backedge.core.value import Json

_LOOP_STATES: dict[LoopStatus, LoopState] = {
    "in_progress": LoopState.RESOLVING,
    "escalated": LoopState.ESCALATING,
    "accepted": LoopState.ACCEPTED,
    "cancelled": LoopState.CANCELLED,
    "failed": LoopState.FAILED,
    "IMPLEMENTATION_VERIFIED": LoopState.RESOLVED,
    "done": LoopState.RESOLVED,
}


def read_progress_document(document: Json) -> Contents:
    """Read the document of a progress.json. Raises ImportRefused."""
    try:
        loop = document.get("feedback_loop") if isinstance(document, dict) else None
        if isinstance(loop, dict):
            word(loop, "status", STATUSES)
        progress = read_progress(msgspec.json.encode(document))
    except RecordError as error:
        raise ImportRefused(f"feedback_loop: {error}") from None
    except msgspec.ValidationError as error:
        raise ImportRefused(f"not the progress of a feedback loop: {error}") from None
    return contents_of_progress(progress, {})


def contents_of_progress(progress: Progress, notes: Mapping[int, tuple[str, ...]]) -> Contents:
    """The iterations with their loops and defects; `notes` has the decisions by people, by iteration."""
    loop = progress.feedback_loop
    reviews = [(each.review_result, each.review_issues) for each in loop.iterations]
    tests = [(each.test_result, each.test_failures) for each in loop.iterations]
    loops: list[LoopRecord] = []
    defects: list[Defect] = []
    for source, kind, results in (("review", Kind.REVIEW_REJECTION, reviews), ("test", Kind.TEST_FAILURE, tests)):
        failures = [issues for result, issues in results if result == "FAIL"]
        if not failures:
            continue
        fixed = [result for result, _ in results if result][-1] == "PASS"
        state = LoopState.RESOLVED if fixed else _LOOP_STATES[loop.status]
        id = f"L-{len(loops) + 1}"
        issues = tuple(dict.fromkeys(issue for issues in failures for issue in issues))
        # The last failure is a round only if rework followed it.
        rounds = len(failures) if fixed else len(failures) - 1
        loops.append(LoopRecord(id, kind, source, ("implementation",), "; ".join(issues), state, rounds=rounds))
        defects += _defects(issues, source, id, state, len(defects))
    return Contents(tuple(loops), tuple(defects), progress, notes)


def _defects(issues: Sequence[str], source: str, loop: str, state: LoopState, before: int) -> Iterator[Defect]:
    statuses = {LoopState.RESOLVED: Status.FIXED, LoopState.ACCEPTED: Status.ACCEPTED}
    for number, issue in enumerate(issues, before + 1):
        yield Defect(
            finding=f"F-{number}",
            description=issue,
            severity=Severity.HIGH,
            status=statuses.get(state, Status.OPEN),
            injected_phase="code",
            injected_by=("implementation",),
            detected_by=source,
            detected_phase="code",
            loop=loop,
            attempts={},
            cost_usd=0.0,
            seconds=0.0,
            latency=0.0,
        )
