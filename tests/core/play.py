"""Plays a workflow on the pure core: scripts instead of agents, a list instead of a journal, and a clock of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.briefing import BriefedFinding, Briefing, brief
from backedge.core.checks import measure
from backedge.core.decide import transact
from backedge.core.diff import changes
from backedge.core.errors import ProviderLimit
from backedge.core.evidence.values import NO_EVIDENCE, Evidence, RestoredFiles
from backedge.core.feedback.loop import Loop
from backedge.core.model import (
    HUMAN,
    Feedback,
    Finding,
    FindingResolution,
    Kind,
    MalformedFeedback,
    Outcome,
    OutputDigest,
    Severity,
    Usage,
    VerdictWord,
)
from backedge.core.scheduling.pending import (
    AskPerson,
    CheckInputs,
    RestoreFiles,
    RunAttempt,
    WakeAt,
    outcome_of,
    pending,
)
from backedge.core.scheduling.staleness import part
from backedge.core.state.run import RunState
from backedge.core.workflow.build import build_workflow
from backedge.core.workflow.definition import Step, Workflow
from backedge.core.workflow.limits import Limits
from backedge.core.workflow.plan import Plan
from backedge.core.workflow.values import values_at


class Planned(msgspec.Struct, frozen=True):
    """What a planner reports: an outcome, and its change of the run."""

    outcome: Outcome
    plan: Plan


class Seen(msgspec.Struct, frozen=True):
    """What an attempt reports, and what backedge itself saw of it."""

    reply: Outcome | Exception
    evidence: Evidence


Reply = Outcome | Planned | Seen | Exception
Script = Callable[["Play", str], Reply]


def made(output: Any, before: Any = None, pointers: Sequence[str] = (), values: Sequence[str] = ()) -> OutputDigest:
    text = msgspec.json.encode(output, order="sorted")
    parts = {p: sha256(msgspec.json.encode(part(output, p), order="sorted")).hexdigest() for p in pointers}
    changed = changes(before, output) if before is not None else ()
    noted = dict(values_at(output, tuple(values)))
    return OutputDigest(sha256(text).hexdigest(), output, size=len(text), parts=parts, changed=changed, values=noted)


def out(output: Any = None, **more: Any) -> Outcome:
    return Outcome(made(output), **more)


def planned(output: Any, *add: Step, remove: Sequence[str] = (), **more: Any) -> Planned:
    """A planner's outcome that adds or replaces these steps."""
    specs = {each.name: msgspec.json.decode(msgspec.json.encode(each)) for each in add}
    return Planned(out(output, **more), Plan(add, tuple(remove), specs))


def seen(reply: Outcome | Exception, **evidence: Any) -> Seen:
    """A reply, with what backedge saw of the attempt."""
    return Seen(reply, Evidence(**evidence))


def passed(**more: Any) -> Outcome:
    return Outcome(made("pass"), verdict="pass", **more)


def failed(*findings: Finding | str, **more: Any) -> Outcome:
    stated = tuple(f if isinstance(f, Finding) else Finding(f) for f in findings)
    return Outcome(made("fail"), verdict="fail", findings=stated, **more)


def grows(play: Play, name: str) -> Outcome:
    """A script whose output is different in every attempt."""
    return out(f"{name} {play.s.steps[name].attempts}")


def ask(*to: str, kind: Kind = Kind.FIX_REQUEST, message: str = "fix it", **more: Any) -> Feedback:
    return Feedback(kind, to, message, **more)


def step(name: str, *needs: str, phase: str = "", reviews: str = "", tests: str = "", **more: Any) -> Step:
    judges = tuple(each for each in (reviews, tests) if each)
    return Step(
        name,
        phase=phase,
        needs=needs,
        judges=judges,
        tests=bool(tests),
        complete=more.pop("complete", bool(tests)),
        **more,
    )


def flow(*steps: Step, **more: Any) -> Workflow:
    limits = more.pop("limits", {})
    return Workflow("w", steps, limits=limits if isinstance(limits, Limits) else Limits(**limits), **more)


