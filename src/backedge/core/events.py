"""What happened, as facts. The journal is a list of these; everything else is computed from them.

Each event is one JSON object with its type and version. A field that an older version did not write takes its
default; an unknown type or field was written by a newer version, and is refused.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from backedge.core.feedback.loop import LoopState
from backedge.core.model import (
    Breach,
    Claim,
    Feedback,
    Finding,
    Kind,
    Mode,
    OutputDigest,
    Question,
    Resolution,
    Status,
    Usage,
    VerdictWord,
)
from backedge.core.value import Json, Value
from backedge.core.workflow.definition import Step, Workflow
from backedge.core.workflow.plan import NotedValues


class Fact(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, tag_field="type"):
    """An event: it happened at a time, and it stays."""

    at: float


class RunStarted(Fact, frozen=True, tag="run_started/2"):
    run: str
    workflow: Workflow
    input: Json = None
    input_payload: str | None = None
    files: dict[str, str] = {}
    """The workflow file and the files it names, as digests of stored values by path, so that another machine can
    continue."""


class AttemptStarted(Fact, frozen=True, tag="attempt_started/2"):
    step: str
    attempt: int
    mode: Mode = "work"
    agent: str = ""
    inputs: dict[str, int] = {}
    """The versions it works from, by producer."""
    loops: tuple[str, ...] = ()
    """The loops whose feedback it is given to address."""
    cause: tuple[str, ...] = ()
    """The loops that caused this attempt: its own, and those whose fix changed its inputs."""
    consumed: dict[str, str] | None = None
    """The digests of its inputs, by producer. None in events of version 0.1, which did not record this and what follows:
    see `state/version_0_1.py`."""
    counted: tuple[str, ...] = ()
    """The loops for which this attempt counts as a round; a retry after an error does not count again."""
    to_address: tuple[int, ...] = ()
    """The findings it has to address."""
    must_keep_fixed: tuple[int, ...] = ()
    """The findings that an earlier attempt addressed and that are not verified yet."""
    unverified: tuple[str, ...] = ()
    """The loops whose fix by an earlier attempt is not verified yet."""
    verifies: tuple[str, ...] = ()
    """The loops of this step whose fix it verifies."""
    results: tuple[str, ...] = ()
    """The loops of this step whose result it is given."""
    executor: str = ""
    """The worker that makes the attempt; empty for the process that executes the run."""


class AttemptSucceeded(Fact, frozen=True, tag="attempt_succeeded/2"):
    step: str
    attempt: int
    made: OutputDigest
    summary: str = ""
    claims: tuple[Claim, ...] = ()
    usage: Usage = Usage()
    seconds: float = 0.0
    log: str | None = None
    """The digest of what the agent logged."""
    session: str | None = None
    """The conversation that a rework can continue."""
    warning: str = ""
    """Which fields of the outcome are ignored, because they do not fit its mode."""
    artifact: str | None = None
    """The digest of the artifact, where it is not that of the output: a judge's artifact includes the versions it judged.
    None in events of version 0.1, which did not record it."""
    repeats: tuple[int, int] | None = None
    """For a step that repeats: how often it ran in a row, and how many more times a person granted."""


class AttemptFailed(Fact, frozen=True, tag="attempt_failed/1"):
    """The agent failed. Never a pass, never a round."""

    step: str
    attempt: int
    error: str
    retry_at: float
    usage: Usage = Usage()
    seconds: float = 0.0
    log: str | None = None
    session: str | None = None


class AttemptDropped(Fact, frozen=True, tag="attempt_dropped/1"):
    """The attempt ended without an outcome, and the agent is not to blame."""

    step: str
    attempt: int
    reason: Literal["interrupted", "in doubt"]
    usage: Usage = Usage()
    seconds: float = 0.0


class Sighting(Value, frozen=True):
    """One finding in a verdict. The text is left out if the ledger already has it."""

    id: int
    status: Status
    finding: Finding | None = None
    fingerprint: str = ""
    """Recorded with a new finding, so that a later rule change cannot merge or split findings of an existing
    journal."""
    fix_authored: bool = False


class VerdictGiven(Fact, frozen=True, tag="verdict_given/1"):
    judge: str
    attempt: int
    """0 for a check of inputs, which costs no attempt."""
    word: VerdictWord
    findings: tuple[Sighting, ...] = ()
    settled: tuple[tuple[int, Status], ...] = ()
    """The new status of open findings that were not reported again."""


class LoopOpened(Fact, frozen=True, tag="loop_opened/1"):
    loop: str
    kind: Kind
    source: str
    attempt: int = 0
    feedback: Feedback | None = None
    caused_by: str | None = None
    follows: str | None = None
    warning: str = ""


class FeedbackRouted(Fact, frozen=True, tag="feedback_routed/1"):
    """A round of a loop: which target gets which findings, and by which rule."""

    loop: str
    shares: dict[str, tuple[int, ...]]
    rules: dict[str, tuple[int, ...]] = {}
    """The findings each rule routed; an empty list for feedback without findings."""
    feedback: Feedback | None = None
    """The feedback as it was raised again, in its new wording."""
    gaps: tuple[tuple[int, str], ...] = ()
    """Where the requirement of a finding got lost, in words."""
    balance: tuple[int, int] | None = None
    """How many findings the last fix introduced, and how many it removed."""
    kept: tuple[str, ...] = ()
    """The targets that keep the share of this round that they have; the rest of the round was routed again."""


class FeedbackRefused(Fact, frozen=True, tag="feedback_refused/1"):
    source: str
    targets: tuple[str, ...]
    reason: str
    message: str = ""


class FeedbackAcknowledged(Fact, frozen=True, tag="feedback_acknowledged/1"):
    loop: str
    target: str
    message: str = ""
    action: str = ""
    eta: str = ""


class FeedbackRejoined(Fact, frozen=True, tag="feedback_rejoined/1"):
    """An attempt repeats a question of an earlier attempt that was lost while it ran. It gets the result of that
    loop."""

    loop: str
    step: str
    attempt: int


class AnswerGiven(Fact, frozen=True, tag="answer_given/1"):
    loop: str
    target: str
    answer: Json


class PositionTaken(Fact, frozen=True, tag="position_taken/1"):
    """A target of a choice votes for an option."""

    loop: str
    target: str
    option: str
    reason: str = ""


class ChoiceMade(Fact, frozen=True, tag="choice_made/1"):
    """The option that was chosen; it takes effect in the same round."""

    loop: str
    option: str
    by: str
    reason: str = ""


class WaitBegan(Fact, frozen=True, tag="wait_began/1"):
    """An attempt waits while it runs. Until it gets the result, other steps may change what it consumed."""

    loop: str
    step: str
    attempt: int


class WaitEnded(Fact, frozen=True, tag="wait_ended/1"):
    """An attempt stopped waiting and continues with what it had."""

    loop: str
    step: str
    attempt: int


class ResultDelivered(Fact, frozen=True, tag="result_delivered/1"):
    """A waiting attempt got the result of its loop, and continues with its current inputs."""

    loop: str
    step: str
    attempt: int
    inputs: dict[str, int] = {}
    consumed: dict[str, str] | None = None
    """The digests of these inputs; None in events of version 0.1."""


class LoopClosed(Fact, frozen=True, tag="loop_closed/1"):
    loop: str
    state: LoopState
    resolution: Resolution


class EscalationOpened(Fact, frozen=True, tag="escalation_opened/1"):
    escalation: str
    reason: str
    options: tuple[str, ...]
    loop: str | None = None
    step: str | None = None
    breach: Breach | None = None
    about: Question | None = None
    """What a person is asked to do or approve."""


class LoopOverdue(Fact, frozen=True, tag="loop_overdue/1"):
    """No person answered in time. This happens at most once per question."""

    loop: str
    breach: Breach


class EscalationDecided(Fact, frozen=True, tag="escalation_decided/1"):
    escalation: str
    choice: str
    by: str = ""
    note: str = ""
    rounds: int = 0
    amount: float = 0.0
    option: str | None = None
    target: str | None = None
    phase: str | None = None


class StepSkipped(Fact, frozen=True, tag="step_skipped/1"):
    step: str
    reason: str


class ConditionEvaluated(Fact, frozen=True, tag="condition_evaluated/1"):
    """A step's condition was evaluated: the step runs, or is skipped until what the condition refers to changes."""

    step: str
    met: bool
    reason: str = ""
    basis: str = ""
    """The digest of the values that it was evaluated on; empty in events of version 0.1."""


