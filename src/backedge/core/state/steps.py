"""Folds the changes of a planner: the run gets other steps, and another graph."""

from __future__ import annotations

from backedge.core import events as e
from backedge.core.state import version_0_1
from backedge.core.state.run import NOTHING_DERIVED, RunState, StepState
from backedge.core.value import replace
from backedge.core.workflow.definition import Workflow
from backedge.core.workflow.graph import graph_of
from backedge.core.workflow.plan import NotedValues


def steps_changed(state: RunState, event: e.StepsChanged) -> RunState:
    if event.changed is None:
        event = version_0_1.steps_changed(state, event)
    graph = graph_of(_workflow_after(state.workflow, event))
    added = {step.name for step in event.added}
    steps = {}
    for name in graph.steps:
        step = state.steps.get(name)
        if step is None:
            steps[name] = StepState(attempts=state.retired.get(name, 0), added_for=event.loops)
        else:
            steps[name] = _replaced(step, judges=name in graph.judges) if name in added else step
        if name in event.noted:
            steps[name] = _with_noted(steps[name], event.noted[name])
    planner = steps[event.by]
    assert planner.running is not None
    steps[event.by] = replace(planner, running=replace(planner.running, replanned=True))
    removed = {name: state.steps[name].attempts for name in event.removed}
    other_specs = {name: spec for name, spec in state.specs.items() if name not in removed}
    return replace(
        state,
        graph=graph,
        steps=steps,
        derived=NOTHING_DERIVED,
        steps_ever=state.steps_ever + len(added),
        retired={**state.retired, **removed},
        specs={**other_specs, **event.specs},
        fixes={},
        plans=state.plans.set(len(state.plans), event),
    )


def _workflow_after(workflow: Workflow, event: e.StepsChanged) -> Workflow:
    """The workflow with the steps that the event lists. Existing steps keep their order, new ones come last."""
    listed = {step.name: step for step in (*(event.changed or ()), *event.added)}
    existing = [listed.pop(step.name, step) for step in workflow.steps if step.name not in event.removed]
    return replace(workflow, steps=(*existing, *listed.values()))


def _with_noted(step: StepState, noted: NotedValues) -> StepState:
    before = step.artifact
    if before is None:
        return step
    artifact = replace(before, parts={**before.parts, **noted.parts}, values={**before.values, **noted.values})
    return replace(step, artifact=artifact)


def _replaced(step: StepState, judges: bool) -> StepState:
    """What is left of a step after another definition replaced it: its counters, and its artifact until the new step has
    made one. Errors are forgotten, because the old step made them."""
    return StepState(
        attempts=step.attempts,
        artifact=step.artifact,
        rounds=step.rounds,
        replaced=step.artifact is not None,
        results_due=step.results_due,
        answered=step.answered,
        verdict=step.verdict if judges else None,
        verdicts=step.verdicts,
        failures=step.failures,
        checks=step.checks,
        last_loop=step.last_loop,
        open_findings=step.open_findings,
        unconfirmed=step.unconfirmed,
    )
