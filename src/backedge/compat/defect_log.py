"""The defect log as JSON: where each defect was injected and detected, and what its correction took."""

from __future__ import annotations

from typing import Any

from backedge.compat.contents import Contents, Defect
from backedge.compat.record_fields import number, optional_text, read_records, severity, text, texts, whole, word
from backedge.core.model import Status
from backedge.core.value import Json


def read_defects(document: Json) -> Contents:
    """Read a list of defects, with our field names or those of PSP logs. Raises ImportRefused."""
    return Contents(defects=tuple(read_records(document, "the defect log", "defect", _defect)))


def _defect(record: dict[str, Any], position: int) -> Defect:
    detected = text(record, "detected_phase", "phase_detected")
    latency = number(record, "latency", "latency_impact")
    return Defect(
        finding=optional_text(record, "finding") or f"F-{position}",
        description=text(record, "description", "defect"),
        severity=severity(record, "severity")[0],
        status=word(record, "status", list(Status), Status.FIXED),
        injected_phase=_phase(text(record, "injected_phase", "phase_injected")),
        injected_by=texts(record, "injected_by"),
        detected_by=optional_text(record, "detected_by") or detected,
        detected_phase=_phase(detected),
        loop=optional_text(record, "loop"),
        attempts=_attempts(record),
        cost_usd=number(record, "cost_usd", "cost_impact"),
        seconds=number(record, "seconds", default=latency),
        latency=latency,
    )


def _attempts(record: dict[str, Any]) -> dict[str, int]:
    """Correction attempts by step or phase, or their sum."""
    value = record.get("attempts", record.get("correction_attempts"))
    if isinstance(value, dict):
        return {name: whole(value, name, 0) for name in value}
    if value is None:
        return {}
    return {"": whole({"attempts": value}, "attempts", 0)}


def _phase(label: str) -> str:
    """Turn "Design Review" into the phase that is reviewed, design."""
    lower = label.strip().lower()
    return lower.removesuffix(" review") or lower
