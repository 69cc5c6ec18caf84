"""What can be wrong with the shape of a workflow: groups, conditions and repetitions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from backedge.core.conditions import Condition, condition
from backedge.core.workflow import nearest

if TYPE_CHECKING:
    from backedge.core.graph import Graph
    from backedge.core.workflow import Workflow


def naming_problems(workflow: Workflow) -> Iterable[str]:
    """What is wrong with names and words, before there is a graph."""
    names = [step.name for step in workflow.steps]
    for step in workflow.steps:
        if step.group in names:
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
        if step.repeat.to and step.repeat.to not in names:
            yield f"step {step.name!r} has repeat to {step.repeat.to!r}, which does not exist: " + nearest(
                step.repeat.to, names
            )


def _condition_problems(where: str, text: str, names: list[str]) -> Iterable[str]:
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
        if repeat.to and repeat.to not in legal:
            known = f"use one of {', '.join(legal)}" if legal else "leave `to` out"
            yield f"step {name!r} has repeat to {repeat.to!r}, which is out of its scope: {known}"


def _producers(conditions: Iterable[Condition]) -> list[str]:
    return [each.of.step for each in conditions if each.of is not None]
