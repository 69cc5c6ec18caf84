"""The facts of a run that was imported from a file of another system."""

from __future__ import annotations

from collections import Counter

from backedge.analytics.facts import OPEN, FindingFacts, LoopFacts, RunFacts, Spent
from backedge.compat import Contents
from backedge.core.feedback.loop import LoopState


def imported_facts(facts: RunFacts, contents: Contents) -> None:
    """What a file of another system adds to the statistics."""
    for loop in contents.loops:
        state = OPEN if loop.open and loop.state is not LoopState.ESCALATING else loop.state
        facts.loops[loop.id] = LoopFacts(loop.kind, loop.severity, loop.rounds, state)
        facts.escalations += bool(loop.reason) or state == LoopState.ESCALATING
    iterations = contents.progress.feedback_loop.iterations if contents.progress else ()
    seen = Counter(issue for each in iterations for issue in {*each.review_issues, *each.test_failures})
    corrected: set[str] = set()
    for index, defect in enumerate(contents.defects):
        facts.findings[index] = FindingFacts(
            name=defect.finding,
            description=defect.description,
            severity=defect.severity,
            status=defect.status,
            found_by=defect.detected_by,
            detected=defect.detected_phase,
            injected=defect.injected_phase,
            means="test" if "test" in defect.detected_by.lower() else "review",
            rounds_seen=seen[defect.description] or 1,
        )
        phases = (each for each in (defect.injected_phase, defect.detected_phase) if each not in facts.phases)
        facts.phases = (*facts.phases, *dict.fromkeys(phases))
        # All findings of a loop were corrected by the same attempts.
        if defect.loop is None or defect.loop not in corrected:
            corrected.add(defect.loop or "")
            spent = Spent(defect.correction_attempts, defect.cost_usd, defect.seconds)
            if spent != Spent():
                origin = (defect.injected_phase, ", ".join(defect.injected_by) or "imported")
                facts.rework.setdefault(origin, Spent()).add(spent)
                facts.all.add(spent)
