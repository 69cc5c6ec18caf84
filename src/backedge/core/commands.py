"""Commands: the requests that a run accepts. A command is legal only if it refers, by id, to something that is
pending."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from backedge.core.evidence.values import NO_EVIDENCE, Baseline, Evidence, RestoredFiles
from backedge.core.model import Feedback, Finding, MalformedFeedback, Outcome, Usage
from backedge.core.ready_types import make_ready
from backedge.core.value import Json, Value
from backedge.core.workflow.definition import Workflow
from backedge.core.workflow.plan import Plan

Choice = Literal[
    "resolve",
    "continue",
    "revise",
    "reassign",
    "reclassify",
    "rollback",
    "accept",
    "skip",
    "cancel",
    "approve",
    "reject",
]

DEFAULT_ROUNDS = 3
"""How many more rounds a decision grants when it does not say."""


class Instruction(
    Value, frozen=True, tag_field="command", tag=lambda name: re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
):
    """The base of all commands. In JSON each has its name as a tag, so that one decoder reads them all."""


class StartRun(Instruction, frozen=True):
    """Start a run of a workflow."""

    run: str
    workflow: Workflow
    input: Json = None
    input_payload: str | None = None
    files: dict[str, str] = {}
    """The workflow file and the files it names, as digests of stored values, by path; the workflow file first."""
    baselines: tuple[Baseline, ...] = ()
    """What the tool judges report about the files before any step changes them."""


class ImportFile(Instruction, frozen=True):
    """Import a file of another system, as a run that has ended."""

    run: str
    form: str
    name: str
    text: str


class Proceed(Instruction, frozen=True):
    """Start the steps that can start now. Time may have passed since the last command."""


class Recover(Instruction, frozen=True):
    """Continue a run whose process died, before anything else is recorded of attempts that were running."""


class FinishAttempt(Instruction, frozen=True):
    """Record the outcome of an attempt."""

    step: str
    attempt: int
    outcome: Outcome
    seconds: float = 0.0
    log: str | None = None
    session: str | None = None
    plan: Plan = Plan()
    mentions: dict[str, tuple[str, ...]] = {}
    """For each requirement id in the outcome: the steps whose artifacts mention it."""
    evidence: Evidence = NO_EVIDENCE


class FailAttempt(Instruction, frozen=True):
    """Record that the agent broke."""

    step: str
    attempt: int
    error: str
    usage: Usage = Usage()
    seconds: float = 0.0
    log: str | None = None
    session: str | None = None
    evidence: Evidence = NO_EVIDENCE
    lasting: bool = False
    """Whether the same would happen again."""


class LimitAttempt(Instruction, frozen=True):
    """Record that the provider of the agent has reached a limit."""

    step: str
    attempt: int
    message: str
    wait: float | None = None
    """The seconds until the limit resets; None if the provider did not say."""
    usage: Usage = Usage()
    seconds: float = 0.0
    log: str | None = None
    session: str | None = None
    evidence: Evidence = NO_EVIDENCE


class DropAttempt(Instruction, frozen=True):
    """Give up an attempt that was interrupted, or whose outcome is unknown: it was found after a crash, or no process
    waits for it any more."""

    step: str
    attempt: int
    reason: Literal["interrupted", "in doubt"]
    usage: Usage = Usage()
    seconds: float = 0.0
    why: str = "the process that ran it ended before its outcome was recorded"
    """Why it is in doubt. The person who has to decide about it reads this."""


class ReportRestored(Instruction, frozen=True):
    """Report what became of the files that a rollback has to restore, by workspace."""

    workspaces: dict[str, RestoredFiles]


class ReportInputCheck(Instruction, frozen=True):
    """Report what the check of a step's inputs found: problems with their producers, or none."""

    step: str
    problems: tuple[tuple[str, Finding], ...] = ()


class RaiseFeedback(Instruction, frozen=True):
    """Raise feedback. A running agent gives the number of its attempt; a person or another program leaves it 0."""

    source: str
    feedback: Feedback | MalformedFeedback
    attempt: int = 0
    mentions: dict[str, tuple[str, ...]] = {}
    """For the requirement id in the feedback: the steps whose artifacts mention it."""


class BeginWait(Instruction, frozen=True):
    """Let a running attempt wait for a loop that it raised."""

    loop: str
    step: str
    attempt: int


class EndWait(Instruction, frozen=True):
    """Let an attempt stop waiting for a loop."""

    loop: str
    step: str
    attempt: int


class Acknowledge(Instruction, frozen=True):
    """Record that a target received its feedback, so that it does not time out."""

    loop: str
    target: str
    message: str = ""
    action: str = ""
    eta: str = ""


class Decide(Instruction, frozen=True):
    """Decide an escalation."""

    escalation: str
    choice: str
    by: str = ""
    note: str = ""
    rounds: int = DEFAULT_ROUNDS
    amount: float | None = None
    option: str | None = None
    target: str | None = None
    phase: str | None = None


class ResolveLoop(Instruction, frozen=True):
    """Resolve an open loop, escalated or not, with one of its options or a text."""

    loop: str
    by: str = ""
    note: str = ""
    option: str | None = None


class EscalateLoop(Instruction, frozen=True):
    """Hand an open loop to a person now."""

    loop: str
    by: str = ""
    note: str = ""


class WithdrawLoop(Instruction, frozen=True):
    """Take an open loop back: what it asked for is no longer wanted."""

    loop: str
    by: str = ""
    note: str = ""


class Reclassify(Instruction, frozen=True):
    """Name the phase that injected a finding."""

    finding: str
    phase: str
    by: str = ""


class ChangeInput(Instruction, frozen=True):
    """Change the input of the run for later attempts. Finished work stays as it is."""

    input: Json = None


class SetValue(Instruction, frozen=True):
    """Store a value with the run, under a dotted path."""

    path: str
    value: Json = None
    by: str = ""


class SaveCheckpoint(Instruction, frozen=True):
    """Save all stored values under a name. A checkpoint of the same name is replaced."""

    name: str
    by: str = ""


class RestoreCheckpoint(Instruction, frozen=True):
    """Replace all stored values by those of a checkpoint."""

    name: str
    by: str = ""


class ReadFeedback(Instruction, frozen=True):
    """Mark all feedback in the inbox of a step as read."""

    step: str


class Pause(Instruction, frozen=True):
    """Start no new attempts until the run is resumed."""

    by: str = ""


class Resume(Instruction, frozen=True):
    """End a pause."""

    by: str = ""


class Cancel(Instruction, frozen=True):
    """End the run."""

    by: str = ""
    reason: str = ""


Command: TypeAlias = (
    StartRun
    | ImportFile
    | Proceed
    | Recover
    | FinishAttempt
    | FailAttempt
    | LimitAttempt
    | DropAttempt
    | ReportRestored
    | ReportInputCheck
    | RaiseFeedback
    | BeginWait
    | EndWait
    | Acknowledge
    | Decide
    | ResolveLoop
    | EscalateLoop
    | WithdrawLoop
    | Reclassify
    | ChangeInput
    | SetValue
    | SaveCheckpoint
    | RestoreCheckpoint
    | ReadFeedback
    | Pause
    | Resume
    | Cancel
)
make_ready(Command)
