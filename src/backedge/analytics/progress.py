"""Where the tight loop of a run stands, in the shape of progress.json."""

from __future__ import annotations

from collections.abc import Mapping

from backedge.analytics.tight_loop import Cycle, Judged, TightLoop
from backedge.compat.progress import FeedbackLoop, Iteration, Progress, Result


def progress_of(loop: TightLoop) -> Progress:
    """The contents of progress.json."""
    return Progress(
        FeedbackLoop(
            enabled=loop.graph.has_judges,
            current_iteration=loop.number,
            max_iterations=loop.most,
            status=loop.status,
            consecutive_review_failures=loop.streak(tests=False),
            consecutive_test_failures=loop.streak(tests=True),
            iterations=tuple(_iteration(loop, cycle) for cycle in loop.cycles),
            known_issues=loop.known_issues,
        ),
        loop.run,
        loop.workflow.name,
    )


def notes_of(loop: TightLoop) -> dict[int, tuple[str, ...]]:
    """Escalations and decisions by people, by iteration."""
    return {cycle.number: cycle.notes for cycle in loop.cycles}


def _iteration(loop: TightLoop, cycle: Cycle) -> Iteration:
    last = cycle.number == loop.number
    return Iteration(
        cycle.number,
        _implementation(cycle),
        _verdict(cycle.reviews),
        _verdict(cycle.tests),
        _issues(cycle.reviews),
        _issues(cycle.tests),
        "continuing" if not last or loop.status == "in_progress" else loop.status,
    )


def _implementation(cycle: Cycle) -> str:
    by_step = {**cycle.made, **{step: f"broke: {error}" for step, error in cycle.broke.items()}}
    if len(by_step) == 1:
        step, text = next(iter(by_step.items()))
        return text or f"{step} done"
    return "; ".join(f"{step}: {text or 'done'}" for step, text in by_step.items())


def _verdict(judged: Mapping[str, Judged]) -> Result | None:
    if not judged:
        return None
    return "PASS" if all(each.passed for each in judged.values()) else "FAIL"


def _issues(judged: Mapping[str, Judged]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(issue for each in judged.values() for issue in each.issues))
