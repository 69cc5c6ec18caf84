"""The definition of a workflow: plain data. `validate.py` checks it as a whole and reports every problem at once."""

from __future__ import annotations

from typing import Literal

import msgspec

from backedge.core.model import Kind, Severity
from backedge.core.ready_types import make_ready
from backedge.core.value import Value
from backedge.core.workflow.checks import Check, EngineJudge, Gate
from backedge.core.workflow.limits import Limits
from backedge.core.workflow.notify import Channel, Expiry
from backedge.core.workflow.routes import RouteRule

DEFAULT_PHASES = ("research", "planning", "design", "code", "test")

MAX_STEPS = 50

Policy = Literal["rework", "defer", "ask"]
Agreement = Literal["first", "all", "authority"]
OnProtected = Literal["review", "ask", "refuse"]
OnWorse = Literal["keep", "rollback"]


class PassRule(Value, frozen=True):
    """How the engine computes a verdict from the findings: how many of each severity are allowed."""

    name: str = ""
    """The name of a built-in rule; empty if the rule counts by `at_most`."""
    at_most: tuple[tuple[str, int], ...] = ()
    """Pairs of a severity (or "blocking") and how many such findings are allowed."""

    @property
    def text(self) -> str:
        return self.name or ", ".join(f"at most {count} {severity}" for severity, count in self.at_most)


PASS_RULES = ("ai-sdlc", "asp-design", "asp-code")


class Repeat(Value, frozen=True):
    """Runs a step again until conditions on its artifact are met."""

    until: tuple[str, ...]
    max: int
    """How many executions in a row are allowed."""
    to: str = ""
    """The step that gets a fix_request if the conditions are still not met after `max`; empty means: ask a person."""


class Thresholds(Value, frozen=True):
    """When a person has to approve what a step made, before anything uses it."""

    files: int | None = None
    """From how many changed files on, counted since a person last approved."""
    paths: tuple[str, ...] = ()
    """Globs of files whose change always needs approval."""
    confidence: float | None = None
    """Below which confidence that the agent reports; one that reports none is below it."""


APPROVAL = "{}_approval"
"""The name of the judge that asks a person to approve what a step made."""


class Step(Value, frozen=True):
    """One node of the workflow."""

    name: str
    phase: str = ""
    needs: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    """The steps whose artifacts it judges. Judging a step implies needing it."""
    tests: bool = False
    """Whether this judge tests; any other judge reviews."""
    tool: bool = False
    """Whether this judge is a tool whose report the engine reads itself."""
    hidden: bool = False
    """Whether this judge is held out: producers learn only that it failed, not what it found."""
    complete: bool = False
    """Whether this judge lists everything it sees. Then a finding that it does not repeat counts as fixed."""
    agents: tuple[str, ...] = ()
    """The agents that execute it, in order of escalation: from round 2 on, each round uses the next one."""
    verifier: bool = False
    """Whether its second agent only verifies fixes of its findings: the first one gives every other verdict."""
    called: tuple[str, ...] = ()
    """The names that people use for these agents, where they differ from `agents`."""
    passes_if: PassRule | None = None
    limits: Limits | None = None
    """The limits of the loops it starts, if they differ from those of the workflow."""
    on_doubt: Literal["ask", "rerun"] = "ask"
    timeout: float | None = None
    checked: bool = False
    """Whether its inputs are checked before each attempt."""
    reads: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Pairs of a producer and JSON pointers: the parts of that input whose change makes this step stale."""
    when: tuple[str, ...] = ()
    """Conditions. If one is not met, the step is skipped, and the steps that need it run without it."""
    repeat: Repeat | None = None
    question: str = ""
    """The question shown to the person who does, judges or approves this step."""
    approval: Literal["human"] | None = None
    """Set if a person has to approve each execution."""
    thresholds: Thresholds | None = None
    """When a person has to approve what it made."""
    approver: bool = False
    """Whether it is the judge that asks a person to approve, if what it judges is beyond its thresholds."""
    group: str = ""
    """The group of steps that it belongs to. A step that needs the group needs all its members."""
    plans: bool = False
    """Whether it may add, replace and remove steps during the run."""
    plans_judges: bool = False
    """Whether it may also replace and remove judges that the workflow started with."""
    writes: tuple[str, ...] | None = None
    """The files that it may change, as globs from the folder that it works in; None if that is not known."""
    workspace: str = ""
    """The folder that it works in; empty for that of the workflow file."""
    on_worse: OnWorse | None = None
    """For a judge: what happens to a rework of its findings that makes things worse, if that differs from the workflow."""
    needs_groups: tuple[str, ...] = ()
    """The groups that its definition needs. A step that joins one of them later is needed too."""
    judges_groups: tuple[str, ...] = ()
    """The groups that its definition judges."""
    for_roles: tuple[str, ...] = ()
    """The roles of the people who are asked about it; empty for everybody."""

    def display_name(self, name: str) -> str:
        """The name that people use for one of its agents."""
        return dict(zip(self.agents, self.called, strict=False)).get(name, name) if self.called else name


class Workflow(Value, frozen=True):
    """The definition that a run starts with and keeps."""

    name: str
    steps: tuple[Step, ...]
    profile: str = "default"
    phases: tuple[str, ...] = ()
    """The phases in order. If empty, the default phases, then any other phase in the order of the file."""
    scope: Literal["upstream", "any"] = "upstream"
    routes: tuple[RouteRule, ...] = ()
    limits: Limits = msgspec.field(default_factory=Limits)
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
    """Custom kinds of feedback: pairs of a name and the built-in kind that it behaves as."""
    agreement: Agreement = "all"
    """When a choice with several targets counts as made."""
    authority: tuple[str, ...] = ()
    """The steps that decide, highest first, if the agreement is "authority"."""
    checks: tuple[Check, ...] = ()
    gates: tuple[Gate, ...] = ()
    on_protected: OnProtected = "review"
    """Whose approval a change of tests or of the configuration of judges needs if a judge asks about it: that of a reviewer
    (else of a person), always that of a person; or none is possible, and it is a finding."""
    on_worse: OnWorse = "keep"
    """What happens to a rework that leaves more or graver findings than there were before it: it stays, or the version
    before it is restored."""
    max_steps: int = MAX_STEPS
    """If a step plans: how many steps the run may ever have, including removed and replaced ones."""
    roles: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The roles of people, each with the categories of findings that it is asked about."""
    notify: tuple[Channel, ...] = ()
    """The channels for questions to people, with their reminders."""
    expire: Expiry | None = None
    """What happens to a question that no person answers."""

    @property
    def plans(self) -> bool:
        """Whether one of its steps may change the workflow during the run."""
        return any(step.plans for step in self.steps)

    @property
    def engine_judges(self) -> tuple[EngineJudge, ...]:
        """The checks and gates: judges that the engine executes itself."""
        return (*self.checks, *self.gates)

    def policy_for(self, severity: Severity) -> Policy:
        """What to do with a new finding that the judge could have reported in an earlier round."""
        return dict(self.new_findings)[severity]


make_ready(Step, Workflow)


def phase_order(workflow: Workflow) -> tuple[str, ...]:
    """All phases in order: the declared or default ones, then any other phase in the order of the file."""
    phases = list(workflow.phases or DEFAULT_PHASES)
    for step in workflow.steps:
        if step.phase and not step.judges and step.phase not in phases:
            phases.append(step.phase)
    return tuple(phases)
