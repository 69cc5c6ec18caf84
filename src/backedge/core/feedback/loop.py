"""The life cycle of a loop, as a table of states and events.

Nothing but `TRANSITIONS` moves a loop, and the diagram in docs/concepts.md is drawn from it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

from backedge.core.errors import IllegalCommand
from backedge.core.model import HUMAN, Breach, ChosenOption, Feedback, Kind, Option, Position, Resolution, Severity
from backedge.core.state.persistent_map import Map
from backedge.core.value import Json, Value, replace
from backedge.core.workflow.limits import Limits


class LoopState(StrEnum):
    NOTIFYING = "notifying"
    WAITING_RESPONSE = "waiting_response"
    RESOLVING = "resolving"
    VALIDATING = "validating"
    ESCALATING = "escalating"
    RESOLVED = "resolved"
    ACCEPTED = "accepted"
    CANCELLED = "cancelled"
    FAILED = "failed"


FINAL = frozenset({LoopState.RESOLVED, LoopState.ACCEPTED, LoopState.CANCELLED, LoopState.FAILED})

LoopEvent = Literal[
    "delivered",
    "started",
    "timed out",
    "fix done",
    "fix failed",
    "next round",
    "escalated",
    "continued",
    "resolved",
    "accepted",
    "cancelled",
    "failed",
]

TRANSITIONS: dict[LoopState, dict[LoopEvent, LoopState]] = {
    LoopState.NOTIFYING: {"delivered": LoopState.WAITING_RESPONSE},
    LoopState.WAITING_RESPONSE: {
        "started": LoopState.RESOLVING,
        "timed out": LoopState.ESCALATING,
        "escalated": LoopState.ESCALATING,
    },
    LoopState.RESOLVING: {
        "fix done": LoopState.VALIDATING,
        "fix failed": LoopState.ESCALATING,
        "timed out": LoopState.ESCALATING,
        "escalated": LoopState.ESCALATING,
    },
    LoopState.VALIDATING: {
        "resolved": LoopState.RESOLVED,
        "next round": LoopState.RESOLVING,
        "escalated": LoopState.ESCALATING,
    },
    LoopState.ESCALATING: {
        "continued": LoopState.RESOLVING,
        "resolved": LoopState.RESOLVED,
        "accepted": LoopState.ACCEPTED,
        "cancelled": LoopState.CANCELLED,
        "failed": LoopState.FAILED,
    },
    LoopState.RESOLVED: {},
    LoopState.ACCEPTED: {},
    LoopState.CANCELLED: {},
    LoopState.FAILED: {},
}

_RESUMES: dict[LoopState, LoopEvent] = {
    LoopState.WAITING_RESPONSE: "started",
    LoopState.VALIDATING: "next round",
    LoopState.ESCALATING: "continued",
}
"""The event that sends a loop back to its targets, by its current state."""
_ENDINGS: dict[LoopState, LoopEvent] = {
    LoopState.RESOLVED: "resolved",
    LoopState.ACCEPTED: "accepted",
    LoopState.CANCELLED: "cancelled",
    LoopState.FAILED: "failed",
}


SETTLED_BY_CHOICE = (Kind.CONSTRAINT_VIOLATION, Kind.CONTEXT_REQUEST)
"""The kinds that a choice can settle without rework. All other kinds are reworked after the choice."""


class Share(Value, frozen=True):
    """What one target of a loop gets in the current round, and its progress."""

    findings: tuple[int, ...] = ()
    counted: bool = False
    """Its execution was counted as a round. A retry after an error is not counted again."""
    done: bool = False
    changed: bool = False
    """The fix changed the artifact."""


class PastRound(Value, frozen=True):
    """One finished round, as later briefings show it."""

    round: int
    targets: tuple[str, ...]
    findings: tuple[int, ...]
    message: str = ""


MAX_PAST_ROUNDS = 5
"""How many earlier rounds a briefing shows. The cap keeps the cost of a briefing flat."""


class Loop(Value, frozen=True):
    """One piece of feedback, from raised to closed."""

    id: str
    kind: Kind
    source: str
    state: LoopState
    feedback: Feedback | None = None
    """What was raised; None for a verdict or an input check, whose findings are the feedback."""
    severity: Severity = Severity.HIGH
    blocking: bool = False
    limits: Limits = Limits()
    """The limits as they were when the loop started."""
    opened_at: float = 0.0
    caused_by: str | None = None
    depth: int = 1
    follows: str | None = None
    routed_by: str = ""
    shares: dict[str, Share] = {}
    targets: tuple[str, ...] = ()
    round: int = 0
    """How many rounds were delivered."""
    delivered: bool = False
    """The current routing was delivered to at least one target."""
    past_rounds: tuple[PastRound, ...] = ()
    granted: int = 0
    waived: dict[str, int] = {}
    """Counts that a person's revised approach subtracts, for the loop, for pairs and for steps."""
    longest_streak: int = 0
    failures: int = 0
    revised_at: int = 0
    """How many verdicts or input checks there had been when a person revised the approach."""
    unchanged_reworks: int = 0
    oscillations: int = 0
    rejected: Map[str, bool] = Map()
    """Artifact versions that were rejected, as step:digest."""
    balance: tuple[tuple[int, int], ...] = ()
    """(fix-authored, removed) findings of the last two verdicts."""
    granted_until: int = 0
    """The last round that a person granted by a decision other than `revise`; 0 if there was none."""
    contested: tuple[int, ...] = ()
    """The findings, of this loop and others, that contradict each other."""
    escalation: str | None = None
    breach: Breach | None = None
    answers: dict[str, Json] = {}
    acknowledged: dict[str, Json] = {}
    positions: tuple[Position, ...] = ()
    """The positions of the targets of a choice, in all rounds, oldest first."""
    choice: ChosenOption | None = None
    disputed: bool = False
    """Whether the targets had to choose again because they did not agree."""
    result_delivered: bool = False
    """The running attempt that waits for this loop has received the result of the current round."""
    advice: str = ""
    """The new approach, in the words of the person who revised it."""
    reclassified: tuple[int, ...] = ()
    """Undelivered findings that a person has reclassified since they were routed."""
    resolution: Resolution | None = None
    carries: bool = False
    """Whether it continues the loop that it follows, with its counters."""
    rollbacks: tuple[int, ...] = ()
    """The last rollbacks of its rounds, by their numbers in the run."""

    @property
    def kind_name(self) -> str:
        """The kind as reports show it: a kind that the workflow added keeps its own name."""
        return self.feedback.word if self.feedback is not None else self.kind

    @property
    def open(self) -> bool:
        return self.state not in FINAL

    @property
    def by_verdict(self) -> bool:
        """Started by a failing verdict. A judge has one such loop, and its next verdict verifies it."""
        return self.feedback is None and self.kind is not Kind.VALIDATION_FAILURE

    @property
    def by_check(self) -> bool:
        """Started by an input check. A step has one such loop, and its next input check verifies it."""
        return self.kind is Kind.VALIDATION_FAILURE and self.feedback is None

    @property
    def finding_ids(self) -> tuple[int, ...]:
        """The findings of the current round, each once."""
        return tuple(dict.fromkeys(id for share in self.shares.values() for id in share.findings))

    @property
    def unverified(self) -> bool:
        """Whether all fixes are done and wait for the source step to verify them. Never true for a person's feedback."""
        return self.source != HUMAN and not self.choosing and all(share.done for share in self.shares.values())

    @property
    def pauses(self) -> bool:
        """Whether the run pauses while this loop is open."""
        return self.open and (self.blocking or self.severity is Severity.CRITICAL)

    @property
    def answers_only(self) -> bool:
        """Resolved by an answer, or by a choice without rework: no artifact changes."""
        return not self.chosen_rework if self.choice is not None else self.kind is Kind.CONTEXT_REQUEST

    @property
    def choosing(self) -> bool:
        """Whether its targets still have to choose."""
        if self.choice is not None or self.feedback is None:
            return False
        return bool(self.feedback.options) or self.kind is Kind.CONSTRAINT_VIOLATION

    @property
    def options(self) -> tuple[Option, ...]:
        return self.feedback.options if self.feedback is not None else ()

    @property
    def chosen_option(self) -> Option:
        """The option that was chosen. A text that was not offered is an option without rework or acceptance."""
        assert self.choice is not None
        word = self.choice.option
        return next((each for each in self.options if each.option == word), Option(word))

    @property
    def chosen_rework(self) -> tuple[str, ...]:
        """The steps that the choice sends to rework."""
        return self.rework_for(self.chosen_option)

    def rework_for(self, option: Option) -> tuple[str, ...]:
        """The steps that choosing an option sends to rework: those it names, else the targets if the kind is resolved by
        rework."""
        if option.rework or option.accept or self.kind in SETTLED_BY_CHOICE:
            return option.rework
        return tuple(target for target in self.targets if target != HUMAN)

    @property
    def current_positions(self) -> tuple[Position, ...]:
        """The positions of the targets in this round, in the order of the targets."""
        latest = {each.who: each for each in self.positions if each.round == self.round}
        return tuple(latest[target] for target in self.targets if target in latest)

    @property
    def involved(self) -> tuple[str, ...]:
        """Its targets, and the steps that a choice sends to rework."""
        return tuple(dict.fromkeys((*self.targets, *self.shares)))

    def on(self, event: LoopEvent) -> Loop:
        """This loop after an event, looked up in the table. Raises IllegalCommand if the event cannot happen now."""
        after = TRANSITIONS[self.state].get(event)
        if after is None:
            known = ", ".join(map(repr, TRANSITIONS[self.state]))
            hint = f"expected one of {known}" if known else f"{self.state} is final"
            raise IllegalCommand(f"loop {self.id} is {self.state}: {event!r} cannot happen now; {hint}")
        return replace(self, state=after)

    def resumed(self) -> Loop:
        """This loop sent back to its targets, whatever its state."""
        event = _RESUMES.get(self.state)
        return self.on(event) if event is not None else self

    def closed(self, end: LoopState) -> Loop:
        """This loop in a final state. Any open loop can be closed: if its state has no such event, it is escalated first."""
        event = _ENDINGS[end]
        return (self if event in TRANSITIONS[self.state] else self.on("escalated")).on(event)


BY_OPTION = "option"
"""The routing rule for the rework that a chosen option asks for."""


BY_DISAGREEMENT = "disagreement"
"""The routing rule that asks the targets of a choice once more. Each sees the positions of all."""


def positions_by_target(loop: Loop) -> dict[str, Json]:
    """The position of each target in this round, as a resolution shows it."""
    return {each.who: {"option": each.option, "reason": each.reason} for each in loop.current_positions}


def result_so_far(loop: Loop, state: str) -> Resolution:
    """The result of the current round of an open loop, for its source."""
    if loop.choice is None:
        return Resolution(state, answers=loop.answers)
    return Resolution(state, text=loop.choice.reason, option=loop.choice.option, answers=positions_by_target(loop))


def with_chooser(loop: Loop, end: Resolution) -> Resolution:
    """A resolution that names the targets who chose it, unless it already names someone."""
    return replace(end, by=loop.choice.by) if loop.choice is not None and not end.by else end
