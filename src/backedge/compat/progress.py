"""progress.json: the iterations of a tight loop, in the shape that its users know."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

from backedge.core.ready_types import make_ready
from backedge.core.text import escaped

VERIFIED = "IMPLEMENTATION_VERIFIED"
"""The completion promise."""

LoopStatus = Literal["in_progress", "IMPLEMENTATION_VERIFIED", "escalated", "accepted", "cancelled", "failed", "done"]
"""`failed` is the end by `on_breach: error`; `done` that of a workflow without judges, where nothing is verified."""
STATUSES: tuple[LoopStatus, ...] = get_args(LoopStatus)

Result = Literal["PASS", "FAIL"]

MOST_ITERATIONS = 100
"""How many of the last iterations the files list."""


class Iteration(msgspec.Struct, frozen=True):
    """One record of progress.json; a result is null until its judges have reported."""

    number: int
    implementation: str = ""
    review_result: Result | None = None
    test_result: Result | None = None
    review_issues: tuple[str, ...] = ()
    test_failures: tuple[str, ...] = ()
    status: str = "continuing"
    """`continuing`; for the last one, the status of the loop."""


class FeedbackLoop(msgspec.Struct, frozen=True):
    enabled: bool
    """Whether the workflow has judges."""
    current_iteration: int
    max_iterations: int | None
    status: LoopStatus
    consecutive_review_failures: int
    consecutive_test_failures: int
    iterations: tuple[Iteration, ...]
    known_issues: tuple[str, ...] = ()
    """Issues that a person accepted."""


class Progress(msgspec.Struct, frozen=True):
    """The contents of progress.json."""

    feedback_loop: FeedbackLoop
    run: str = ""
    workflow: str = ""


make_ready(Progress)


def progress_json(progress: Progress) -> bytes:
    """The text of progress.json."""
    return escaped(msgspec.json.format(msgspec.json.encode(progress), indent=2)) + b"\n"


def read_progress(text: bytes) -> Progress:
    """Read a progress.json. Raises msgspec.DecodeError for anything else."""
    return msgspec.json.decode(text, type=Progress)
