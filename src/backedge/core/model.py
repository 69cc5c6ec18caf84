"""The words of the product as values: what agents say, what they make, what goes back."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from msgspec.structs import force_setattr

from backedge.core.suggestions import did_you_mean
from backedge.core.value import Json, Value

HUMAN = "human"
"""The name of the person behind the inbox: a legal target everywhere, and the source of what a person raises."""

ROOT = "root"
"""A name for the first step without needs, whatever it is called."""

Mode = Literal["work", "rework", "verify", "answer", "decide"]
"""Why a step is executed: for the first time or because its inputs changed; to fix; to judge a fix; to answer; to
choose."""

SIDE_MODES: tuple[Mode, ...] = ("answer", "decide")
"""Executions that leave the step's artifact as it is: nothing downstream is stale after them."""

VerdictWord = Literal["pass", "conditional", "needs_improvement", "fail"]
"""The judgement of an artifact version. All but `fail` let the work go on."""


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

# The words judges use, and what they mean here: (severity, blocking).
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
    """The severity and the blocking flag that a judge's word stands for; ValueError for a word nobody defined."""
    meaning = _SEVERITY_WORDS.get(word.strip().lower())
    if meaning is None:
        raise ValueError(f"severity {word!r} is unknown: {did_you_mean(word, sorted(_SEVERITY_WORDS))}")
    return meaning


class Status(StrEnum):
    """Where a finding stands in the ledger."""

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


class Kind(StrEnum):
    """What feedback asks for. A new member makes the type checker list every place that has to know it."""

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
"""Nobody spends more, in dollars or tokens: a larger amount is a mistake, and sums stay numbers that can be written."""


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
        """The sum of both, capped at the largest number that can be recorded."""
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
    """The place in an artifact, as a JSON pointer."""
    suggested_fix: str | None = None
    requirement_id: str | None = None
    word: str = ""
    """The judge's own word for the severity, if it is not one of ours."""


class Option(Value, frozen=True):
    """One option of a choice that feedback asks for."""

    option: str
    effort: str = ""
    impact: str = ""
    rework: tuple[str, ...] = ()
    """The steps that rework if it is chosen."""
    accept: bool = False
    """Choosing it accepts the limitation: it is recorded, and nothing is fixed."""


class Decision(Value, frozen=True):
    """The option that somebody is for, and why."""

    option: str
    reason: str = ""


class Position(Value, frozen=True):
    """The option that a target voted for in one round of a choice, and why."""

    round: int
    who: str
    option: str
    reason: str = ""


class ChosenOption(Value, frozen=True):
    """The option that holds, whose word that is, and why."""

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
    """Feedback that could not be understood: it is refused like any other that cannot be delivered."""

    to: tuple[str, ...]
    reason: str
    message: str = ""


Answer = Literal["fixed", "not_fixed", "withdrawn", "duplicate", "contested"]


class Claim(Value, frozen=True):
    """What a step says about one finding. A judge's claim is final; the judge sees the claim of a reworking step
    (fixed, contested)."""

    finding: str
    status: Answer
    note: str = ""


class Change(Value, frozen=True):
    """One place where two versions of an artifact differ."""

    where: str
    """A JSON pointer into the output ("" is the whole), or the name of a file in the workspace."""
    lines: tuple[tuple[int, int], ...] = ()
    """For text: the line ranges of the new version, first and last included."""


class OutputDigest(Value, frozen=True):
    """A description of what an attempt produced: enough to decide on, without the value itself if it is large."""

    digest: str
    output: Json = None
    payload: str | None = None
    """The digest under which a large output is stored; `output` is None then."""
    size: int = 0
    parts: dict[str, str] = {}
    """Digests of the parts that consumers declare to read, by JSON pointer."""
    changed: tuple[Change, ...] = ()
    """Where it differs from the previous version."""
    values: dict[str, Json] = {}
    """The values that conditions refer to, by JSON pointer; missing values are left out."""


class Outcome(Value, frozen=True):
    """All that an attempt can report, in the engine's own words."""

    made: OutputDigest
    summary: str = ""
    verdict: VerdictWord | None = None
    findings: tuple[Finding, ...] = ()
    claims: tuple[Claim, ...] = ()
    feedback: tuple[Feedback | MalformedFeedback, ...] = ()
    answer: Json = None
    decision: Decision | None = None
    usage: Usage = Usage()


class Resolution(Value, frozen=True):
    """How a loop ended, for its waiters and its source."""

    state: str
    """resolved, accepted, cancelled, failed, escalated or timeout."""
    by: str = ""
    text: str = ""
    option: str | None = None
    answers: dict[str, Json] = {}
    """What the targets answered, by target."""


class Question(Value, frozen=True):
    """What a person is asked to do, or to approve: it holds for these versions of its inputs, and for no others."""

    mode: Mode
    inputs: dict[str, int] = {}
    """The versions that it is about, by producer."""
    loops: tuple[str, ...] = ()
    findings: tuple[int, ...] = ()


class Breach(Value, frozen=True):
    """Which limit was reached, with its count and bound."""

    limit: str
    count: float
    bound: float

    def __post_init__(self) -> None:
        # Whole numbers are written as such, whether they were counted, granted or read back.
        for name in ("count", "bound"):
            amount = getattr(self, name)
            if isinstance(amount, float) and amount.is_integer():
                force_setattr(self, name, int(amount))

    def __str__(self) -> str:
        return f"{self.limit} ({self.count:g}/{self.bound:g})"
