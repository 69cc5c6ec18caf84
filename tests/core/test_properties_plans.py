"""The properties of all runs also hold if planners add, replace and remove steps at random."""

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
    BEHAVIOURS,
    STUBBORN,
    Pick,
    RandomRun,
    a_limits,
    a_workflow,
    an_outcome,
    drive_to_end,
    effort,
    one_of,
    picks,
    rarely,
    some_of,
)
from tests.core.test_properties import EVERYWHERE, no_run_passes_its_bound, open_loops_wait_for_a_person


def a_plan(pick: Pick, state: RunState, name: str) -> Plan:
    """A random plan, usually a valid one."""
    running = state.steps[name].running
    assert running is not None
    for _ in range(5):
        plan = _any_plan(pick, state, [each for each in state.steps if each != name])
        if rarely(pick, 8) or plan_problem(state, name, running, plan) is None:
            return plan
    return Plan()


def _any_plan(pick: Pick, state: RunState, others: list[str]) -> Plan:
    names = [*others, *state.retired, *(f"n{index}" for index in range(3))]
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


class Planning(RandomRun):
    """A run whose planners change its steps, and whose other steps ask for missing ones."""

    def finish(self, name: str, behaviour: str | None = None) -> None:
        running = self.s.steps[name].running
        assert running is not None
        outcome = an_outcome(self.pick, self.s, name, behaviour or self.behaviours.get(name, "random"))
        if isinstance(outcome, str):
            self.do(c.FailAttempt(name, running.attempt, outcome, Usage(cost_usd=0.5), 1.0))
            return
        planner = self.s.graph.steps[name].plans
        plan = a_plan(self.pick, self.s, name) if behaviour is None and (planner or rarely(self.pick, 20)) else Plan()
        if behaviour is None and rarely(self.pick, 4):
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


def a_planned_run(pick: Pick, *, people: bool = True, moves: int = 50, stubborn: bool = False) -> Planning:
    workflow = a_planned_workflow(pick, 4 if stubborn else 6)
    if stubborn:
        off: dict[str, Any] = dict.fromkeys(
            ("rounds_per_loop", "same_finding", "no_change", "oscillation", "chain_depth")
        )
        limits = Limits(**{**off, "rounds_total": pick(4), "errors_in_a_row": 1 + pick(2)})
        bare = tuple(msgspec.structs.replace(step, limits=None) for step in workflow.steps)
        workflow = msgspec.structs.replace(workflow, limits=limits, steps=bare)
    run = Planning(workflow, pick, people=people)
    behaviours = STUBBORN if stubborn else BEHAVIOURS
    run.behaviours = {step.name: one_of(pick, behaviours) for step in workflow.steps}
    run.do(c.StartRun("r", workflow, input={"task": 1}))
    for _ in range(pick(moves)):
        if run.s.ended is None or rarely(pick, 4):
            run.move()
    return run


@given(picks())
@effort(250)
def test_no_run_passes_its_bound_whatever_its_planners_add(pick: Pick) -> None:
    run = a_planned_run(pick, people=False, stubborn=True)
    assert run.rest(3_000)
    no_run_passes_its_bound(run)


@given(picks())
@effort(250)
def test_a_run_that_changes_keeps_all_properties(pick: Pick) -> None:
    run = a_planned_run(pick)
    for holds in EVERYWHERE:
        holds(run)


@given(picks())
@effort(150)
def test_a_run_that_changes_ends(pick: Pick) -> None:
    run = a_planned_run(pick)
    assert drive_to_end(run)
    open_loops_wait_for_a_person(run)
    for holds in EVERYWHERE:
        holds(run)


@given(picks())
@effort(150)
def test_there_are_never_more_steps_than_max_steps(pick: Pick) -> None:
    run = a_planned_run(pick)
    changes = [event for event in run.events if isinstance(event, e.StepsChanged)]
    ever = len(run.workflow.steps) + sum(len(event.added) for event in changes)
    assert ever == run.s.steps_ever <= run.workflow.max_steps
    assert max_attempts(run.s.workflow) is not None
    for loop in run.s.loops.values():
        assert loop.source in (*run.s.steps, HUMAN)
        assert set(loop.shares) <= {*run.s.steps, HUMAN}
