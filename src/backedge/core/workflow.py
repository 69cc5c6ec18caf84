"""The definition of a workflow: plain data, validated as a whole, with every problem named at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from graphlib import CycleError
from typing import Literal

from backedge.core.errors import WorkflowError
from backedge.core.graph import Graph
from backedge.core.limits import Limits
from backedge.core.measures import Check, Gate, Measure
from backedge.core.model import HUMAN, Kind, Severity
from backedge.core.near import nearest
from backedge.core.profiles import PROFILES, RouteRule
from backedge.core.value import Value

DEFAULT_PHASES = ("research", "planning", "design", "code", "test")

MAX_STEPS = 50

Policy = Literal["rework", "defer", "ask"]
Agreement = Literal["first", "all", "authority"]


class PassRule(Value, frozen=True):
    """When the engine computes a verdict from the findings: how many of each severity still pass."""

    name: str = ""
    """One of the named rules; empty when counts are given."""
    at_most: tuple[tuple[str, int], ...] = ()
    """(severity or "blocking", how many are allowed)."""


PASS_RULES = ("ai-sdlc", "asp-design", "asp-code")


class Repeat(Value, frozen=True):
    """A step that is executed until conditions on its artifact are met."""

    until: tuple[str, ...]
    max: int
    """The most executions in a row."""
    to: str = ""
    """Who gets a fix_request when that was not enough; empty means a person is asked."""


class Step(Value, frozen=True):
    """One node of the workflow."""

    name: str
    phase: str = ""
    needs: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    """The steps whose artifacts it judges; they are among its needs."""
    tests: bool = False
    """A judge that tests; any other judge reviews."""
    complete: bool = False
    """A judge that lists everything it sees: a finding it does not repeat is fixed."""
    agents: tuple[str, ...] = ()
    """Who does it; round 2 and later climb to the next."""
    called: tuple[str, ...] = ()
    """What people call these agents, where that is not their name."""
    passes_if: PassRule | None = None
    limits: Limits | None = None
    """The limits of the loops it starts, where they differ from the workflow's."""
    on_doubt: Literal["ask", "rerun"] = "ask"
    timeout: float | None = None
    checked: bool = False
    """Its inputs are checked before each attempt."""
    reads: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """(producer, JSON pointers): the parts of an input whose change makes this step stale."""
    when: tuple[str, ...] = ()
    """Conditions; if one is not met the step is skipped, and what needs it runs without it."""
    repeat: Repeat | None = None
    question: str = ""
    """What a person who does it is asked."""
    approval: Literal["human"] | None = None
    """Who has to approve before each execution."""
    group: str = ""
    """The set of steps that it belongs to; whoever needs the group needs all of them."""
    plans: bool = False
    """It may add, replace and remove steps while the run goes on."""
    needs_groups: tuple[str, ...] = ()
    """The groups among what it was written to need: whoever joins one of them is needed as well."""
    judges_groups: tuple[str, ...] = ()
    """The groups among what it was written to judge."""

    def called_agent(self, name: str) -> str:
        """What people call one of its agents."""
        return dict(zip(self.agents, self.called, strict=False)).get(name, name) if self.called else name


