"""The rules of version 0.1 that its fold applied, frozen so that its journals replay to the same state for ever.

The events of version 0.1 did not record what an attempt consumed, which findings it was given, and a few other facts;
its fold computed them. This module adds these facts to such events. Only the fold may import it, and its behaviour must
never change: tests/histories/0.1 checks that.
"""

from __future__ import annotations

import json
from hashlib import sha256

from backedge.core import events as e
from backedge.core.feedback.loop import Loop, LoopState
from backedge.core.model import SIDE_MODES
from backedge.core.state.run import RunState
from backedge.core.value import Json, replace
from backedge.core.workflow.conditions import Condition, holds
from backedge.core.workflow.definition import Step, Workflow
from backedge.core.workflow.values import MISSING, Missing


def attempt_started(state: RunState, event: e.AttemptStarted) -> e.AttemptStarted:
    name, side = event.step, event.mode in SIDE_MODES
    loops = state.loops
    unverified = () if side else tuple(loop for loop in loops.values() if _waits_for_verdict(loop, name))
    new = [loop for loop in unverified if not loop.shares[name].counted]
    return replace(
        event,
        consumed=consumed(state, name),
        counted=tuple(id for id in event.loops if not loops[id].shares[name].counted),
        to_address=_findings(name, [*(loops[id] for id in event.loops), *new]),
        must_keep_fixed=_findings(name, [loop for loop in unverified if loop not in new]),
        unverified=tuple(loop.id for loop in unverified),
        verifies=() if side else tuple(id for id, loop in loops.items() if _verified_by(loop, name)),
        results=() if side else state.steps[name].results_due,
    )


def attempt_succeeded(state: RunState, event: e.AttemptSucceeded) -> e.AttemptSucceeded:
    running = state.steps[event.step].running
    assert running is not None
    artifact = ""
    if event.step in state.graph.judges:
        judged = "\n".join(f"{name} {digest}" for name, digest in running.consumed.items())
        artifact = sha256(f"{event.made.digest}\n{judged}".encode()).hexdigest()
    repeats = event.step in state.graph.until_conditions and running.mode not in SIDE_MODES
    return replace(event, artifact=artifact, repeats=_repeats(state, event.step) if repeats else None)


def condition_basis(state: RunState, name: str) -> str:
    values = [_value_of(state, each) for each in state.graph.conditions[name] if each.of is not None]
    known = [[each] if not isinstance(each, Missing) else [] for each in values]
    return sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


def consumed(state: RunState, step: str) -> dict[str, str]:
    return {need: _consumed(state, step, need) for need in state.graph.needs[step]}


def steps_changed(state: RunState, event: e.StepsChanged) -> e.StepsChanged:
    after = {step.name: step for step in _with_plan(state.workflow, event).steps}
    added = tuple(after.pop(step.name) for step in event.added)
    return replace(event, added=added, changed=tuple(after.values()))


def _waits_for_verdict(loop: Loop, name: str) -> bool:
    return loop.state is LoopState.VALIDATING and name in loop.shares and not loop.answers_only


def _verified_by(loop: Loop, name: str) -> bool:
    return loop.source == name and loop.state is LoopState.VALIDATING


def _findings(name: str, loops: list[Loop]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(finding for loop in loops for finding in loop.shares[name].findings))


def _consumed(state: RunState, step: str, need: str) -> str:
    artifact = state.steps[need].artifact
    if artifact is None or state.steps[need].condition_false:
        return ""
    pointers = state.graph.reads.get((step, need))
    return artifact.digest if pointers is None else " ".join(artifact.parts.get(pointer, "") for pointer in pointers)


def _value_of(state: RunState, condition: Condition) -> Json | Missing:
    if condition.of is None:
        return len(state.loops)
    step = state.steps[condition.of.step]
    if step.artifact is None or step.condition_false:
        return MISSING
    return step.artifact.values.get(condition.of.pointer, MISSING)


def _repeats(state: RunState, name: str) -> tuple[int, int]:
    step, repeat = state.steps[name], state.graph.steps[name].repeat
    assert step.running is not None and repeat is not None
    if step.artifact is None or step.artifact.consumed != step.running.consumed or step.running.loops:
        return 1, 0
    unmet = any(not holds(each, _value_of(state, each)) for each in state.graph.until_conditions[name])
    again = unmet and step.repeats < repeat.max + step.repeats_granted
    return (step.repeats + 1, step.repeats_granted) if again else (1, 0)


def _with_plan(workflow: Workflow, event: e.StepsChanged) -> Workflow:
    leaving = [step for step in workflow.steps if step.name in event.removed]
    staying = {
        step.name: _with_new_members(_without(step, event.removed), event.added)
        for step in workflow.steps
        if step not in leaving
    }
    steps = {**staying, **{step.name: _without_old_members(step, leaving) for step in event.added}}
    gained = {name: tuple(event.gained.get(name, ())) for name in steps}
    return replace(
        workflow,
        steps=tuple(
            replace(step, needs=tuple(dict.fromkeys((*step.needs, *gained[name])))) if gained[name] else step
            for name, step in steps.items()
        ),
    )


def _with_new_members(step: Step, added: tuple[Step, ...]) -> Step:
    groups, known = (*step.needs_groups, *step.judges_groups), (step.name, *step.needs, *step.judges)
    new = [each for each in added if each.group and each.group in groups and each.name not in known]
    judged = tuple(each.name for each in new if each.group in step.judges_groups)
    needed = tuple(each.name for each in new if each.name not in judged)
    return replace(step, needs=(*step.needs, *needed), judges=(*step.judges, *judged)) if new else step


def _without_old_members(step: Step, leaving: list[Step]) -> Step:
    groups = (*step.needs_groups, *step.judges_groups)
    return _without(step, tuple(each.name for each in leaving if each.group in groups))


def _without(step: Step, removed: tuple[str, ...]) -> Step:
    if not any(name in removed for name in (*step.needs, *step.judges)):
        return step
    return replace(
        step,
        needs=tuple(name for name in step.needs if name not in removed),
        judges=tuple(name for name in step.judges if name not in removed) or step.judges,
        reads=tuple((name, pointers) for name, pointers in step.reads if name not in removed),
    )
