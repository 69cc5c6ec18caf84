"""What can be wrong with the shape of a workflow: groups, conditions and repetitions."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from backedge.core.amounts import amount
from backedge.core.conditions import Condition, condition
from backedge.core.measures import Check, Gate
from backedge.core.model import HUMAN
from backedge.core.near import nearest

if TYPE_CHECKING:
    from backedge.core.graph import Graph
    from backedge.core.workflow import Step, Workflow


def naming_problems(workflow: Workflow) -> Iterable[str]:
    """What is wrong with names and words, before there is a graph."""
    yield from measure_problems(workflow)
    names = dict.fromkeys(step.name for step in workflow.steps)
    for step in workflow.steps:
        if step.group and step.group in names:
            yield f"step {step.name!r} has group {step.group!r}, which is the name of a step: rename one of them"
        for text in step.when:
            yield from _condition_problems(f"step {step.name!r} has when", text, names)
        if step.repeat is None:
            continue
        if step.judges:
            yield f"step {step.name!r} has repeat but is a judge: repeat the step that it judges"
        if step.repeat.max < 1:
            yield f"step {step.name!r} has repeat with max {step.repeat.max}: expected 1 or more"
        if not step.repeat.until:
            yield f"step {step.name!r} has repeat without a condition: say `until`"
        for text in step.repeat.until:
            yield from _condition_problems(f"step {step.name!r} has repeat until", text, names)
        if step.repeat.to and step.repeat.to not in (*names, HUMAN):
            yield f"step {step.name!r} has repeat to {step.repeat.to!r}, which does not exist: " + nearest(
                step.repeat.to, names
            )


def measure_problems(workflow: Workflow) -> Iterable[str]:
    """What is wrong with checks and gates, before there is a graph."""
    steps = {step.name: step for step in workflow.steps}
    taken = [*steps, *(step.group for step in workflow.steps), HUMAN]
    for measure in workflow.measures:
        word = "check" if isinstance(measure, Check) else "gate"
        where = f"{word} {measure.name!r}"
        if measure.name in taken:
            yield f"{where} has the name of a step, a group or another check or gate: rename one of them"
        taken.append(measure.name)
        try:
            named = [*measure.producers, *(dict(measure.requests) if isinstance(measure, Gate) else measure.authority)]
        except ValueError as error:
            yield f"{where}: {error}"
            continue
        for name in dict.fromkeys(named):
            if name not in steps and not (name == HUMAN and isinstance(measure, Gate)):
                yield f"{where} names {name!r}, which does not exist: {nearest(name, steps)}"
        yield from _check_problems(measure) if isinstance(measure, Check) else _gate_problems(measure, steps)


def _check_problems(check: Check) -> Iterable[str]:
    where = f"check {check.name!r}"
    if len(check.compare) < 2:
        yield f"{where} compares {len(check.compare)} places: name two or more"
    if check.resolve == "authority":
        if not set(check.authority) & set(check.producers):
            yield f"{where} has no authority among {', '.join(check.producers)}: say whose position stands"
        if len(check.producers) < 2:
            yield f"{where} compares places of one step: nobody else could give way; use consensus"


def _gate_problems(gate: Gate, steps: Mapping[str, Step]) -> Iterable[str]:
    where = f"gate {gate.name!r}"
    if bool(gate.metric) is bool(gate.report):
        yield f"{where} has no metric: give a reference such as test:/coverage, or {{report: file, path: /place}}"
    elif not gate.producers:
        yield f"{where} refers to no step: say in `needs` after which steps the report is there"
    if gate.bound in ("at_least", "at_most") and amount(gate.threshold) is None:
        yield f"{where} has {gate.bound} {json.dumps(gate.threshold)}: expected a number, or a number with a unit"
    for target, _ in gate.requests:
        if target in steps and steps[target].judges:
            yield f"{where} requests something of {target!r}, which is a judge: name the step that should mend it"


def _condition_problems(where: str, text: str, names: Collection[str]) -> Iterable[str]:
    try:
        each = condition(text)
    except ValueError as error:
        yield f"{where}: {error}"
        return
    if each.of is not None and each.of.step not in names:
        yield f"{where} {text!r}: step {each.of.step!r} does not exist: {nearest(each.of.step, names)}"


def upstream_problems(graph: Graph) -> Iterable[str]:
    """What refers to steps that have not run by then."""
    for name, conditions in graph.conditions.items():
        for producer in _producers(conditions):
            if producer not in graph.upstream[name]:
                yield f"step {name!r} has when on {producer!r}, which does not run before it: add it to needs"
    for name, conditions in graph.untils.items():
        for producer in _producers(conditions):
            if producer != name and producer not in graph.upstream[name]:
                yield f"step {name!r} has repeat until on {producer!r}, which does not run before it: add it to needs"
        repeat = graph.steps[name].repeat
        assert repeat is not None
        legal = graph.legal_targets(name)
        if repeat.to and repeat.to not in (*legal, HUMAN):
            known = f"use one of {', '.join(legal)}" if legal else "leave `to` out"
            yield f"step {name!r} has repeat to {repeat.to!r}, which is out of its scope: {known}"
    yield from _gate_targets(graph)


def _gate_targets(graph: Graph) -> Iterable[str]:
    for gate in graph.workflow.gates:
        legal = graph.legal_targets(gate.name)
        for target, _ in gate.requests:
            if target not in (*legal, HUMAN):
                yield (
                    f"gate {gate.name!r} requests something of {target!r}, which is not before it: "
                    f"use one of {', '.join(legal)}"
                )


def _producers(conditions: Iterable[Condition]) -> list[str]:
    return [each.of.step for each in conditions if each.of is not None]
