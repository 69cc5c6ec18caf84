"""Where a run stands at a glance, so that a decision need not look at every step.

The index holds four small sets: what is unsettled, what of that could start next, what runs, and what broke last. Loops
are not part of it; the scheduler adds what open loops ask for. Neither are steps that depend on a condition: those are
always looked at. The fold notes which steps changed (`RunState.derived`), and the index is brought up to date from these
and their consumers when it is asked for. It is derived: replaying a journal builds it again.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from msgspec.structs import force_setattr

from backedge.core.model import SIDE_MODES
from backedge.core.scheduling.staleness import is_fresh
from backedge.core.state.run import Derived, Running, RunState
from backedge.core.value import Value
from backedge.core.workflow.graph import Graph


class Index(Value, frozen=True):
    """The sets that are kept of a run. The dicts are ordered sets, and are never changed in place."""

    unsettled: dict[str, None] = {}
    """Steps that have to run, or run now, whatever the open loops say."""
    front: tuple[int, ...] = ()
    """The unsettled steps that do not run and need nothing unsettled, as places in `graph.in_turn`."""
    running: dict[str, None] = {}
    erring: dict[str, None] = {}
    """Steps whose last attempt broke."""


def index_of(state: RunState) -> Index:
    """The index of a run as it stands. Worked out once per state, from that of the state before."""
    derived = state.derived
    known = derived.index
    if isinstance(known, Index) and not derived.changed:
        return known
    index = _updated(known, state, derived.changed) if isinstance(known, Index) else _built(state)
    force_setattr(state, "derived", Derived(index))
    return index


def running_attempts(state: RunState) -> list[tuple[str, Running]]:
    """The attempts that run, with their steps, in the order of the steps."""
    names = index_of(state).running
    if len(names) > 1:
        names = dict.fromkeys(sorted(names, key=state.graph.place.__getitem__))
    return [(name, running) for name in names if (running := state.steps[name].running) is not None]


def _built(state: RunState) -> Index:
    unsettled = {name: None for name in state.steps if _unsettled(state, name)}
    front = (state.graph.turn[name] for name in unsettled if _in_front(state, unsettled, name))
    return Index(
        unsettled,
        tuple(sorted(front)),
        {name: None for name, step in state.steps.items() if step.running is not None},
        {name: None for name, step in state.steps.items() if step.errors},
    )


def _updated(old: Index, state: RunState, changed: tuple[str, ...]) -> Index:
    graph, steps = state.graph, state.steps
    touched = dict.fromkeys(changed)
    affected = dict.fromkeys((*touched, *(each for name in touched for each in graph.consumers[name])))
    flipped = [name for name in affected if (name in old.unsettled) != _unsettled(state, name)]
    unsettled = _toggled(old.unsettled, flipped)
    front = old.front
    for name in dict.fromkeys((*touched, *flipped, *(each for was in flipped for each in graph.consumers[was]))):
        front = _placed(front, graph, name, _in_front(state, unsettled, name))
    runs = [name for name in touched if (name in old.running) != (steps[name].running is not None)]
    errs = [name for name in touched if (name in old.erring) != bool(steps[name].errors)]
    return Index(unsettled, front, _toggled(old.running, runs), _toggled(old.erring, errs))


def _unsettled(state: RunState, name: str) -> bool:
    """Whether a step has to run, or runs, for its own sake, without asking any loop."""
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


def _placed(front: tuple[int, ...], graph: Graph, name: str, there: bool) -> tuple[int, ...]:
    """The front with or without one step."""
    turn = graph.turn[name]
    at = bisect_left(front, turn)
    known = at < len(front) and front[at] == turn
    if known == there:
        return front
    return (*front[:at], turn, *front[at:]) if there else (*front[:at], *front[at + 1 :])