class FindingsSettled(Fact, frozen=True, tag="findings_settled/1"):
    """A decision, not a verdict, changed the status of findings."""

    findings: tuple[int, ...]
    status: Status


class FindingsContested(Fact, frozen=True, tag="findings_contested/1"):
    """Findings that contradict each other: a person decides between them."""

    loop: str
    findings: tuple[int, ...]


class FindingReclassified(Fact, frozen=True, tag="finding_reclassified/1"):
    finding: int
    phase: str
    by: str = ""
    introduced_by: tuple[str, ...] = ()
    """The steps of that phase to which its judge can send it; unchanged if there is none."""


class StepsChanged(Fact, frozen=True, tag="steps_changed/2"):
    """A planner changed the run."""

    by: str
    attempt: int
    added: tuple[Step, ...] = ()
    """New steps, and steps that replace those of the same name."""
    removed: tuple[str, ...] = ()
    gained: dict[str, tuple[str, ...]] = {}
    """What the steps that missed something need from now on."""
    loops: tuple[str, ...] = ()
    """The loops whose feedback asked for it."""
    specs: dict[str, Json] = {}
    """The added steps as the planner wrote them; their agents are resolved from this."""
    noted: dict[str, NotedValues] = {}
    """What the new steps read of, or refer to in, existing artifacts."""
    replaced: tuple[str, ...] = ()
    """The added steps that replace one of the same name."""
    changed: tuple[Step, ...] | None = None
    """Other steps as they are after the change: without removed needs, with new ones. None in events of version 0.1."""


