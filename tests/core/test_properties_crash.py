"""A crash at any write changes nothing: what was recorded is enough to reach the same end.

The agents here are functions of their briefing, not of how often they run. So a run that crashed anywhere and continued
has to make the same artifacts as a run without a crash.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any, Literal

import msgspec
from hypothesis import given

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.briefing import brief
from backedge.core.decide import transact
from backedge.core.model import HUMAN, Decision, Feedback, Finding, Kind, Option, Outcome, Severity
from backedge.core.scheduling.pending import CheckInputs, RunAttempt, WakeAt, outcome_of, pending
from backedge.core.state.evolve import replay
from backedge.core.state.loops import question_key
from backedge.core.state.run import RunState
from backedge.core.workflow.definition import Workflow
from backedge.core.workflow.limits import Limits
from backedge.core.workflow.validate import problems_of
from tests.core.play import made
from tests.core.strategies import Pick, a_workflow, effort, one_of, picks

PATIENCE = 60.0
"""Longer than any delay before a retry: time must not affect which steps are ready."""


World = Literal["builds", "judges", "raises", "asks"]
"""What agents do besides their work: nothing, report findings as judges, raise feedback when they finish, or ask one
question while they run and wait for the answer. Not all in one run: if a crash cuts an attempt short, the next attempt
gets the feedback that came meanwhile, and both orders are correct."""
WORLDS: tuple[World, ...] = ("judges", "raises", "asks", "builds")


OPTIONS = (Option("polling"), Option("push"))


class Actors:
    """Agents whose outcomes depend only on the briefing."""

    def __init__(self, seed: int, state: RunState, name: str, world: World) -> None:
        outputs = {step: made.artifact.output for step, made in state.steps.items() if made.artifact is not None}
        briefing = brief(state, name, 0.0, None, outputs)
        findings = sorted(finding.description for finding in briefing.feedback.findings)
        requests = sorted(request.message for request in briefing.feedback.requests)
        facts = [seed, name, briefing.inputs, briefing.previous, findings, requests]
        self.state, self.name, self.mode = state, name, briefing.mode
        self.world = world
        self._number = _number(facts)
        self._fixed_number = _number([seed, name])
        self._asker = list(state.steps)[seed % len(state.steps)]

    def choose(self, n: int) -> int:
        self._number, choice = divmod(self._number, n)
        return choice

    def asks(self) -> Feedback | None:
        """The question that it asks while it runs: always the same, or none."""
        self._number = self._fixed_number
        asks = self.world == "asks" and self.name == self._asker and self.mode == "work"
        return self._feedback() if asks else None

    def _feedback(self) -> Feedback:
        graph = self.state.graph
        legal = [*graph.legal_targets(self.name), HUMAN]
        kind = (Kind.FIX_REQUEST, Kind.CONTEXT_REQUEST, Kind.CONSTRAINT_VIOLATION)[self.choose(3)]
        options = OPTIONS if kind is Kind.CONSTRAINT_VIOLATION else ()
        severity = (Severity.HIGH, Severity.CRITICAL)[self.choose(2)]
        return Feedback(kind, (legal[self.choose(len(legal))],), f"asked by {self.name}", severity, options=options)

    def outcome(self) -> Outcome | None:
        """The outcome; None if the agent breaks."""
        artifact = self.state.steps[self.name].artifact
        before, pointers = artifact.output if artifact else None, self.state.graph.pointers[self.name]
        if self.mode == "answer":
            return Outcome(made(None), answer=self.choose(3))
        if self.mode == "decide":
            return Outcome(made(None), decision=Decision(OPTIONS[self._fixed_number % 2].option))
        if self.choose(20) == 0:
            return None
        if not self.state.graph.is_judge(self.name):
            output = {"a": self.choose(3), "b": self.choose(2)}
            feedback = (self._feedback(),) if self.world == "raises" and self.choose(4) == 0 else ()
            return Outcome(made(output, before, pointers), feedback=feedback)
        if self.world in ("builds", "asks") or self.choose(2):
            return Outcome(made(None, before, pointers), verdict="pass")
        phases = ((), ("planning",), ("design", "code"))[self.choose(3) if self.world == "raises" else 0]
        finding = Finding(f"defect {self.choose(4)}", affected_phase=phases, blocking=self.choose(4) == 0)
        return Outcome(made(None, before, pointers), verdict="fail", findings=(finding,))


def _number(facts: list[Any]) -> int:
    return int.from_bytes(sha256(msgspec.json.encode(facts, order="sorted")).digest()[:8])


class Run:
    """A run that can crash between two appends."""

    def __init__(self, workflow: Workflow, seed: int, room: int, world: World) -> None:
        self.seed, self.room, self.now, self.world = seed, room, 1_000.0, world
        self.appends: list[tuple[e.Event, ...]] = []
        self.state: RunState | None = None
        self.asked: set[tuple[str, int]] = set()
        self.do(c.StartRun("r", workflow))

    @property
    def s(self) -> RunState:
        assert self.state is not None
        return self.state

    def do(self, command: c.Command, room: int | None = None) -> None:
        self.now += PATIENCE
        # An attempt that waits for a loop does not occupy a slot.
        working = [name for name in self.state.steps if self._works(name)] if self.state else []
        free = max(0, self.room - len(working)) if room is None else room
        events, self.state = transact(self.state, command, self.now, free)
        self.appends.append(events)

    def cut(self, after: int) -> None:
        """Crash after this many appends, and restart: running attempts are in doubt, and run again."""
        self.appends = self.appends[:after]
        self.state = replay(event for events in self.appends for event in events)
        self.asked = set()
        for name, step in list(self.s.steps.items()):
            if step.running is not None:
                self.do(c.DropAttempt(name, step.running.attempt, "in doubt"), room=0)

    def finish(self) -> Run:
        for _ in range(600):
            effects = pending(self.s, self.now)
            working = [effect.step for effect in effects if isinstance(effect, RunAttempt) and self._works(effect.step)]
            checks = [effect.step for effect in effects if isinstance(effect, CheckInputs)]
            if checks and len(working) < self.room:
                self.do(c.ReportInputCheck(checks[0]), room=1)
            elif working:
                self._work(working[0])
            else:
                wakes = [effect.time for effect in effects if isinstance(effect, WakeAt)]
                self.now = max(self.now, min(wakes, default=self.now))
                self.do(c.Proceed())
                if not self.appends[-1] and not any(
                    isinstance(each, CheckInputs) for each in pending(self.s, self.now)
                ):
                    return self
        raise AssertionError("the run does not end")

    def _works(self, name: str) -> bool:
        running = self.s.steps[name].running
        return running is not None and not running.awaits

    def _work(self, name: str) -> None:
        running = self.s.steps[name].running
        assert running is not None
        question = Actors(self.seed, self.s, name, self.world).asks()
        if question is not None and (name, running.attempt) not in self.asked:
            self.asked.add((name, running.attempt))
            self.do(c.RaiseFeedback(name, question, running.attempt))
            loop = self.s.steps[name].loop_by_question.get(question_key(question))
            if loop is not None:
                self.do(c.BeginWait(loop, name, running.attempt))
            return
        outcome = Actors(self.seed, self.s, name, self.world).outcome()
        if outcome is None:
            self.do(c.FailAttempt(name, running.attempt, "broke"))
        else:
            self.do(c.FinishAttempt(name, running.attempt, outcome))

    def end(self) -> dict[str, Any]:
        if self.s.ended is None:
            # After a crash, an attempt may have to wait for a decision that it did not need before.
            return {"outcome": "waiting"}
        return {
            "outcome": outcome_of(self.s),
            "artifacts": {name: made.artifact and made.artifact.digest for name, made in self.s.steps.items()},
            "findings": sorted((f.found_by, f.finding.description, f.status) for f in self.s.findings.values()),
            "rounds": self.s.rounds,
            "loops": len(self.s.closed_loops),
        }


def a_safe_workflow(pick: Pick) -> Workflow:
    """A workflow whose steps may run again, and whose limits do not count attempts lost in a crash."""
    workflow = a_workflow(pick, 6)
    steps = tuple(msgspec.structs.replace(step, on_doubt="rerun", limits=None) for step in workflow.steps)
    limits = msgspec.structs.replace(
        workflow.limits, attempts=None, cost_usd=None, tokens=None, wall_clock=None, response_timeout=None
    )
    # A breach waits for a person: with another policy, attempts that ran at the same time could be lost in the crash.
    safe = msgspec.structs.replace(workflow, steps=steps, limits=limits, on_breach="manual", routes=())
    return msgspec.structs.replace(safe, limits=Limits(response_timeout=None)) if problems_of(safe) else safe


def crashed_and_uncrashed(pick: Pick) -> tuple[Run, Run]:
    workflow, seed, world = a_safe_workflow(pick), pick(1000), one_of(pick, WORLDS)
    room = one_of(pick, (1, 2, 3)) if world == "builds" else 1
    uncrashed = Run(workflow, seed, room, world).finish()
    crashed = Run(workflow, seed, room, world).finish()
    crashed.cut(1 + pick(len(crashed.appends)))
    return crashed.finish(), uncrashed


@given(picks())
@effort(150)
def test_a_crash_at_any_write_changes_nothing(pick: Pick) -> None:
    crashed, uncrashed = crashed_and_uncrashed(pick)
    assert crashed.end() == uncrashed.end()
