"""Where feedback goes: to the step that injected the defect. The first rule that matches wins and is recorded."""

from __future__ import annotations

from backedge.core.feedback.loop import Loop
from backedge.core.model import HUMAN, Feedback, Finding, Kind
from backedge.core.state.run import RunState
from backedge.core.suggestions import did_you_mean
from backedge.core.text import counted
from backedge.core.value import Value
from backedge.core.workflow.definition import DEFAULT_PHASES, Step
from backedge.core.workflow.globs import matches_any
from backedge.core.workflow.graph import Graph
from backedge.core.workflow.routes import matches


class Route(Value, frozen=True):
    """The targets of one finding, and the rule that chose them."""

    targets: tuple[str, ...]
    rule: str


def route_for(graph: Graph, reporter: str, phases: tuple[str, ...], finding: Finding, blockers: int) -> Route:
    """Where a finding of `reporter` goes; `blockers` counts the blocking findings of the same verdict.

    A judge's finding is never refused: if no rule matches, it goes to the step under judgement.
    """
    if finding.blames in graph.steps and finding.blames not in graph.judges:
        return Route((finding.blames,), "evidence")
    if phases:
        targets = tuple(dict.fromkeys(step for phase in phases for step in steps_of_phase(graph, reporter, phase)))
        if targets:
            return Route(targets, "affected_phase")
    for rule in graph.workflow.routes:
        if matches(rule, finding, blockers):
            targets = _destinations(graph, reporter, rule.to)
            if targets:
                return Route(targets, "routes")
    writers = _only_writers(graph, reporter, finding)
    return Route(writers, "writes") if writers else Route(graph.steps[reporter].judges, "subject")


def _only_writers(graph: Graph, reporter: str, finding: Finding) -> tuple[str, ...]:
    """The nearest steps that may write the file of a finding which the steps under judgement may not write: those could
    not fix it. Empty if there are none, or if that is not certain."""
    file = file_to_change(finding)
    subjects = [graph.steps[name] for name in graph.steps[reporter].judges]
    if not file or graph.steps[reporter].tests or any(_may_write(step, file) is not False for step in subjects):
        return ()
    able = [name for name in graph.legal_targets(reporter) if _may_write(graph.steps[name], file)]
    distances = graph.distances(reporter)
    nearest = min((distances.get(name, len(graph.steps)) for name in able), default=0)
    return tuple(name for name in able if distances.get(name, len(graph.steps)) == nearest)


def _may_write(step: Step, file: str) -> bool | None:
    """Whether a step may write a file; None if its `writes` does not say. In another workspace, the file may be named from
    there or from here."""
    return None if step.writes is None or step.workspace else matches_any(step.writes, file)


def file_to_change(finding: Finding) -> str:
    """The file in the workspace that has to change; empty if that is not certain."""
    file = (finding.file or "").removeprefix("./")
    if finding.test or finding.blames or file.startswith("/") or ".." in file.split("/"):
        return ""
    return file


def steps_of_phase(graph: Graph, reporter: str, phase: str) -> tuple[str, ...]:
    """The nearest steps of a phase that the reporter may send feedback to; all of them if several are equally near."""
    legal = [step for step in graph.legal_targets(reporter) if graph.phase_of[step] == phase]
    distances = graph.distances(reporter)
    reachable = [step for step in legal if step in distances]
    if not reachable:
        return tuple(legal)
    nearest = min(distances[step] for step in reachable)
    return tuple(step for step in reachable if distances[step] == nearest)


def step_adder_for(graph: Graph, source: str) -> str:
    """The step that can add missing steps: the nearest planner that the source may send feedback to, else the root."""
    legal = graph.legal_targets(source) if source != HUMAN else tuple(graph.steps)
    distances = graph.distances(source) if source != HUMAN else {}
    planners = [name for name in legal if graph.steps[name].plans]
    return min(planners, key=lambda name: distances.get(name, len(graph.steps)), default=graph.root)


