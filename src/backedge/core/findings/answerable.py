"""Which findings `resolutions` may name. Briefings and answer schemas list them, and outcomes are held to the same list."""

from __future__ import annotations

from backedge.core.model import SIDE_MODES
from backedge.core.state.run import Running, RunState


def answerable(state: RunState, step: str, running: Running) -> tuple[str, ...]:
    """For a judge, the findings to verify and those that its verdicts no longer mention; for another step, those it has to
    address and those it has to keep fixed."""
    if running.mode in SIDE_MODES:
        return ()
    if step in state.graph.judges:
        ids = (*state.steps[step].open_findings, *state.steps[step].unmentioned)
    else:
        ids = (*running.to_address, *running.must_keep_fixed)
    return tuple(f"F-{id}" for id in dict.fromkeys(ids))
