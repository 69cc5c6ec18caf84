"""Steps that join a run: from what a planner wrote to steps with agents, now and after every resume."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from backedge.core import events as e
from backedge.core.commands import FinishAttempt
from backedge.core.errors import AgentError, WorkflowError
from backedge.core.plans import Noted, Plan, replanned
from backedge.core.replanning import may_plan, unplanned
from backedge.core.value import replace
from backedge.core.workflow import graph_of, problems_of
from backedge.engine.codec import canonical, parts_of, recorded
from backedge.engine.protocol import Outcome
from backedge.engine.stored import outputs
from backedge.ports import Agent, Hiring, Journal

if TYPE_CHECKING:
    from backedge.core.graph import Graph
    from backedge.core.state import RunState
    from backedge.engine.live import LiveRun


_NO_PLAN = Plan()


def planned(live: LiveRun, step: str, said: Outcome) -> Plan:
    """What an outcome says about the steps of the run. Raises AgentError for steps that cannot be, naming why."""
    if not said.add_steps:
        return Plan(remove=tuple(said.remove_steps)) if said.remove_steps else _NO_PLAN
    if not may_plan(live.state, step):
        raise AgentError(unplanned(step))
    if live.hiring is None:
        raise AgentError("steps cannot be added to this run: its workflow does not say who would do them")
    try:
        hired = live.hiring.hired(said.add_steps, live.state.workflow)
    except WorkflowError as error:
        raise AgentError(f"the steps cannot be added: {'; '.join(error.problems)}") from error
    canonical(hired.specs, live.engine.max_output, "add_steps")
    live.joining[step] = hired
    return Plan(hired.steps, tuple(said.remove_steps), hired.specs)


def graph_with(state: RunState, plan: Plan, planner: str) -> Graph:
    """The graph of a run as a plan would make it; as it is, if the plan cannot be."""
    if not plan or planner in plan.remove:
        return state.graph
    changed = replanned(state.workflow, plan.add, plan.remove, {})
    return state.graph if problems_of(changed) else graph_of(changed)


async def with_notes(journal: Journal, state: RunState, command: FinishAttempt) -> FinishAttempt:
    """The command with what its new steps read, or refer to, of artifacts that are there already."""
    graph, noted = graph_with(state, command.plan, command.step), dict[str, Noted]()
    for name, step in state.steps.items():
        if step.artifact is None or name not in graph.steps or name == command.step:
            continue
        parts = [each for each in graph.pointers[name] if each not in step.artifact.parts]
        values = [each for each in graph.values[name] if each not in state.graph.values[name]]
        if parts or values:
            output = (await outputs(journal, state, [name]))[name]
            noted[name] = Noted(parts_of(output, parts), recorded(output, values))
    return replace(command, plan=replace(command.plan, noted=noted)) if noted else command


def join(live: LiveRun, event: e.StepsChanged) -> None:
    """Have the agents of added steps at hand from now on. Raises WorkflowError if they cannot be found again."""
    hired = live.joining.pop(event.by, None)
    if hired is None:
        agents = agents_for(live.hiring, event.specs, live.state)
    else:
        agents = hired.agents
        hired.joined(live.run)
    names = {name for step in event.added for name in step.agents}
    live.agents.update({name: agent for name, agent in agents.items() if name in names})


def agents_for(hiring: Hiring | None, specs: Mapping[str, object], state: RunState) -> Mapping[str, Agent]:
    """Who does the steps that planners added."""
    if hiring is None or not specs:
        return {}
    hired = hiring.hired(specs, state.workflow)
    hired.joined(state.run)
    return hired.agents
