"""The state of a run: its steps, loops, findings and escalations. `core/state/evolve.py` computes it from the events.

States are immutable. If the events of a decision cannot be appended, the new state is simply dropped.
"""

from __future__ import annotations

from typing import Any

from backedge.core import events as e
from backedge.core.evidence.values import NO_EVIDENCE, Baseline, Evidence, ProtectedFile, RestoreRule
from backedge.core.feedback.loop import Loop
from backedge.core.findings.ledger import TrackedFinding
from backedge.core.model import HUMAN, Breach, Change, Mode, Question, Usage, VerdictWord
from backedge.core.state.persistent_map import Map
from backedge.core.value import Json, Value, replace
from backedge.core.workflow.definition import Workflow
from backedge.core.workflow.graph import Graph

REPEAT = "repeat"
"""The name in a breach for the `max` of a step that repeats until a condition is met."""

PROVIDER_WAIT = "provider_wait"
"""The name of the limit on waiting for a provider."""

ASKED = "asked"
"""The reason of an escalation that asks a person a question because feedback was sent to them, not because of a breach."""
NO_APPROVER = "no approver"
"""The reason of an escalation that asks for approval of a step begins with this."""


class Artifact(Value, frozen=True):
    """The current output of a step."""

    version: int
    digest: str
    attempt: int
    output: Json = None
    payload: str | None = None
    parts: dict[str, str] = {}
    consumed: dict[str, str] = {}
    """The digest of each input it was made from."""
    values: dict[str, Json] = {}
    """The values that conditions refer to, by JSON pointer."""
    changes: tuple[tuple[int, tuple[Change, ...]], ...] = ()
    """For the last few versions: where each differs from the one before."""
    inputs: dict[str, int] = {}
    """The versions it was made from, by producer."""
    cause: tuple[str, ...] = ()
    """The loops that caused this version."""
    summary: str = ""


class Running(Value, frozen=True):
    """A running attempt."""

    attempt: int
    mode: Mode
    started: float
    agent: str = ""
    loops: tuple[str, ...] = ()
    to_address: tuple[int, ...] = ()
    """The findings it has to address."""
    must_keep_fixed: tuple[int, ...] = ()
    """The findings that an earlier attempt addressed and no judge has verified yet. This attempt must not undo the fix."""
    unverified_loops: tuple[str, ...] = ()
    """The loops whose fix by an earlier attempt still waits for a verdict."""
    verifies: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    cause: tuple[str, ...] = ()
    consumed: dict[str, str] = {}
    input_versions: dict[str, int] = {}
    awaits: tuple[str, ...] = ()
    """The loops whose result it waits for while it runs."""
    raised_loops: tuple[str, ...] = ()
    """The loops that this attempt raised or rejoined."""
    replanned: bool = False
    """Whether it changed the steps of the run."""
    told: tuple[int, ...] = ()
    """The changes of protected files that it was told about."""
    trees: dict[str, str] = {}
    """For a judge: the digests of all files when it started, by folder."""
    overtaken: tuple[str, ...] = ()
    """For a reviewer: the files that other steps changed while it judges them."""


class LastVerdict(Value, frozen=True):
    """The last verdict of a judge."""

    word: VerdictWord
    versions: dict[str, int]
    """The artifact versions that it judged."""
    accepted: bool = False
    """Whether a person accepted its findings, so that it counts as a pass."""
    tree: str = ""
    """The digest of the files that it judged; empty if it was not measured."""
    workspace: str = ""
    """The folder of these files."""


class TriedAttempt(Value, frozen=True):
    """What an attempt did, in its own words, for later briefings."""

    attempt: int
    round: int
    summary: str


class ConditionResult(Value, frozen=True):
    """The result of evaluating the condition of a step."""

    met: bool
    basis: str
    """The digest of the values that the condition refers to."""
    loops: bool = False
    """Whether the digest includes conditions on loops."""


