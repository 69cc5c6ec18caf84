"""The blast radius of a loop: which steps its next round would run, and what they cost so far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from backedge.core import events as e
from backedge.core.errors import NotFound
from backedge.core.feedback.loop import Loop
from backedge.core.model import HUMAN
from backedge.core.state.evolve import replay
from backedge.core.state.run import RunState

Means = Mapping[str, tuple[float, float]]


class Blast(msgspec.Struct, frozen=True, omit_defaults=True):
    loop: str
    reworks: tuple[str, ...]
    """Steps that the loop runs: they rework, answer or choose."""
    cascades: tuple[str, ...]
    """Steps downstream that run again if what they consumed changes."""
    verifies: tuple[str, ...]
    """Judges that look again."""
    cost_usd: float
    seconds: float
    options: dict[str, Blast] = {}
    """The blast radius of each option of a choice."""


def blast_of(events: Iterable[e.Event], loop: str) -> Blast:
    """The blast radius of a loop; costs are the averages of each step's attempts so far. Raises NotFound."""
    history = list(events)
    state = replay(history)
    found = state.loop(loop) if state else None
    if state is None or found is None:
        known = ", ".join(state.loops) if state else ""
        raise NotFound(f"unknown loop {loop!r} ({f'open loops: {known}' if known else 'no loops are open'})")
    return blast_in(state, history, found)


def blast_in(state: RunState, history: Iterable[e.Event], found: Loop) -> Blast:
    """The same for a loop of a state that these events lead to."""
    means = _means(history)
    targets = [target for target in found.targets if target != HUMAN]
    # An answer or a choice changes no artifact: only the step that asked runs again.
    radius = _radius(state, found, targets, means, changes=not (found.answers_only or found.choosing))
    if not found.choosing:
        return radius
    options = {
        each.option: _radius(state, found, found.rework_for(each), means, changes=True) for each in found.options
    }
    return msgspec.structs.replace(radius, options=options)


def _radius(state: RunState, loop: Loop, targets: Sequence[str], means: Means, changes: bool) -> Blast:
    graph = state.graph
    below = {name for target in targets for name in graph.downstream[target]} if changes else set()
    ran = [name for name in graph.order if name in below | {loop.source} and _runs_again(state, name, targets)]
    spent = [means[name] for name in (*targets, *ran) if name in means]
    return Blast(
        loop.id,
        tuple(targets),
        tuple(name for name in ran if not graph.is_judge(name)),
        tuple(name for name in ran if graph.is_judge(name)),
        round(sum(cost for cost, _ in spent), 6),
        round(sum(seconds for _, seconds in spent), 3),
    )


def _means(history: Iterable[e.Event]) -> Means:
    """What an attempt of each step cost and took so far, on average."""
    spent: dict[str, list[e.AttemptSucceeded]] = {}
    for event in history:
        if isinstance(event, e.AttemptSucceeded):
            spent.setdefault(event.step, []).append(event)
    return {
        name: (sum(each.usage.cost_usd for each in made) / len(made), sum(each.seconds for each in made) / len(made))
        for name, made in spent.items()
    }


def _runs_again(state: RunState, name: str, targets: Sequence[str]) -> bool:
    step = state.steps[name]
    return bool(step.attempts) and name not in targets and not step.skipped_by_decision and not step.condition_false
