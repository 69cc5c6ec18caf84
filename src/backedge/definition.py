"""A workflow in Python: steps with their functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from backedge.adapters.agents.function import Function, FunctionAgent
from backedge.adapters.agents.models import Model
from backedge.core import workflow as core
from backedge.core.bound import max_attempts
from backedge.core.define import defined, pass_rule
from backedge.core.errors import WorkflowError
from backedge.core.profiles import RouteRule
from backedge.ports import Agent

Names = str | Sequence[str]


@dataclass(frozen=True)
class Step:
    """One step of a workflow and the function that does it.

    `agent` takes a Briefing, or a Briefing and an Attempt; several make a ladder: round 2 and later use the next one.
    `reviews` or `tests` makes it a judge of other steps. `accepts` declares the types of inputs, by producer (or one
    type if it needs one step only), which are checked before it runs; `returns` the type of its output. `reads` names
    the parts of inputs, as JSON pointers, whose change makes it stale. `idempotent` says that an attempt which a crash
    left in doubt may simply be run again.
    """

    name: str
    agent: Function | Agent | Sequence[Function | Agent]
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
    complete: bool | None = None


class Workflow:
    """A checked definition with its agents. Raises WorkflowError, naming everything that is wrong."""

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
        on_breach: Literal["manual", "error", "skip"] = "manual",
        new_findings: str | Mapping[str, str] | None = None,
    ) -> None:
        problems = _name_problems(name)
        self.agents: dict[str, Agent] = {}
        built = []
        given: Sequence[object] = (steps,) if isinstance(steps, Step) else steps
        for place, step in enumerate(given, 1):
            if not isinstance(step, Step):
                problems.append(f"step {place} is a {type(step).__name__}: expected backedge.Step")
                continue
            try:
                built.append((self._step(step), step.limits))
            except (WorkflowError, TypeError) as error:
                problems.append(f"step {step.name!r}: {error}")
        if problems:
            raise WorkflowError(tuple(problems))
        self.definition = defined(
            name,
            built,
            profile=profile,
            limits=limits,
            phases=_names(phases),
            scope=scope,
            routes=[_route(rule) for rule in routes],
            on_breach=on_breach,
            new_findings=new_findings,
        )

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def max_attempts(self) -> int:
        """The largest number of attempts that any run can make without decisions by people."""
        bound = max_attempts(self.definition)
        assert bound is not None  # a definition that nothing bounds was refused
        return bound

    def _step(self, step: Step) -> core.Step:
        reviews, tests = _names(step.reviews), _names(step.tests)
        if reviews and tests:
            raise WorkflowError("it both reviews and tests: choose one, or make it two steps")
        judges = (*reviews, *tests)
        needs = tuple(name for name in _names(step.needs) if name not in judges)
        accepts = _models(step.accepts, (*judges, *needs))
        returns = Model(step.returns) if step.returns is not None else None
        ladder = step.agent if isinstance(step.agent, Sequence) else (step.agent,)
        if not ladder:
            raise WorkflowError("it has no agent: give at least one function")
        names = [step.name if rung == 0 else f"{step.name}#{rung + 1}" for rung in range(len(ladder))]
        for name, agent in zip(names, ladder, strict=True):
            ready_made = hasattr(agent, "work") and hasattr(agent, "misfits")
            self.agents[name] = (
                agent  # type: ignore[assignment]
                if ready_made
                else FunctionAgent(agent, judges=bool(judges), accepts=accepts, returns=returns)  # type: ignore[arg-type]
            )
        made = core.Step(
            name=step.name,
            phase=step.phase,
            needs=needs,
            judges=judges,
            tests=bool(tests),
            complete=bool(tests) if step.complete is None else step.complete,
            agents=tuple(names),
            passes_if=pass_rule(step.passes_if),
            on_doubt=step.on_doubt or ("rerun" if step.idempotent else "ask"),
            timeout=step.timeout,
            checked=bool(accepts),
            reads=tuple((producer, _pointers(producer, pointers)) for producer, pointers in step.reads.items()),
        )
        try:
            # A run keeps its definition: what could not be read back must not be written.
            return msgspec.convert(msgspec.to_builtins(made), core.Step)
        except msgspec.ValidationError as error:
            raise WorkflowError(str(error)) from error


def _names(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _name_problems(name: object) -> list[str]:
    return [] if isinstance(name, str) else [f"the name is {name!r}: expected text"]


def _pointers(producer: str, pointers: Names) -> tuple[str, ...]:
    for pointer in _names(pointers):
        if pointer and not pointer.startswith("/"):
            raise WorkflowError(f"it reads {pointer!r} of {producer!r}: expected a JSON pointer, such as '/{pointer}'")
    return _names(pointers)


def _models(accepts: Any, needs: tuple[str, ...]) -> dict[str, Model]:
    if accepts is None:
        return {}
    if not isinstance(accepts, Mapping):
        if len(needs) != 1:
            raise WorkflowError(f"accepts is one type, but it needs {len(needs)} steps: give a type by producer")
        return {needs[0]: Model(accepts)}
    for producer in accepts:
        if producer not in needs:
            raise WorkflowError(f"accepts names {producer!r}, which it does not need: {core.nearest(producer, needs)}")
    return {producer: Model(type_) for producer, type_ in accepts.items()}


def _route(rule: Mapping[str, Any]) -> RouteRule:
    known = ("to", "category", "keywords")
    for key in rule:
        if key not in known:
            raise WorkflowError(f"a route has the key {key!r}: {core.nearest(key, known)}")
    if not rule.get("to") or not (rule.get("category") or rule.get("keywords")):
        raise WorkflowError(f"route {dict(rule)!r}: expected `to`, and `category` or `keywords`")
    return RouteRule(rule["to"], _names(rule.get("category", ())), _names(rule.get("keywords", ())))
