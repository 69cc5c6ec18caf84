"""Judges that contradict each other, steps that contest, people who decide at random: every dispute ends.

The workflows are small and the findings few, so that the same findings meet again and again. The general properties
rarely get that far.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given

from backedge.core import commands as c
from backedge.core.findings.ledger import UNSETTLED
from backedge.core.model import HUMAN, Answer, Decision, Finding, FindingResolution, Outcome
from backedge.core.state.evolve import replay
from backedge.core.workflow.definition import Policy, Step, Workflow
from backedge.core.workflow.limits import Limits
from backedge.core.workflow.validate import problems_of
from tests.core.play import ask, made
from tests.core.strategies import Pick, RandomRun, drive_to_end, effort, one_of, picks, rarely, some_of
from tests.core.test_properties import (
    loops_move_along_the_table,
    no_finding_is_lost,
    open_loops_wait_for_a_person,
    something_is_always_pending,
)

DEMANDS = (
    Finding("more", path="/a"),
    Finding("less", path="/a"),
    Finding("other", path="/b"),
    Finding("wrong plan", path="/a", affected_phase=("planning",)),
    Finding("nowhere"),
)


def a_contest(pick: Pick) -> Workflow:
    """One step under several judges, with a plan before it and a step after it."""
    judges = [
        Step(
            f"j{index}",
            judges=("code",),
            needs=("ship",) if rarely(pick, 5) else (),
            complete=bool(pick(2)),
            agents=(HUMAN,) if rarely(pick, 6) else (),
            when=("plan:/a > 0",) if rarely(pick, 6) else (),
        )
        for index in range(1 + pick(3))
    ]
    steps = (
        Step("plan", phase="planning"),
        Step("code", phase="code", needs=("plan",), when=("plan:/a < 2",) if rarely(pick, 6) else ()),
        Step("ship", phase="code", needs=("code",)),
        *judges,
    )
    policies: tuple[Policy, ...] = ("rework", "defer", "ask")
    limits = Limits(
        rounds_total=30,
        rounds_per_loop=one_of(pick, (9, 3, 1)),
        same_finding=one_of(pick, (9, 3)),
        oscillation=one_of(pick, (9, 2)),
        no_change=one_of(pick, (9, 2)),
    )
    new = one_of(pick, policies)
    workflow = Workflow(
        "w",
        steps,
        limits=limits,
        on_breach=one_of(pick, ("manual", "manual", "manual", "skip", "replan")),
        new_findings=tuple((finding.severity, new) for finding in DEMANDS[:1]),
        judges_in_order=rarely(pick, 5),
    )
    assert not problems_of(workflow), problems_of(workflow)
    return workflow


@dataclass
class Contest(RandomRun):
    """A run whose agents and people disagree, until they become steady."""

    steady: bool = False

    def finish(self, name: str, behaviour: str | None = None) -> None:
        running = self.s.steps[name].running
        assert running is not None
        outcome = self._outcome(name, steady=behaviour is not None)
        self.do(c.FinishAttempt(name, running.attempt, outcome, 1.0))

    def _outcome(self, name: str, steady: bool) -> Outcome:
        pick, step = self.pick, self.s.steps[name]
        assert step.running is not None
        before = step.artifact.output if step.artifact else None
        if step.running.mode == "answer":
            return Outcome(made(None), answer="so")
        if step.running.mode == "decide":
            return Outcome(made(None), decision=Decision("polling"))
        if self.s.graph.is_judge(name):
            return Outcome(made(None), verdict="pass") if steady else self._verdict(name)
        output = {"a": step.attempts % 3, "b": pick(2)} if not steady else {"a": 1, "b": 0}
        statuses: tuple[Answer, ...] = ("fixed", "contested")
        claims = [
            FindingResolution(f"F-{id}", one_of(pick, statuses)) for id in some_of(pick, step.running.to_address, 2)
        ]
        raised = (ask(HUMAN, message="which?"),) if not steady and rarely(pick, 8) else ()
        graph = self.s.graph
        result = made(output, before, graph.pointers[name], graph.values[name])
        return Outcome(result, resolutions=() if steady else tuple(claims), feedback=raised)

    def _verdict(self, name: str) -> Outcome:
        pick = self.pick
        findings = some_of(pick, DEMANDS, 3)
        answers: tuple[Answer, ...] = ("fixed", "not_fixed", "withdrawn", "duplicate")
        to_verify = [f"F-{id}" for id in self.s.steps[name].open_findings]
        claims = (
            tuple(FindingResolution(each, one_of(pick, answers)) for each in to_verify) if to_verify and pick(2) else ()
        )
        fails = bool(findings) or any(claim.status == "not_fixed" for claim in claims)
        return Outcome(made(None), verdict="fail" if fails else "pass", findings=findings, resolutions=claims)

    def person(self, choice: int) -> None:
        open_ones = tuple(self.s.escalations)
        if open_ones and self.pick(4):
            packet = self.s.escalations[one_of(self.pick, open_ones)]
            continuing = [each for each in packet.options if each != "cancel"] or packet.options
            self.decide(packet.id, one_of(self.pick, continuing))
        else:
            super().person(choice)

    def decide(self, escalation: str, choice: str | None = None) -> None:
        packet = self.s.escalations[escalation]
        if packet.step is None or packet.step not in self.s.graph.steps or not self.s.graph.is_judge(packet.step):
            super().decide(escalation, choice)
            return
        verdict = "pass" if self.steady else one_of(self.pick, ("pass", "fail"))
        choice = choice or one_of(self.pick, packet.options)
        self.do(c.Decide(escalation, choice, option=verdict, note=one_of(self.pick, ("more", "less"))))


def contested(pick: Pick) -> Contest:
    run = Contest(a_contest(pick), pick)
    run.do(c.StartRun("r", run.workflow))
    for _ in range(10 + pick(60)):
        if run.s.ended is None:
            run.move()
    return run


@effort(150)
@given(picks())
def test_every_dispute_ends_and_leaves_nothing_open(pick: Pick) -> None:
    run = contested(pick)
    assert run.rest(behaviour="steady")
    open_loops_wait_for_a_person(run)
    run.steady = True
    first = one_of(pick, ("resolve", "accept", "skip"))
    assert drive_to_end(run, wanted=(first, "resolve", "accept", "skip", "continue", "cancel"))
    something_is_always_pending(run)
    no_finding_is_lost(run)
    loops_move_along_the_table(run)
    ended = run.s.ended
    assert ended is not None and not run.s.loops and not run.s.escalations
    if ended.outcome not in ("cancelled", "failed"):
        unsettled = {each.name: each.status for each in run.s.findings.values() if each.status in UNSETTLED}
        assert not unsettled
    assert replay(run.events) == run.s