class StepState(Value, frozen=True):
    """The state of one step."""

    attempts: int = 0
    running: Running | None = None
    artifact: Artifact | None = None
    errors: int = 0
    errors_granted: int = 0
    last_error: str = ""
    session: str | None = None
    """The conversation that its agent can continue."""
    retry_at: float = 0.0
    """When the next attempt may start, after an error or a limit of the provider."""
    limits_in_a_row: int = 0
    """How often in a row its provider had reached a limit."""
    limited_since: float = 0.0
    """When the first attempt of these ended."""
    limit_message: str = ""
    """What the provider said about its limit."""
    rounds: int = 0
    """How many of its executions were rounds of feedback."""
    replaced: bool = False
    """Whether a planner replaced it after its artifact was made."""
    added_for: tuple[str, ...] = ()
    """The loops for which a planner added it."""
    skipped_by_decision: bool = False
    condition_false: bool = False
    """Whether its condition was not met. Then an earlier artifact of it is not used."""
    condition: ConditionResult | None = None
    """The last evaluation of its condition."""
    repeats: int = 0
    """How often in a row it was executed to meet its `until` conditions."""
    repeats_granted: int = 0
    approved: bool = False
    """Whether a person approved its next execution."""
    unapproved: tuple[str, ...] = ()
    """The files that it changed since a person last approved its results, if these may need approval."""
    confidence: float | None = None
    """How confident its agent was of the current artifact."""
    results_due: tuple[str, ...] = ()
    """The loops whose results its next attempt has to be given."""
    answered: tuple[str, ...] = ()
    """The last loops of its own that were answered: later attempts, which may know nothing of earlier ones, need that."""
    loop_by_question: dict[str, str] = {}
    """Feedback raised by running attempts since the last finished one: its `question_key`, and its loop."""
    tried: tuple[TriedAttempt, ...] = ()
    """What its last attempts did."""
    verdict: LastVerdict | None = None
    verdicts: int = 0
    failures: int = 0
    """Failing verdicts in a row."""
    checks: int = 0
    """How many checks of its inputs found a problem, or found one fixed. They are not verdicts of its agent."""
    last_loop: str | None = None
    """The last loop that its verdicts started."""
    open_findings: tuple[int, ...] = ()
    """The findings whose status it has to report when it judges again."""
    evidence: Evidence = NO_EVIDENCE
    """What backedge saw of its last attempt."""
    files: tuple[str, ...] = ()
    """All files that its attempts changed."""
    overtaken: tuple[str, ...] = ()
    """For a reviewer: the files that other steps changed after it judged them."""
    last_version: int = 0
    """The highest version that it has made, if a rollback restored an earlier one: no number is used twice."""
    rejudge: bool = False
    """Whether it has to judge once more, because files changed after its verdict."""
    rejudged_at: int = 0
    """The round of the run in which it last judged for that reason, plus one."""
    unconfirmed: Map[int, bool] = Map()
    """The findings since its last pass that a later verdict did not mention. The value is false for those that were
    mentioned again since."""

    @property
    def unmentioned(self) -> tuple[int, ...]:
        """The findings that its verdicts no longer mention. It is not asked about them; it recognises them if it reports
        them again; and a pass marks them as fixed."""
        return tuple(sorted(id for id, unconfirmed in self.unconfirmed.items() if unconfirmed))

    @property
    def skipped_without_output(self) -> bool:
        """Whether a decision skipped it before it made an artifact."""
        return self.skipped_by_decision and self.artifact is None


class Escalation(Value, frozen=True):
    """A question to a person, with the options to choose from."""

    id: str
    reason: str
    options: tuple[str, ...]
    opened_at: float
    loop: str | None = None
    step: str | None = None
    breach: Breach | None = None
    about: Question | None = None
    """What a person is asked to do or to approve. It is withdrawn as soon as the step would do something else."""
    protected: tuple[int, ...] = ()
    """The changes of protected files that it asks about."""
    refused: int = 0
    """The number of the refused feedback that it tells about. It holds nothing up."""
    vote: str | None = None
    """The loop of a choice in which its step could not take a position. A person may do that for it."""
    restores: bool = False
    """Whether it asks about the files of a rollback that were edited since."""
    for_roles: tuple[str, ...] = ()
    """The roles of the people who are asked; empty for everybody."""
    reminded: tuple[float, ...] = ()
    """The reminders that were given, in seconds after it was opened."""
    expired: bool = False
    """Whether the time for an answer has passed."""
    decided: e.EscalationDecided | None = None

    @property
    def asks_approval(self) -> bool:
        return self.step is not None and self.reason.startswith(NO_APPROVER)


class Fix(Value, frozen=True):
    """A round of a judge's loop, and how everything that it can change was before it."""

    round: int
    targets: tuple[str, ...]
    steps: dict[str, StepState]
    """Its targets, and all steps below them."""
    loops: dict[str, Loop]
    """The open loops of the judges among these."""
    findings: Map[int, TrackedFinding]
    protected: dict[str, ProtectedFile]
    attempts: tuple[tuple[str, int], ...] = ()
    """The attempts of these steps since, other than judges, in the order in which they started."""
    answers_others: bool = False
    """Whether the round also addressed feedback of steps or people."""


class Restoring(Value, frozen=True):
    """The files that a rollback has to restore before its steps start again."""

    steps: tuple[str, ...]
    """The steps that wait for it."""
    undo: dict[str, tuple[tuple[str, int], ...]]
    """The attempts to undo, by workspace, the last one first."""
    protected: dict[str, ProtectedFile]
    """The protected files before these attempts."""
    rule: RestoreRule = "unless_edited"


class Derived:
    """What the scheduler computed from a state, and the steps that changed since. It is a cache: two states that differ
    only here are equal."""

    __slots__ = ("changed", "index")

    def __init__(self, index: object = None, changed: tuple[str, ...] = ()) -> None:
        self.index, self.changed = index, changed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Derived)

    __hash__ = None  # type: ignore[assignment]  # states compare by value and are never used as keys


