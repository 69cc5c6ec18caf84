"""The events of a run: facts about what happened. The journal is a list of events; the state is computed from them.

Each event is one JSON object with its type and version. A field that an older version did not write has its default.
An unknown type or field is refused, because a newer version wrote it.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from backedge.core.evidence.values import Baseline, ChangeAnswer, Evidence, RestoredFiles
from backedge.core.feedback.loop import LoopState
from backedge.core.model import (
    Breach,
    Feedback,
    Finding,
    FindingResolution,
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
    """The base of all events: a fact with the time at which it happened. Events never change."""

    at: float


class RunStarted(Fact, frozen=True, tag="run_started/2"):
    """A run started. It keeps this definition of its workflow."""

    run: str
    workflow: Workflow
    input: Json = None
    input_payload: str | None = None
    files: dict[str, str] = {}
    """The workflow file and the files it names: digests of stored values, by path. Another machine can continue the run
    with them."""


class AttemptStarted(Fact, frozen=True, tag="attempt_started/2"):
    """An attempt of a step started."""

    step: str
    attempt: int
    mode: Mode = "work"
    agent: str = ""
    inputs: dict[str, int] = {}
    """The versions of its inputs, by producer."""
    loops: tuple[str, ...] = ()
    """The loops whose feedback it has to address."""
    cause: tuple[str, ...] = ()
    """The loops that caused this attempt: its own, and those whose fix changed its inputs."""
    consumed: dict[str, str] | None = None
    """The digests of its inputs, by producer. None in events of version 0.1, which did not record this field and the
    following ones: see `state/version_0_1.py`."""
    counted: tuple[str, ...] = ()
    """The loops among `loops` for which this attempt counts as a round. A retry after an error does not count again."""
    to_address: tuple[int, ...] = ()
    """The findings it has to address."""
    must_keep_fixed: tuple[int, ...] = ()
    """The findings that an earlier attempt addressed and no judge has verified yet."""
    unverified: tuple[str, ...] = ()
    """The loops whose fix by an earlier attempt is not verified yet."""
    verifies: tuple[str, ...] = ()
    """The loops raised by this step whose fix it verifies."""
    results: tuple[str, ...] = ()
    """The loops raised by this step whose result it is given."""
    executor: str = ""
    """The worker that makes the attempt; empty for the process that executes the run."""
    told: tuple[int, ...] = ()
    """The changes of protected files that a reviewer is told about."""


class AttemptSucceeded(Fact, frozen=True, tag="attempt_succeeded/2"):
    """An attempt ended with an outcome."""

    step: str
    attempt: int
    made: OutputDigest
    summary: str = ""
    claims: tuple[FindingResolution, ...] = ()
    """The resolutions of the outcome."""
    usage: Usage = Usage()
    seconds: float = 0.0
    log: str | None = None
    """The digest of the agent's log."""
    session: str | None = None
    """The conversation that a rework can continue."""
    warning: str = ""
    """The fields of the outcome that were ignored because its mode does not ask for them."""
    artifact: str | None = None
    """The digest of the artifact, if it differs from that of the output: the artifact of a judge includes the versions
    that it judged. None in events of version 0.1, which did not record it."""
    repeats: tuple[int, int] | None = None
    """For a step that repeats: how often it ran in a row, and how many more executions a person granted."""
    confidence: float | None = None
    """How confident the agent is of its result, from 0 to 1, if it says so."""


class AttemptFailed(Fact, frozen=True, tag="attempt_failed/1"):
    """The agent broke. This is never a pass and never counts as a round."""

    step: str
    attempt: int
    error: str
    retry_at: float
    usage: Usage = Usage()
    seconds: float = 0.0
    log: str | None = None
    session: str | None = None


class AttemptLimited(Fact, frozen=True, tag="attempt_limited/1"):
    """The provider of the agent has reached a limit. This is not an error: the attempt is made again at `retry_at`."""

    step: str
    attempt: int
    message: str
    """What the provider said."""
    retry_at: float
    stated: bool = False
    """Whether the provider said when the limit resets."""
    usage: Usage = Usage()
    seconds: float = 0.0
    log: str | None = None
    session: str | None = None


class AttemptDropped(Fact, frozen=True, tag="attempt_dropped/1"):
    """The attempt ended without an outcome, and its agent is not to blame."""

    step: str
    attempt: int
    reason: Literal["interrupted", "in doubt"]
    usage: Usage = Usage()
    seconds: float = 0.0


class BaselineRecorded(Fact, frozen=True, tag="baseline_recorded/1"):
    """A tool judge was run on the files of the start of the run, before any step could change them."""

    baseline: Baseline


