"""The properties of all runs also hold with conditions, repetitions, checks and gates."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from hypothesis import given

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.checks import measure
from backedge.core.model import SIDE_MODES, Outcome, Usage
from backedge.core.scheduling.skipping import present_needs
from backedge.core.scheduling.staleness import permanently_skipped
from backedge.core.state.evolve import replay
from backedge.core.workflow.bound import max_attempts
from backedge.core.workflow.checks import Check, Gate
from backedge.core.workflow.definition import Repeat, Step, Workflow
from backedge.core.workflow.graph import Graph
from backedge.core.workflow.limits import Limits
from backedge.core.workflow.validate import problems_of
from tests.core.play import made
from tests.core.strategies import Pick, RandomRun, a_workflow, an_outcome, drive_to_end, effort, one_of, picks, rarely
from tests.core.test_properties import open_loops_wait_for_a_person, something_is_always_pending


def shaped(pick: Pick, workflow: Workflow) -> Workflow:
    """The workflow with random conditions, repetitions, checks and gates."""
    graph = Graph(workflow)
    steps = tuple(_shaped(pick, graph, step) for step in workflow.steps)
    producers = [step.name for step in workflow.steps if not step.judges]
    checks: tuple[Check, ...] = ()
    if len(producers) > 1 and pick(2):
        first, second = producers[pick(len(producers) - 1)], producers[-1]
        authority = (first,) if pick(2) else ()
        places = (f"{first}:/a", f"{second}:/a")
        checks = (Check("c", places, resolve="authority" if authority else "consensus", authority=authority),)
    gates: tuple[Gate, ...] = ()
    if pick(2):
        subject = one_of(pick, producers)
        legal = [name for name in producers if name == subject or name in graph.upstream[subject]]
        requests = tuple((name, f"mend {name}") for name in legal[:2]) if pick(2) else ()
        gates = (Gate("g", f"{subject}:/b", bound="at_least", threshold=1, requests=requests),)
    made = msgspec.structs.replace(workflow, steps=steps, checks=checks, gates=gates)
    assert not problems_of(made), problems_of(made)
    return made


def _shaped(pick: Pick, graph: Graph, step: Step) -> Step:
    upstream = sorted(graph.upstream[step.name])
    if upstream and rarely(pick, 3):
        text = one_of(
            pick, (f"{one_of(pick, upstream)}:/a > {pick(3)}", f"not {one_of(pick, upstream)}:/b", "open_loops == 0")
        )
        step = msgspec.structs.replace(step, when=(text,))
    if not step.judges and rarely(pick, 3):
        to = one_of(pick, ("", *graph.legal_targets(step.name)))
        step = msgspec.structs.replace(step, repeat=Repeat((f"{step.name}:/a >= {pick(4)}",), 1 + pick(3), to))
    return step


@dataclass
class ShapedRun(RandomRun):
    """A run whose outcomes have the values that conditions refer to, and whose checks and gates are executed."""

    def finish(self, name: str, behaviour: str | None = None) -> None:
        running = self.s.steps[name].running
        assert running is not None
        outcome = self._measured(name) if name in self.s.graph.engine_judges else self._outcome(name, behaviour)
        if isinstance(outcome, str):
            self.do(c.FailAttempt(name, running.attempt, outcome, Usage(cost_usd=0.5), 1.0))
        else:
            self.do(c.FinishAttempt(name, running.attempt, outcome, 1.0))

    def _outcome(self, name: str, behaviour: str | None) -> Outcome | str:
        outcome = an_outcome(self.pick, self.s, name, behaviour or self.behaviours[name])
        if isinstance(outcome, str):
            return outcome
        recorded = made(outcome.made.output, None, (), self.s.graph.values[name]).values
        return msgspec.structs.replace(outcome, made=msgspec.structs.replace(outcome.made, values=recorded))

    def _measured(self, name: str) -> Outcome | str:
        artifacts = {need: self.s.steps[need].artifact for need in present_needs(self.s, name)}
        inputs = {need: artifact.output for need, artifact in artifacts.items() if artifact is not None}
        try:
            return Outcome(made(measure(self.s.graph.engine_judges[name], inputs), None, (), ("",)))
        except ValueError as error:
            return str(error)


def a_shaped_run(pick: Pick, people: bool, stubborn: bool = False) -> ShapedRun:
    workflow = a_workflow(pick, 6)
    if stubborn:
        limits = Limits(
            rounds_total=pick(4),
            rounds_per_loop=None,
            same_finding=None,
            no_change=None,
            oscillation=None,
            errors_in_a_row=1 + pick(2),
        )
        plain = tuple(msgspec.structs.replace(step, limits=None) for step in workflow.steps)
        workflow = msgspec.structs.replace(workflow, limits=limits, steps=plain)
    run = ShapedRun(shaped(pick, workflow), pick, people=people)
    behaviours = (
        ("raises", "fails", "random", "steady") if stubborn else ("random", "steady", "fails", "raises", "broken")
    )
    run.behaviours = {step.name: one_of(pick, behaviours) for step in run.workflow.steps}
    run.do(c.StartRun("r", run.workflow))
    for _ in range(pick(40)):
        if run.s.ended is None:
            run.move()
    return run


PASSING = ("accept", "resolve", "skip", "cancel")
"""Choices that let everything pass. `accept` comes first: a check or gate that is resolved by hand finds the same again."""


@effort(120)
@given(picks())
def test_something_is_always_pending_and_the_run_ends(pick: Pick) -> None:
    run = a_shaped_run(pick, people=True)
    assert run.rest()
    open_loops_wait_for_a_person(run)
    assert drive_to_end(run, wanted=PASSING)
    something_is_always_pending(run)


@effort(80)
@given(picks())
def test_replaying_the_events_gives_the_live_state(pick: Pick) -> None:
    run = a_shaped_run(pick, people=True)
    decoder = msgspec.json.Decoder(e.Event)
    written = [decoder.decode(msgspec.json.encode(event)) for event in run.events]
    assert replay(written) == run.s


@effort(120)
@given(picks())
def test_no_run_passes_its_bound(pick: Pick) -> None:
    run = a_shaped_run(pick, people=False, stubborn=True)
    assert run.rest()
    bound = max_attempts(run.workflow)
    assert bound is not None
    ours = [
        event
        for event in run.events
        if isinstance(event, e.AttemptStarted) and event.step not in run.s.graph.engine_judges
    ]
    dropped = sum(isinstance(event, e.AttemptDropped) for event in run.events)
    assert len(ours) - dropped <= bound, (len(ours), dropped, bound)
    assert run.s.attempts == len(ours)


@effort(80)
@given(picks())
def test_nothing_of_a_skipped_step_reaches_other_steps(pick: Pick) -> None:
    run = a_shaped_run(pick, people=True)
    for result in run.results:
        for state, event, _ in result.transitions():
            if isinstance(event, e.AttemptStarted):
                assert not [need for need in event.inputs if state.steps[need].condition_false]
                reworks = event.loops and event.mode not in SIDE_MODES
                assert not reworks or not permanently_skipped(state, event.step), event
