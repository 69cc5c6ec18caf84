"""An index of the run, so that a decision does not have to look at every step.

It holds four small sets: the unsettled steps, those of them that could start next, the running steps, and the steps
whose last attempt ended with an error or at a limit. It ignores loops: the scheduler adds what open loops ask for. It also leaves out
steps that depend on a condition, because these are always examined. The fold notes which steps changed
(`RunState.derived`); when the index is needed, it is updated from these steps and their consumers. It is never stored:
replaying a journal builds it again."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from msgspec.structs import force_setattr

from backedge.core.model import SIDE_MODES
from backedge.core.scheduling.staleness import is_fresh
from backedge.core.state.run import Derived, Running, RunState, StepState
from backedge.core.value import Value
from backedge.core.workflow.graph import Graph


class Index(Value, frozen=True):
    """The indexed sets of a run. The dicts are ordered sets and are never changed in place."""

    unsettled: dict[str, None] = {}
    """Steps that have to run, or are running, regardless of open loops."""
    front: tuple[int, ...] = ()
    """The unsettled steps that are not running and need nothing unsettled, as positions in `graph.by_urgency`."""
    running: dict[str, None] = {}
    erring: dict[str, None] = {}
    """Steps whose last attempt ended with an error or at a limit of the provider."""


def index_of(state: RunState) -> Index:
    """The index of the current state. It is computed once per state, from the index of the state before."""
    derived = state.derived
    known = derived.index
    if isinstance(known, Index) and not derived.changed:
        return known
    index = _updated(known, state, derived.changed) if isinstance(known, Index) else _built(state)
    force_setattr(state, "derived", Derived(index))
    return index


def running_attempts(state: RunState) -> list[tuple[str, Running]]:
    """The running attempts with their steps, in the order of the steps."""
    names = index_of(state).running
    if len(names) > 1:
        names = dict.fromkeys(sorted(names, key=state.graph.file_order.__getitem__))
    return [(name, running) for name in names if (running := state.steps[name].running) is not None]


def _built(state: RunState) -> Index:
    unsettled = {name: None for name in state.steps if _unsettled(state, name)}
    front = (state.graph.urgency[name] for name in unsettled if _in_front(state, unsettled, name))
    return Index(
        unsettled,
        tuple(sorted(front)),
        {name: None for name, step in state.steps.items() if step.running is not None},
        {name: None for name, step in state.steps.items() if is_retrying(step)},
    )


def _updated(old: Index, state: RunState, changed: tuple[str, ...]) -> Index:
    graph, steps = state.graph, state.steps
    touched = dict.fromkeys(changed)
    affected = dict.fromkeys((*touched, *(each for name in touched for each in graph.consumers[name])))
    flipped = [name for name in affected if (name in old.unsettled) != _unsettled(state, name)]
    unsettled = _toggled(old.unsettled, flipped)
    front = old.front
    consumers_of_flipped = (each for name in flipped for each in graph.consumers[name])
    for name in dict.fromkeys((*touched, *flipped, *consumers_of_flipped)):
        front = _with_membership(front, graph, name, _in_front(state, unsettled, name))
    started_or_ended = [name for name in touched if (name in old.running) != (steps[name].running is not None)]
    erred_or_recovered = [name for name in touched if (name in old.erring) != is_retrying(steps[name])]
    return Index(unsettled, front, _toggled(old.running, started_or_ended), _toggled(old.erring, erred_or_recovered))


def is_retrying(step: StepState) -> bool:
    """Whether the last attempt of a step ended with an error or at a limit of its provider."""
    return bool(step.errors or step.limits_in_a_row)


def _unsettled(state: RunState, name: str) -> bool:
    """Whether a step has to run or is running, regardless of loops."""
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
    """A set with these names added, or removed if they are in it."""
    new: dict[str, None] | None = None
    for name in changed:
        if new is None:
            new = dict(names)
        if name in new:
            del new[name]
        else:
            new[name] = None
    return names if new is None else new


def _with_membership(front: tuple[int, ...], graph: Graph, name: str, member: bool) -> tuple[int, ...]:
    """The front with or without one step, as `member` says. Positions stay sorted."""
    position = graph.urgency[name]
    index = bisect_left(front, position)
    is_member = index < len(front) and front[index] == position
    if is_member == member:
        return front
    return (*front[:index], position, *front[index:]) if member else (*front[:index], *front[index + 1 :])
