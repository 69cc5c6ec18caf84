"""The agents of one run: those it was started with, and those of steps that planners add."""

from __future__ import annotations

from collections.abc import Mapping

from backedge.core.errors import AgentError, WorkflowError
from backedge.core.events import StepsChanged
from backedge.core.model import HUMAN
from backedge.core.planning import not_a_planner
from backedge.core.state.run import RunState
from backedge.core.workflow.checks import needs_agent
from backedge.core.workflow.definition import Workflow
from backedge.core.workflow.plan import Plan
from backedge.engine.codec import canonical, digest_of
from backedge.engine.protocol import Outcome
from backedge.ports import Agent, ResolvedSteps, StepResolver, Task

_NO_PLAN = Plan()


class RunAgents:
    """The agents of one run by name, and the resolver that finds more of them."""

    def __init__(self, agents: Mapping[str, Agent], resolver: StepResolver | None, workflow: Workflow) -> None:
        self.by_name, self.resolver = dict(agents), resolver
        self._workflow = workflow
        self._resolved: dict[str, ResolvedSteps] = {}
        """The steps that each planner wants to add, until the plan is decided."""

    def plan_of(self, task: Task, outcome: Outcome, max_output: int) -> tuple[Plan, dict[str, bytes]]:
        """The changes that an outcome makes to the steps of the run, and the files of its steps, by digest, to store with
        them. Raises AgentError, with the reasons, if its steps cannot be added."""
        if not outcome.add_steps:
            return Plan(remove=tuple(outcome.remove_steps)) if outcome.remove_steps else _NO_PLAN, {}
        if not task.plans:
            raise AgentError(not_a_planner(task.step))
        if self.resolver is None:
            raise AgentError(
                "steps cannot be added to this run, because its workflow cannot find agents for them: start it with a resolver"
            )
        try:
            resolved = self.resolver.resolve(outcome.add_steps, self._workflow)
        except WorkflowError as error:
            raise AgentError(f"the steps cannot be added: {'; '.join(error.problems)}") from error
        canonical(resolved.specs, max_output, "add_steps")
        self._resolved[task.step] = resolved
        names = {path: digest_of(contents) for path, contents in resolved.files.items()}
        stored = {names[path]: contents for path, contents in resolved.files.items()}
        return Plan(resolved.steps, tuple(outcome.remove_steps), resolved.specs, files=names), stored

    def adopt(self, event: StepsChanged, state: RunState) -> None:
        """Load the agents of added steps. Raises WorkflowError if they cannot be found again."""
        self._workflow = state.workflow
        resolved = self._resolved.pop(event.by, None)
        if resolved is None:
            agents = agents_for(self.resolver, event.specs, state)
        else:
            agents = resolved.agents
            resolved.on_joined(state.run)
        names = {name for step in event.added for name in step.agents}
        self.by_name.update({name: agent for name, agent in agents.items() if name in names})


def agents_for(resolver: StepResolver | None, specs: Mapping[str, object], state: RunState) -> Mapping[str, Agent]:
    """The agents of steps that planners added, found again from the recorded specs of the steps."""
    if resolver is None or not specs:
        return {}
    resolved = resolver.resolve(specs, state.workflow)
    resolved.on_joined(state.run)
    return resolved.agents


def require_agents(workflow: Workflow, agents: Mapping[str, Agent]) -> None:
    """Raises WorkflowError, which names every step without an agent."""
    missing = [
        f"step {step.name!r} has no agent {name!r}: pass one of that name"
        for step in workflow.steps
        for name in step.agents or ("",)
        if name not in agents and name != HUMAN
    ]
    missing += [
        f"{each.name!r} has no agent to measure it: pass one that reads its report or compares its values"
        for each in workflow.engine_judges
        if needs_agent(each) and each.name not in agents
    ]
    if missing:
        raise WorkflowError(tuple(missing))
