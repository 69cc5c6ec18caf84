"""Steps that join a run: from what a planner wrote to steps with agents, now and after every resume."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from backedge.core import events as e
from backedge.core.commands import FinishAttempt
from backedge.core.errors import AgentError, WorkflowError
from backedge.core.planning import may_plan, not_a_planner
from backedge.core.value import replace
from backedge.core.workflow.graph import graph_of
from backedge.core.workflow.plan import NotedValues, Plan, with_plan
from backedge.core.workflow.validate import problems_of
from backedge.engine.codec import canonical, parts_of, values_for_rules
from backedge.engine.protocol import Outcome
from backedge.engine.store import outputs
from backedge.ports import Agent, Journal, StepResolver

if TYPE_CHECKING:
    from backedge.core.state.run import RunState
    from backedge.core.workflow.graph import Graph
    from backedge.engine.live_run import LiveRun


_NO_PLAN = Plan()


def plan_of(live: LiveRun, step: str, said: Outcome) -> Plan:
    """What an outcome says about the steps of the run. Raises AgentError for steps that cannot be, naming why."""
    if not said.add_steps:
        return Plan(remove=tuple(said.remove_steps)) if said.remove_steps else _NO_PLAN
    if not may_plan(live.state, step):
        raise AgentError(not_a_planner(step))
    if live.step_resolver is None:
        raise AgentError("steps cannot be added to this run: its workflow does not say who would do them")
    try:
        resolved = live.step_resolver.resolve(said.add_steps, live.state.workflow)
    except WorkflowError as error:
        raise AgentError(f"the steps cannot be added: {'; '.join(error.problems)}") from error
    canonical(resolved.specs, live.engine.max_output, "add_steps")
    live.resolved_steps[step] = resolved
    return Plan(resolved.steps, tuple(said.remove_steps), resolved.specs)


def graph_with(state: RunState, plan: Plan, planner: str) -> Graph:
    """The graph of a run as a plan would make it; as it is, if the plan cannot be."""
    if not plan or planner in plan.remove:
        return state.graph
    changed = with_plan(state.workflow, plan.add, plan.remove, {})
    return state.graph if problems_of(changed) else graph_of(changed)


async def with_noted_values(journal: Journal, state: RunState, command: FinishAttempt) -> FinishAttempt:
    """The command with what its new steps read, or refer to, of artifacts that are there already."""
    graph, noted = graph_with(state, command.plan, command.step), dict[str, NotedValues]()
    for name, step in state.steps.items():
        if step.artifact is None or name not in graph.steps or name == command.step:
            continue
        parts = [each for each in graph.pointers[name] if each not in step.artifact.parts]
        values = [each for each in graph.values[name] if each not in state.graph.values[name]]
        if parts or values:
            output = (await outputs(journal, state, [name]))[name]
            noted[name] = NotedValues(parts_of(output, parts), values_for_rules(output, values))
    return replace(command, plan=replace(command.plan, noted=noted)) if noted else command


def adopt_steps(live: LiveRun, event: e.StepsChanged) -> None:
    """Have the agents of added steps at hand from now on. Raises WorkflowError if they cannot be found again."""
    resolved = live.resolved_steps.pop(event.by, None)
    if resolved is None:
        agents = agents_for(live.step_resolver, event.specs, live.state)
    else:
        agents = resolved.agents
        resolved.on_joined(live.run)
    names = {name for step in event.added for name in step.agents}
    live.agents.update({name: agent for name, agent in agents.items() if name in names})


def agents_for(resolver: StepResolver | None, specs: Mapping[str, object], state: RunState) -> Mapping[str, Agent]:
    """Who does the steps that planners added."""
    if resolver is None or not specs:
        return {}
    resolved = resolver.resolve(specs, state.workflow)
    resolved.on_joined(state.run)
    return resolved.agents
