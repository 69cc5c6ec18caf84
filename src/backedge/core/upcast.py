"""Reads events of earlier versions as today's: it maps old names and keys, and fills in old defaults.

A fact that can only be computed from the state of the run is added by the fold, in `state/version_0_1.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from backedge.core.value import Json

LIMITS_0_1: dict[str, Json] = {
    "cost_usd": None,
    "tokens": None,
    "attempts": None,
    "wall_clock": None,
    "errors_in_a_row": 3,
    "rounds_total": 10,
    "recoveries_total": None,
    "rounds_per_loop": 3,
    "rounds_per_pair": None,
    "rounds_per_step": None,
    "same_finding": 3,
    "failures_in_a_row": None,
    "no_change": 2,
    "oscillation": 2,
    "diverging": False,
    "chain_depth": 3,
    "response_timeout": 600.0,
}
"""The default limits of version 0.1, whose events left out limits that had their default.

Never add to this or change it: that version had no other limits. A newer limit has its default from `Limits`.
"""


def upcast(event: dict[str, Json]) -> dict[str, Json]:
    """The event as today's version would write it. An event of today's version is returned unchanged."""
    convert = _UPCASTS.get(event.get("type", ""))
    return convert(event) if convert is not None else event


def is_old(tag: str) -> bool:
    """Whether only an earlier version writes events of this type."""
    return tag in _UPCASTS


def _renamed(tag: str) -> Callable[[dict[str, Json]], dict[str, Json]]:
    return lambda event: {**event, "type": tag}


def _run_started(event: dict[str, Json]) -> dict[str, Json]:
    workflow = event["workflow"]
    limits = {**LIMITS_0_1, **workflow.get("limits", {})}
    steps = [_with_limits(step) for step in workflow["steps"]]
    return {**event, "type": "run_started/2", "workflow": {**workflow, "steps": steps, "limits": limits}}


def _steps_changed(event: dict[str, Json]) -> dict[str, Json]:
    return {**event, "type": "steps_changed/2", "added": [_with_limits(step) for step in event.get("added", ())]}


def _with_limits(step: dict[str, Json]) -> dict[str, Json]:
    return {**step, "limits": {**LIMITS_0_1, **step["limits"]}} if step.get("limits") is not None else step


_UPCASTS: dict[str, Callable[[dict[str, Json]], dict[str, Json]]] = {
    "run_started/1": _run_started,
    "steps_changed/1": _steps_changed,
    "attempt_started/1": _renamed("attempt_started/2"),
    "attempt_succeeded/1": _renamed("attempt_succeeded/2"),
    "condition_seen/1": _renamed("condition_evaluated/1"),
    "waiter_told/1": _renamed("result_delivered/1"),
    "step_passed_over/1": _renamed("step_skipped/1"),
    "values_kept/1": _renamed("checkpoint_saved/1"),
    "values_restored/1": _renamed("checkpoint_restored/1"),
}
