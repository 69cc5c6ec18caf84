"""No test waits for ever: one that hangs fails, and its traceback says where."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from types import FrameType

import pytest

PATIENCE = 120
"""Seconds: many times what the slowest test takes on a busy machine."""


@pytest.fixture(autouse=True)
def patience() -> Iterator[None]:
    def give_up(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError(f"the test was not over within {PATIENCE} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
