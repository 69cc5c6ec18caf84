"""Workflows in Python: steps with their functions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import msgspec

from backedge.adapters.agents.comparison import ComparisonFunction
from backedge.adapters.agents.function import Function, FunctionAgent
from backedge.adapters.agents.models import Model
from backedge.adapters.agents.report_value import ReportValue
from backedge.core.errors import WorkflowError
from backedge.core.model import HUMAN
from backedge.core.suggestions import did_you_mean
from backedge.core.value import replace
from backedge.core.workflow import definition as core
from backedge.core.workflow.bound import max_attempts
from backedge.core.workflow.build import build_added_steps as joined
from backedge.core.workflow.build import build_workflow, groups_of, members
from backedge.core.workflow.parsing import mapping, shown, words
from backedge.core.workflow.steps import agent_names, parse_step
from backedge.ports import Agent, ResolvedSteps

Names = str | Sequence[str]
Executor = Function | Agent | Literal["human"]


@dataclass(frozen=True)
class Step:
    """One step of a workflow and the function that does it.

    `agent` takes a Briefing, or a Briefing and an Attempt. A list of agents is a ladder: round 2 and later use the next one.
    For a judge, `{"first": …, "verify": …}` has one agent for verdicts and one that verifies fixes of its findings.
    "human" is a person: the step becomes a question in the inbox, and the decision completes it; `question` is its text.
    `reviews` or `tests` makes it a judge of other steps. `accepts` declares the types of inputs, by producer (or one
    type if it needs one step only), which are checked before it runs; `returns` the type of its output. `reads` names
    the parts of inputs, as JSON pointers, whose change makes it stale. `idempotent` says that an attempt which a crash
    left in doubt may run again. `approval="human"` asks a person to approve each execution before it starts;
    `{"when": {"files": 10, "paths": ["infra/**"], "confidence": 0.6}}` asks after it, if the result is beyond one of
    these, before anything uses it. A step that
    `plans` may add, replace and remove steps with its outcome, but it may not change the judges of the workflow, unless
    `plans` is `{"judges": True}`. A judge that is `hidden` is held out: producers learn that it failed, and nothing else.

    `when` has conditions such as "plan:/ui == true": if one is not met the step is skipped, and what needs it runs without
    it. `repeat` is `{"until": condition, "max": times}`; with `"to": step` that step gets a fix_request if the repeats are
    not enough. `group` names a set of steps: a step that needs the group needs all of them. `for_roles` names the people who
    are asked about the step.
    """

    name: str
    agent: Executor | Sequence[Executor] | Mapping[str, Executor]
    phase: str = ""
    needs: Names = ()
    reviews: Names = ()
    tests: Names = ()
    accepts: Any = None
    returns: Any = None
    reads: Mapping[str, Names] = field(default_factory=dict)
    passes_if: str | Mapping[str, int] | None = None
    limits: Mapping[str, object] = field(default_factory=dict)
    timeout: float | None = None
    idempotent: bool = False
    on_doubt: Literal["ask", "rerun"] | None = None
    approval: Literal["human"] | Mapping[str, Mapping[str, Any]] | None = None
    complete: bool | None = None
    hidden: bool = False
    when: Names = ()
    repeat: Mapping[str, Any] | None = None
    group: str = ""
    question: str = ""
    plans: bool | Mapping[str, bool] = False
    on_worse: Literal["keep", "rollback"] | None = None
    for_roles: Names = ()


class Workflow:
    """A checked definition with its agents. Raises WorkflowError with all problems.

    `agents` registers agents for steps that are added during a run. There are never more than `max_steps` steps.
    `on_protected` says whose approval a changed test needs if a judge asks about it. With `on_worse="rollback"`, a rework
    that leaves more or graver findings than before is rolled back; a judge may say it for reworks of its own findings.
    `roles` has the categories of findings that each role of people is asked about. `notify` has the channels on which people
    are told, and `expire` what happens if no person answers, both as in the workflow file, with times in seconds; messages are
    sent by `backedge notify` or `backedge serve`.
    """

    def __init__(
        self,
        name: str,
        steps: Sequence[Step],
        *,
        profile: str = "default",
        limits: Mapping[str, object] | None = None,
        phases: Sequence[str] = (),
        scope: Literal["upstream", "any"] | None = None,
        routes: Sequence[Mapping[str, Any]] = (),
        on_breach: Literal["manual", "error", "skip", "replan"] = "manual",
        new_findings: str | Mapping[str, str] | None = None,
        kinds: Mapping[str, str] | None = None,
        agreement: Literal["first", "all", "authority"] = "all",
        authority: Names = (),
        checks: Mapping[str, Mapping[str, Any]] | None = None,
        gates: Mapping[str, Mapping[str, Any]] | None = None,
        on_protected: Literal["review", "ask", "refuse"] = "review",
        on_worse: Literal["keep", "rollback"] = "keep",
        max_steps: int = core.MAX_STEPS,
        roles: Mapping[str, Names] | None = None,
        notify: Sequence[Mapping[str, Any]] = (),
        expire: Mapping[str, Any] | None = None,
        agents: Mapping[str, Executor] | None = None,
    ) -> None:
        problems = _name_problems(name)
        self.agents: dict[str, Agent] = {}
        self._registered: dict[str, Any] = mapping("agents", agents)
        built = []
        given: Sequence[object] = (steps,) if isinstance(steps, Step) else steps
        if not isinstance(given, Iterable):
            raise WorkflowError((*problems, f"steps is {shown(given)}: expected a list of backedge.Step"))
        taken = [step.name for step in given if isinstance(step, Step)]
        groups = groups_of({str(step.name): str(step.group) for step in given if isinstance(step, Step)})
        for number, step in enumerate(given, 1):
            if not isinstance(step, Step):
                problems.append(f"step {number} is a {type(step).__name__}: expected backedge.Step")
                continue
            try:
                built.append((_core_step(step, taken, groups, self.agents), step.limits))
            except (WorkflowError, TypeError) as error:
                problems.append(f"step {step.name!r}: {error}")
        if problems:
            raise WorkflowError(tuple(problems))
        self.definition = build_workflow(
            name,
            built,
            profile=profile,
            limits=limits,
            phases=phases,
            scope=scope,
            routes=routes,
            on_breach=on_breach,
            new_findings=new_findings,
            kinds=kinds,
            agreement=agreement,
            authority=authority,
            checks=checks,
            gates=gates,
            on_protected=on_protected,
            on_worse=on_worse,
            max_steps=max_steps,
            roles=roles,
            notify=notify,
            expire=expire,
        )
        self.agents |= _measuring(self.definition, checks or {})

    @property
    def name(self) -> str:
        """The name under which its runs are listed."""
        return self.definition.name

    @property
    def max_attempts(self) -> int:
        """The maximum number of attempts of a run, not counting attempts that people grant."""
        bound = max_attempts(self.definition)
        assert bound is not None  # a definition without a bound was refused
        return bound

    def resolve(self, added: Mapping[str, object], workflow: core.Workflow) -> ResolvedSteps:
        """The agents of steps that a planner adds to a run; a step is a Step, or a mapping that names registered agents.
        Raises WorkflowError with all problems."""
        steps, problems, agents, specs = [], list[str](), dict[str, Agent](), dict[str, Any]()
        for name, given in mapping("add_steps", added).items():
            try:
                spec = specs[name] = self._spec(name, given) if isinstance(given, Step) else mapping(name, given)
                step = Step(name, **self._fields(spec))
                steps.append((_core_step(step, (*added, *_names_of(workflow)), {}, agents), step.limits))
            except (WorkflowError, TypeError) as error:
                problems.append(f"step {name!r}: {error}")
        if problems:
            raise WorkflowError(tuple(problems))
        return ResolvedSteps(joined(workflow, steps), agents, specs)

    def _spec(self, name: str, step: Step) -> dict[str, object]:
        """A step as a run can record it: its functions by their registered names."""
        if step.name != name:
            raise WorkflowError(f"its name is {step.name!r}: expected {name!r}, the name that it is added under")
        if step.accepts is not None or step.returns is not None:
            raise WorkflowError("it declares types, which a run cannot record: check them in the function")
        ladder = _ladder(step.agent)
        names = []
        for index, agent in enumerate(ladder):
            known = next((each for each, other in self._registered.items() if other is agent), None)
            own = name if len(ladder) == 1 else f"{name}#{index + 1}"
            if known is None and agent != HUMAN:
                self._registered[own] = agent
            names.append(HUMAN if agent == HUMAN else known or own)
        more = {each.name: getattr(step, each.name) for each in fields(Step) if each.name in _RECORDED}
        usual = {each.name: each.default for each in fields(Step)}
        if isinstance(step.agent, Mapping):
            raise WorkflowError(
                "it has an agent to verify, which only a step of the workflow can have: list its agents"
            )
        return {"agent": names, **{key: value for key, value in more.items() if value and value != usual[key]}}

    def _fields(self, spec: Mapping[str, object]) -> dict[str, Any]:
        """The arguments of Step for a recorded step."""
        for key in spec:
            if key not in (*_RECORDED, "agent", "agents"):
                raise WorkflowError(f"unknown key {key!r}: {did_you_mean(key, (*_RECORDED, 'agent', 'agents'))}")
        named = words("agent", spec.get("agent") or spec.get("agents") or ())
        known = {**self._registered, HUMAN: HUMAN}
        for name in named:
            if name not in known:
                raise WorkflowError(f"agent {name!r} is not registered: {did_you_mean(name, known)}")
        fields_ = {key: value for key, value in spec.items() if key in _RECORDED}
        return {"agent": [known[name] for name in named], **fields_}


_RECORDED = tuple(each.name for each in fields(Step) if each.name not in ("name", "agent", "accepts", "returns"))
"""The arguments of Step that a run can record."""


def _names_of(workflow: core.Workflow) -> tuple[str, ...]:
    return tuple(step.name for step in workflow.steps)


def _ladder(agent: Executor | Sequence[Executor] | Mapping[str, Executor]) -> Sequence[Executor]:
    """The agents of a step, in order. Raises WorkflowError."""
    if isinstance(agent, Mapping):
        if {*agent} != {"first", "verify"}:
            raise WorkflowError(
                f"agent has the keys {', '.join(map(shown, agent)) or 'none'}: expected first and verify"
            )
        return agent["first"], agent["verify"]
    return agent if isinstance(agent, Sequence) and not isinstance(agent, str) else (agent,)


def _core_step(
    step: Step, taken: Collection[str], groups: Mapping[str, Sequence[str]], agents: dict[str, Agent]
) -> core.Step:
    """What a definition keeps of a step; its agents are added to the others, by the names that the definition uses."""
    ladder = _ladder(step.agent)
    if not ladder:
        raise WorkflowError("it has no agent: give at least one function")
    own = agent_names(step.name, len(ladder), {*taken, *agents})
    names = tuple(HUMAN if agent == HUMAN else name for name, agent in zip(own, ladder, strict=True))
    given = {each.name: getattr(step, each.name) for each in fields(Step)}
    made = parse_step(step.name, given, agents=names, timeout=step.timeout, question=step.question)
    accepts = _models(step.accepts, members(groups, (*made.judges, *made.needs), step.name))
    returns = Model(step.returns, "returns") if step.returns is not None else None
    for name, agent in zip(names, ladder, strict=True):
        if name != HUMAN:
            agents[name] = _agent(agent, bool(made.judges), accepts, returns)
    try:
        # A run keeps its definition: what could not be read back must not be written.
        return msgspec.convert(msgspec.to_builtins(replace(made, checked=bool(accepts))), core.Step)
    except msgspec.ValidationError as error:
        raise WorkflowError(str(error)) from error


def _measuring(definition: core.Workflow, checks: Mapping[str, Mapping[str, Any]]) -> dict[str, Agent]:
    """The agents that compare for checks and read the reports of gates."""
    found: dict[str, Agent] = {}
    for check in definition.checks:
        if check.command:
            function = checks[check.name]["compatible"]
            if not callable(function):
                raise WorkflowError(
                    f"check {check.name!r} has compatible {shown(function)}: expected a function of the compared values, "
                    "or {'table': …}"
                )
            found[check.name] = ComparisonFunction(function)
    for gate in definition.gates:
        if gate.report:
            found[gate.name] = ReportValue(Path.cwd(), gate.report, gate.path)
    return found


def _agent(given: Executor, judges: bool, accepts: Mapping[str, Model], returns: Model | None) -> Agent:
    if isinstance(given, str):
        raise WorkflowError(f"its agent is {given!r}: expected a function that takes a briefing, or {HUMAN!r}")
    if isinstance(given, Agent):
        return given
    return FunctionAgent(given, judges=judges, accepts=accepts, returns=returns)


def _name_problems(name: object) -> list[str]:
    return [] if isinstance(name, str) else [f"the name is {name!r}: expected text"]


def _models(accepts: Any, needs: tuple[str, ...]) -> dict[str, Model]:
    if accepts is None:
        return {}
    if not isinstance(accepts, Mapping):
        if len(needs) != 1:
            raise WorkflowError(f"accepts is one type, but it needs {len(needs)} steps: give a type by producer")
        return {needs[0]: Model(accepts, "accepts")}
    for producer in accepts:
        if producer not in needs:
            raise WorkflowError(f"accepts names {producer!r}, which it does not need: {did_you_mean(producer, needs)}")
    return {producer: Model(type_, f"accepts of {producer!r}") for producer, type_ in accepts.items()}
