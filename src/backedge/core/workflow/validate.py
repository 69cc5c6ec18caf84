"""Validates a definition: names, references, conditions, checks, gates, phases, and whether anything bounds the run."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from graphlib import CycleError

from backedge.core.errors import WorkflowError, WorkflowProblem
from backedge.core.model import HUMAN, Kind
from backedge.core.suggestions import did_you_mean
from backedge.core.text import counted
from backedge.core.workflow.bound import max_attempts
from backedge.core.workflow.checks import Check, EngineJudge, Gate
from backedge.core.workflow.conditions import Condition
from backedge.core.workflow.definition import DEFAULT_PHASES, Step, Workflow
from backedge.core.workflow.graph import Graph, graph_of
from backedge.core.workflow.profiles import PROFILES
from backedge.core.workflow.step_problems import step_place, step_problems
from backedge.core.workflow.values import parse_amount


def _engine_judge_problems(workflow: Workflow) -> Iterable[WorkflowProblem]:
    """Problems with checks and gates that can be found without a graph."""
    steps = {step.name: step for step in workflow.steps}
    taken = [*steps, *(step.group for step in workflow.steps), HUMAN]
    for judge in workflow.engine_judges:
        word = "check" if isinstance(judge, Check) else "gate"
        where, at = f"{word} {judge.name!r}", (f"{word}s", judge.name)
        if judge.name in taken:
            yield WorkflowProblem(
                f"{where} has the name of a step, a group or another check or gate: rename one of them",
                at,
                step_place(judge.name),
            )
        taken.append(judge.name)
        try:
            named = [*judge.producers, *_others_named(judge)]
        except ValueError as error:
            yield WorkflowProblem(f"{where}: {error}", at)
            continue
        for name in dict.fromkeys(named):
            if name not in steps and not (name == HUMAN and isinstance(judge, Gate)):
                known = did_you_mean(name, steps)
                yield WorkflowProblem(f"{where} names {name!r}, which does not exist: {known}", at)
        if isinstance(judge, Check):
            yield from (WorkflowProblem(f"{where} {problem}", at) for problem in _check_problems(judge))
        else:
            yield from (WorkflowProblem(f"{where} {problem}", at) for problem in _gate_problems(judge))
            yield from _judge_requests(judge, steps)


def _others_named(judge: EngineJudge) -> Iterable[str]:
    """The other steps that a check or gate names: those of its requests, its authority or its options."""
    if isinstance(judge, Gate):
        return dict(judge.requests)
    return (*judge.authority, *(name for option in judge.options for name in option.rework))


def _check_problems(check: Check) -> Iterable[str]:
    if len(check.compare) < 2:
        yield f"compares {counted(len(check.compare), 'value')}: name two or more"
    if check.resolve == "authority":
        if not set(check.authority) & set(check.producers):
            yield f"has no authority among {', '.join(check.producers)}: name the step whose value wins"
        if len(check.producers) < 2:
            yield "compares values of one step, so no other step could change its value: use consensus"


def _gate_problems(gate: Gate) -> Iterable[str]:
    if bool(gate.metric) is bool(gate.report):
        yield "has no metric: give a reference such as test:/coverage, or {report: file, path: /json/pointer}"
    elif not gate.producers:
        yield "refers to no step: list in `needs` the steps that write the report"
    if gate.bound in ("at_least", "at_most") and parse_amount(gate.threshold) is None:
        yield f"has {gate.bound} {json.dumps(gate.threshold)}: expected a number, or a number with a unit"


def _judge_requests(gate: Gate, steps: Mapping[str, Step]) -> Iterable[WorkflowProblem]:
    for target, _ in gate.requests:
        if target in steps and steps[target].judges:
            yield WorkflowProblem(
                f"gate {gate.name!r} requests something of {target!r}, which is a judge: name the step that should fix it",
                ("gates", gate.name),
                step_place(target),
            )


def _upstream_problems(graph: Graph) -> Iterable[WorkflowProblem]:
    """References to steps that do not run before the step that refers to them."""
    for name, conditions in graph.conditions.items():
        for producer in _producers(conditions):
            if producer not in graph.upstream[name]:
                yield WorkflowProblem(
                    f"step {name!r} has a when condition on {producer!r}, which does not run before it: add that step to needs",
                    (*step_place(name), "when"),
                    step_place(name),
                    step_place(producer),
                )
    for name, conditions in graph.until_conditions.items():
        here = step_place(name)
        for producer in _producers(conditions):
            if producer != name and producer not in graph.upstream[name]:
                yield WorkflowProblem(
                    f"step {name!r} has a repeat condition on {producer!r}, which does not run before it: add that step to needs",
                    (*here, "repeat"),
                    here,
                    step_place(producer),
                )
        repeat = graph.steps[name].repeat
        assert repeat is not None
        legal = graph.legal_targets(name)
        if repeat.to and repeat.to not in (*legal, HUMAN):
            known = f"use one of {', '.join(legal)}" if legal else "leave `to` out"
            yield WorkflowProblem(
                f"step {name!r} has repeat to {repeat.to!r}, which is out of its scope: {known}",
                (*here, "repeat"),
                here,
                step_place(repeat.to),
            )
    yield from _gate_targets(graph)
    yield from _option_targets(graph)


def _gate_targets(graph: Graph) -> Iterable[WorkflowProblem]:
    for gate in graph.workflow.gates:
        legal = graph.legal_targets(gate.name)
        for target, _ in gate.requests:
            if target not in (*legal, HUMAN):
                yield WorkflowProblem(
                    f"gate {gate.name!r} requests something of {target!r}, which is not before it: "
                    f"use one of {', '.join(legal)}",
                    ("gates", gate.name),
                    step_place(target),
                )


def _option_targets(graph: Graph) -> Iterable[WorkflowProblem]:
    for check in graph.workflow.checks:
        legal = graph.legal_targets(check.name)
        for target in (name for option in check.options for name in option.rework):
            if target not in legal:
                yield WorkflowProblem(
                    f"check {check.name!r} has an option that asks for rework of {target!r}, which is a judge or not before "
                    f"it: use one of {', '.join(legal)}",
                    ("checks", check.name),
                    step_place(target),
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
    _refuse([*_naming_problems(workflow), *_engine_judge_problems(workflow)])
    try:
        graph = graph_of(workflow)
    except CycleError as circle:
        first, second, *rest = circle.args[1]
        path = " → ".join((first, second, *rest))
        problem = f"steps need each other in a circle: {path}; remove one of these needs"
        raise WorkflowError(WorkflowProblem(problem, (*step_place(second), "needs", first))) from None
    _refuse(_graph_problems(graph))
    _refuse(_upstream_problems(graph))
    _refuse(_bound_problems(workflow))
    return graph


def _refuse(problems: Iterable[WorkflowProblem]) -> None:
    if found := tuple(problems):
        raise WorkflowError(found)


def _naming_problems(workflow: Workflow) -> Iterable[WorkflowProblem]:
    names = Counter(step.name for step in workflow.steps)
    judges = {step.name for step in workflow.steps if step.judges}
    if not workflow.name.strip():
        yield WorkflowProblem("the workflow has no name: give it one", ("name",))
    if not names:
        yield WorkflowProblem("the workflow has no steps: add at least one", ("steps",))
    if workflow.profile not in PROFILES:
        known = did_you_mean(workflow.profile, PROFILES)
        yield WorkflowProblem(f"profile {workflow.profile!r} is unknown: {known}", ("profile",))
    for name in workflow.authority:
        if name != HUMAN and name not in names:
            known = did_you_mean(name, [*names, HUMAN])
            yield WorkflowProblem(f"authority names {name!r}, which is not a step: {known}", ("authority", name))
    if workflow.agreement == "authority" and not workflow.authority:
        problem = "agreement is 'authority', but authority is empty: list the steps that decide, highest first"
        yield WorkflowProblem(problem, ("agreement",))
    for kind, _ in workflow.kinds:
        if kind in list(Kind):
            problem = f"kind {kind!r} in kinds has the name of a built-in kind: choose another name"
            yield WorkflowProblem(problem, ("kinds", kind))
    for phase in {p for p in workflow.phases if workflow.phases.count(p) > 1}:
        yield WorkflowProblem(f"phase {phase!r} is listed twice in phases: remove one of them", ("phases", phase))
    if workflow.plans and len(workflow.steps) > workflow.max_steps:
        yield WorkflowProblem(
            f"the workflow has {counted(len(workflow.steps), 'step')}, but max_steps is {workflow.max_steps}: raise max_steps",
            ("max_steps",),
        )
    for name in [name for name, count in names.items() if count > 1]:
        yield WorkflowProblem(f"step {name!r} is defined twice: rename one of them", step_place(name), step_place(name))
    for step in workflow.steps:
        yield from step_problems(step, names, judges)


def _graph_problems(graph: Graph) -> Iterable[WorkflowProblem]:
    workflow = graph.workflow
    known = [*graph.steps, *graph.phases, *(DEFAULT_PHASES if workflow.nearest_phase else ())]
    targets = {*known, HUMAN}
    for index, rule in enumerate(workflow.routes):
        at, route = ("routes", index, "to"), f"a route leads to {rule.to!r}"
        if rule.to not in targets:
            yield WorkflowProblem(f"{route}, which is not a step or a phase: {did_you_mean(rule.to, known)}", at)
        if rule.to in graph.steps and rule.to in graph.judges:
            yield WorkflowProblem(
                f"{route}, which is a judge: name the step that should fix it", at, step_place(rule.to)
            )
    for step in workflow.steps:
        for need in step.needs:
            if graph.rank(need) > graph.rank(step.name):
                yield WorkflowProblem(
                    f"step {step.name!r} (phase {graph.phase_of[step.name]}) needs {need!r} of the later phase "
                    f"{graph.phase_of[need]}: change one of the phases, or order them with `phases`",
                    (*step_place(step.name), "needs", need),
                    ("phases",),
                    (*step_place(step.name), "phase"),
                    (*step_place(need), "phase"),
                )


def _bound_problems(workflow: Workflow) -> Iterable[WorkflowProblem]:
    if max_attempts(workflow) is None:
        yield WorkflowProblem(
            "nothing bounds this workflow: set limits.attempts, or errors_in_a_row together with one of rounds_total, "
            "rounds_per_step and rounds_per_pair",
            ("limits",),
            (),
        )
