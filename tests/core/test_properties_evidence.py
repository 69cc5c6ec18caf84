"""Random evidence in random runs: whatever agents, judges and people do, `verified` means verified.

The agents work on files. Producers change them as they end, tools judge the files as they were when they started, and may
ask about changed tests; reviewers and people answer at random. What is judged and delivered is read from the files
themselves, and not from the state of the run.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
from hypothesis import given

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.evidence.values import (
    NO_EVIDENCE,
    Approval,
    ChangeAnswer,
    Evidence,
    ProtectedChange,
    ProtectedQuestion,
    file_key,
)
from backedge.core.model import SIDE_MODES, Outcome, Usage
from backedge.core.workflow.definition import Step, Workflow
from backedge.core.workflow.limits import Limits
from tests.core.strategies import (
    BEHAVIOURS,
    GENTLE,
    STUBBORN,
    CommandResult,
    Pick,
    RandomRun,
    a_workflow,
    an_outcome,
    drive_to_end,
    effort,
    one_of,
    picks,
    rarely,
    some_of,
    with_lone_bound,
)
from tests.core.test_properties import EVERYWHERE, no_run_passes_its_bound, open_loops_wait_for_a_person

PROTECTED = ("tests/t.py", "pytest.ini")
FILES = ("a.py", "b.py", *PROTECTED)
ENVIRONMENT = ".venv"

Files = dict[str, int]
"""The version of each file; 0 is that of the start."""


def digest(files: Files) -> str:
    changed = (f"{name}={version}" for name, version in sorted(files.items()) if version and name != ENVIRONMENT)
    return f"tree {' '.join(changed)}"


@dataclass
class Evident(RandomRun):
    """A run on real files, in two folders."""

    files: dict[str, Files] = field(default_factory=lambda: {"": {}, "api": {}})
    folder: dict[str, str] = field(default_factory=dict)
    owners: frozenset[str] = frozenset()
    begun: dict[str, Files] = field(default_factory=dict)
    """The files as a tool found them when it started."""
    judged: dict[str, tuple[Files, tuple[ProtectedQuestion, ...]]] = field(default_factory=dict)
    """What the last verdict of each tool is about, and what it asked."""
    said: dict[tuple[str, str], e.ProtectedAnswered] = field(default_factory=dict)
    """The last answer about a version of a file, by path and digest."""

    def do(self, command: c.Command, room: int | None = None) -> CommandResult:
        before = self.state
        known = {each.id: (each.key, each.digest) for each in before.protected.values()} if before else {}
        result = super().do(command, room)
        known |= {each.id: (each.key, each.digest) for each in self.s.protected.values()}
        for event in result.events:
            if isinstance(event, e.AttemptStarted):
                self.begun[event.step] = dict(self.files[self.folder[event.step]])
            elif isinstance(event, e.ProtectedAnswered):
                self.said |= {known[id]: event for id in event.changes}
        if not isinstance(command, c.FinishAttempt):
            self.check_end(result)
        return result

    def finish(self, name: str, behaviour: str | None = None) -> None:
        running = self.s.steps[name].running
        assert running is not None
        how = behaviour or self.behaviours[name]
        outcome = an_outcome(self.pick, self.s, name, how)
        step, side = self.s.graph.steps[name], running.mode in SIDE_MODES
        if not step.judges:
            evidence = self.changed(name, calm=behaviour is not None)
        elif step.tool and not side:
            evidence = self.measured(name, calm=behaviour is not None)
        else:
            evidence = NO_EVIDENCE
            if isinstance(outcome, Outcome) and not side and how == "random":
                outcome = self.with_approvals(outcome, running.told)
        if isinstance(outcome, str):
            self.do(c.FailAttempt(name, running.attempt, outcome, Usage(cost_usd=0.5), 1.0, evidence=evidence))
            return
        result = self.do(c.FinishAttempt(name, running.attempt, outcome, 1.0, evidence=evidence))
        if step.tool and any(isinstance(event, e.VerdictGiven) and event.judge == name for event in result.events):
            self.judged[name] = (self.begun[name], evidence.questions)
        self.check_end(result)

    def check_end(self, result: CommandResult) -> None:
        if any(isinstance(event, e.RunEnded) and event.outcome == "verified" for event in result.events):
            self.is_honest()

    def changed(self, name: str, calm: bool) -> Evidence:
        """What a producer does to the files as it ends, and what is seen of it."""
        folder = self.folder[name]
        files = self.files[folder]
        touched = () if calm else some_of(self.pick, FILES, 2)
        files |= {file: self.pick(3) for file in touched}
        if not calm and rarely(self.pick, 10):
            files[ENVIRONMENT] = self.pick(3)
        changes = tuple(
            ProtectedChange(file, "changed", str(files[file]), owned=name in self.owners)
            for file in PROTECTED
            if files.get(file)
        )
        return Evidence(workspace=folder, tree=digest(files), files=touched, changes=changes)

    def measured(self, name: str, calm: bool) -> Evidence:
        """What a tool sees of the files."""
        folder, began = self.folder[name], self.begun[name]
        now = digest(self.files[folder])
        asked = tuple(
            ProtectedQuestion(file, str(began[file]), f"{file} counts")
            for file in (*PROTECTED, ENVIRONMENT)
            if began.get(file) and (calm or file == ENVIRONMENT or self.pick(2))
        )
        after = now if now != digest(began) else ""
        return Evidence(workspace=folder, tree=digest(began), after=after, questions=asked)

    def with_approvals(self, outcome: Outcome, told: tuple[int, ...]) -> Outcome:
        words: tuple[ChangeAnswer, ...] = ("approved", "rejected") if outcome.verdict == "fail" else ("approved",)
        answers = tuple(Approval(f"P-{id}", one_of(self.pick, words)) for id in some_of(self.pick, told, 2))
        return msgspec.structs.replace(outcome, approvals=answers)

    def is_honest(self) -> None:
        """Everything that `verified` promises about files."""
        state = self.s
        for name, (files, questions) in self.judged.items():
            step, folder = state.steps[name], self.folder[name]
            if step.skipped_by_decision or (step.verdict is not None and step.verdict.accepted):
                continue
            assert digest(files) == digest(self.files[folder]), f"{name} judged other files"
            for question in questions:
                self.is_answered(file_key(folder, question.file), question.digest)
        for (key, version), answer in self.said.items():
            folder, _, file = key.rpartition("api/")
            current = self.files["api" if folder or key.startswith("api/") else ""].get(file, 0)
            if answer.status == "rejected" and file != ENVIRONMENT and str(current) == version:
                raise AssertionError(f"{key} is delivered as {answer.by} rejected it")

    def is_answered(self, key: str, version: str) -> None:
        known = self.s.protected[key]
        answer = self.said.get((key, version))
        assert known.digest == version and known.approved
        assert known.approved in self.owners or (answer is not None and answer.status == "approved")


def a_chain(pick: Pick) -> Workflow:
    """Code under tests and reviews, and later steps that may change the same files."""
    steps = [
        Step("code", phase="code"),
        Step("test", judges=("code",), complete=True, tests=True),
        *((Step("review", judges=("code",)),) if pick(2) else ()),
        Step("docs", phase="code", needs=("code", *(("test",) if pick(2) else ()))),
        *((Step("lint", judges=("docs",), needs=("test",) if pick(2) else ()),) if pick(2) else ()),
        *((Step("ship", phase="test", needs=("docs",)),) if pick(2) else ()),
    ]
    limits = Limits(rounds_total=one_of(pick, (20, 1, 0)), errors_in_a_row=1 + pick(2))
    return Workflow("w", tuple(steps), limits=limits)


def a_workflow_with_tools(pick: Pick, most: int = 6) -> Workflow:
    workflow = a_chain(pick) if pick(2) else a_workflow(pick, most)
    steps = tuple(msgspec.structs.replace(step, tool=bool(step.judges) and bool(pick(3))) for step in workflow.steps)
    on_protected = one_of(pick, ("review", "review", "ask", "refuse"))
    return msgspec.structs.replace(workflow, steps=steps, on_protected=on_protected)


def an_evident_run(pick: Pick, *, people: bool = True, stubborn: bool = False, moves: int = 50) -> Evident:
    workflow = a_workflow_with_tools(pick, 4 if stubborn else 6)
    workflow = with_lone_bound(pick, workflow) if stubborn else workflow
    run = Evident(workflow, pick, people=people)
    run.folder = {step.name: "api" if rarely(pick, 5) else "" for step in workflow.steps}
    run.owners = frozenset(step.name for step in workflow.steps if not step.judges and rarely(pick, 5))
    behaviours = STUBBORN if stubborn else one_of(pick, (BEHAVIOURS, ("steady", "random")))
    run.behaviours = {step.name: one_of(pick, behaviours) for step in workflow.steps}
    run.do(c.StartRun("r", workflow))
    for _ in range(pick(moves)):
        if run.s.ended is None or rarely(pick, 4):
            run.move()
    return run


@given(picks())
@effort(80)
def test_verified_is_never_said_of_files_that_were_not_judged_or_answered_for(pick: Pick) -> None:
    run = an_evident_run(pick)
    first = one_of(pick, ("approve", "reject", "cancel"))
    drive_to_end(run, wanted=(first, "approve", *GENTLE))


@given(picks())
@effort(80)
def test_a_run_with_evidence_whose_inbox_is_answered_ends(pick: Pick) -> None:
    run = an_evident_run(pick)
    # A judge may insist on the old version of a test for ever, and an answer in words does not change that.
    assert drive_to_end(run, wanted=("approve", "accept", *GENTLE))
    open_loops_wait_for_a_person(run)


@given(picks())
@effort(80)
def test_a_run_with_evidence_does_not_pass_its_bound(pick: Pick) -> None:
    run = an_evident_run(pick, people=False, stubborn=True)
    assert run.rest(1_500)
    no_run_passes_its_bound(run)


@given(picks())
@effort(50)
def test_a_run_with_evidence_keeps_all_properties(pick: Pick) -> None:
    run = an_evident_run(pick)
    for holds in EVERYWHERE:
        holds(run)
