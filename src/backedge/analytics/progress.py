"""progress.json and feedback-scratchpad.md, in the shapes that users of the tight loop know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from backedge.analytics.tight_loop import KEPT_ITERATIONS, VERIFIED, Cycle, Judged, LoopStatus, TightLoop
from backedge.core.text import escaped

Result = Literal["PASS", "FAIL"]


class Iteration(msgspec.Struct, frozen=True):
    """One record of progress.json; a result is null while its judges have not spoken."""

    number: int
    implementation: str = ""
    review_result: Result | None = None
    test_result: Result | None = None
    review_issues: tuple[str, ...] = ()
    test_failures: tuple[str, ...] = ()
    status: str = "continuing"
    """`continuing`, or where the loop stands now for the last one."""


class FeedbackLoop(msgspec.Struct, frozen=True):
    enabled: bool
    """Whether anybody judges anything."""
    current_iteration: int
    max_iterations: int | None
    status: LoopStatus
    consecutive_review_failures: int
    consecutive_test_failures: int
    iterations: tuple[Iteration, ...]
    known_issues: tuple[str, ...] = ()
    """What a person accepted."""


class Progress(msgspec.Struct, frozen=True):
    """The contents of progress.json."""

    feedback_loop: FeedbackLoop
    run: str = ""
    workflow: str = ""


def progress(loop: TightLoop) -> Progress:
    """The loop as progress.json has it."""
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


def progress_json(loop: TightLoop) -> bytes:
    return escaped(msgspec.json.format(msgspec.json.encode(progress(loop)), indent=2)) + b"\n"


def read_progress(text: bytes) -> Progress:
    """What a progress.json says; raises msgspec.DecodeError for one that nobody of us wrote."""
    return msgspec.json.decode(text, type=Progress)


def scratchpad(loop: TightLoop) -> str:
    """The iterations as Markdown, for people and for prompts. Text of agents stands on one line each, cleaned."""
    return scratchpad_of(progress(loop), {cycle.number: cycle.notes for cycle in loop.cycles})


def scratchpad_of(told: Progress, notes: Mapping[int, tuple[str, ...]]) -> str:
    """What progress.json says as Markdown; `notes` has what people decided, by iteration."""
    return "\n".join(_lines(told.feedback_loop, told.run, notes)) + "\n"


def _lines(told: FeedbackLoop, run: str, notes: Mapping[int, tuple[str, ...]]) -> Iterator[str]:
    most = f" of at most {told.max_iterations}" if told.max_iterations is not None else ""
    yield "# Feedback scratchpad"
    yield ""
    of = f"Run {run}. " if run else ""
    yield f"{of}Iteration {told.current_iteration}{most}: {told.status}. Done is {VERIFIED}."
    if run and told.iterations and told.iterations[0].number > 1:
        yield f"The last {KEPT_ITERATIONS} iterations; `backedge show {run}` tells all of them."
    for record in told.iterations:
        yield ""
        yield f"## Iteration {record.number}"
        yield f"- **Implementation**: {record.implementation or 'under way'}"
        yield from _result("Review Result", record.review_result, record.review_issues)
        yield from _result("Test Result", record.test_result, record.test_failures)
        for note in notes.get(record.number, ()):
            yield f"- **Person**: {note}"
        yield f"- **Status**: {record.status}"
    if told.known_issues:
        yield ""
        yield "## Known issues, accepted by a person"
        yield from (f"- {issue}" for issue in told.known_issues)


def _result(label: str, result: Result | None, issues: tuple[str, ...]) -> Iterator[str]:
    if len(issues) == 1:
        yield f"- **{label}**: {result} - {issues[0]}"
        return
    yield f"- **{label}**: {result or 'not run'}{f' - {len(issues)} issues' if issues else ''}"
    yield from (f"  - {issue}" for issue in issues)


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
    told = {**cycle.made, **{step: f"broke: {error}" for step, error in cycle.broke.items()}}
    if len(told) == 1:
        step, text = next(iter(told.items()))
        return text or f"{step} done"
    return "; ".join(f"{step}: {text or 'done'}" for step, text in told.items())


def _verdict(judged: Mapping[str, Judged]) -> Result | None:
    if not judged:
        return None
    return "PASS" if all(each.passed for each in judged.values()) else "FAIL"


def _issues(judged: Mapping[str, Judged]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(issue for each in judged.values() for issue in each.issues))
