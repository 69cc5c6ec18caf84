"""The vocabulary of the product as values: findings, feedback, verdicts, outcomes, limits that were hit."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from msgspec.structs import force_setattr

from backedge.core.evidence.values import Approval
from backedge.core.suggestions import did_you_mean
from backedge.core.text import amount
from backedge.core.value import Json, Value

HUMAN = "human"
"""The person who answers the inbox. Feedback may always go to this name, and feedback of people has it as its source."""

ROOTS = ("root", "workflow-root")
"""Words for the first step without needs, whatever its name is."""

Mode = Literal["work", "rework", "verify", "answer", "decide"]
"""Why a step is executed. work: for the first time, or because its inputs changed. rework: to address feedback. verify:
to judge a fix. answer: to answer a question. decide: to choose one of several options."""

SIDE_MODES: tuple[Mode, ...] = ("answer", "decide")
"""Modes that do not change the step's artifact, so that nothing downstream becomes stale."""

VerdictWord = Literal["pass", "conditional", "needs_improvement", "fail"]
"""What a judge says about an artifact version. Only `fail` stops the work."""


class Severity(StrEnum):
    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return _RANK[self]


_RANK = {severity: rank for rank, severity in enumerate(Severity)}

SERIOUS = (Severity.CRITICAL, Severity.HIGH)
"""The severities that a verified run leaves neither open nor deferred."""

# The words that judges use for severities, and what they mean: (severity, blocking).
_SEVERITY_WORDS: dict[str, tuple[Severity, bool]] = {
    "blocker": (Severity.CRITICAL, True),
    "blocking": (Severity.CRITICAL, True),
    "major": (Severity.HIGH, False),
    "error": (Severity.HIGH, False),
    "warning": (Severity.MEDIUM, False),
    "minor": (Severity.LOW, False),
    "info": (Severity.LOW, False),
    **{severity.value: (severity, False) for severity in Severity},
}


def severity_of(word: str) -> tuple[Severity, bool]:
    """The severity and the blocking flag that a judge's word stands for. Raises ValueError for an unknown word."""
    meaning = _SEVERITY_WORDS.get(word.strip().lower())
    if meaning is None:
        raise ValueError(f"severity {word!r} is unknown: {did_you_mean(word, sorted(_SEVERITY_WORDS))}")
    return meaning


class Status(StrEnum):
    """The status of a finding in the ledger."""

    OPEN = "open"
    FIXED = "fixed"
    NOT_FIXED = "not_fixed"
    UNCONFIRMED = "unconfirmed"
    REGRESSED = "regressed"
    WITHDRAWN = "withdrawn"
    DUPLICATE = "duplicate"
    CONTESTED = "contested"
    DEFERRED = "deferred"
    ACCEPTED = "accepted"
    ROLLED_BACK = "rolled_back"
    """Only a version that was rolled back had it."""


class Kind(StrEnum):
    """What feedback asks for. If you add a member, the type checker lists every place that has to handle it."""

    FIX_REQUEST = "fix_request"
    REVIEW_REJECTION = "review_rejection"
    TEST_FAILURE = "test_failure"
    MISSING_REQUIREMENT = "missing_requirement"
    ARCHITECTURE_ISSUE = "architecture_issue"
    TECHNICAL_INFEASIBILITY = "technical_infeasibility"
    VALIDATION_FAILURE = "validation_failure"
    CONTEXT_REQUEST = "context_request"
    CONSTRAINT_VIOLATION = "constraint_violation"
    DEPENDENCY_MISSING = "dependency_missing"
    INCONSISTENCY = "inconsistency"
    QUALITY_GATE_FAILURE = "quality_gate_failure"


MAX_USAGE = 1_000_000_000_000
"""The largest amount of dollars or tokens. More is surely a mistake, and without a maximum a sum could become infinite,
which JSON cannot write."""


class Usage(Value, frozen=True):
    """What an attempt cost, as its agent reported it."""

    cost_usd: float = 0.0
    tokens_in: int = 0
    tokens_out: int = 0

    def __post_init__(self) -> None:
        for name in ("cost_usd", "tokens_in", "tokens_out"):
            amount = getattr(self, name)
            if not 0 <= amount <= MAX_USAGE:
                got = "too large" if amount > MAX_USAGE else amount
                raise ValueError(f"usage {name} is {got}: expected a number from 0 to {MAX_USAGE}")

    def __add__(self, other: Usage) -> Usage:
        """The sum of both, at most MAX_USAGE."""
        if other == NO_USAGE:
            return self
        return Usage(
            min(self.cost_usd + other.cost_usd, MAX_USAGE),
            min(self.tokens_in + other.tokens_in, MAX_USAGE),
            min(self.tokens_out + other.tokens_out, MAX_USAGE),
        )


NO_USAGE = Usage()


