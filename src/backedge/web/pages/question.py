"""One open escalation as the inbox shows it: its packet, a key for each choice, and what each choice needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from backedge.analytics.changes import AttemptChange
from backedge.analytics.inbox import InboxItem
from backedge.analytics.rounds import VerdictReport
from backedge.analytics.sentence import breach_words
from backedge.core.briefing import BriefedFinding
from backedge.core.commands import DEFAULT_ROUNDS
from backedge.core.escalation.options import HISTORY, PacketOption
from backedge.core.model import HUMAN
from backedge.core.text import duration
from backedge.core.workflow.limits import BUDGETS
from backedge.web.pages.rendering import money, words

KEYS = {
    "continue": "c",
    "revise": "v",
    "reassign": "t",
    "reclassify": "p",
    "rollback": "b",
    "resolve": "r",
    "accept": "a",
    "skip": "x",
    "cancel": "q",
    "approve": "y",
    "reject": "n",
    "pass": "p",
    "fail": "f",
    "needs_improvement": "i",
    "history": "h",
}
"""The key of each choice. No question has two choices with the same key; offered options have the digits."""
ASKS_NOTE = ("accept", "cancel", "skip", "reject")
"""The choices that ask for a reason, because they give something up. It may be left empty."""
GRANTS = ("continue", "reassign", "reclassify", "rollback")
"""The choices that grant more rounds or tries."""
NOTES = {
    "resolve": "your answer",
    "revise": "the new approach",
    "fail": "what is wrong",
    "reject": "what is wrong",
    "needs_improvement": "what should be better (optional)",
    "accept": "why, for the journal (optional)",
    "cancel": "why, for the journal (optional)",
    "skip": "why, for the journal (optional)",
}
SAID = {
    "open": ("new", "bad"),
    "not_fixed": ("still", "bad"),
    "regressed": ("back", "bad"),
    "fixed": ("fixed", "ok"),
    "unconfirmed": ("unconfirmed", "warn"),
    "accepted": ("accepted", "warn"),
    "deferred": ("deferred", "warn"),
    "rolled_back": ("undone", "plain"),
}
"""What a verdict says about a finding: a short word, and its colour."""


@dataclass(frozen=True)
class Choice:
    """One way to answer."""

    option: PacketOption
    key: str
    required: str
    """The field without which it cannot be sent: note, target or phase; empty if there is none."""
    optional: tuple[str, ...]
    """What else can be given with it: note, rounds or amount."""
    asks: bool
    """Whether it first asks for a note."""
    price: str
    asked: str
    """What the note should say."""
    default_amount: str = ""

    @property
    def name(self) -> str:
        return self.option.option or words(self.option.choice).capitalize()


@dataclass(frozen=True)
class QuestionCard:
    """One open escalation, with everything that its card shows."""

    item: InboxItem
    steps: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()
    refused: str = ""
    """Why the person who looks may not decide it; empty if they may."""

    @property
    def anchor(self) -> str:
        """A name for its card. The ids of runs may have characters that an anchor may not."""
        return f"{quote(self.item.run, safe='')}:{self.item.id}"

    @property
    def address(self) -> str:
        """Where its decision is sent."""
        return f"/api/v1/runs/{quote(self.item.run, safe='')}/escalations/{quote(self.item.id, safe='')}/decision"

    @property
    def run_address(self) -> str:
        return f"/runs/{quote(self.item.run, safe='')}"

    @cached_property
    def mark(self) -> str:
        """Changes when anything changes that the card says, except how long ago it was."""
        told = msgspec.json.encode(self.item)
        return sha256(told + self.refused.encode()).hexdigest()[:16]

    @property
    def tag(self) -> str:
        """Why a person is asked, in as few words as possible."""
        item = self.item
        if item.breach is not None:
            return breach_words(item.breach)
        offered = {each.choice for each in item.choices}
        word = "approval" if "approve" in offered else "verdict" if "pass" in offered else item.reason
        return words(word)

    @property
    def changes(self) -> Sequence[AttemptChange]:
        """What was changed last. The difference of a first version is left out if all of it is shown already."""
        shown = {each.step for each in self.item.inputs if each.payload is None}
        return [
            replace(each, diff=(), note="") if each.version == 1 and each.step in shown else each
            for each in self.item.last_changes
        ]

    @cached_property
    def choices(self) -> tuple[Choice, ...]:
        found, digit = [], 0
        for option in self.item.choices:
            if option.choice == HISTORY.choice:
                continue
            if option.option:
                digit += 1
            key = (str(digit) if digit < 10 else "") if option.option else KEYS.get(option.choice, "")
            found.append(self._choice(option, key))
        return tuple(found)

    def _choice(self, option: PacketOption, key: str) -> Choice:
        item, word = self.item, option.choice
        required = "" if option.option or not option.needs else option.needs[-1]
        asks = word in ASKS_NOTE and required != "note"
        optional = ["note"] if required != "note" else []
        limit = item.breach.limit if item.breach is not None else ""
        amount = ""
        if word == "continue" and limit in BUDGETS and item.breach is not None:
            optional.append("amount")
            amount = f"{item.breach.bound:g}"
        elif word in GRANTS and (item.loop or limit) and "approve" not in {each.choice for each in item.choices}:
            optional.append("rounds")
        price = ""
        if word in ("continue", "revise", "rollback") and item.estimate is not None:
            cost = f"{money(item.estimate.cost_usd)}, " if item.estimate.cost_usd else ""
            time = duration(item.estimate.seconds) if item.estimate.seconds >= 1 else "under 1 s"
            price = f"≈ {cost}{time} a round"
        return Choice(option, key, required, tuple(optional), asks, price, NOTES.get(word, "note (optional)"), amount)

    @property
    def default_rounds(self) -> int:
        return DEFAULT_ROUNDS

    @property
    def targets(self) -> tuple[str, ...]:
        """The steps that it can be given to."""
        return (*(step for step in self.steps if step != self.item.source), HUMAN)

    @property
    def verdict_rows(self) -> Sequence[tuple[BriefedFinding, Sequence[tuple[str, str]]]]:
        """The findings of a loop and what each verdict said about them, those that are still open first."""
        item = self.item
        if len(item.verdicts) < 2:
            return ()
        return verdict_rows(item.findings, self.known_findings, item.verdicts)

    @property
    def known_findings(self) -> Mapping[str, BriefedFinding]:
        earlier = {each.id: each for turn in self.item.history for each in turn.findings}
        return earlier | {each.id: each for each in self.item.findings}

    @property
    def earlier_errors(self) -> Sequence[tuple[int, str]]:
        return [(each.attempt, each.error) for each in self.item.errors if each.error != self.item.last_error]


def verdict_rows(
    current: Sequence[BriefedFinding], known: Mapping[str, BriefedFinding], verdicts: Sequence[VerdictReport]
) -> list[tuple[BriefedFinding, list[tuple[str, str]]]]:
    """A row for each finding that a verdict names: the word and the colour of each verdict."""
    named = dict.fromkeys(id for verdict in verdicts for id in verdict.findings)
    order = [each.id for each in current]
    order += sorted((id for id in named if id not in order and id in known), key=_number, reverse=True)
    rows = []
    for id in order:
        if id not in named:
            continue
        words, before = [], False
        for verdict in verdicts:
            said = verdict.findings.get(id)
            words.append(
                SAID.get(said, (said.replace("_", " "), "plain")) if said else ("·" if before else "", "plain")
            )
            before = before or said is not None
        rows.append((known[id], words))
    return rows


def _number(id: str) -> int:
    return int(id.partition("-")[2])
