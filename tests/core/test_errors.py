"""Errors say what happened and name what it happened to."""

from __future__ import annotations

from backedge.core.errors import RunHeld, RunLost


def test_a_lost_run_is_named() -> None:
    error = RunLost("r-1")
    assert error.run == "r-1"
    assert "'r-1'" in str(error)


def test_a_held_run_names_its_holder() -> None:
    error = RunHeld("r-1", "process 7")
    assert (error.run, error.holder) == ("r-1", "process 7")
    assert "process 7" in str(error)
