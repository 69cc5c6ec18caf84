"""What holds for every run of every workflow also holds with conditions, repetitions, checks and gates in it."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from hypothesis import given

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.checks import measure
from backedge.core.feedback.rerouting import permanently_skipped
from backedge.core.model import SIDE_MODES, Outcome, Usage
from backedge.core.scheduling.skipping import present_needs
from backedge.core.state.evolve import replay
from backedge.core.workflow.bound import max_attempts
from backedge.core.workflow.checks import Check, Gate
from backedge.core.workflow.definition import Repeat, Step, Workflow
from backedge.core.workflow.graph import Graph
from backedge.core.workflow.limits import Limits
from backedge.core.workflow.validate import problems_of
from tests.core.play import made
from tests.core.strategies import Pick, Tale, a_workflow, an_outcome, effort, one_of, picks, rarely, told_to_the_end
from tests.core.test_properties import open_loops_wait_for_a_person, something_is_always_pending


def shaped(pick: Pick, workflow: Workflow) -> Workflow:
    """The workflow with conditions, repetitions, checks and gates put into it."""
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
class ShapedTale(Tale):
    """A run whose outcomes carry the values that conditions refer to, and whose engine measures."""

    def finish(self, name: str, temper: str | None = None) -> None:
        running = self.s.steps[name].running
        assert running is not None
        said = self._measured(name) if name in self.s.graph.measures else self._said(name, temper)
        if isinstance(said, str):
            self.do(c.FailAttempt(name, running.attempt, said, Usage(cost_usd=0.5), 1.0))
        else:
            self.do(c.FinishAttempt(name, running.attempt, said, 1.0))

    def _said(self, name: str, temper: str | None) -> Outcome | str:
        outcome = an_outcome(self.pick, self.s, name, temper or self.tempers[name])
        if isinstance(outcome, str):
            return outcome
        recorded = made(outcome.made.output, None, (), self.s.graph.values[name]).values
        return msgspec.structs.replace(outcome, made=msgspec.structs.replace(outcome.made, values=recorded))

    def _measured(self, name: str) -> Outcome | str:
        artifacts = {need: self.s.steps[need].artifact for need in present_needs(self.s, name)}
        inputs = {need: artifact.output for need, artifact in artifacts.items() if artifact is not None}
        try:
            return Outcome(made(measure(self.s.graph.measures[name], inputs), None, (), ("",)))
        except ValueError as error:
            return str(error)


def a_shaped_tale(pick: Pick, people: bool, stubborn: bool = False) -> ShapedTale:
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
    tale = ShapedTale(shaped(pick, workflow), pick, people=people)
    tempers = ("raises", "fails", "random", "steady") if stubborn else ("random", "steady", "fails", "raises", "broken")
    tale.tempers = {step.name: one_of(pick, tempers) for step in tale.workflow.steps}
    tale.do(c.StartRun("r", tale.workflow))
    for _ in range(pick(40)):
        if tale.s.ended is None:
            tale.move()
    return tale


PASSING = ("accept", "resolve", "skip", "cancel")
"""Lets everything pass. What is measured stays as it is: said to be resolved, it would be found again."""


@effort(120)
@given(picks())
def test_something_is_always_pending_and_the_end_comes(pick: Pick) -> None:
    tale = a_shaped_tale(pick, people=True)
    assert tale.rest()
    open_loops_wait_for_a_person(tale)
    assert told_to_the_end(tale, wanted=PASSING)
    something_is_always_pending(tale)


@effort(80)
@given(picks())
def test_a_run_is_what_its_events_say(pick: Pick) -> None:
    tale = a_shaped_tale(pick, people=True)
    decoder = msgspec.json.Decoder(e.Event)
    written = [decoder.decode(msgspec.json.encode(event)) for event in tale.events]
    assert replay(written) == tale.s


@effort(120)
@given(picks())
def test_no_run_passes_its_bound(pick: Pick) -> None:
    tale = a_shaped_tale(pick, people=False, stubborn=True)
    assert tale.rest()
    bound = max_attempts(tale.workflow)
    assert bound is not None
    ours = [
        event
        for event in tale.events
        if isinstance(event, e.AttemptStarted) and event.step not in tale.s.graph.measures
    ]
    dropped = sum(isinstance(event, e.AttemptDropped) for event in tale.events)
    assert len(ours) - dropped <= bound, (len(ours), dropped, bound)
    assert tale.s.attempts == len(ours)


@effort(80)
@given(picks())
def test_nothing_of_a_skipped_step_reaches_anybody(pick: Pick) -> None:
    tale = a_shaped_tale(pick, people=True)
    for turn in tale.turns:
        for state, event, _ in turn.passages():
            if isinstance(event, e.AttemptStarted):
                assert not [need for need in event.inputs if state.steps[need].condition_false]
                reworks = event.loops and event.mode not in SIDE_MODES
                assert not reworks or not permanently_skipped(state, event.step), event
