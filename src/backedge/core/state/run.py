"""What a run is: its steps, loops, findings and escalations as they stand. `core/state/evolve.py` says how events lead there.

States are immutable: a decision that could not be appended is simply dropped, together with the state that it would
have led to.
"""

from __future__ import annotations

from typing import Any

from backedge.core import events as e
from backedge.core.feedback.loop import Loop
from backedge.core.findings.ledger import TrackedFinding
from backedge.core.model import HUMAN, Breach, Change, Mode, Question, Usage, VerdictWord
from backedge.core.state.persistent_map import Map
from backedge.core.value import Json, Value, replace
from backedge.core.workflow.definition import Workflow
from backedge.core.workflow.graph import Graph

REPEAT = "repeat"
"""The name of the bound on the executions of a step that is repeated until a condition is met."""

ASKED = "asked"
"""The reason of an escalation that is a question to a person, not a breach."""
NO_APPROVER = "no approver"
"""How the reason of an escalation begins that asks for the approval of a step."""


class Artifact(Value, frozen=True):
    """The current output of a step."""

    version: int
    digest: str
    attempt: int
    output: Json = None
    payload: str | None = None
    parts: dict[str, str] = {}
    consumed: dict[str, str] = {}
    """What it was made from: the digest of each input."""
    values: dict[str, Json] = {}
    """What conditions refer to, by JSON pointer."""
    changes: tuple[tuple[int, tuple[Change, ...]], ...] = ()
    """Where the last few versions differ from the ones before them."""
    inputs: dict[str, int] = {}
    """The versions it was made from, by producer."""
    cause: tuple[str, ...] = ()
    """The loops that made this version necessary."""
    summary: str = ""


class Running(Value, frozen=True):
    """An attempt under way."""

    attempt: int
    mode: Mode
    started: float
    agent: str = ""
    loops: tuple[str, ...] = ()
    to_address: tuple[int, ...] = ()
    """The findings it has to address."""
    must_keep_fixed: tuple[int, ...] = ()
    """The findings that an earlier attempt addressed and nobody has verified yet: it is to keep them so."""
    unverified_loops: tuple[str, ...] = ()
    """The loops whose fix, by an earlier attempt, still waits for a verdict."""
    verifies: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    cause: tuple[str, ...] = ()
    consumed: dict[str, str] = {}
    input_versions: dict[str, int] = {}
    awaits: tuple[str, ...] = ()
    """The loops that it waits for, in mid-work."""
    raised_loops: tuple[str, ...] = ()
    """The loops that this attempt raised or rejoined."""
    replanned: bool = False
    """It changed the steps of the run."""


class LastVerdict(Value, frozen=True):
    """The last verdict of a judge."""

    word: VerdictWord
    versions: dict[str, int]
    """The artifact versions it saw."""
    accepted: bool = False
    """A person let it count as passed."""


class ConditionResult(Value, frozen=True):
    """What was seen when a step's condition was looked at."""

    met: bool
    basis: str
    """The digest of the values that it refers to."""


class StepState(Value, frozen=True):
    """What is known of one step."""

    attempts: int = 0
    running: Running | None = None
    artifact: Artifact | None = None
    errors: int = 0
    errors_granted: int = 0
    last_error: str = ""
    session: str | None = None
    """The conversation that its agent can go on with."""
    retry_at: float = 0.0
    rounds: int = 0
    """Executions that feedback asked for."""
    replaced: bool = False
    """A planner replaced it after its artifact was made."""
    added_for: tuple[str, ...] = ()
    """The loops whose feedback asked a planner for it."""
    skipped_by_decision: bool = False
    condition_false: bool = False
    """Its condition was not met: whatever it made before is not used."""
    condition: ConditionResult | None = None
    """The last look at its condition."""
    repeats: int = 0
    """How often it was executed in a row to meet what it is repeated for."""
    repeats_granted: int = 0
    approved: bool = False
    """A person let its next execution happen."""
    results_due: tuple[str, ...] = ()
    """Loops closed by hand whose resolution the next attempt has to be given."""
    asked_loops: dict[str, str] = {}
    """Feedback raised in mid-work since the last finished attempt: what was asked, and the loop."""
    verdict: LastVerdict | None = None
    verdicts: int = 0
    failures: int = 0
    """Failing verdicts in a row."""
    checks: int = 0
    """Checks of its inputs that found something, or found it mended: they are no verdicts of its agent."""
    last_loop: str | None = None
    """The last loop that its verdicts started."""
    open_findings: tuple[int, ...] = ()
    """The findings that it has to answer for when it judges again."""
    unconfirmed: Map[int, bool] = Map()
    """The findings since its last pass that a later verdict did not mention, and whether that is so still."""

    @property
    def unmentioned(self) -> tuple[int, ...]:
        """The findings that it left open without a word: not asked about again, known if seen, and fixed by a pass."""
        return tuple(sorted(id for id, still in self.unconfirmed.items() if still))

    @property
    def never_made(self) -> bool:
        """Whether it was passed over before it made anything."""
        return self.skipped_by_decision and self.artifact is None


