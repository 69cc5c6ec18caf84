"""The contents of a file in any format: loops, defects and iterations."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from backedge.compat.progress import Progress
from backedge.core.feedback.loop import FINAL, LoopState
from backedge.core.model import Option, Severity
from backedge.core.value import Json


class LoopRecord(msgspec.Struct, frozen=True):
    """One loop of a run, or of another system."""

    id: str
    kind: str
    source: str
    targets: tuple[str, ...]
    message: str
    state: LoopState
    severity: Severity = Severity.HIGH
    blocking: bool = False
    rounds: int = 0
    suggested_fix: str | None = None
    requested_info: str | None = None
    artifacts: tuple[str, ...] = ()
    opened_at: str | None = None
    """In ISO 8601."""
    closed_at: str | None = None
    reason: str = ""
    """Why it was escalated; empty if it was not."""
    resolution: Json = None
    details: Json = None
    earlier: tuple[Json, ...] = ()
    """What was asked in earlier rounds, oldest first: round, message, suggested_fix and requested_info."""
    options: tuple[Option, ...] = ()
    """What its targets could choose from."""
    requirement_id: str | None = None
    findings: tuple[Json, ...] = ()
    """Its findings, each with all that its judge said."""
    verdicts: tuple[Json, ...] = ()
    """The verdicts about it, oldest first: judge, word and summary."""
    refused: str = ""
    """Why it was not delivered; empty if it was."""

    @property
    def open(self) -> bool:
        return self.state not in FINAL


class Defect(msgspec.Struct, frozen=True):
    """One finding and the cost of its loop: rework and cascades count, the verification does not."""

    finding: str
    description: str
    severity: str
    status: str
    injected_phase: str
    injected_by: tuple[str, ...]
    detected_by: str
    detected_phase: str
    loop: str | None
    attempts: dict[str, int]
    """Correction attempts, by step."""
    cost_usd: float
    seconds: float
    latency: float
    """Seconds from the verdict that opened the loop until it closed; until now for an open one."""

    @property
    def correction_attempts(self) -> int:
        return sum(self.attempts.values())


class Contents(msgspec.Struct, frozen=True):
    """Everything that a file contains."""

    loops: tuple[LoopRecord, ...] = ()
    defects: tuple[Defect, ...] = ()
    progress: Progress | None = None
    """The iterations of a tight loop; None for a file without iterations."""
    notes: Mapping[int, tuple[str, ...]] = {}
    """Decisions by people, by iteration."""
    refused: tuple[LoopRecord, ...] = ()
    """Feedback that was not delivered. It opened no loop."""