class Finding(Value, frozen=True):
    """One defect, as a judge states it."""

    description: str
    severity: Severity = Severity.HIGH
    blocking: bool = False
    category: str = ""
    affected_phase: tuple[str, ...] = ()
    evidence: str = ""
    impact: str = ""
    file: str | None = None
    line: int | None = None
    path: str | None = None
    """The location in an artifact, as a JSON pointer."""
    suggested_fix: str | None = None
    requirement_id: str | None = None
    word: str = ""
    """The judge's own word for the severity, if it differs from ours."""
    test: str = ""
    """The id of the test that failed."""
    blames: str = ""
    """The step that backedge saw changing what the finding is about. The finding goes there."""


class Option(Value, frozen=True):
    """One option of feedback that asks for a decision."""

    option: str
    effort: str = ""
    impact: str = ""
    rework: tuple[str, ...] = ()
    """The steps that rework if it is chosen."""
    accept: bool = False
    """Whether choosing it accepts the limitation: that is recorded, and nothing is fixed."""


class Decision(Value, frozen=True):
    """The option that an agent or a person prefers, and why."""

    option: str
    reason: str = ""


class Position(Value, frozen=True):
    """The option that a target of a choice preferred, in which round, and why."""

    round: int
    who: str
    option: str
    reason: str = ""


class ChosenOption(Value, frozen=True):
    """The option that was chosen, by whom, and why."""

    option: str
    by: str
    reason: str = ""


class Feedback(Value, frozen=True, tag="feedback", tag_field="form"):
    """What an agent or a person sends back to the steps that can fix it."""

    kind: Kind
    to: tuple[str, ...]
    message: str
    severity: Severity = Severity.HIGH
    blocking: bool = False
    suggested_fix: str | None = None
    requested_info: str | None = None
    artifacts: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    requirement_id: str | None = None
    details: Json = None
    called: str = ""
    """The workflow's own name for the kind, if it has one."""

    @property
    def word(self) -> str:
        """The kind as reports name it."""
        return self.called or self.kind


class MalformedFeedback(Value, frozen=True, tag="malformed", tag_field="form"):
    """Feedback that could not be parsed. It is refused like any feedback that cannot be delivered."""

    to: tuple[str, ...]
    reason: str
    message: str = ""


Answer = Literal["fixed", "not_fixed", "withdrawn", "duplicate", "contested"]


class FindingResolution(Value, frozen=True):
    """What a step reports about one finding: fixed, not_fixed, withdrawn or duplicate by its judge, which is final; fixed
    or contested by the step that reworks, which its judge checks."""

    finding: str
    status: Answer
    note: str = ""


class Change(Value, frozen=True):
    """One location where two versions of an artifact differ."""

    where: str
    """A JSON pointer into the output ("" is all of it), or the name of a file in the workspace."""
    lines: tuple[tuple[int, int], ...] = ()
    """For text: the line ranges of the new version, first and last included."""


class OutputDigest(Value, frozen=True):
    """A description of the output of an attempt. It has what the rules need, without the output itself if that is large."""

    digest: str
    output: Json = None
    payload: str | None = None
    """The digest under which a large output is stored; `output` is None then."""
    size: int = 0
    parts: dict[str, str] = {}
    """Digests of the parts that consumers declare in `reads`, by JSON pointer."""
    changed: tuple[Change, ...] = ()
    """Where it differs from the previous version."""
    values: dict[str, Json] = {}
    """The values that conditions refer to, by JSON pointer; missing values are left out."""


class Outcome(Value, frozen=True):
    """Everything that an attempt can report."""

    made: OutputDigest
    summary: str = ""
    verdict: VerdictWord | None = None
    findings: tuple[Finding, ...] = ()
    resolutions: tuple[FindingResolution, ...] = ()
    feedback: tuple[Feedback | MalformedFeedback, ...] = ()
    answer: Json = None
    decision: Decision | None = None
    usage: Usage = Usage()
    approvals: tuple[Approval, ...] = ()
    confidence: float | None = None
    """How confident the agent is of its result, from 0 to 1."""
    lists_findings: bool = False
    """Whether the agent listed its findings, even if there are none: that is more than to say nothing of them."""


class Resolution(Value, frozen=True):
    """How a loop ended. Its source and the attempts that wait for it are given this."""

    state: str
    """resolved, accepted, cancelled, failed, escalated or timeout."""
    by: str = ""
    text: str = ""
    option: str | None = None
    answers: dict[str, Json] = {}
    """The answers, by target."""


class Question(Value, frozen=True):
    """What a person is asked to do or to approve. It is valid only for these versions of the inputs."""

    mode: Mode
    inputs: dict[str, int] = {}
    """The versions that it is about, by producer."""
    loops: tuple[str, ...] = ()
    findings: tuple[int, ...] = ()


class Breach(Value, frozen=True):
    """A limit that was hit: its name, the count and the bound."""

    limit: str
    count: float
    bound: float

    def __post_init__(self) -> None:
        # Write whole numbers as integers, whether they were counted, granted or read from JSON.
        for name in ("count", "bound"):
            amount = getattr(self, name)
            if isinstance(amount, float) and amount.is_integer():
                force_setattr(self, name, int(amount))

    def __str__(self) -> str:
        return f"{self.limit} ({amount(self.count)}/{amount(self.bound)})"