class InputChanged(Fact, frozen=True, tag="input_changed/1"):
    """The input of the run changed. Later attempts get the new input; finished work is not repeated."""

    input: Json = None


class ValueSet(Fact, frozen=True, tag="value_set/1"):
    """An agent or a person stores a value with the run."""

    path: str
    value: Json = None
    by: str = ""


class CheckpointSaved(Fact, frozen=True, tag="checkpoint_saved/1"):
    """A checkpoint of all stored values."""

    name: str
    by: str = ""


class CheckpointRestored(Fact, frozen=True, tag="checkpoint_restored/1"):
    name: str
    by: str = ""


class FeedbackRead(Fact, frozen=True, tag="feedback_read/1"):
    """A step's inbox was read and is now empty."""

    step: str
    loops: tuple[str, ...]


class RunPaused(Fact, frozen=True, tag="run_paused/1"):
    by: str = ""


class RunResumed(Fact, frozen=True, tag="run_resumed/1"):
    by: str = ""


class FileImported(Fact, frozen=True, tag="file_imported/1"):
    """A file of another system was imported. The run shows its content and is never executed."""

    form: str
    """What kind of file it is."""
    name: str
    text: str


class RunEnded(Fact, frozen=True, tag="run_ended/1"):
    outcome: Literal["verified", "done", "accepted", "failed", "cancelled", "imported"]
    reason: str = ""


Event: TypeAlias = (
    RunStarted
    | AttemptStarted
    | AttemptSucceeded
    | AttemptFailed
    | AttemptDropped
    | VerdictGiven
    | LoopOpened
    | FeedbackRouted
    | FeedbackRefused
    | FeedbackAcknowledged
    | FeedbackRejoined
    | AnswerGiven
    | PositionTaken
    | ChoiceMade
    | WaitBegan
    | WaitEnded
    | ResultDelivered
    | LoopClosed
    | EscalationOpened
    | LoopOverdue
    | EscalationDecided
    | StepSkipped
    | ConditionEvaluated
    | FindingsSettled
    | FindingsContested
    | FindingReclassified
    | StepsChanged
    | InputChanged
    | ValueSet
    | CheckpointSaved
    | CheckpointRestored
    | FeedbackRead
    | RunPaused
    | RunResumed
    | FileImported
    | RunEnded
)
