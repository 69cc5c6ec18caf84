"""What the next round of a loop would set in motion, and what that costs by experience."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from backedge.core import events as e
from backedge.core.errors import NotFound
from backedge.core.model import HUMAN
from backedge.core.state import RunState, replay


class Blast(msgspec.Struct, frozen=True):
    loop: str
    reworks: tuple[str, ...]
    cascades: tuple[str, ...]
    """Steps downstream that run again if what they consumed changes."""
    verifies: tuple[str, ...]
    """Judges that look again."""
    cost_usd: float
    seconds: float


def blast_of(events: Iterable[e.Event], loop: str) -> Blast:
    """The blast radius of a loop; costs are the averages of each step's attempts so far. Raises NotFound."""
    history = list(events)
    state = replay(history)
    found = state.loop(loop) if state else None
    if state is None or found is None:
        known = ", ".join(state.loops) if state else ""
        raise NotFound(f"loop {loop!r} is unknown: open are {known or 'none'}")
    graph = state.graph
    targets = [target for target in found.targets if target != HUMAN]
    # An answer or a choice changes no artifact: only who asked goes on with it.
    changes = not (found.answers_only or found.choosing)
    below = {name for target in targets for name in graph.downstream[target]} if changes else set()
    ran = [name for name in graph.order if name in below | {found.source} and _runs_again(state, name, targets)]
    again = (*targets, *ran)
    spent: dict[str, list[tuple[float, float]]] = {}
    for event in history:
        if isinstance(event, e.AttemptSucceeded):
            spent.setdefault(event.step, []).append((event.usage.cost_usd, event.seconds))
    means = [
        (sum(cost for cost, _ in each) / len(each), sum(seconds for _, seconds in each) / len(each))
        for name in again
        if (each := spent.get(name))
    ]
    return Blast(
        loop,
        tuple(targets),
        tuple(name for name in ran if not graph.is_judge(name)),
        tuple(name for name in ran if graph.is_judge(name)),
        round(sum(cost for cost, _ in means), 6),
        round(sum(seconds for _, seconds in means), 3),
    )


def _runs_again(state: RunState, name: str, targets: list[str]) -> bool:
    step = state.steps[name]
    return bool(step.attempts) and name not in targets and not step.passed_over and not step.absent