def profiled(name: str, *steps: Step, **more: Any) -> Workflow:
    """A workflow with the limits and defaults of a profile."""
    return build_workflow("w", [(each, {}) for each in steps], profile=name, **more)


class Play:
    """A run that a test drives. Scripts are functions of the play, or lists of replies whose last one is repeated.

    At most `slots` attempts run at a time.
    """

    def __init__(
        self,
        workflow: Workflow,
        scripts: Mapping[str, Script | Sequence[Reply]] | None = None,
        *,
        checks: Mapping[str, Callable[[Play], tuple[tuple[str, Finding], ...]]] | None = None,
        slots: int = 99,
        start: bool = True,
    ) -> None:
        self.workflow, self.scripts, self.checks, self.slots = workflow, dict(scripts or {}), dict(checks or {}), slots
        self.now = 1_000.0
        self.events: list[e.Event] = []
        self.state: RunState | None = None
        self.calls: dict[str, int] = {}
        self.briefings: dict[str, list[Briefing]] = {}
        self.files: dict[str, RestoredFiles] = {}
        """What becomes of the files of rollbacks, by workspace."""
        if start:
            self.do(c.StartRun("r", workflow))

    @property
    def s(self) -> RunState:
        assert self.state is not None
        return self.state

    def do(self, command: c.Command) -> tuple[e.Event, ...]:
        busy = self.state.busy if self.state else 0
        if isinstance(command, c.FinishAttempt | c.FailAttempt | c.LimitAttempt | c.DropAttempt):
            busy -= 1
        events, self.state = transact(self.state, command, self.now, max(0, self.slots - busy))
        self.events += events
        for event in events:
            if isinstance(event, e.AttemptStarted) and self.s.steps[event.step].running is not None:
                self.briefings.setdefault(event.step, []).append(self.brief(event.step))
        return events

    def brief(self, name: str) -> Briefing:
        """The briefing of the running attempt."""
        made = {each: step.artifact.output for each, step in self.s.steps.items() if step.artifact is not None}
        return brief(self.s, name, self.now, self.s.input, made)

    def raises(self, source: str, feedback: Feedback | MalformedFeedback) -> Play:
        """Raise feedback from the running attempt, or from a person."""
        running = self.s.steps[source].running if source in self.s.steps else None
        self.do(c.RaiseFeedback(source, feedback, running.attempt if running else 0))
        return self

    def person_raises(self, *targets: str, **more: Any) -> Play:
        """Raise feedback from a person."""
        return self.raises(HUMAN, ask(*targets, **more))

    def opened(self) -> int:
        """How many loops were opened so far."""
        return self.s.opened_loops

    def loop(self, id: str = "L-1") -> Loop:
        found = self.s.loop(id)
        assert found is not None
        return found

    def finding(self, id: int = 1) -> Any:
        return self.s.findings[id]

    def of(self, kind: type[Any]) -> list[Any]:
        """The events of one type."""
        return [event for event in self.events if isinstance(event, kind)]

    def reply(self, name: str) -> Reply:
        script = self.scripts.get(name)
        index = self.calls.get(name, 0)
        self.calls[name] = index + 1
        if script is None and name in self.s.graph.engine_judges:
            return self.measure(name)
        if script is None:
            return passed() if self.s.graph.is_judge(name) else out(name)
        if callable(script):
            return script(self, name)
        return script[min(index, len(script) - 1)]

    def measure(self, name: str) -> Reply:
        """The reply of a check or gate, as the engine measures it."""
        try:
            return out(measure(self.s.graph.engine_judges[name], self.brief(name).inputs))
        except ValueError as error:
            return error

    def finish(self, name: str, reply: Reply | None = None) -> tuple[e.Event, ...]:
        running = self.s.steps[name].running
        assert running is not None, f"{name} is not running"
        reply = self.reply(name) if reply is None else reply
        self.now += 1
        evidence = reply.evidence if isinstance(reply, Seen) else NO_EVIDENCE
        reply = reply.reply if isinstance(reply, Seen) else reply
        if isinstance(reply, ProviderLimit):
            limited = c.LimitAttempt(name, running.attempt, str(reply), reply.wait, seconds=1.0, evidence=evidence)
            return self.do(limited)
        if isinstance(reply, Exception):
            return self.do(c.FailAttempt(name, running.attempt, str(reply), seconds=1.0, evidence=evidence))
        plan = reply.plan if isinstance(reply, Planned) else Plan()
        reported = reply.outcome if isinstance(reply, Planned) else reply
        artifact = self.s.steps[name].artifact
        graph, before = self.s.graph, artifact.output if artifact else None
        described = made(reported.made.output, before, graph.pointers[name], graph.values[name])
        outcome = msgspec.structs.replace(reported, made=described)
        return self.do(c.FinishAttempt(name, running.attempt, outcome, 1.0, plan=plan, evidence=evidence))

    def run(self, most: int = 2_000) -> Play:
        """Perform what is pending until only a person can help or the run has ended."""
        for _ in range(most):
            effects = pending(self.s, self.now)
            attempts = [effect for effect in effects if isinstance(effect, RunAttempt)]
            checks = [effect for effect in effects if isinstance(effect, CheckInputs)]
            restores = [effect for effect in effects if isinstance(effect, RestoreFiles)]
            if restores:
                self.restore(restores[0])
            elif checks and self.slots > self.s.busy:
                name = checks[0].step
                self.do(c.ReportInputCheck(name, self.checks[name](self) if name in self.checks else ()))
            elif attempts:
                self.finish(attempts[0].step)
            elif self.outcome == "running":
                wakes = [effect.time for effect in effects if isinstance(effect, WakeAt)]
                self.now = max(self.now, min(wakes, default=self.now))
                self.do(c.Proceed())
            else:
                return self
        raise AssertionError(f"still running after {most} iterations")

    def restore(self, effect: RestoreFiles) -> tuple[e.Event, ...]:
        """Report the files of a rollback, as `self.files` says, if they are restored unless edited; else restored."""
        found = self.files if effect.rule == "unless_edited" else {}
        return self.do(c.ReportRestored({name: found.get(name, RestoredFiles()) for name in effect.undo}))

    def decide(self, choice: str, escalation: str | None = None, **more: Any) -> Play:
        id = escalation or next(iter(self.s.escalations))
        self.do(c.Decide(id, choice, **more))
        return self

    def wakes(self) -> list[WakeAt]:
        return [effect for effect in pending(self.s, self.now) if isinstance(effect, WakeAt)]

    def breach(self) -> str:
        """The limit of the newest open escalation, or its reason if it has no breach."""
        assert self.s.escalations, f"no escalation is open: the run is {self.outcome}"
        packet = list(self.s.escalations.values())[-1]
        return packet.breach.limit if packet.breach else packet.reason

    @property
    def outcome(self) -> str:
        return outcome_of(self.s)

    def attempts(self) -> dict[str, int]:
        return {name: step.attempts for name, step in self.s.steps.items()}

    def kinds(self) -> list[str]:
        return [type(event).__name__ for event in self.events]

    def asked(self) -> list[str]:
        return [effect.escalation for effect in pending(self.s, self.now) if isinstance(effect, AskPerson)]


def texts(findings: Sequence[BriefedFinding]) -> list[str]:
    return [finding.description for finding in findings]


__all__ = [
    "Feedback",
    "Finding",
    "FindingResolution",
    "Kind",
    "Limits",
    "Outcome",
    "Planned",
    "Play",
    "Seen",
    "Severity",
    "Usage",
    "VerdictWord",
    "ask",
    "failed",
    "flow",
    "grows",
    "made",
    "out",
    "passed",
    "planned",
    "profiled",
    "seen",
    "step",
    "texts",
]
