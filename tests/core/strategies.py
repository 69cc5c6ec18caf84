"""Random workflows and random runs of them. Every choice is one call of `pick`, and 0 is always the simplest one.

The driver does what agents and people might do, in any order, and records each command with the states before and after
it. The properties are statements about such a record.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
from hypothesis import settings
from hypothesis import strategies as st

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.decide import transact
from backedge.core.errors import IllegalCommand
from backedge.core.escalation.options import asks_verdict
from backedge.core.evidence.values import NO_EVIDENCE, Evidence, RestoredFiles
from backedge.core.model import (
    HUMAN,
    Answer,
    Decision,
    Feedback,
    Finding,
    FindingResolution,
    Kind,
    Option,
    Outcome,
    Severity,
    Usage,
)
from backedge.core.scheduling.pending import (
    CheckInputs,
    RestoreFiles,
    RunAttempt,
    WakeAt,
    files_to_restore,
    outcome_of,
    pending,
)
from backedge.core.state.evolve import evolve
from backedge.core.state.run import RunState, StepState
from backedge.core.value import replace
from backedge.core.workflow.build import with_approvers
from backedge.core.workflow.definition import DEFAULT_PHASES, PassRule, Policy, Step, Thresholds, Workflow
from backedge.core.workflow.limits import NAMES, Limits
from backedge.core.workflow.notify import EXPIRY_CHOICES, Channel, Expiry
from backedge.core.workflow.profiles import PROFILES
from backedge.core.workflow.routes import RouteRule
from backedge.core.workflow.validate import problems_of
from tests.core.play import made

T = TypeVar("T")
Pick = Callable[[int], int]
"""`pick(n)` returns one of 0 … n-1."""

FACTOR = 20 if os.environ.get("BACKEDGE_HYPOTHESIS") == "deep" else 1


def effort(examples: int) -> settings:
    """Settings with this many examples; twenty times as many in a deep run."""
    return settings(max_examples=examples * FACTOR)


@st.composite
def picks(draw: st.DrawFn) -> Pick:
    def pick(n: int) -> int:
        return draw(st.integers(0, n - 1)) if n > 1 else 0

    return pick


def one_of(pick: Pick, options: Sequence[T]) -> T:
    return options[pick(len(options))]


def some_of(pick: Pick, options: Sequence[T], most: int) -> tuple[T, ...]:
    if not options:
        return ()
    return tuple(dict.fromkeys(one_of(pick, options) for _ in range(pick(most + 1))))


def rarely(pick: Pick, one_in: int) -> bool:
    return pick(one_in) == one_in - 1


# Workflows

_ALL_OFF: dict[str, Any] = dict.fromkeys(
    name for name in NAMES if getattr(Limits(), name) and name != "errors_in_a_row"
)


_LONE_BOUNDS: tuple[dict[str, Any], ...] = (
    {"rounds_total": 1},
    {"rounds_total": 3},
    {"rounds_per_step": 1},
    {"rounds_per_pair": 1},
)


def a_limits(pick: Pick) -> Limits:
    match pick(8):
        case 0:
            return Limits()
        case 1:
            return Limits(**{**_ALL_OFF, "rounds_total": pick(4), "errors_in_a_row": 1 + pick(2)})
        case 2:
            return Limits(**{**_ALL_OFF, "rounds_per_step": pick(3), "errors_in_a_row": 1 + pick(2)})
        case 3:
            return Limits(**{**_ALL_OFF, "rounds_per_pair": pick(3), "errors_in_a_row": 1 + pick(2)})
        case 4:
            return Limits(**{**_ALL_OFF, "attempts": 1 + pick(24), "errors_in_a_row": one_of(pick, (None, 2))})
        case 5:
            return Limits(
                rounds_total=one_of(pick, (10, 1, 30)),
                cost_usd=one_of(pick, (None, 3.0)),
                tokens=one_of(pick, (None, 40)),
                wall_clock=one_of(pick, (None, 12.0)),
                rounds_per_loop=one_of(pick, (3, 0, 1, None)),
            )
        case 6:
            return Limits(
                rounds_per_loop=one_of(pick, (3, None)),
                same_finding=one_of(pick, (3, 1, None)),
                failures_in_a_row=one_of(pick, (None, 1, 2)),
                no_change=one_of(pick, (2, 0, 1, None)),
                oscillation=one_of(pick, (2, 0, 1, None)),
                diverging=bool(pick(2)),
                recoveries_total=one_of(pick, (None, 0, 1)),
                chain_depth=one_of(pick, (3, 1, None)),
                response_timeout=one_of(pick, (600.0, 5.0, None)),
            )
        case _:
            return one_of(pick, tuple(PROFILES.values())).limits


def a_workflow(pick: Pick, most: int = 8) -> Workflow:
    """Any valid definition: a random graph with judges of several kinds, under random rules."""
    ranks: dict[str, int] = {}
    judges: set[str] = set()
    steps: list[Step] = []
    for index in range(1 + pick(most)):
        earlier = list(ranks)
        producers = [name for name in earlier if name not in judges]
        if producers and pick(5) >= 3:
            steps.append(_a_judge(pick, f"j{index}", producers, ranks))
            judges.add(steps[-1].name)
        else:
            steps.append(_a_producer(pick, f"s{index}", earlier, ranks))
    steps = with_approvers(steps)
    profile = one_of(pick, ("default", "bmad", "ai-sdlc", "tight-loop", "asp", "reactree"))
    defaults = PROFILES[profile]
    policies: tuple[Policy, ...] = ("rework", "defer", "ask")
    workflow = Workflow(
        "w",
        tuple(steps),
        profile=profile,
        scope="any" if defaults.scope == "any" or rarely(pick, 3) else "upstream",
        routes=(*((RouteRule(HUMAN, ("missing",)),) if rarely(pick, 4) else ()), *defaults.routes),
        limits=a_limits(pick),
        on_breach=one_of(pick, ("manual", "manual", "error", "skip", "replan")),
        new_findings=tuple((severity, one_of(pick, policies)) for severity in Severity),
        judges_in_order=defaults.judges_in_order or rarely(pick, 4),
        nearest_phase=defaults.nearest_phase,
        agreement=one_of(pick, ("all", "first", "authority")),
        authority=(one_of(pick, steps).name,),
        on_worse=one_of(pick, ("keep", "rollback")),
        notify=(Channel("x", remind=(20.0, 90.0)),) if rarely(pick, 3) else (),
        expire=an_expiry(pick) if rarely(pick, 3) else None,
    )
    if problems_of(workflow):
        # These limits do not bound the run: use the defaults.
        workflow = msgspec.structs.replace(workflow, limits=Limits(), steps=tuple(map(_without_limits, steps)))
    assert not problems_of(workflow), problems_of(workflow)
    return workflow


def an_expiry(pick: Pick) -> Expiry:
    """What happens to questions that nobody answers."""
    return Expiry(60.0, one_of(pick, EXPIRY_CHOICES), one_of(pick, (Expiry(1.0, "skip").only, tuple(Severity))))


def with_lone_bound(pick: Pick, workflow: Workflow) -> Workflow:
    """The workflow with one limit only: nothing else ends its runs."""
    limits = Limits(**{**_ALL_OFF, **one_of(pick, _LONE_BOUNDS), "errors_in_a_row": 1 + pick(2)})
    return msgspec.structs.replace(workflow, limits=limits, steps=tuple(map(_without_limits, workflow.steps)))


def _without_limits(step: Step) -> Step:
    return msgspec.structs.replace(step, limits=None)


def _a_producer(pick: Pick, name: str, earlier: list[str], ranks: dict[str, int]) -> Step:
    needs = some_of(pick, earlier, 3)
    lowest = max((ranks[need] for need in needs), default=0)
    rank = min(lowest + pick(2), len(DEFAULT_PHASES) - 1)
    ranks[name] = rank
    return Step(
        name,
        phase=DEFAULT_PHASES[rank],
        needs=needs,
        agents=one_of(pick, ((), ("weak", "strong"))),
        on_doubt=one_of(pick, ("rerun", "ask")),
        checked=bool(needs) and rarely(pick, 5),
        reads=((needs[0], ("/a",)),) if needs and rarely(pick, 4) else (),
        approval="human" if rarely(pick, 8) else None,
        thresholds=Thresholds(confidence=0.5) if rarely(pick, 6) else None,
        limits=a_limits(pick) if rarely(pick, 8) else None,
    )


def _a_judge(pick: Pick, name: str, producers: list[str], ranks: dict[str, int]) -> Step:
    first = one_of(pick, producers)
    ranks[name] = ranks[first]
    low = [other for other in ranks if other not in (name, first) and ranks[other] <= ranks[first]]
    second = [other for other in low if other in producers]
    subjects = (first, one_of(pick, second)) if second and rarely(pick, 4) else (first,)
    needs = some_of(pick, low, 2) if pick(2) else ()
    rules = (PassRule("ai-sdlc"), PassRule("asp-design"), PassRule("asp-code"), PassRule(at_most=(("high", 1),)))
    return Step(
        name,
        needs=needs,
        judges=subjects,
        tests=bool(pick(2)),
        complete=bool(pick(2)),
        agents=one_of(pick, ((), ("weak", "strong"))),
        passes_if=one_of(pick, rules) if rarely(pick, 4) else None,
        on_doubt=one_of(pick, ("rerun", "ask")),
        checked=rarely(pick, 8),
        reads=((first, ("/a",)),) if rarely(pick, 6) else (),
        limits=a_limits(pick) if rarely(pick, 5) else None,
        on_worse=one_of(pick, (None, None, None, "keep", "rollback")),
    )


# Outcomes and feedback


def an_output(pick: Pick) -> Any:
    return {"a": pick(3), "b": pick(2)}


def a_finding(pick: Pick) -> Finding:
    return Finding(
        description=f"defect {pick(3)}",
        severity=one_of(pick, (Severity.HIGH, Severity.CRITICAL, Severity.MEDIUM, Severity.LOW)),
        blocking=rarely(pick, 5),
        category=one_of(pick, ("", "architecture", "missing_requirement")),
        affected_phase=one_of(
            pick, ((), ("planning",), ("research",), ("design", "planning"), ("code",), ("test", "code"))
        ),
        path=one_of(pick, (None, "/a", "/b")),
    )


def a_feedback(pick: Pick, state: RunState) -> Feedback:
    targets = [*state.graph.steps, HUMAN]
    to = tuple(one_of(pick, targets) for _ in range(1 + pick(2)))
    if rarely(pick, 12):
        to = one_of(pick, ((), ("unknown",)))
    return Feedback(
        kind=one_of(pick, tuple(Kind)),
        to=to,
        message=one_of(pick, ("it does not fit", "say more", "")) if rarely(pick, 8) else "it does not fit",
        severity=one_of(pick, (Severity.HIGH, Severity.CRITICAL, Severity.LOW)),
        blocking=rarely(pick, 4),
        suggested_fix=one_of(pick, (None, "fix it")),
        options=_some_options(pick, state),
    )


def _some_options(pick: Pick, state: RunState) -> tuple[Option, ...]:
    match pick(4):
        case 0 | 1:
            return ()
        case 2:
            return (Option("polling"), Option("push"))
        case _:
            rework = some_of(pick, tuple(state.steps), 2)
            return (Option("polling", rework=rework), Option("push", accept=True))


def _a_decision(pick: Pick, behaviour: str) -> Decision | None:
    """The option that a step prefers, which may be the same as that of the others."""
    if behaviour == "nonsense" or (behaviour == "random" and rarely(pick, 6)):
        return one_of(pick, (None, Decision("neither"), Decision("")))
    return Decision(one_of(pick, ("polling", "push")), one_of(pick, ("", "it is cheap")))


def an_outcome(pick: Pick, state: RunState, name: str, behaviour: str) -> Outcome | str:
    """The outcome that an agent with this behaviour reports for its running attempt; an error text if it breaks."""
    step = state.steps[name]
    running = step.running
    assert running is not None
    usage = Usage(cost_usd=float(pick(2)), tokens_in=pick(5))
    if behaviour == "broken" or (behaviour == "random" and rarely(pick, 8)):
        return "the agent broke"
    before = step.artifact.output if step.artifact else None
    pointers = state.graph.pointers[name]
    raised = (behaviour == "random" and rarely(pick, 5)) or behaviour == "raises"
    feedback = tuple(a_feedback(pick, state) for _ in range(1 + pick(2))) if raised else ()
    if running.mode == "answer":
        answer = None if behaviour == "random" and rarely(pick, 6) else {"is": pick(2)}
        return Outcome(made(None), answer=answer, feedback=feedback, usage=usage)
    if running.mode == "decide":
        return Outcome(made(None), decision=_a_decision(pick, behaviour), feedback=feedback, usage=usage)
    if not state.graph.is_judge(name):
        claims = tuple(
            FindingResolution(f"F-{id}", one_of(pick, ("fixed", "contested")))
            for id in some_of(pick, running.to_address, 2)
        )
        if behaviour == "nonsense":
            claims = (FindingResolution("F-99", "withdrawn"),)
        output = {"a": 0, "b": 0} if behaviour == "steady" else an_output(pick)
        output = {"a": running.attempt, "b": 0} if behaviour == "improves" else output
        sure = one_of(pick, (1.0, 0.1, None)) if state.graph.steps[name].thresholds is not None else None
        return Outcome(made(output, before, pointers), "", None, (), claims, feedback, usage=usage, confidence=sure)
    return _a_verdict(pick, step, behaviour, Outcome(made(None, before, pointers), feedback=feedback, usage=usage))


def _a_verdict(pick: Pick, step: StepState, behaviour: str, blank: Outcome) -> Outcome:
    open_ones = [f"F-{id}" for id in step.open_findings]
    words = {
        "steady": ("pass",),
        "fails": ("fail",),
        "nonsense": (None, "pass"),
        "worse": ("fail", "fail", "pass"),
    }.get(behaviour, ("pass", "fail", "fail", "needs_improvement"))
    word = one_of(pick, words)
    findings = tuple(a_finding(pick) for _ in range(1 + pick(2))) if word != "pass" else ()
    if behaviour == "worse" and word == "fail":
        findings = tuple(replace(a_finding(pick), description=f"{step.verdicts}.{n}") for n in range(1 + pick(4)))
    if behaviour == "nonsense":
        findings = (Finding("defect", affected_phase=("nowhere",)),)
    answers: tuple[Answer, ...] = ("fixed", "not_fixed", "withdrawn", "duplicate")
    claims: tuple[FindingResolution, ...] = ()
    if behaviour not in ("steady", "nonsense") and open_ones and pick(2):
        claims = tuple(FindingResolution(name, one_of(pick, answers)) for name in some_of(pick, open_ones, 2))
        findings = findings if pick(3) else ()
    summary = one_of(pick, ("", "it is not good"))
    return msgspec.structs.replace(blank, verdict=word, findings=findings, resolutions=claims, summary=summary)


# Runs


@dataclass(frozen=True)
class CommandResult:
    """One command, with its events and the states before and after it."""

    command: c.Command
    now: float
    room: int
    before: RunState | None
    events: tuple[e.Event, ...]
    after: RunState | None
    illegal: IllegalCommand | None = None

    def transitions(self) -> Iterator[tuple[RunState, e.Event, RunState]]:
        """Each event with the states before and after it, except the first event of a run."""
        state = self.before
        for event in self.events:
            following = evolve(state, event)
            if state is not None:
                yield state, event, following
            state = following


@dataclass
class RandomRun:
    """A run, recorded command by command."""

    workflow: Workflow
    pick: Pick
    people: bool = True
    behaviours: dict[str, str] = field(default_factory=dict)
    results: list[CommandResult] = field(default_factory=list)
    now: float = 1_000.0
    state: RunState | None = None

    @property
    def s(self) -> RunState:
        assert self.state is not None
        return self.state

    @property
    def events(self) -> list[e.Event]:
        return [event for result in self.results for event in result.events]

    def do(self, command: c.Command, room: int | None = None) -> CommandResult:
        if room is None:
            room = max(0, one_of(self.pick, (3, 1, 2, 0)) - (self.state.busy if self.state else 0))
        if isinstance(command, c.ReportInputCheck):
            room = max(1, room)
        try:
            events, after = transact(self.state, command, self.now, room)
        except IllegalCommand as error:
            result = CommandResult(command, self.now, room, self.state, (), self.state, error)
        else:
            result = CommandResult(command, self.now, room, self.state, events, after)
            self.state = after
        self.results.append(result)
        return result

    def finish(self, name: str, behaviour: str | None = None) -> None:
        running = self.s.steps[name].running
        assert running is not None
        outcome = an_outcome(self.pick, self.s, name, behaviour or self.behaviours[name])
        if isinstance(outcome, str):
            self.do(c.FailAttempt(name, running.attempt, outcome, Usage(cost_usd=0.5), 1.0))
        else:
            self.do(c.FinishAttempt(name, running.attempt, outcome, 1.0, evidence=self.evidence(name)))

    def evidence(self, name: str) -> Evidence:
        """What backedge sees of a producer in a run with rollbacks: its files, if it has some."""
        if name in self.s.graph.judges or not self.s.graph.rolls_back or not self.pick(2):
            return NO_EVIDENCE
        return Evidence(one_of(self.pick, ("", "other")), tree=f"t{self.pick(3)}", files=("a.py",))

    def restore(self, effect: RestoreFiles) -> None:
        """Report the files of a rollback: restored, or edited by somebody."""
        trouble = one_of(
            self.pick, (RestoredFiles(), RestoredFiles(edited=("a.py",)), RestoredFiles(problem="the disk is full"))
        )
        seen = replace(trouble, evidence=Evidence(tree=f"t{self.pick(3)}"))
        self.do(c.ReportRestored(dict.fromkeys(effect.undo, seen)))

    # Each of these makes one random move

    def move(self) -> None:
        busy = [name for name, step in self.s.steps.items() if step.running is not None]
        checks = [effect.step for effect in pending(self.s, self.now) if isinstance(effect, CheckInputs)]
        restore = files_to_restore(self.s)
        self.now += one_of(self.pick, (1.0, 0.0, 40.0, -1.0))
        choice = self.pick(16)
        if choice < 9:
            if restore is not None:
                self.restore(restore)
            elif busy:
                self.finish(one_of(self.pick, busy))
            elif checks:
                self.check(one_of(self.pick, checks))
            else:
                self.do(c.Proceed())
        elif choice == 9 and checks:
            self.check(one_of(self.pick, checks))
        elif choice in (10, 11) and busy:
            self.raise_while_running(one_of(self.pick, busy))
        elif choice == 12 and busy:
            self.drop(one_of(self.pick, busy))
        elif self.people:
            self.person(choice)
        else:
            self.do(c.Proceed())

    def check(self, name: str) -> None:
        needs = self.s.graph.needs[name]
        problems = tuple((need, a_finding(self.pick)) for need in some_of(self.pick, needs, 2)) if self.pick(2) else ()
        self.do(c.ReportInputCheck(name, problems))

    def raise_while_running(self, name: str) -> None:
        running = self.s.steps[name].running
        assert running is not None
        mine = [loop.id for loop in self.s.loops.values() if loop.source == name]
        if mine and self.pick(3) == 0:
            self.do(c.BeginWait(one_of(self.pick, mine), name, running.attempt))
            return
        result = self.do(c.RaiseFeedback(name, a_feedback(self.pick, self.s), running.attempt))
        opened = [event.loop for event in result.events if isinstance(event, e.LoopOpened | e.FeedbackRejoined)]
        still = self.s.steps[name].running
        if opened and still is not None and still.attempt == running.attempt and self.pick(3):
            self.do(c.BeginWait(opened[0], name, running.attempt))

    def drop(self, name: str) -> None:
        running = self.s.steps[name].running
        assert running is not None
        self.do(c.DropAttempt(name, running.attempt, one_of(self.pick, ("interrupted", "in doubt"))))

    def person(self, choice: int) -> None:
        pick, state = self.pick, self.s
        if choice in (13, 14) and state.escalations:
            self.decide(one_of(pick, tuple(state.escalations)))
            return
        match pick(9):
            case 0:
                self.do(c.RaiseFeedback(HUMAN, a_feedback(pick, state)))
            case 1:
                self.do(c.Pause("ann"))
            case 2:
                self.do(c.Resume("ann"))
            case 3 if state.loops:
                loop = one_of(pick, tuple(state.loops.values()))
                self.do(c.Acknowledge(loop.id, one_of(pick, (*loop.targets, "unknown"))))
            case 4 if len(state.findings):
                self.do(c.Reclassify(f"F-{1 + pick(len(state.findings))}", one_of(pick, DEFAULT_PHASES)))
            case 5 if rarely(pick, 6):
                self.do(c.Cancel("ann"))
            case 6:
                self.do(c.RaiseFeedback(one_of(pick, tuple(state.steps)), a_feedback(pick, state)))
            case 7:
                self.do(self.junk())
            case _:
                self.do(c.Proceed())

    def decide(self, escalation: str, choice: str | None = None) -> None:
        pick, packet = self.pick, self.s.escalations[escalation]
        options: tuple[str | None, ...] = (None, "polling")
        if asks_verdict(self.s, packet):
            options = ("pass", "fail") if choice is None else ("pass",)
        self.do(
            c.Decide(
                escalation,
                choice or one_of(pick, packet.options),
                by=one_of(pick, ("ann", "")),
                note=one_of(pick, ("do it another way", "yes")),
                rounds=1 + pick(2),
                amount=one_of(pick, (None, 2.0)),
                option=one_of(pick, options),
                target=one_of(pick, (*self.s.steps, HUMAN)),
                phase=one_of(pick, DEFAULT_PHASES),
            )
        )

    def junk(self) -> c.Command:
        """A command with random arguments, which is often illegal."""
        pick = self.pick
        step = one_of(pick, (*self.s.steps, HUMAN, "unknown", ""))
        loop = one_of(pick, ("L-0", "L-1", "L-2", "nonsense", ""))
        number = pick(4) - 1
        packet = one_of(pick, ("E-1", "E-2", "E-77", "nonsense", "E-"))
        choices = (
            "continue",
            "revise",
            "reassign",
            "reclassify",
            "accept",
            "skip",
            "resolve",
            "rollback",
            "cancel",
            "approve",
            "reject",
            "shrug",
        )
        finding = one_of(pick, ("F-1", "F-0", "F--1", "F-x", ""))
        phase = one_of(pick, ("code", "nowhere", ""))
        match pick(10):
            case 0:
                return c.FinishAttempt(step, number, Outcome(made(None)))
            case 1:
                return c.FailAttempt(step, number, "broke")
            case 2:
                return c.DropAttempt(step, number, "in doubt")
            case 3:
                return c.ReportInputCheck(step, ((step, Finding("wrong shape")),) if pick(2) else ())
            case 4:
                return c.RaiseFeedback(step, a_feedback(pick, self.s), number)
            case 5:
                return c.BeginWait(loop, step, number)
            case 6:
                return c.Acknowledge(loop, step)
            case 7:
                target = one_of(pick, (step, None))
                return c.Decide(packet, one_of(pick, choices), rounds=number, target=target, phase=phase)
            case 8:
                return c.Reclassify(finding, phase)
            case _:
                return c.StartRun("r", self.workflow)

    # Runs until nothing can start

    def rest(self, most: int = 400, behaviour: str | None = None) -> bool:
        """Perform what is pending, without people, until only a person can continue the run."""
        for _ in range(most):
            if self.s.paused_by is not None:
                self.do(c.Resume())
            effects = pending(self.s, self.now)
            busy = [effect.step for effect in effects if isinstance(effect, RunAttempt)]
            checks = [effect.step for effect in effects if isinstance(effect, CheckInputs)]
            restores = [effect for effect in effects if isinstance(effect, RestoreFiles)]
            if restores:
                self.do(c.ReportRestored(dict.fromkeys(restores[0].undo, RestoredFiles())))
            elif busy:
                self.now += 1
                self.finish(busy[0], behaviour)
            elif outcome_of(self.s) != "running":
                return True
            elif checks:
                if behaviour:
                    self.do(c.ReportInputCheck(checks[0]), 3)
                else:
                    self.check(checks[0])
            else:
                wakes = [effect.time for effect in effects if isinstance(effect, WakeAt)]
                self.now = max(self.now, min(wakes, default=self.now))
                self.do(c.Proceed(), 3)
        return False


BEHAVIOURS = ("random", "steady", "fails", "raises", "random", "broken", "nonsense")


STUBBORN = ("raises", "fails", "raises", "fails", "random", "steady")


def a_random_run(
    pick: Pick, *, people: bool = True, moves: int = 50, most: int = 8, stubborn: bool = False
) -> RandomRun:
    """A run of a random workflow after random moves; it may have ended or not. With stubborn agents, only the bound ends
    it."""
    workflow = a_workflow(pick, most)
    workflow = with_lone_bound(pick, workflow) if stubborn else workflow
    run = RandomRun(workflow, pick, people=people)
    behaviours = STUBBORN if stubborn else BEHAVIOURS
    run.behaviours = {step.name: one_of(pick, behaviours) for step in run.workflow.steps}
    run.do(c.StartRun("r", run.workflow, input={"task": 1}))
    for _ in range(pick(moves)):
        if run.s.ended is None or rarely(pick, 4):
            run.move()
    return run


GENTLE = ("resolve", "accept", "skip", "continue", "cancel")


def drive_to_end(run: RandomRun, most: int = 60, wanted: Sequence[str] = GENTLE) -> bool:
    """Perform what is pending and answer every escalation, until the run ends."""
    for _ in range(most):
        if not run.rest(behaviour="steady"):
            return False
        if run.s.ended is not None:
            return True
        for id in list(run.s.escalations):
            packet = run.s.escalations.get(id)
            if packet is not None:
                run.decide(id, next(choice for choice in wanted if choice in packet.options))
        if not run.s.escalations and run.s.ended is None:
            run.do(c.Proceed(), 3)
    return run.s.ended is not None