class EvidenceRecorded(Fact, frozen=True, tag="evidence_recorded/1"):
    """What backedge itself saw of an attempt that has ended."""

    step: str
    attempt: int
    evidence: Evidence
    overtakes: dict[str, tuple[str, ...]] = {}
    """The files among those it changed that a reviewer of another step had judged, by reviewer."""


class ProtectedAnswered(Fact, frozen=True, tag="protected_answered/1"):
    """A reviewer or a person answered for changes of protected files."""

    changes: tuple[int, ...]
    status: ChangeAnswer
    by: str = ""
    note: str = ""
    person: bool = False
    """Whether a person answered; else a reviewer did."""
    by_id: bool = False
    """Whether a reviewer named the changes; else it only passed the work."""


class VerdictsVoided(Fact, frozen=True, tag="verdicts_voided/1"):
    """Files changed after they were judged: these judges, and the judges that use their results, judge once more."""

    judges: tuple[str, ...]
    reason: str = ""


class Sighting(Value, frozen=True):
    """One finding in a verdict. The text is left out if it is the same as in the ledger."""

    id: int
    status: Status
    finding: Finding | None = None
    fingerprint: str = ""
    """Recorded with a new finding, so that a later change of the rules of identity does not affect existing journals."""
    fix_authored: bool = False
    moved: bool = False
    """Whether a gate or check measured other values than last time. It is the same finding, but not the same report."""


class VerdictGiven(Fact, frozen=True, tag="verdict_given/1"):
    """A judge gave its verdict, or a check of inputs found problems or found them fixed."""

    judge: str
    attempt: int
    """0 for a check of inputs, which is not an attempt."""
    word: VerdictWord
    findings: tuple[Sighting, ...] = ()
    settled: tuple[tuple[int, Status], ...] = ()
    """The new status of open findings that were not reported again."""
    unasked: bool = False
    """Whether no person was asked for approval, because the work is below every threshold."""


class LoopOpened(Fact, frozen=True, tag="loop_opened/1"):
    """Feedback was raised, by a verdict, by an agent or by a person."""

    loop: str
    kind: Kind
    source: str
    attempt: int = 0
    feedback: Feedback | None = None
    caused_by: str | None = None
    follows: str | None = None
    warning: str = ""
    carries: bool = False
    """Whether it continues the loop that it follows, with its counters: a rollback undid what resolved that one."""


class FeedbackRouted(Fact, frozen=True, tag="feedback_routed/1"):
    """A round of a loop: which target gets which findings, and by which rule."""

    loop: str
    shares: dict[str, tuple[int, ...]]
    rules: dict[str, tuple[int, ...]] = {}
    """The findings that each rule routed; an empty list for feedback without findings."""
    feedback: Feedback | None = None
    """The new text of feedback that was raised again."""
    gaps: tuple[tuple[int, str], ...] = ()
    """For a missing requirement: where it got lost, in words."""
    balance: tuple[int, int] | None = None
    """How many findings the last fix caused, and how many it removed."""
    kept: tuple[str, ...] = ()
    """The targets that already have their share of this round and keep it. Only the rest was routed again."""


class RolledBack(Fact, frozen=True, tag="rolled_back/1"):
    """A rework made things worse, or a person decided so: the versions before it count again, with the verdicts about
    them."""

    loop: str
    """The loop whose fix is rolled back."""
    round: int
    targets: tuple[str, ...]
    """The steps that had reworked."""
    versions: dict[str, int]
    """The versions that count again, by step: those of the targets, and of every step that ran again because of them."""
    undone: dict[str, int]
    """The versions of these steps that are given up."""
    attempts: tuple[tuple[str, int], ...] = ()
    """The attempts of steps other than judges whose work is undone, in the order in which they started."""
    findings: tuple[tuple[int, Status], ...] = ()
    """The findings whose status changes."""
    caused: tuple[int, ...] = ()
    """The findings that were open after the fix, and not before it."""
    shares: dict[str, dict[str, tuple[int, ...]]] = {}
    """The loops that go on, with the findings that stand again for each target."""
    before: tuple[int, ...] = ()
    """How many critical, high, medium and low findings the judges of both versions reported open before the fix."""
    after: tuple[int, ...] = ()
    """The same after the fix."""
    closed: tuple[str, ...] = ()
    """The loops that were closed because they were about the versions that are given up."""
    undo: dict[str, tuple[tuple[str, int], ...]] = {}
    """The attempts whose changes of files have to be undone, by workspace, the last one first."""
    by: str = ""
    """Who decided it; empty for `on_worse`."""


class FilesRestored(Fact, frozen=True, tag="files_restored/1"):
    """The files of a rollback are restored, or a person decided that they stay as they are."""

    workspaces: dict[str, RestoredFiles]
    kept: bool = False
    """Whether they stay as they are."""


