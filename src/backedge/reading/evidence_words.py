"""What backedge itself saw of judges and attempts, one line for each event."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from backedge.core import events as e
from backedge.core.evidence.values import NOT_ENDED, Baseline
from backedge.core.state.run import RunState
from backedge.core.text import counted, shown
from backedge.core.wording import tests_text

BEFORE = "failed before the run began"


def baseline_line(baseline: Baseline) -> str:
    """What a tool judge reported about the files of the start."""
    line = f"baseline: {baseline.judge} … {', '.join(_baseline(baseline))}"
    if not baseline.changes:
        return line
    return (
        f"{line}; it changes {', '.join(map(shown, baseline.changes))}: its verdict will not count if it still does so after the "
        "work; take `fix` out of its command and its configuration, or name what it may write in `keeps`"
    )


def _baseline(baseline: Baseline) -> Iterator[str]:
    if baseline.error:
        yield f"no report yet: {shown(baseline.error)}"
    elif baseline.tests is not None:
        yield counted(baseline.tests.tests, "test")
        yield from [f"{baseline.tests.failed} failed"] if baseline.tests.failed else []
        yield from [f"{baseline.tests.skipped} skipped"] if baseline.tests.skipped else []
    else:
        yield counted(len(baseline.failing), "finding") if baseline.failing else "passes"
    yield "from an earlier run" if baseline.cached else f"{baseline.seconds:.1f} s"


def verdict_tests(state: RunState, judge: str) -> str:
    """The tests behind a verdict, in parentheses: " (8 tests, was 8)"; empty if there are none."""
    counts = state.steps[judge].evidence.tests
    return f" ({tests_text(counts)})" if counts is not None else ""


def noticed(event: e.EvidenceRecorded, known: Collection[str]) -> Iterator[str]:
    """What is new in the evidence of an attempt, one line each; `known` are the notes about earlier attempts."""
    yield from (f"  ! {event.step}: {shown(note, 160)}" for note in event.evidence.notes if note not in known)
    yield from (f"  ! {event.step} {left_process(each)}" for each in event.evidence.ended)
    if event.evidence.environment == "changed":
        yield f"  ! {event.step} ran with other programs or libraries than at the start of the run"


def left_process(process: str) -> str:
    """What became of a process that an attempt left."""
    name = process.removesuffix(NOT_ENDED)
    if name != process:
        return f"left a process that could not be ended: {shown(name, 120)}"
    return f"left a process, which was ended: {shown(name, 120)}"


def answered(event: e.ProtectedAnswered, state: RunState) -> str:
    files = [each.file for each in state.protected.values() if each.id in event.changes]
    who = shown(event.by or "a person", 40)
    listed = shown(", ".join(files), 120)
    return f"  {'✓' if event.status == 'approved' else '✗'} {who} {event.status} the change of {listed}"
