"""The facts about outputs that the rules need. They never see an output themselves, so the engine looks these facts up
when a command is decided, in the newest state of the run: steps and outputs may have changed while an attempt was under
way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from backedge.core.commands import FinishAttempt
from backedge.core.feedback.requirements import mentions, producers_before, requirements_of
from backedge.core.model import OutputDigest
from backedge.core.state.run import RunState
from backedge.core.value import Json, replace
from backedge.core.workflow.graph import Graph, graph_of
from backedge.core.workflow.plan import NotedValues, Plan, with_plan
from backedge.core.workflow.validate import problems_of
from backedge.engine.codec import parts_of, values_for_rules
from backedge.engine.store import outputs
from backedge.ports import Journal


async def with_facts(
    journal: Journal, state: RunState, command: FinishAttempt, payloads: Mapping[str, bytes]
) -> FinishAttempt:
    """The report of an attempt with all facts that the rules need to decide it.

    Raises AgentError if a condition, check or gate refers to a value that is too large, and JournalDamaged if an output
    cannot be read.
    """
    step, outcome, plan = command.step, command.outcome, command.plan
    if step not in state.steps:
        return command  # a planner removed the step: the report will be refused
    graph = _graph_with(state, plan, step) if plan.add or plan.remove else state.graph
    if graph.pointers[step] or graph.values[step]:
        outcome = replace(outcome, made=_with_values(outcome.made, graph, step, payloads))
    if plan.add:
        plan = replace(plan, noted=await _noted_values(journal, state, graph, step))
    requirements = requirements_of(outcome)
    mentioned = await mentions_for(journal, state, step, requirements) if requirements else {}
    return replace(command, outcome=outcome, plan=plan, mentions=mentioned)


async def mentions_for(
    journal: Journal, state: RunState, source: str, requirements: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """For each requirement, the steps before the source whose artifacts mention it; all steps, if a person is the
    source."""
    if not requirements:
        return {}
    made = await outputs(journal, state, producers_before(state, source))
    return {id: tuple(name for name, output in made.items() if mentions(output, id)) for id in requirements}


def _graph_with(state: RunState, plan: Plan, planner: str) -> Graph:
    """The graph of a run with a plan applied; unchanged if the plan is not valid."""
    if planner in plan.remove:
        return state.graph
    changed = with_plan(state.workflow, plan.add, plan.remove, {})
    return state.graph if problems_of(changed) else graph_of(changed)


def _with_values(made: OutputDigest, graph: Graph, step: str, payloads: Mapping[str, bytes]) -> OutputDigest:
    """A new output with what other steps read of it or refer to in conditions."""
    output: Json = made.output if made.payload is None else msgspec.json.decode(payloads[made.payload])
    return replace(
        made,
        parts=parts_of(output, graph.pointers[step]),
        values=values_for_rules(output, graph.values[step]),
    )


async def _noted_values(journal: Journal, state: RunState, graph: Graph, planner: str) -> dict[str, NotedValues]:
    """What new steps read of artifacts that were made before them, or refer to in conditions."""
    noted: dict[str, NotedValues] = {}
    for name, step in state.steps.items():
        if step.artifact is None or name not in graph.steps or name == planner:
            continue
        parts = [each for each in graph.pointers[name] if each not in step.artifact.parts]
        values = [each for each in graph.values[name] if each not in state.graph.values[name]]
        if parts or values:
            output = (await outputs(journal, state, [name]))[name]
            noted[name] = NotedValues(parts_of(output, parts), values_for_rules(output, values))
    return noted