class RefusedFeedback(Fact, frozen=True, tag="feedback_refused/1"):
    """Feedback could not be delivered. Nothing else changed."""

    source: str
    targets: tuple[str, ...]
    reason: str
    message: str = ""
    feedback: Feedback | None = None
    """All of it; None if it could not be parsed."""


class FeedbackAcknowledged(Fact, frozen=True, tag="feedback_acknowledged/1"):
    """A target confirmed that it received feedback, so that it does not time out."""

    loop: str
    target: str
    message: str = ""
    action: str = ""
    eta: str = ""


class FeedbackRejoined(Fact, frozen=True, tag="feedback_rejoined/1"):
    """An attempt raised the same feedback as an earlier attempt that was lost. It gets the result of the same loop."""

    loop: str
    step: str
    attempt: int


class AnswerGiven(Fact, frozen=True, tag="answer_given/1"):
    """A target answered a question."""

    loop: str
    target: str
    answer: Json


class PositionTaken(Fact, frozen=True, tag="position_taken/1"):
    """A target of a choice reported which option it prefers."""

    loop: str
    target: str
    option: str
    reason: str = ""


class TargetSkipped(Fact, frozen=True, tag="target_skipped/1"):
    """A target of a choice was skipped. The positions of the others stay, and they decide without it."""

    loop: str
    target: str
    reason: str = ""


class ChoiceMade(Fact, frozen=True, tag="choice_made/1"):
    """An option was chosen. Its rework belongs to the same round."""

    loop: str
    option: str
    by: str
    reason: str = ""


class WaitBegan(Fact, frozen=True, tag="wait_began/1"):
    """A running attempt waits for a loop. While it waits, other steps may change its inputs."""

    loop: str
    step: str
    attempt: int


class WaitEnded(Fact, frozen=True, tag="wait_ended/1"):
    """An attempt gave up waiting, and continues with the inputs it had."""

    loop: str
    step: str
    attempt: int


class ResultDelivered(Fact, frozen=True, tag="result_delivered/1"):
    """A waiting attempt was given the result of its loop, and continues with the current versions of its inputs."""

    loop: str
    step: str
    attempt: int
    inputs: dict[str, int] = {}
    consumed: dict[str, str] | None = None
    """The digests of these inputs; None in events of version 0.1."""


class LoopClosed(Fact, frozen=True, tag="loop_closed/1"):
    """A loop was closed."""

    loop: str
    state: LoopState
    resolution: Resolution


class EscalationOpened(Fact, frozen=True, tag="escalation_opened/1"):
    """A person has to decide."""

    escalation: str
    reason: str
    options: tuple[str, ...]
    loop: str | None = None
    step: str | None = None
    breach: Breach | None = None
    about: Question | None = None
    """What a person is asked to do or to approve."""
    protected: tuple[int, ...] = ()
    """The changes of protected files that a person is asked about."""
    refused: int = 0
    """The number of the refused feedback that a person is told about."""
    vote: str | None = None
    """The loop of a choice in which the step could not take a position."""
    restores: bool = False
    """Whether it asks about the files of a rollback that were edited since."""
    failed: tuple[str, ...] | None = None
    """The loops whose fix failed with the step. None in events of version 0.1: all that wait for the step."""
    for_roles: tuple[str, ...] = ()
    """The roles of the people who are asked; empty for everybody."""


class LoopOverdue(Fact, frozen=True, tag="loop_overdue/1"):
    """No person answered in time. This happens at most once for each question."""

    loop: str
    breach: Breach


class EscalationReminded(Fact, frozen=True, tag="escalation_reminded/1"):
    """People were reminded of a question that is still open."""

    escalation: str
    after: tuple[float, ...]
    """The due times that this reminder is for, in seconds after the question was opened: more than one if no process was
    there at the earlier ones."""


class EscalationExpired(Fact, frozen=True, tag="escalation_expired/1"):
    """No person answered a question in the time that the workflow's `expire` sets."""

    escalation: str
    choice: str = ""
    """The choice that is made instead; empty if people are only reminded."""


class EscalationDecided(Fact, frozen=True, tag="escalation_decided/1"):
    """An escalation was decided by a person, a policy or a planner, or it was withdrawn."""

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
    """A decision skipped a step. The steps that need it run without it."""

    step: str
    reason: str


class ConditionEvaluated(Fact, frozen=True, tag="condition_evaluated/1"):
    """A step's condition was evaluated. The step runs, or is skipped until the values in the condition change."""

    step: str
    met: bool
    reason: str = ""
    basis: str = ""
    """The digest of the values that the condition refers to; empty in events of version 0.1."""
    loops: bool = False
    """Whether the digest includes conditions on loops. Earlier events left them out: they were not looked at again."""


