"""Conditions: steps that `when` skips, and steps that `repeat` runs until a condition is met.

A condition is evaluated when its step could start, and again when what it refers to has changed. The result is
recorded. Steps that need a skipped step run without it. A condition on loops says when a step joins the run: once the
step has an artifact, it stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256

from backedge.core.model import HUMAN, Feedback, Kind
from backedge.core.state.run import RunState
from backedge.core.value import Json
from backedge.core.workflow.conditions import OPEN_LOOPS, Condition, holds
from backedge.core.workflow.values import MISSING, Missing


def value_of(state: RunState, condition: Condition) -> Json | Missing:
    """The value that a condition refers to; MISSING if the step has no artifact or is skipped."""
    if condition.of is None:
        return _count(state, condition)
    step = state.steps[condition.of.step]
    if step.artifact is None or step.condition_false:
        return MISSING
    return step.artifact.values.get(condition.of.pointer, MISSING)


def unmet(state: RunState, conditions: Iterable[Condition]) -> Condition | None:
    """The first condition that is not met; None if all are."""
    return next((each for each in conditions if not holds(each, value_of(state, each))), None)


def unmet_when(state: RunState, name: str) -> Condition | None:
    """The first `when` condition of a step that is not met; None if all are."""
    return next((each for each in state.graph.conditions[name] if not _met(state, name, each)), None)


def _met(state: RunState, name: str, condition: Condition) -> bool:
    if condition.of is None and state.steps[name].artifact is not None:
        return True
    return holds(condition, value_of(state, condition))


def _count(state: RunState, condition: Condition) -> int:
    """The number of loops that a condition counts."""
    if condition.count == OPEN_LOOPS:
        return len(state.loops)
    every = condition.count.startswith("feedback")
    return sum(
        _is_counted(condition, loop.source, loop.involved)
        for loop in (*state.loops.values(), *(state.closed_loops.values() if every else ()))
    )


def _is_counted(condition: Condition, source: str, targets: tuple[str, ...]) -> bool:
    """Whether a condition counts a loop with this source and these targets."""
    if not condition.step:
        return True
    return condition.step == source if condition.count.endswith("_from") else condition.step in targets


def counts_loops(state: RunState, name: str) -> bool:
    """Whether the condition of a step counts loops."""
    return any(each.of is None for each in state.graph.conditions[name])


def starts_with(state: RunState, name: str, source: str, targets: tuple[str, ...]) -> bool:
    """Whether feedback from this source to these targets would meet the condition of a skipped step."""
    for each in state.graph.conditions.get(name, ()):
        value = value_of(state, each)
        more = each.of is None and _is_counted(each, source, targets)
        if not holds(each, value + 1 if more and not isinstance(value, Missing) else value):
            return False
    return name in state.graph.conditions


def condition_basis(state: RunState, name: str, loops: bool) -> str:
    """A digest of what the condition of a step depends on: the artifact values, and whether each condition on loops is
    met, if `loops` says so. The numbers of loops are left out: they change too often."""
    known: list[Json] = []
    for each in state.graph.conditions[name]:
        if each.of is None and not loops:
            continue
        value = value_of(state, each) if each.of is not None else _met(state, name, each)
        known.append([] if isinstance(value, Missing) else [value])
    return sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


def condition_pending(state: RunState, name: str) -> bool:
    """Whether the condition of a step has to be evaluated, for the first time or again."""
    if name not in state.graph.conditions:
        return False
    seen = state.steps[name].condition
    return seen is None or seen.basis != condition_basis(state, name, seen.loops)


def is_skipped(state: RunState, name: str) -> bool:
    """Whether a step is skipped: by its own condition, or because it judges only skipped steps."""
    graph = state.graph
    if not graph.conditions:
        return False
    if name in graph.conditions and state.steps[name].condition_false and not condition_pending(state, name):
        return True
    return name in graph.judges and all(is_skipped(state, subject) for subject in graph.steps[name].judges)


def present_needs(state: RunState, name: str) -> tuple[str, ...]:
    """The needs of a step without those that are skipped."""
    needs = state.graph.needs[name]
    if any(state.steps[need].condition for need in needs):
        return tuple(need for need in needs if not state.steps[need].condition_false)
    return needs


def input_versions(state: RunState, name: str) -> dict[str, int]:
    """The artifact versions that a step would get now, by producer."""
    versions: dict[str, int] = {}
    for need in present_needs(state, name):
        artifact = state.steps[need].artifact
        if artifact is not None:
            versions[need] = artifact.version
    return versions


def _max_repeats(state: RunState, name: str) -> int:
    repeat = state.graph.steps[name].repeat
    assert repeat is not None
    return repeat.max + state.steps[name].repeats_granted


def _unfinished(state: RunState, name: str) -> bool:
    until = state.graph.until_conditions.get(name)
    return until is not None and state.steps[name].artifact is not None and unmet(state, until) is not None


def must_repeat(state: RunState, name: str) -> bool:
    """Whether a step has to be executed once more, because its `until` is not met yet."""
    return _unfinished(state, name) and state.steps[name].repeats < _max_repeats(state, name)


def repeat_count_after(state: RunState, name: str) -> tuple[int, int]:
    """The repetition count after the running attempt, and the repetitions that were granted. A repetition increases the
    count; any other execution starts a new one."""
    step = state.steps[name]
    assert step.running is not None
    same_inputs = (
        step.artifact is not None and step.artifact.consumed == step.running.consumed and not step.running.loops
    )
    return (step.repeats + 1, step.repeats_granted) if same_inputs and must_repeat(state, name) else (1, 0)


def exhausted_reason(state: RunState, name: str) -> str | None:
    """Why a step that has used up its repetitions is not finished; None if it is, or can still repeat."""
    if not _unfinished(state, name) or must_repeat(state, name):
        return None
    condition = unmet(state, state.graph.until_conditions[name])
    assert condition is not None
    value = value_of(state, condition)
    got = "there is no value" if isinstance(value, Missing) else f"it is {json.dumps(value, ensure_ascii=False)[:200]}"
    times = "once" if state.steps[name].repeats == 1 else f"{state.steps[name].repeats} times"
    return f"{name!r} ran {times}, and {condition.text!r} is still not met: {got}"


def help_request(state: RunState, name: str) -> Feedback | None:
    """The feedback that a step sends to the step that its `repeat` names, when its repetitions are used up; else None."""
    repeat = state.graph.steps[name].repeat
    if repeat is None or repeat.to in ("", HUMAN):
        return None
    reason = exhausted_reason(state, name)
    if reason is None:
        return None
    wanted = " and ".join(each.text for each in state.graph.until_conditions[name])
    return Feedback(Kind.FIX_REQUEST, (repeat.to,), reason, suggested_fix=f"make {wanted} possible")
