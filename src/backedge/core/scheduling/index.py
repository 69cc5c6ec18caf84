"""Where a large run stands at a glance: what runs, what is unsettled, and what of that has nothing unsettled before it.

A look over all steps would cost every decision as much as the run is large. For a large run the fold keeps these few
sets up to date instead, step by step, and `pending` looks only at the steps that can matter. Loops are not in them:
`pending` adds what the open ones ask for. Nor are the steps that a condition decides about: those are always looked at.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from backedge.core.model import SIDE_MODES
from backedge.core.scheduling.staleness import is_fresh
from backedge.core.state.paged_map import Pages
from backedge.core.value import Value

if TYPE_CHECKING:
    from backedge.core.state.run import RunState, StepState
    from backedge.core.workflow.graph import Graph

LARGE = 64
"""The number of steps from which keeping these sets is cheaper than looking at every step."""


class Frontier(Value, frozen=True):
    """What is kept of a large run. The dicts are ordered sets, and are never changed in place."""

    unsettled: dict[str, None] = {}
    """The steps that have to be executed, or are, whatever the open loops say."""
    front: tuple[int, ...] = ()
    """The turns of those of them that do not run and need nothing unsettled, the most urgent first."""
    running: dict[str, None] = {}
    erring: dict[str, None] = {}
    """The steps whose last attempt broke."""


def large_or_small(steps: dict[str, StepState]) -> Mapping[str, StepState]:
    """The steps of a run, in the form that is cheapest for their number."""
    return Pages(steps) if len(steps) >= LARGE else steps


def frontier_after(before: RunState, after: RunState) -> Frontier:
    """What is kept of a large run after an event."""
    old, was, now = before.frontier, before.steps, after.steps
    if old is None or before.graph is not after.graph:
        return frontier_of(after)
    if now is was:
        return old
    assert isinstance(now, Pages) and isinstance(was, Pages)
    return _followed(old, before, after, now.changed_since(was))


def frontier_of(state: RunState) -> Frontier:
    """What is kept of a run, worked out anew."""
    unsettled = {name: None for name in state.steps if _unsettled(state, name)}
    front = (state.graph.turn[name] for name in unsettled if _in_front(state, unsettled, name))
    return Frontier(
        unsettled,
        tuple(sorted(front)),
        {name: None for name, step in state.steps.items() if step.running is not None},
        {name: None for name, step in state.steps.items() if step.errors},
    )


def _followed(old: Frontier, before: RunState, after: RunState, changed: list[str]) -> Frontier:
    graph = after.graph
    doubtful = dict.fromkeys(changed)
    for name in changed:
        was, now = before.steps[name], after.steps[name]
        if was.artifact is not now.artifact or was.condition_false != now.condition_false:
            doubtful.update(dict.fromkeys(graph.consumers[name]))
    flipped = [name for name in doubtful if (name in old.unsettled) != _unsettled(after, name)]
    unsettled = _toggled(old.unsettled, flipped)
    near = dict.fromkeys((*changed, *flipped, *(each for name in flipped for each in graph.consumers[name])))
    front = old.front
    for name in near:
        front = _placed(front, graph, name, _in_front(after, unsettled, name))
    runs = [name for name in changed if (name in old.running) != (after.steps[name].running is not None)]
    errs = [name for name in changed if (name in old.erring) != bool(after.steps[name].errors)]
    return Frontier(unsettled, front, _toggled(old.running, runs), _toggled(old.erring, errs))


def _unsettled(state: RunState, name: str) -> bool:
    """Whether a step has to be executed, or is being so, for its own sake: no loop is asked."""
    if name in state.graph.conditional:
        return False
    step = state.steps[name]
    if step.running is not None:
        return step.running.mode not in SIDE_MODES or not (step.skipped_by_decision or is_fresh(state, name))
    return not step.skipped_by_decision and (bool(step.results_due) or not is_fresh(state, name))


def _in_front(state: RunState, unsettled: dict[str, None], name: str) -> bool:
    if name not in unsettled or state.steps[name].running is not None:
        return False
    return not any(need in unsettled for need in state.graph.needs[name])


def _toggled(names: dict[str, None], changed: Iterable[str]) -> dict[str, None]:
    """A set with these names added or taken away."""
    new: dict[str, None] | None = None
    for name in changed:
        if new is None:
            new = dict(names)
        if name in new:
            del new[name]
        else:
            new[name] = None
    return names if new is None else new


def _placed(front: tuple[int, ...], graph: Graph, name: str, there: bool) -> tuple[int, ...]:
    """The front with or without one step."""
    turn = graph.turn[name]
    at = bisect_left(front, turn)
    known = at < len(front) and front[at] == turn
    if known == there:
        return front
    return (*front[:at], turn, *front[at:]) if there else (*front[:at], *front[at + 1 :])
