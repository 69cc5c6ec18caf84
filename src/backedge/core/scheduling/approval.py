"""When a person has to approve what a step made, before anything uses it."""

from __future__ import annotations

from backedge.core.evidence.values import MOST_FILES
from backedge.core.state.run import RunState
from backedge.core.text import counted
from backedge.core.workflow.globs import matches_any

MOST_NAMED = 5


def approval_reasons(state: RunState, approver: str) -> tuple[str, ...]:
    """Why a person has to approve what is judged here; empty if it is below every threshold. What they rejected once
    comes back to them, however small the change is."""
    (subject,) = state.graph.steps[approver].judges
    step, bounds = state.steps[subject], state.graph.steps[subject].thresholds
    assert bounds is not None
    reasons = []
    if bounds.files is not None and len(step.unapproved) >= bounds.files:
        changed = "changed file" if len(step.unapproved) == 1 else "changed files"
        reasons.append(f"{len(step.unapproved)} {changed}, and {bounds.files} or more need approval")
    critical = [file for file in step.unapproved if matches_any(bounds.paths, file)]
    if critical:
        more = f" and {counted(len(critical) - MOST_NAMED, 'more file')}" if len(critical) > MOST_NAMED else ""
        reasons.append(f"it changed {', '.join(critical[:MOST_NAMED])}{more}")
    elif bounds.paths and len(step.unapproved) >= MOST_FILES:
        reasons.append(f"it changed {MOST_FILES:,} files or more, so that not all are known here")
    if bounds.confidence is not None and (step.confidence is None or step.confidence < bounds.confidence):
        told = "no confidence was reported" if step.confidence is None else f"confidence {step.confidence:g}"
        reasons.append(f"{told}, and less than {bounds.confidence:g} needs approval")
    if any(loop.source == approver for loop in state.loops.values()):
        reasons.append("you rejected an earlier version")
    return tuple(reasons)