NOTHING_DERIVED = Derived()


class RunState(Value, frozen=True):
    """Everything that the rules need to know about a run."""

    run: str
    graph: Graph
    started_at: float
    seq: int = 0
    input: Json = None
    input_payload: str | None = None
    steps: dict[str, StepState] = {}
    loops: dict[str, Loop] = {}
    """Only the open ones."""
    closed_loops: Map[int, Loop] = Map()
    findings: Map[int, TrackedFinding] = Map()
    finding_by_key: Map[str, int] = Map()
    """The id of each finding, by `ledger_key`."""
    findings_by_location: Map[str, tuple[int, ...]] = Map()
    """The ids of the last findings at each location."""
    accepted: Map[str, int] = Map()
    """The ids of the findings that a person accepted, by `ledger_key`."""
    escalations: dict[str, Escalation] = {}
    """Only the open ones."""
    decided_escalations: Map[int, Escalation] = Map()
    refused: Map[int, e.RefusedFeedback] = Map()
    opened_loops: int = 0
    opened_escalations: int = 0
    usage: Usage = Usage()
    attempts: int = 0
    limited_attempts: int = 0
    """How many attempts a limit of a provider ended. Budgets and bounds do not count them."""
    rounds: int = 0
    recoveries: int = 0
    pairs: dict[tuple[str, str], int] = {}
    grants: dict[str, float] = {}
    busy: int = 0
    busy_since: float = 0.0
    seconds_worked: float = 0.0
    last_at: float = 0.0
    paused_by: str | None = None
    replanned: bool = False
    """A loop that hit its limit was sent to the planner: that happens once."""
    has_accepted: bool = False
    """Whether a decision accepted a finding or skipped a step."""
    ended: e.RunEnded | None = None
    steps_ever: int = 0
    """How many steps the run has ever had, including removed and replaced ones."""
    retired: dict[str, int] = {}
    """Removed steps, and how many attempts they made. If such a step is added again, its attempts are counted on."""
    specs: dict[str, Json] = {}
    """The steps that planners added, as the planners wrote them."""
    plans: Map[int, e.StepsChanged] = Map()
    values: dict[str, Json] = {}
    """Values that agents and people stored with the run."""
    checkpoints: dict[str, dict[str, Json]] = {}
    read: dict[str, tuple[str, ...]] = {}
    """The loops whose feedback was read from the inbox, by step."""
    protected: dict[str, ProtectedFile] = {}
    """The protected files that differ from the start of the run, by path."""
    protected_ever: int = 0
    """How many changes of protected files there were."""
    trees: dict[str, str] = {}
    """The digest of all files when they were last measured, by folder."""
    baselines: dict[str, Baseline] = {}
    """What the tool judges reported about the files of the start, by judge."""
    fixes: dict[str, Fix] = {}
    """The last round of each judge's loop that can be rolled back, by loop."""
    rollbacks: Map[int, e.RolledBack] = Map()
    restoring: Restoring | None = None
    files_kept: Map[int, bool] = Map()
    """The rollbacks whose files stayed as they were, because a person had edited them."""
    imported: e.FileImported | None = None
    """The file that the run was imported from."""
    derived: Derived = NOTHING_DERIVED

    @property
    def workflow(self) -> Workflow:
        return self.graph.workflow

    def seconds_at_work(self, now: float) -> float:
        return self.seconds_worked + (max(0.0, now - self.busy_since) if self.busy else 0.0)

    def rounds_of(self, step: str) -> int:
        return self.steps[step].rounds if step != HUMAN else 0

    def loop(self, id: str) -> Loop | None:
        """An open or closed loop by its id."""
        found = self.loops.get(id) or self.closed_loops.get(number(id))
        return found if found is not None and found.id == id else None

    def escalation(self, id: str) -> Escalation | None:
        found = self.escalations.get(id) or self.decided_escalations.get(number(id))
        return found if found is not None and found.id == id else None

    @property
    def paused(self) -> bool:
        return self.paused_by is not None or any(loop.pauses for loop in self.loops.values())


def number(id: str) -> int:
    """The number in an id such as L-3; -1 for anything else."""
    _, _, digits = id.partition("-")
    return int(digits) if digits.isdecimal() else -1


def with_step(state: RunState, name: str, step: StepState, **more: Any) -> RunState:
    """The run with a new state of one step, and with other fields changed as given."""
    derived = state.derived
    if derived.index is not None:  # a replay has no index yet: it would note every change of a long history
        derived = Derived(derived.index, (*derived.changed, name))
    return replace(state, steps={**state.steps, name: step}, derived=derived, **more)


def with_loop(state: RunState, loop: Loop) -> RunState:
    return replace(state, loops={**state.loops, loop.id: loop})
