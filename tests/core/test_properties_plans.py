"""What holds for every run whose planners add, replace and remove steps at random: all that holds for any run."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.model import HUMAN, Feedback, Kind, Usage
from backedge.core.planning import plan_problem
from backedge.core.state.run import RunState
from backedge.core.workflow.bound import max_attempts
from backedge.core.workflow.definition import DEFAULT_PHASES, Step, Workflow
from backedge.core.workflow.limits import Limits
from backedge.core.workflow.plan import Plan
from backedge.core.workflow.validate import problems_of
from tests.core.strategies import (
    STUBBORN,
    TEMPERS,
    Pick,
    Tale,
    a_limits,
    a_workflow,
    an_outcome,
    effort,
    one_of,
    picks,
    rarely,
    some_of,
    told_to_the_end,
)
from tests.core.test_properties import EVERYWHERE, no_run_passes_its_bound, open_loops_wait_for_a_person


def a_plan(pick: Pick, state: RunState, name: str) -> Plan:
    """Any change; a sensible one, if one of a few is."""
    running = state.steps[name].running
    assert running is not None
    for _ in range(5):
        plan = _any_plan(pick, state, [each for each in state.steps if each != name])
        if rarely(pick, 8) or plan_problem(state, name, running, plan) is None:
            return plan
    return Plan()


def _any_plan(pick: Pick, state: RunState, others: list[str]) -> Plan:
    names = [*others, *state.retired, *(f"n{place}" for place in range(3))]
    added: dict[str, Step] = {}
    for _ in range(pick(3)):
        name = one_of(pick, [f"n{pick(6)}", one_of(pick, names)])
        added[name] = _a_step(pick, state, name, [each for each in (*state.steps, *added) if each != name])
    removed = some_of(pick, names, 2) if pick(2) else ()
    specs = {name: msgspec.json.decode(msgspec.json.encode(step)) for name, step in added.items()}
    return Plan(tuple(added.values()), tuple(name for name in removed if name not in added or rarely(pick, 9)), specs)


def _a_step(pick: Pick, state: RunState, name: str, others: list[str]) -> Step:
    producers = [each for each in others if each not in state.steps or not state.graph.is_judge(each)]
    if producers and rarely(pick, 3):
        return Step(name, judges=(one_of(pick, producers),), complete=bool(pick(2)))
    return Step(
        name,
        phase=one_of(pick, ("", one_of(pick, DEFAULT_PHASES))),
        needs=some_of(pick, others, 2),
        checked=rarely(pick, 6),
        plans=rarely(pick, 5),
        limits=a_limits(pick) if rarely(pick, 12) else None,
    )


class Planning(Tale):
    """A run whose planners say something about its steps, and whose other steps miss some."""

    def finish(self, name: str, temper: str | None = None) -> None:
        running = self.s.steps[name].running
        assert running is not None
        outcome = an_outcome(self.pick, self.s, name, temper or self.tempers.get(name, "random"))
        if isinstance(outcome, str):
            self.do(c.FailAttempt(name, running.attempt, outcome, Usage(cost_usd=0.5), 1.0))
            return
        planner = self.s.graph.steps[name].plans
        plan = a_plan(self.pick, self.s, name) if temper is None and (planner or rarely(self.pick, 20)) else Plan()
        if temper is None and rarely(self.pick, 4):
            missing = Feedback(Kind.DEPENDENCY_MISSING, (), "something is missing")
            outcome = msgspec.structs.replace(outcome, feedback=(*outcome.feedback, missing))
        self.do(c.FinishAttempt(name, running.attempt, outcome, 1.0, plan=plan))


def a_planned_workflow(pick: Pick, most: int) -> Workflow:
    workflow = a_workflow(pick, most)
    planners = {one_of(pick, [step.name for step in workflow.steps if not step.judges]) for _ in range(1 + pick(2))}
    steps = tuple(msgspec.structs.replace(step, plans=step.name in planners) for step in workflow.steps)
    made = msgspec.structs.replace(workflow, steps=steps, max_steps=len(steps) + pick(12))
    assert not problems_of(made)
    return made


def a_planned_tale(pick: Pick, *, people: bool = True, moves: int = 50, stubborn: bool = False) -> Planning:
    workflow = a_planned_workflow(pick, 4 if stubborn else 6)
    if stubborn:
        off: dict[str, Any] = dict.fromkeys(
            ("rounds_per_loop", "same_finding", "no_change", "oscillation", "chain_depth")
        )
        limits = Limits(**{**off, "rounds_total": pick(4), "errors_in_a_row": 1 + pick(2)})
        bare = tuple(msgspec.structs.replace(step, limits=None) for step in workflow.steps)
        workflow = msgspec.structs.replace(workflow, limits=limits, steps=bare)
    tale = Planning(workflow, pick, people=people)
    tempers = STUBBORN if stubborn else TEMPERS
    tale.tempers = {step.name: one_of(pick, tempers) for step in workflow.steps}
    tale.do(c.StartRun("r", workflow, input={"task": 1}))
    for _ in range(pick(moves)):
        if tale.s.ended is None or rarely(pick, 4):
            tale.move()
    return tale


@given(picks())
@effort(250)
def test_no_run_passes_its_bound_whatever_its_planners_add(pick: Pick) -> None:
    tale = a_planned_tale(pick, people=False, stubborn=True)
    assert tale.rest(3_000)
    no_run_passes_its_bound(tale)


@given(picks())
@effort(250)
def test_what_holds_for_every_run_holds_for_one_that_changes(pick: Pick) -> None:
    tale = a_planned_tale(pick)
    for holds in EVERYWHERE:
        holds(tale)


@given(picks())
@effort(150)
def test_a_run_that_changes_comes_to_its_end(pick: Pick) -> None:
    tale = a_planned_tale(pick)
    assert told_to_the_end(tale)
    open_loops_wait_for_a_person(tale)
    for holds in EVERYWHERE:
        holds(tale)


@given(picks())
@effort(150)
def test_there_are_never_more_steps_than_max_steps(pick: Pick) -> None:
    tale = a_planned_tale(pick)
    changes = [event for event in tale.events if isinstance(event, e.StepsChanged)]
    ever = len(tale.workflow.steps) + sum(len(event.added) for event in changes)
    assert ever == tale.s.steps_ever <= tale.workflow.max_steps
    assert max_attempts(tale.s.workflow) is not None
    for loop in tale.s.loops.values():
        assert loop.source in (*tale.s.steps, HUMAN)
        assert set(loop.shares) <= {*tale.s.steps, HUMAN}