class Workflow(Value, frozen=True):
    """The definition that a run starts with and keeps."""

    name: str
    steps: tuple[Step, ...]
    profile: str = "default"
    phases: tuple[str, ...] = ()
    """The order of phases; empty means the usual one, other labels by their place."""
    scope: Literal["upstream", "any"] = "upstream"
    routes: tuple[RouteRule, ...] = ()
    limits: Limits = Limits()
    on_breach: Literal["manual", "error", "skip", "replan"] = "manual"
    new_findings: tuple[tuple[Severity, Policy], ...] = (
        (Severity.CRITICAL, "rework"),
        (Severity.HIGH, "rework"),
        (Severity.MEDIUM, "defer"),
        (Severity.LOW, "defer"),
    )
    judges_in_order: bool = False
    nearest_phase: bool = False
    kinds: tuple[tuple[str, Kind], ...] = ()
    """Kinds of feedback of its own: (name, the kind that it behaves as)."""
    agreement: Agreement = "all"
    """How several targets of a choice agree."""
    authority: tuple[str, ...] = ()
    """Whose word holds first, where the agreement is authority."""
    checks: tuple[Check, ...] = ()
    gates: tuple[Gate, ...] = ()
    max_steps: int = MAX_STEPS
    """Where a step plans: how many steps there may ever be, removed and replaced ones included."""

    @property
    def plans(self) -> bool:
        """Whether a step of it may change it."""
        return any(step.plans for step in self.steps)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The judges that the engine is itself."""
        return (*self.checks, *self.gates)

    def policy_for(self, severity: Severity) -> Policy:
        """What becomes of a finding that a judge could have made earlier but did not."""
        return dict(self.new_findings)[severity]


def problems_of(workflow: Workflow) -> tuple[str, ...]:
    """Everything that is wrong with a definition; nothing for one that can run."""
    try:
        _compiled(workflow)
    except WorkflowError as error:
        return error.problems
    return ()


@lru_cache(maxsize=256)
def graph_of(workflow: Workflow) -> Graph:
    """The compiled graph of a valid workflow: one for all runs of the same definition. Raises WorkflowError."""
    return _compiled(workflow)


def _compiled(workflow: Workflow) -> Graph:
    """The graph of a definition. Raises WorkflowError with everything that is wrong; what only a graph can show is
    looked for once the names are right."""
    from backedge.core.shape_problems import naming_problems, upstream_problems

    _refuse([*_naming_problems(workflow), *naming_problems(workflow)])
    try:
        graph = Graph(workflow)
    except CycleError as circle:
        way = " → ".join(circle.args[1])
        raise WorkflowError(f"steps need each other in a circle: {way}; remove one of these needs") from None
    _refuse(_graph_problems(graph))
    _refuse(upstream_problems(graph))
    _refuse(_bound_problems(workflow))
    return graph


def _refuse(problems: Iterable[str]) -> None:
    if found := tuple(problems):
        raise WorkflowError(found)


def phase_order(workflow: Workflow) -> tuple[str, ...]:
    """All phases in their order: declared, else the usual ones, then other labels by their place in the file."""
    labels = list(workflow.phases or DEFAULT_PHASES)
    for step in workflow.steps:
        if step.phase and not step.judges and step.phase not in labels:
            labels.append(step.phase)
    return tuple(labels)


def _naming_problems(workflow: Workflow) -> Iterable[str]:
    names = Counter(step.name for step in workflow.steps)
    judges = {step.name for step in workflow.steps if step.judges}
    if not workflow.name.strip():
        yield "the workflow has no name: give it one"
    if not names:
        yield "the workflow has no steps: add at least one"
    if workflow.profile not in PROFILES:
        yield f"profile {workflow.profile!r} is unknown: {nearest(workflow.profile, PROFILES)}"
    for who in workflow.authority:
        if who != HUMAN and who not in names:
            yield f"authority names {who!r}, which is no step: {nearest(who, [*names, HUMAN])}"
    if workflow.agreement == "authority" and not workflow.authority:
        yield "agreement is 'authority', but authority names nobody: list the steps whose word holds, highest first"
    for kind, _ in workflow.kinds:
        if kind in list(Kind):
            yield f"kind {kind!r} in kinds has the name of a kind that exists: choose another name"
    for phase in {p for p in workflow.phases if workflow.phases.count(p) > 1}:
        yield f"phase {phase!r} is listed twice in phases: list it once"
    if workflow.plans and len(workflow.steps) > workflow.max_steps:
        yield f"the workflow has {len(workflow.steps)} steps, and max_steps is {workflow.max_steps}: raise max_steps"
    for name in [name for name, count in names.items() if count > 1]:
        yield f"step {name!r} is defined twice: names are unique"
    for step in workflow.steps:
        if not step.name.strip():
            yield "a step has an empty name: give it one"
        if step.name == HUMAN:
            yield f"step {step.name!r} has a reserved name: it is the person behind the inbox"
        for word, others in (("needs", step.needs), ("judges", step.judges), ("reads", [p for p, _ in step.reads])):
            for other in others:
                if other == step.name:
                    yield f"step {step.name!r} {word} itself: remove that"
                elif other not in names:
                    yield f"step {step.name!r} {word} {other!r}, which does not exist: {nearest(other, names)}"
        for producer, _ in step.reads:
            if producer in names and producer not in step.needs and producer not in step.judges:
                yield f"step {step.name!r} reads {producer!r} without needing it: add it to needs"
        if step.timeout is not None and not 0 < step.timeout < float("inf"):
            yield f"step {step.name!r} has timeout {step.timeout!r}: expected more than 0 seconds"
        if step.passes_if and step.passes_if.name and step.passes_if.name not in PASS_RULES:
            yield f"step {step.name!r} passes_if {step.passes_if.name!r}: {nearest(step.passes_if.name, PASS_RULES)}"
        if step.passes_if and not step.judges:
            yield f"step {step.name!r} has passes_if but judges nothing: only judges have a verdict"
        for severity, count in step.passes_if.at_most if step.passes_if else ():
            if severity != "blocking" and severity not in list(Severity):
                yield f"step {step.name!r} passes_if counts {severity!r}: {nearest(severity, [*Severity, 'blocking'])}"
            if count < 0:
                yield f"step {step.name!r} passes_if allows {count} {severity}: expected 0 or more"
        if step.plans and step.judges:
            yield f"step {step.name!r} both judges and plans: make it two steps"
        for subject in step.judges:
            if subject in judges:
                yield f"step {step.name!r} judges {subject!r}, which is a judge itself: judge what it judges instead"


def _graph_problems(graph: Graph) -> Iterable[str]:
    workflow = graph.workflow
    known = [*graph.steps, *graph.phases, *(DEFAULT_PHASES if workflow.nearest_phase else ())]
    targets = {*known, HUMAN}
    for rule in workflow.routes:
        if rule.to not in targets:
            yield f"a route leads to {rule.to!r}, neither a step nor a phase: {nearest(rule.to, known)}"
        if rule.to in graph.steps and graph.is_judge(rule.to):
            yield f"a route leads to {rule.to!r}, which is a judge: name the step that should mend it"
    for step in workflow.steps:
        for need in step.needs:
            if graph.rank(need) > graph.rank(step.name):
                yield (
                    f"step {step.name!r} (phase {graph.phase_of[step.name]}) needs {need!r} of the later phase "
                    f"{graph.phase_of[need]}: change one of the phases, or order them with `phases`"
                )


def _bound_problems(workflow: Workflow) -> Iterable[str]:
    from backedge.core.bound import max_attempts

    if max_attempts(workflow) is None:
        yield (
            "nothing bounds this workflow: set limits.attempts, or errors_in_a_row together with one of rounds_total, "
            "rounds_per_step and rounds_per_pair"
        )
