"""What people are told about a question: one object for every channel, and the events that it is about.

A message is a view of the question as it is now, never the truth: the truth is in the journal.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from shlex import quote
from typing import Any

import msgspec

from backedge.analytics.blast import Blast
from backedge.analytics.rounds import LoopHistory
from backedge.analytics.sentence import sentence
from backedge.analytics.shape import Shape
from backedge.core import events as e
from backedge.core.escalation.deadlines import is_for
from backedge.core.escalation.expiring import BY_EXPIRY
from backedge.core.escalation.opening import WITHDRAWN
from backedge.core.escalation.packet import Packet
from backedge.core.model import Breach
from backedge.core.ready_types import make_ready
from backedge.core.state.run import Escalation, RunState
from backedge.core.text import clean, duration
from backedge.core.workflow.notify import Channel, Occasion

MOST_FINDINGS = 5
"""How many findings a message names."""
MOST_CHOICES = 12
LONGEST = 500
"""How many characters of one text a message has."""
LONGEST_TITLE = 160
_MENTION = re.compile(r"[@<](?!\u200b)")


class NotedFinding(Shape, frozen=True):
    """One of the gravest open findings behind a question."""

    id: str
    severity: str
    description: str
    file: str | None = None
    line: int | None = None
    evidence: str = ""


class NotedChoice(Shape, frozen=True):
    """One way to answer."""

    choice: str
    option: str
    next: str
    effort: str
    impact: str
    recommended: str


class NotedPrice(Shape, frozen=True):
    """What one more round is likely to take."""

    attempts: int
    cost_usd: float
    seconds: float


class Message(Shape, frozen=True):
    """A message about one question."""

    id: str
    """Identifies the message: it is the same whenever the message is sent again."""
    event: Occasion
    run: str
    workflow: str
    escalation: str
    title: str
    text: str
    """All of it in words."""
    sentence: str
    """What the question is about."""
    reason: str = ""
    breach: Breach | None = None
    numbers: tuple[Breach, ...] = ()
    findings: tuple[NotedFinding, ...] = ()
    choices: tuple[NotedChoice, ...] = ()
    estimate: NotedPrice | None = None
    """What one more round is likely to take, if the question is about a loop."""
    opened_at: float = 0.0
    """Since when it waits, in seconds since the epoch."""
    due_at: float | None = None
    expires_at: float | None = None
    """When `default` is chosen if no person has answered."""
    default: str = ""
    for_roles: tuple[str, ...] = ()
    """The roles of the people who are asked; empty for everybody."""
    decided: str = ""
    """The choice that was made; empty while the question is open."""
    by: str = ""
    note: str = ""
    url: str = ""
    """The page on which it is answered; that of the run once it was."""


make_ready(Message)


class Told(Shape, frozen=True):
    """An event that people are told about."""

    seq: int
    event: Occasion
    escalation: str
    after: tuple[float, ...] = ()
    """For a reminder: the due times that it is for."""
    by_expiry: bool = False
    """Whether it is the decision that follows an expiry."""


def told_events(events: Iterable[e.Event], after: int = 0) -> list[Told]:
    """The events that people may be told about. The first event has the number `after` + 1."""
    found = []
    for seq, event in enumerate(events, after + 1):
        match event:
            case e.EscalationOpened():
                found.append(Told(seq, "opened", event.escalation))
            case e.EscalationReminded():
                found.append(Told(seq, "reminded", event.escalation, event.after))
            case e.EscalationExpired():
                found.append(Told(seq, "expired" if event.choice else "reminded", event.escalation))
            case e.EscalationDecided():
                word: Occasion = "withdrawn" if event.choice == WITHDRAWN else "decided"
                found.append(Told(seq, word, event.escalation, by_expiry=event.by == BY_EXPIRY))
            case _:
                pass
    return found


def wants(channel: Channel, told: Told, roles: Sequence[str]) -> bool:
    """Whether a channel is told about an event of a question to these roles."""
    if not is_for(channel, roles):
        return False
    if told.event == "reminded" and channel.remind:
        return not told.after or bool({*told.after} & {*channel.remind})
    if told.event == "reminded" and not told.after and "expired" in channel.on:
        return True  # the time is up, but nothing may be chosen
    if told.by_expiry and "expired" in channel.on:
        return False  # it was told that the question has expired, and what was chosen
    return told.event in channel.on


def outdated(told: Told, packet: Escalation, later: Iterable[Told]) -> bool:
    """Whether an event need not be told any more: the question was decided since, or there is a newer reminder."""
    if told.event == "opened":
        return packet.decided is not None
    newer = any(each.event == "reminded" and each.seq > told.seq for each in later)
    return told.event == "reminded" and (packet.decided is not None or newer)


def message_about(
    state: RunState,
    packet: Escalation,
    asked: Packet,
    told: Told,
    history: LoopHistory,
    now: float,
    blast: Blast | None = None,
    url: str = "",
) -> Message:
    """The message about an event of a question. Text of agents is cleaned, cut, and cannot mention anybody."""
    about = sentence(state, packet, history)
    decided = packet.decided
    findings = sorted(asked.findings, key=lambda each: each.severity.rank) or sorted(
        (each for turn in asked.history[-1:] for each in turn.findings), key=lambda each: each.severity.rank
    )
    made = Message(
        f"{state.run}.{told.seq}",
        told.event,
        state.run,
        state.workflow.name,
        packet.id,
        "",
        "",
        about,
        packet.reason,
        packet.breach,
        asked.numbers,
        tuple(
            NotedFinding(each.id, each.severity, each.description, each.file, each.line, each.evidence)
            for each in findings[:MOST_FINDINGS]
        ),
        ()
        if decided
        else tuple(
            NotedChoice(each.choice, each.option, each.next, each.effort, each.impact, each.recommended)
            for each in asked.options[:MOST_CHOICES]
        ),
        None
        if blast is None
        else NotedPrice(len({*blast.reworks, *blast.cascades, *blast.verifies}), blast.cost_usd, blast.seconds),
        packet.opened_at,
        asked.due_at,
        asked.expires_at,
        asked.default,
        packet.for_roles,
        decided.choice if decided else "",
        decided.by if decided else "",
        decided.note if decided else "",
    )
    safe = msgspec.convert(_harmless(msgspec.to_builtins(made)), Message)
    safe = msgspec.structs.replace(safe, id=made.id, run=made.run, url=url)
    title = _cut(_title(safe, now), LONGEST_TITLE)
    return msgspec.structs.replace(safe, title=title, text=_text(safe, title))


def harmless(text: str) -> str:
    """Text that somebody else wrote, so that no channel takes it for more than text: without control characters, not too
    long, and without a mention of a person, a group or a channel."""
    return _MENTION.sub(lambda found: f"{found[0]}\u200b", _cut(clean(text), LONGEST))


def _harmless(value: Any) -> Any:
    match value:
        case str():
            return harmless(value)
        case list() | tuple():
            return [_harmless(each) for each in value]
        case dict():
            return {key: _harmless(each) for key, each in value.items()}
        case _:
            return value


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _title(told: Message, now: float) -> str:
    who = f" {' or '.join(told.for_roles)}" if told.for_roles else ""
    by = f" by {told.by}" if told.by else ""
    match told.event:
        case "opened":
            words = f"asks{who or ' you'}: {told.sentence}"
        case "reminded":
            words = (
                f"has been waiting{f' for{who}' if who else ''} since {duration(now - told.opened_at)}: {told.sentence}"
            )
        case "expired":
            words = f"was not answered in time, so {told.decided or told.default} was chosen: {told.sentence}"
        case "decided":
            words = f"was decided: {told.decided}{by}: {told.sentence}"
        case _:
            words = f"needs no answer any more: {told.note or told.sentence}"
    return " ".join(f"{told.workflow} {told.escalation} {words}".split())


def _text(told: Message, title: str) -> str:
    lines = [title]
    for each in told.findings:
        place = f" ({each.file}{f':{each.line}' if each.line else ''})" if each.file else ""
        lines.append(f"- {each.id} {each.severity}: {' '.join(each.description.split())}{place}")
    if told.choices:
        lines += ["", "Choices:"]
    for choice in told.choices:
        hint = f" (recommended: {choice.recommended})" if choice.recommended else ""
        option = f" --option {quote(choice.option)}" if choice.option else ""
        lines.append(f"- {choice.choice}{option}: {' '.join(choice.next.split())}{hint}")
    if told.expires_at is not None and told.default and not told.decided:
        lines.append(f"If no person answers, {told.default} is chosen.")
    if not told.decided:
        lines += ["", f"Answer: backedge decide {told.escalation} CHOICE --run {quote(told.run)}"]
    return "\n".join([*lines, told.url] if told.url else lines)