def _destinations(graph: Graph, reporter: str, to: str) -> tuple[str, ...]:
    if to == HUMAN:
        return (HUMAN,)
    if to in graph.steps:
        return (to,) if graph.is_legal(reporter, to) else ()
    found = steps_of_phase(graph, reporter, to)
    if found or not graph.workflow.nearest_phase:
        return found
    order = graph.phases if to in graph.phases else DEFAULT_PHASES
    for phase in reversed(order[: order.index(to)]):
        found = steps_of_phase(graph, reporter, phase)
        if found:
            return found
    return (graph.root,)


def legal_targets(graph: Graph, source: str) -> tuple[str, ...]:
    """The steps that a step or a person may send feedback to."""
    if source == HUMAN:
        return tuple(name for name in graph.steps if name not in graph.judges)
    return graph.legal_targets(source)


def refusal_reason(state: RunState, source: str, feedback: Feedback, caused_by: Loop | None) -> str | None:
    """Why raised feedback is refused; None if it can be delivered."""
    return target_problem(state, source, feedback) or _causal_refusal(state, source, feedback, caused_by)


def target_problem(state: RunState, source: str, feedback: Feedback) -> str | None:
    """Why feedback has nowhere to go; None if its targets are legal."""
    if not feedback.message.strip():
        return NO_MESSAGE
    if not feedback.to:
        return NO_TARGET
    graph = state.graph
    legal = legal_targets(graph, source)
    for target in feedback.to:
        if target == source:
            return f"{target!r} is the source itself: send feedback to another step"
        if target == HUMAN:
            continue
        if target not in graph.steps:
            return f"unknown target {target!r}: {did_you_mean(target, (*legal, HUMAN))}"
        if target in graph.judges:
            return f"target {target!r} is a judge: send it to the step under judgement ({', '.join(graph.steps[target].judges)})"
        if target not in legal:
            return f"target {target!r} is out of scope for {source!r}: use one of {', '.join((*legal, HUMAN))}"
    return None


def _causal_refusal(state: RunState, source: str, feedback: Feedback, caused_by: Loop | None) -> str | None:
    chain = []
    loop = caused_by
    while loop is not None:
        chain.append(loop)
        loop = state.loop(loop.caused_by) if loop.caused_by else None
    for target in (*feedback.to, *(name for option in feedback.options for name in option.rework)):
        for index, ancestor in enumerate(chain):
            # Feedback may always go to a person, who sees the whole chain and can end it.
            if ancestor.source == target != HUMAN:
                path = [each.source for each in reversed(chain[: index + 1])]
                return f"causal cycle: {' → '.join([*path, source, target])}; send it to a step outside this chain, or to {HUMAN}"
    own = state.graph.limits_of(source) if source != HUMAN else state.workflow.limits
    bound = own.chain_depth
    if bound is not None and len(chain) + 1 > bound:
        hops = " → ".join([*(each.source for each in reversed(chain)), source, "/".join(feedback.to)])
        return f"chain_depth: {counted(len(chain) + 1, 'hop')} ({hops}), at most {bound}: send it to {HUMAN}, or raise the limit"
    return None


PLANNING = "planning"


NO_MESSAGE = "message is missing: describe what is wrong"
NO_TARGET = "to is missing: name at least one target"
BY_PLANNER = "planner"
"""The routing rule for feedback that only a planner can resolve."""


def goes_to_planner(feedback: Feedback) -> bool:
    """Whether feedback without targets is for a planner: steps are missing, or the design as a whole is wrong."""
    return not feedback.to and feedback.kind in (Kind.DEPENDENCY_MISSING, Kind.ARCHITECTURE_ISSUE)


def planner_for(graph: Graph, source: str) -> str | None:
    """A step with `plans: true`, else the nearest step of the planning phase, else the root. None if the source may send
    feedback to none of these."""
    legal = legal_targets(graph, source)
    planners = [name for name in legal if graph.steps[name].plans]
    return next(iter((*planners, *planning_steps(graph, source))), None)


def planning_steps(graph: Graph, source: str) -> tuple[str, ...]:
    """The nearest steps of the planning phase, then the root: only those that the source may send feedback to."""
    legal = legal_targets(graph, source)
    if source in graph.steps:
        nearest = steps_of_phase(graph, source, PLANNING)
    else:
        nearest = tuple(name for name in legal if graph.phase_of[name] == PLANNING)
    return (*nearest, *((graph.root,) if graph.root in legal else ()))
