"""A run in the words of other systems' files, whether it was executed here or imported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from backedge.analytics.defects import defects
from backedge.analytics.progress import notes_of, progress_of
from backedge.analytics.rounds import RoundReport, loop_histories
from backedge.analytics.tight_loop import TightLoop, tight_loop
from backedge.compat.contents import Contents, Defect, LoopRecord
from backedge.compat.formats import read
from backedge.core import events as e
from backedge.core.feedback.loop import Loop, LoopState
from backedge.core.model import Feedback, Kind, Resolution
from backedge.core.state.evolve import evolve
from backedge.core.state.run import RunState
from backedge.core.value import Json


def contents_of(events: Iterable[e.Event], iso: Callable[[float], str]) -> Contents:
    """The contents for the files about a run; `iso` formats a time."""
    state: RunState | None = None
    tight: TightLoop | None = None
    closed: dict[str, str] = {}
    reasons: dict[str, str] = {}
    seen: list[e.Event] = []
    for event in events:
        seen.append(event)
        state, tight = evolve(state, event), tight_loop(tight, event)
        if isinstance(event, e.LoopClosed):
            closed[event.loop] = iso(event.at)
        elif isinstance(event, e.EscalationOpened) and event.loop is not None:
            reasons[event.loop] = event.reason
    if state is None or tight is None:
        return Contents()
    if state.imported is not None:
        return read(state.imported.form, state.imported.text)
    log, histories = defects(seen), loop_histories(seen)
    loops = sorted((*state.closed_loops.values(), *state.loops.values()), key=lambda loop: int(loop.id[2:]))
    return Contents(
        tuple(
            replace(
                _record(loop, log, iso(loop.opened_at), closed.get(loop.id), reasons.get(loop.id, "")),
                earlier=_earlier(histories[loop.id].rounds, state) if loop.id in histories else (),
                findings=tuple(_finding(state, id) for id in _finding_ids(loop, state)),
                verdicts=tuple(
                    {"judge": each.judge, "attempt": each.attempt, "verdict": each.word, "summary": each.summary}
                    for each in (histories[loop.id].verdicts if loop.id in histories else ())
                ),
            )
            for loop in loops
        ),
        tuple(log),
        progress_of(tight),
        notes_of(tight),
        tuple(_refused(number, each, iso(each.at)) for number, each in enumerate(state.refused.values(), 1)),
    )


def _refused(number: int, refused: e.RefusedFeedback, at: str) -> LoopRecord:
    said = refused.feedback or Feedback(Kind.FIX_REQUEST, (), refused.message)
    return LoopRecord(
        id=f"refused-{number}",
        kind=said.word,
        source=refused.source,
        targets=refused.targets or ("unknown",),
        message=said.message or refused.reason,
        state=LoopState.FAILED,
        severity=said.severity,
        blocking=said.blocking,
        suggested_fix=said.suggested_fix,
        requested_info=said.requested_info,
        artifacts=said.artifacts,
        opened_at=at,
        closed_at=at,
        details=said.details,
        options=said.options,
        requirement_id=said.requirement_id,
        refused=refused.reason,
    )


def _record(loop: Loop, log: Iterable[Defect], opened: str, closed: str | None, reason: str) -> LoopRecord:
    raised = loop.feedback
    found = "; ".join(defect.description for defect in log if defect.loop == loop.id)
    return LoopRecord(
        id=loop.id,
        kind=loop.kind_name,
        source=loop.source,
        targets=loop.targets,
        message=raised.message if raised else found or loop.kind_name,
        state=loop.state,
        severity=loop.severity,
        blocking=loop.blocking,
        rounds=loop.round,
        suggested_fix=raised.suggested_fix if raised else None,
        requested_info=raised.requested_info if raised else None,
        artifacts=raised.artifacts if raised else (),
        opened_at=opened,
        closed_at=closed,
        reason=reason,
        resolution=_resolution(loop.resolution),
        details=raised.details if raised else None,
        options=raised.options if raised else (),
        requirement_id=raised.requirement_id if raised else None,
    )


def _finding_ids(loop: Loop, state: RunState) -> list[int]:
    """The findings that a loop has or had, oldest first."""
    given = {id for past in loop.past_rounds for id in past.findings} | set(loop.finding_ids)
    return sorted(given | {id for id, each in state.findings.items() if each.loop == loop.id})


def _finding(state: RunState, id: int) -> Json:
    """A finding with everything that its judge said about it."""
    tracked = state.findings[id]
    found = tracked.finding
    known: dict[str, Json] = {
        "severity": str(found.severity),
        "status": str(tracked.status),
        "description": found.description,
        "evidence": found.evidence,
        "impact": found.impact,
        "file": found.file,
        "line": found.line,
        "suggested_fix": found.suggested_fix,
        "requirement_id": found.requirement_id,
        "note": tracked.note,
    }
    return {"id": tracked.name, **{name: value for name, value in known.items() if value not in ("", None)}}


def _earlier(rounds: Sequence[RoundReport], state: RunState) -> tuple[Json, ...]:
    """What was asked before the last round: the newest message is part of the record itself."""
    found = []
    for each in rounds[:-1]:
        ids = dict.fromkeys(int(id[2:]) for given in each.shares.values() for id in given)
        said = each.message or "; ".join(state.findings[id].finding.description for id in ids)
        asked: dict[str, Json] = {
            "suggested_fix": each.suggested_fix,
            "requested_info": each.requested_info,
            "artifacts": list(each.artifacts),
            "requirement_id": each.requirement_id,
            "details": each.details,
        }
        found.append({"round": each.number, "message": said, **{key: value for key, value in asked.items() if value}})
    return tuple(found)


def _resolution(resolution: Resolution | None) -> Json:
    """The resolution without its empty fields."""
    if resolution is None:
        return None
    fields = {
        "decision": resolution.option,
        "text": resolution.text,
        "by": resolution.by,
        "answers": resolution.answers,
    }
    return {name: value for name, value in fields.items() if value} or {"text": resolution.state}
