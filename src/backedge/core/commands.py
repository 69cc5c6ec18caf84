"""What can be asked of a run. A command is legal only if it answers something that is pending, and quotes it."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from backedge.core.model import Feedback, Finding, MalformedFeedback, Outcome, Usage
from backedge.core.value import Json, Value
from backedge.core.workflow.definition import Workflow
from backedge.core.workflow.plan import Plan

Choice = Literal["resolve", "continue", "revise", "reassign", "reclassify", "accept", "skip", "cancel"]

DEFAULT_ROUNDS = 3
"""How many more rounds a decision grants when it does not say."""


class Instruction(
    Value, frozen=True, tag_field="command", tag=lambda name: re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
):
    """Base of all commands. Each carries its name, so that one decoder reads them all."""


class StartRun(Instruction, frozen=True):
    run: str
    workflow: Workflow
    input: Json = None
    input_payload: str | None = None


class ImportFile(Instruction, frozen=True):
    """Bring a file of another system along, as a run of its own that has ended."""

    run: str
    form: str
    name: str
    text: str


class Proceed(Instruction, frozen=True):
    """Start what can start; time may have passed."""


class FinishAttempt(Instruction, frozen=True):
    step: str
    attempt: int
    outcome: Outcome
    seconds: float = 0.0
    log: str | None = None
    session: str | None = None
    plan: Plan = Plan()
    mentions: dict[str, tuple[str, ...]] = {}
    """The steps whose artifacts mention a requirement that the outcome is about, by its id."""


class FailAttempt(Instruction, frozen=True):
    """The agent broke."""

    step: str
    attempt: int
    error: str
    usage: Usage = Usage()
    seconds: float = 0.0
    log: str | None = None
    session: str | None = None


class DropAttempt(Instruction, frozen=True):
    """The attempt was interrupted, was found after a crash without an outcome, or goes on without anybody listening."""

    step: str
    attempt: int
    reason: Literal["interrupted", "in doubt"]
    usage: Usage = Usage()
    seconds: float = 0.0
    why: str = "the process that ran it ended before its outcome was recorded"
    """How it came to be in doubt, for whoever is asked about it."""


class ReportInputCheck(Instruction, frozen=True):
    """The inputs of a step were held against what it accepts: the problems, by producer; none if they fit."""

    step: str
    problems: tuple[tuple[str, Finding], ...] = ()


class RaiseFeedback(Instruction, frozen=True):
    """Feedback by an agent in mid-work, which quotes its attempt, or by a person or outsider, which does not."""

    source: str
    feedback: Feedback | MalformedFeedback
    attempt: int = 0
    mentions: dict[str, tuple[str, ...]] = {}
    """The steps whose artifacts mention the requirement that it is about, by its id."""


class BeginWait(Instruction, frozen=True):
    """An attempt waits in mid-work for a loop that it raised."""

    loop: str
    step: str
    attempt: int


class EndWait(Instruction, frozen=True):
    """An attempt gives up waiting."""

    loop: str
    step: str
    attempt: int


class Acknowledge(Instruction, frozen=True):
    loop: str
    target: str
    message: str = ""
    action: str = ""
    eta: str = ""


class Decide(Instruction, frozen=True):
    """A person's answer to an escalation."""

    escalation: str
    choice: str
    by: str = ""
    note: str = ""
    rounds: int = DEFAULT_ROUNDS
    amount: float | None = None
    option: str | None = None
    target: str | None = None
    phase: str | None = None


class Reclassify(Instruction, frozen=True):
    """A person says which phase injected a finding."""

    finding: str
    phase: str
    by: str = ""


class ChangeInput(Instruction, frozen=True):
    """Let the run work on something else from now on; what is done stays done."""

    input: Json = None


class SetValue(Instruction, frozen=True):
    """Keep a value of one's own beside the run, under a path of words with dots between them."""

    path: str
    value: Json = None
    by: str = ""


class SaveCheckpoint(Instruction, frozen=True):
    """Make a checkpoint of all values; one of the same name is replaced."""

    name: str
    by: str = ""


class RestoreCheckpoint(Instruction, frozen=True):
    name: str
    by: str = ""


class ReadFeedback(Instruction, frozen=True):
    """Read a step's inbox, which clears it."""

    step: str


class Pause(Instruction, frozen=True):
    by: str = ""


class Resume(Instruction, frozen=True):
    by: str = ""


class Cancel(Instruction, frozen=True):
    by: str = ""
    reason: str = ""


Command: TypeAlias = (
    StartRun
    | ImportFile
    | Proceed
    | FinishAttempt
    | FailAttempt
    | DropAttempt
    | ReportInputCheck
    | RaiseFeedback
    | BeginWait
    | EndWait
    | Acknowledge
    | Decide
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
