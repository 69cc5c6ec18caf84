"""The shape of a run as it turns out: steps that a condition skips, and steps that are repeated until one is met.

A condition is looked at when its step could start, and again when what it refers to has changed; what was seen is
recorded. A skipped step stands as it is: what needs it runs without it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256
from typing import TYPE_CHECKING

from backedge.core.conditions import Condition, holds
from backedge.core.loops import Loop, LoopState
from backedge.core.model import ASIDE, HUMAN, Feedback, Kind
from backedge.core.references import MISSING, Missing
from backedge.core.staleness import fresh
from backedge.core.value import Json

if TYPE_CHECKING:
    from backedge.core.state import RunState


def value_of(state: RunState, condition: Condition) -> Json | Missing:
    """The value that a condition is about; nothing for a step that has made nothing, or is skipped."""
    if condition.of is None:
        return len(state.loops)
    step = state.steps[condition.of.step]
    if step.artifact is None or step.absent:
        return MISSING
    return step.artifact.values.get(condition.of.pointer, MISSING)


def unmet(state: RunState, conditions: Iterable[Condition]) -> Condition | None:
    """The first of several conditions that is not met; None if all are."""
    return next((each for each in conditions if not holds(each, value_of(state, each))), None)


def basis_of(state: RunState, name: str) -> str:
    """What the condition of a step is decided on, as a digest. Loops come and go: only artifacts count."""
    values = [value_of(state, each) for each in state.graph.conditions[name] if each.of is not None]
    known = [[each] if not isinstance(each, Missing) else [] for each in values]
    return sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


def undecided(state: RunState, name: str) -> bool:
    """Whether the condition of a step has to be looked at before it can start, or stand as it is."""
    if name not in state.graph.conditions:
        return False
    seen = state.steps[name].seen
    return seen is None or seen.basis != basis_of(state, name)


def skips(state: RunState, name: str) -> bool:
    """Whether a step is skipped: by its condition, or as the judge of nothing but skipped steps."""
    graph = state.graph
    if not graph.conditions:
        return False
    if name in graph.conditions and state.steps[name].absent and not undecided(state, name):
        return True
    return graph.is_judge(name) and all(skips(state, subject) for subject in graph.steps[name].judges)


def present(state: RunState, name: str) -> tuple[str, ...]:
    """What a step needs and gets: without the steps that are skipped."""
    needs = state.graph.needs[name]
    if any(state.steps[need].seen for need in needs):
        return tuple(need for need in needs if not state.steps[need].absent)
    return needs


def input_versions(state: RunState, name: str) -> dict[str, int]:
    """The versions of what a step would be given now, by producer."""
    versions: dict[str, int] = {}
    for need in present(state, name):
        artifact = state.steps[need].artifact
        if artifact is not None:
            versions[need] = artifact.version
    return versions


def stands(state: RunState, name: str) -> bool:
    """Whether a step need not be executed for what there is now."""
    if undecided(state, name) or repeats(state, name):
        return state.steps[name].passed_over
    return state.steps[name].passed_over or skips(state, name) or fresh(state, name)


def _changes_soon(loop: Loop, name: str) -> bool:
    """Whether a step is to be reworked for a loop. What is escalated may wait for long, and for nothing in the end."""
    return name in loop.shares and not loop.shares[name].done and loop.state is not LoopState.ESCALATING


def upstream_settled(state: RunState, name: str) -> bool:
    """Whether nothing that a step needs, directly or not, is going to change."""
    for other in state.graph.upstream[name]:
        step = state.steps[other]
        if step.running is not None and step.running.mode not in ASIDE:
            return False
        if not stands(state, other):
            return False
        if not skips(state, other) and any(_changes_soon(loop, other) for loop in state.loops.values()):
            return False
    return True


def _most(state: RunState, name: str) -> int:
    repeat = state.graph.steps[name].repeat
    assert repeat is not None
    return repeat.max + state.steps[name].turns_granted


def _unfinished(state: RunState, name: str) -> bool:
    until = state.graph.untils.get(name)
    return until is not None and state.steps[name].artifact is not None and unmet(state, until) is not None


def repeats(state: RunState, name: str) -> bool:
    """Whether a step is to be executed once more, since what it is repeated for is not there yet."""
    return _unfinished(state, name) and state.steps[name].turns < _most(state, name)


def turn_after(state: RunState, name: str) -> tuple[int, int]:
    """The number of the turn that the attempt under way is, and what was granted: a repetition goes on with the
    count, anything else starts a new one."""
    step = state.steps[name]
    assert step.running is not None
    again = step.artifact is not None and step.artifact.consumed == step.running.consumed and not step.running.loops
    return (step.turns + 1, step.turns_granted) if again and repeats(state, name) else (1, 0)


def exhausted(state: RunState, name: str) -> str | None:
    """Why a step that was repeated as often as it may be is not finished; None if it is, or goes on."""
    if not _unfinished(state, name) or repeats(state, name):
        return None
    missed = unmet(state, state.graph.untils[name])
    assert missed is not None
    value = value_of(state, missed)
    said = "nothing is there" if isinstance(value, Missing) else f"it is {json.dumps(value, ensure_ascii=False)[:200]}"
    times = "once" if state.steps[name].turns == 1 else f"{state.steps[name].turns} times"
    return f"{name!r} was done {times}, and {missed.text!r} is not met: {said}"


def call_for_help(state: RunState, name: str) -> Feedback | None:
    """What a step that was repeated in vain sends to the step that its `repeat` names; None if it names none."""
    repeat = state.graph.steps[name].repeat
    if repeat is None or repeat.to in ("", HUMAN):
        return None
    reason = exhausted(state, name)
    if reason is None:
        return None
    wanted = " and ".join(each.text for each in state.graph.untils[name])
    return Feedback(Kind.FIX_REQUEST, (repeat.to,), reason, suggested_fix=f"make {wanted} possible")
