"""Validates a definition: names, references, conditions, checks, gates, phases, and whether anything bounds the run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from graphlib import CycleError

from backedge.core.errors import WorkflowError
from backedge.core.model import HUMAN, Kind, Severity
from backedge.core.suggestions import did_you_mean
from backedge.core.workflow.bound import max_attempts
from backedge.core.workflow.checks import Check, Gate
from backedge.core.workflow.conditions import Condition, parse_condition
from backedge.core.workflow.definition import DEFAULT_PHASES, PASS_RULES, Step, Workflow
from backedge.core.workflow.graph import Graph, graph_of
from backedge.core.workflow.profiles import PROFILES
from backedge.core.workflow.values import parse_amount


def naming_problems(workflow: Workflow) -> Iterable[str]:
    """Problems with groups, conditions, repetitions, checks and gates that can be found without a graph."""
    yield from engine_judge_problems(workflow)
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
            yield f"step {step.name!r} has repeat without a condition: add `until`"
        for text in step.repeat.until:
            yield from _condition_problems(f"step {step.name!r} has repeat until", text, names)
        if step.repeat.to and step.repeat.to not in (*names, HUMAN):
            yield f"step {step.name!r} has repeat to {step.repeat.to!r}, which does not exist: " + did_you_mean(
                step.repeat.to, names
            )


def engine_judge_problems(workflow: Workflow) -> Iterable[str]:
    """Problems with checks and gates that can be found without a graph."""
    steps = {step.name: step for step in workflow.steps}
    taken = [*steps, *(step.group for step in workflow.steps), HUMAN]
    for judge in workflow.engine_judges:
        word = "check" if isinstance(judge, Check) else "gate"
        where = f"{word} {judge.name!r}"
        if judge.name in taken:
            yield f"{where} has the name of a step, a group or another check or gate: rename one of them"
        taken.append(judge.name)
        try:
            named = [*judge.producers, *(dict(judge.requests) if isinstance(judge, Gate) else judge.authority)]
        except ValueError as error:
            yield f"{where}: {error}"
            continue
        for name in dict.fromkeys(named):
            if name not in steps and not (name == HUMAN and isinstance(judge, Gate)):
                yield f"{where} names {name!r}, which does not exist: {did_you_mean(name, steps)}"
        yield from _check_problems(judge) if isinstance(judge, Check) else _gate_problems(judge, steps)


def _check_problems(check: Check) -> Iterable[str]:
    where = f"check {check.name!r}"
    if len(check.compare) < 2:
        yield f"{where} compares {len(check.compare)} values: name two or more"
    if check.resolve == "authority":
        if not set(check.authority) & set(check.producers):
            yield f"{where} has no authority among {', '.join(check.producers)}: name the step whose value wins"
        if len(check.producers) < 2:
            yield f"{where} compares values of one step, so no other step could change its value: use consensus"


def _gate_problems(gate: Gate, steps: Mapping[str, Step]) -> Iterable[str]:
    where = f"gate {gate.name!r}"
    if bool(gate.metric) is bool(gate.report):
        yield f"{where} has no metric: give a reference such as test:/coverage, or {{report: file, path: /json/pointer}}"
    elif not gate.producers:
        yield f"{where} refers to no step: list in `needs` the steps that write the report"
    if gate.bound in ("at_least", "at_most") and parse_amount(gate.threshold) is None:
        yield f"{where} has {gate.bound} {json.dumps(gate.threshold)}: expected a number, or a number with a unit"
    for target, _ in gate.requests:
        if target in steps and steps[target].judges:
            yield f"{where} requests something of {target!r}, which is a judge: name the step that should fix it"


def _condition_problems(where: str, text: str, names: Collection[str]) -> Iterable[str]:
    try:
        each = parse_condition(text)
    except ValueError as error:
        yield f"{where}: {error}"
        return
    if each.of is not None and each.of.step not in names:
        yield f"{where} {text!r}: step {each.of.step!r} does not exist: {did_you_mean(each.of.step, names)}"


def upstream_problems(graph: Graph) -> Iterable[str]:
    """References to steps that do not run before the step that refers to them."""
    for name, conditions in graph.conditions.items():
        for producer in _producers(conditions):
            if producer not in graph.upstream[name]:
                yield f"step {name!r} has a when condition on {producer!r}, which does not run before it: add that step to needs"
    for name, conditions in graph.until_conditions.items():
        for producer in _producers(conditions):
            if producer != name and producer not in graph.upstream[name]:
                yield f"step {name!r} has a repeat condition on {producer!r}, which does not run before it: add that step to needs"
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


@lru_cache(maxsize=256)
def problems_of(workflow: Workflow) -> tuple[str, ...]:
    """Everything that is wrong with a definition; empty for a valid one."""
    try:
        valid_graph(workflow)
    except WorkflowError as error:
        return error.problems
    return ()


def valid_graph(workflow: Workflow) -> Graph:
    """The graph of a definition. Raises WorkflowError with everything that is wrong. Problems that only a graph can
    show are reported once all names are right."""
    _refuse([*_naming_problems(workflow), *naming_problems(workflow)])
    try:
        graph = graph_of(workflow)
    except CycleError as circle:
        path = " → ".join(circle.args[1])
        raise WorkflowError(f"steps need each other in a circle: {path}; remove one of these needs") from None
    _refuse(_graph_problems(graph))
    _refuse(upstream_problems(graph))
    _refuse(_bound_problems(workflow))
    return graph


def _refuse(problems: Iterable[str]) -> None:
    if found := tuple(problems):
        raise WorkflowError(found)


def _naming_problems(workflow: Workflow) -> Iterable[str]:
    names = Counter(step.name for step in workflow.steps)
    judges = {step.name for step in workflow.steps if step.judges}
    if not workflow.name.strip():
        yield "the workflow has no name: give it one"
    if not names:
        yield "the workflow has no steps: add at least one"
    if workflow.profile not in PROFILES:
        yield f"profile {workflow.profile!r} is unknown: {did_you_mean(workflow.profile, PROFILES)}"
    for name in workflow.authority:
        if name != HUMAN and name not in names:
            yield f"authority names {name!r}, which is not a step: {did_you_mean(name, [*names, HUMAN])}"
    if workflow.agreement == "authority" and not workflow.authority:
        yield "agreement is 'authority', but authority is empty: list the steps that decide, highest first"
    for kind, _ in workflow.kinds:
        if kind in list(Kind):
            yield f"kind {kind!r} in kinds has the name of a built-in kind: choose another name"
    for phase in {p for p in workflow.phases if workflow.phases.count(p) > 1}:
        yield f"phase {phase!r} is listed twice in phases: remove one of them"
    if workflow.plans and len(workflow.steps) > workflow.max_steps:
        yield f"the workflow has {len(workflow.steps)} steps, but max_steps is {workflow.max_steps}: raise max_steps"
    for name in [name for name, count in names.items() if count > 1]:
        yield f"step {name!r} is defined twice: rename one of them"
    for step in workflow.steps:
        if not step.name.strip():
            yield "a step has an empty name: give it one"
        if step.name == HUMAN:
            yield f"step {step.name!r} has a reserved name, which stands for the person who answers the inbox: rename it"
        for word, others in (("needs", step.needs), ("judges", step.judges), ("reads", [p for p, _ in step.reads])):
            for other in others:
                if other == step.name:
                    yield f"step {step.name!r} {word} itself: remove its own name"
                elif other not in names:
                    yield f"step {step.name!r} {word} {other!r}, which does not exist: {did_you_mean(other, names)}"
        for producer, _ in step.reads:
            if producer in names and producer not in step.needs and producer not in step.judges:
                yield f"step {step.name!r} reads {producer!r} without needing it: add it to needs"
        if step.timeout is not None and not 0 < step.timeout < float("inf"):
            yield f"step {step.name!r} has timeout {step.timeout!r}: expected more than 0 seconds"
        if step.passes_if and step.passes_if.name and step.passes_if.name not in PASS_RULES:
            yield f"step {step.name!r} passes_if {step.passes_if.name!r}: {did_you_mean(step.passes_if.name, PASS_RULES)}"
        if step.passes_if and not step.judges:
            yield f"step {step.name!r} has passes_if but is not a judge: remove it, or add `reviews` or `tests`"
        for severity, count in step.passes_if.at_most if step.passes_if else ():
            if severity != "blocking" and severity not in list(Severity):
                yield f"step {step.name!r} passes_if counts {severity!r}: {did_you_mean(severity, [*Severity, 'blocking'])}"
            if count < 0:
                yield f"step {step.name!r} passes_if allows {count} {severity}: expected 0 or more"
        if step.plans and step.judges:
            yield f"step {step.name!r} both judges and plans: make it two steps"
        for subject in step.judges:
            if subject in judges:
                yield f"step {step.name!r} judges {subject!r}, which is a judge: name the step that it judges"


def _graph_problems(graph: Graph) -> Iterable[str]:
    workflow = graph.workflow
    known = [*graph.steps, *graph.phases, *(DEFAULT_PHASES if workflow.nearest_phase else ())]
    targets = {*known, HUMAN}
    for rule in workflow.routes:
        if rule.to not in targets:
            yield f"a route leads to {rule.to!r}, which is not a step or a phase: {did_you_mean(rule.to, known)}"
        if rule.to in graph.steps and rule.to in graph.judges:
            yield f"a route leads to {rule.to!r}, which is a judge: name the step that should fix it"
    for step in workflow.steps:
        for need in step.needs:
            if graph.rank(need) > graph.rank(step.name):
                yield (
                    f"step {step.name!r} (phase {graph.phase_of[step.name]}) needs {need!r} of the later phase "
                    f"{graph.phase_of[need]}: change one of the phases, or order them with `phases`"
                )


def _bound_problems(workflow: Workflow) -> Iterable[str]:
    if max_attempts(workflow) is None:
        yield (
            "nothing bounds this workflow: set limits.attempts, or errors_in_a_row together with one of rounds_total, "
            "rounds_per_step and rounds_per_pair"
        )
