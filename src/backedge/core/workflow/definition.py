"""The definition of a workflow: plain data, validated as a whole, with every problem named at once."""

from __future__ import annotations

from typing import Literal

from backedge.core.model import Kind, Severity
from backedge.core.value import Value
from backedge.core.workflow.checks import Check, EngineJudge, Gate
from backedge.core.workflow.limits import Limits
from backedge.core.workflow.routes import RouteRule

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
    def measures(self) -> tuple[EngineJudge, ...]:
        """The judges that the engine is itself."""
        return (*self.checks, *self.gates)

    def policy_for(self, severity: Severity) -> Policy:
        """What becomes of a finding that a judge could have made earlier but did not."""
        return dict(self.new_findings)[severity]


def phase_order(workflow: Workflow) -> tuple[str, ...]:
    """All phases in their order: declared, else the usual ones, then other labels by their place in the file."""
    labels = list(workflow.phases or DEFAULT_PHASES)
    for step in workflow.steps:
        if step.phase and not step.judges and step.phase not in labels:
            labels.append(step.phase)
    return tuple(labels)