class FindingsSettled(Fact, frozen=True, tag="findings_settled/1"):
    """A decision, not a verdict, changed the status of findings."""

    findings: tuple[int, ...]
    status: Status


class FindingsContested(Fact, frozen=True, tag="findings_contested/1"):
    """Findings contradict each other, or a step contests one. A person decides."""

    loop: str
    findings: tuple[int, ...]


class FindingReclassified(Fact, frozen=True, tag="finding_reclassified/1"):
    """A person named the phase that injected a finding."""

    finding: int
    phase: str
    by: str = ""
    introduced_by: tuple[str, ...] = ()
    """The steps of that phase that its judge may send it to. If empty, the earlier value stays."""
    phases: tuple[str, ...] = ()
    """The phases, if the person named several with one word of the profile."""


class StepsChanged(Fact, frozen=True, tag="steps_changed/2"):
    """A planner changed the steps of the run."""

    by: str
    attempt: int
    added: tuple[Step, ...] = ()
    """New steps, and steps that replace those of the same name."""
    removed: tuple[str, ...] = ()
    gained: dict[str, tuple[str, ...]] = {}
    """Additional needs of the steps that requested the new steps."""
    loops: tuple[str, ...] = ()
    """The loops whose feedback asked for the change."""
    specs: dict[str, Json] = {}
    """The added steps as the planner wrote them. Their agents are built from this again after a restart."""
    noted: dict[str, NotedValues] = {}
    """The parts of existing artifacts that the new steps read or refer to."""
    replaced: tuple[str, ...] = ()
    """The added steps that replace one of the same name."""
    changed: tuple[Step, ...] | None = None
    """The other steps whose needs changed, as they are after the change. None in events of version 0.1."""
    files: dict[str, str] = {}
    """The files that the added steps name: digests of stored values, by path. Another machine can continue the run with
    them."""


class InputChanged(Fact, frozen=True, tag="input_changed/1"):
    """The input of the run was changed. Later attempts get the new input; finished work stays as it is."""

    input: Json = None


class ValueSet(Fact, frozen=True, tag="value_set/1"):
    """An agent or a person stored a value with the run."""

    path: str
    value: Json = None
    by: str = ""


class CheckpointSaved(Fact, frozen=True, tag="checkpoint_saved/1"):
    """A copy of all stored values was saved under a name."""

    name: str
    by: str = ""


class CheckpointRestored(Fact, frozen=True, tag="checkpoint_restored/1"):
    """All stored values were replaced by those of a checkpoint."""

    name: str
    by: str = ""


class FeedbackRead(Fact, frozen=True, tag="feedback_read/1"):
    """The inbox of a step was read. It is empty until more feedback comes."""

    step: str
    loops: tuple[str, ...]


class RunPaused(Fact, frozen=True, tag="run_paused/1"):
    """A person paused the run. No new attempts start."""

    by: str = ""


class RunResumed(Fact, frozen=True, tag="run_resumed/1"):
    """A person ended the pause."""

    by: str = ""


class RunRecovered(Fact, frozen=True, tag="run_recovered/1"):
    """A process continues a run whose process died while attempts were running. The time since the last event does not
    count as work: nobody knows how long that process lived."""


class FileImported(Fact, frozen=True, tag="file_imported/1"):
    """A file of another system was imported. The run shows what the file says, and is never executed."""

    form: str
    """The format of the file."""
    name: str
    text: str
    reading: int = 1
    """What the report reads from it: from 2 on also its options and decisions, from 3 on everything that was asked, and why
    a person was. An earlier import keeps its report."""


class RunEnded(Fact, frozen=True, tag="run_ended/1"):
    """The run ended. Its outcome stays as recorded, whatever later rules would say."""

    outcome: Literal["verified", "done", "accepted", "failed", "cancelled", "imported"]
    reason: str = ""


Event: TypeAlias = (
    RunStarted
    | AttemptStarted
    | AttemptSucceeded
    | AttemptFailed
    | AttemptLimited
    | AttemptDropped
    | BaselineRecorded
    | EvidenceRecorded
    | ProtectedAnswered
    | VerdictsVoided
    | VerdictGiven
    | LoopOpened
    | FeedbackRouted
    | RolledBack
    | FilesRestored
    | RefusedFeedback
    | FeedbackAcknowledged
    | FeedbackRejoined
    | AnswerGiven
    | PositionTaken
    | TargetSkipped
    | ChoiceMade
    | WaitBegan
    | WaitEnded
    | ResultDelivered
    | LoopClosed
    | EscalationOpened
    | LoopOverdue
    | EscalationReminded
    | EscalationExpired
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
    | RunRecovered
    | FileImported
    | RunEnded
)