class Escalation(Value, frozen=True):
    """A decision packet."""

    id: str
    reason: str
    options: tuple[str, ...]
    opened_at: float
    loop: str | None = None
    step: str | None = None
    breach: Breach | None = None
    about: Question | None = None
    """What a person is asked to do, or to approve: withdrawn as soon as it is no longer what the step would do."""
    decided: e.EscalationDecided | None = None

    @property
    def asks_approval(self) -> bool:
        return self.step is not None and self.reason.startswith(NO_APPROVER)


class Derived:
    """What the scheduler worked out of a state, and the steps that changed since. It says nothing that the rest of the
    state does not, so two states that differ only here are equal."""

    __slots__ = ("changed", "index")

    def __init__(self, index: object = None, changed: tuple[str, ...] = ()) -> None:
        self.index, self.changed = index, changed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Derived)

    __hash__ = None  # type: ignore[assignment]  # a state that compares by value has no use for one


NOTHING_DERIVED = Derived()


class RunState(Value, frozen=True):
    """Everything that the rules need to know of a run."""

    run: str
    graph: Graph
    started_at: float
    seq: int = 0
    input: Json = None
    input_payload: str | None = None
    steps: dict[str, StepState] = {}
    loops: dict[str, Loop] = {}
    """The open ones."""
    closed_loops: Map[int, Loop] = Map()
    findings: Map[int, TrackedFinding] = Map()
    finding_by_key: Map[str, int] = Map()
    """Finding by judge and fingerprint."""
    findings_by_location: Map[str, tuple[int, ...]] = Map()
    """The last findings at each place that findings name."""
    accepted: Map[str, int] = Map()
    """Finding by judge and fingerprint, for those that a person accepted."""
    escalations: dict[str, Escalation] = {}
    """The open ones."""
    decided_escalations: Map[int, Escalation] = Map()
    refused: Map[int, e.FeedbackRefused] = Map()
    opened_loops: int = 0
    opened_escalations: int = 0
    usage: Usage = Usage()
    attempts: int = 0
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
    """Something was accepted or passed over."""
    ended: e.RunEnded | None = None
    steps_ever: int = 0
    """How many steps there have been, removed and replaced ones included."""
    retired: dict[str, int] = {}
    """Removed steps, and how many attempts they made: a number is never used twice."""
    specs: dict[str, Json] = {}
    """The steps that planners added, as they were written."""
    plans: Map[int, e.StepsChanged] = Map()
    values: dict[str, Json] = {}
    """What agents and people keep beside the run."""
    checkpoints: dict[str, dict[str, Json]] = {}
    read: dict[str, tuple[str, ...]] = {}
    """The loops whose feedback was read, by step."""
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
    """The run with another state of one step, and whatever else changes with it."""
    derived = state.derived
    changed = Derived(derived.index, (*derived.changed, name))
    return replace(state, steps={**state.steps, name: step}, derived=changed, **more)


def with_loop(state: RunState, loop: Loop) -> RunState:
    return replace(state, loops={**state.loops, loop.id: loop})
