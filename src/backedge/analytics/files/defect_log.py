"""The defect log as JSON: where each defect was injected and detected, and what its correction took."""

from __future__ import annotations

from typing import Any

from backedge.analytics.defects import Defect
from backedge.analytics.files.contents import (
    MOST_PROBLEMS,
    Contents,
    Trouble,
    number,
    objects,
    optional_text,
    severity,
    text,
    texts,
    whole,
    word,
)
from backedge.core.errors import ImportRefused
from backedge.core.model import Status
from backedge.core.value import Json


def read_defects(document: Json) -> Contents:
    """What the log says: a list of defects, with our names of fields or those of PSP logs. Raises ImportRefused."""
    try:
        listed = objects(document, "the defect log")
    except Trouble as trouble:
        raise ImportRefused(str(trouble)) from None
    found: list[Defect] = []
    problems: list[str] = []
    for place, record in enumerate(listed, 1):
        try:
            found.append(_defect(record, place))
        except Trouble as trouble:
            problems.append(f"defect {place}: {trouble}")
    if problems:
        raise ImportRefused(tuple(problems[:MOST_PROBLEMS]))
    return Contents(defects=tuple(found))


def _defect(record: dict[str, Any], place: int) -> Defect:
    detected = text(record, "detected_phase", "phase_detected")
    latency = number(record, "latency", "latency_impact")
    return Defect(
        finding=optional_text(record, "finding") or f"F-{place}",
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
    said = record.get("attempts", record.get("correction_attempts"))
    if isinstance(said, dict):
        return {name: whole(said, name, 0) for name in said}
    if said is None:
        return {}
    return {"": whole({"attempts": said}, "attempts", 0)}


def _phase(said: str) -> str:
    """ "Design Review" is the review of the phase design."""
    lower = said.strip().lower()
    return lower.removesuffix(" review") or lower
