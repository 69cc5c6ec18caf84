"""What a planner's change of the run leads to: other steps, and another graph."""

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
            steps[name] = _with_notes(steps[name], event.noted[name])
    planner = steps[event.by]
    assert planner.running is not None
    steps[event.by] = replace(planner, running=replace(planner.running, replanned=True))
    gone = {name: state.steps[name].attempts for name in event.removed}
    kept = {name: spec for name, spec in state.specs.items() if name not in gone}
    return replace(
        state,
        graph=graph,
        steps=steps,
        derived=NOTHING_DERIVED,
        steps_ever=state.steps_ever + len(added),
        retired={**state.retired, **gone},
        specs={**kept, **event.specs},
        plans=state.plans.set(len(state.plans), event),
    )


def _workflow_after(workflow: Workflow, event: e.StepsChanged) -> Workflow:
    """The workflow with the steps that the event states: those that stay keep their places, new ones come last."""
    stated = {step.name: step for step in (*(event.changed or ()), *event.added)}
    stay = [stated.pop(step.name, step) for step in workflow.steps if step.name not in event.removed]
    return replace(workflow, steps=(*stay, *stated.values()))


def _with_notes(step: StepState, noted: NotedValues) -> StepState:
    made = step.artifact
    if made is None:
        return step
    artifact = replace(made, parts={**made.parts, **noted.parts}, values={**made.values, **noted.values})
    return replace(step, artifact=artifact)


def _replaced(step: StepState, judges: bool) -> StepState:
    """What stays of a step when another definition takes its place: its counters, and what it made until it makes it
    anew. Errors were those of the old one."""
    return StepState(
        attempts=step.attempts,
        artifact=step.artifact,
        rounds=step.rounds,
        replaced=step.artifact is not None,
        results_due=step.results_due,
        verdict=step.verdict if judges else None,
        verdicts=step.verdicts,
        failures=step.failures,
        checks=step.checks,
        last_loop=step.last_loop,
        open_findings=step.open_findings,
        unconfirmed=step.unconfirmed,
    )
