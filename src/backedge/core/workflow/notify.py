"""Channels for questions to people, when people are reminded, and what happens if no person answers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from backedge.core.errors import WorkflowError, WorkflowProblem
from backedge.core.model import Severity
from backedge.core.suggestions import did_you_mean
from backedge.core.value import Value
from backedge.core.workflow.parsing import mapping, shown, words

Occasion = Literal["opened", "reminded", "expired", "decided", "withdrawn"]
OCCASIONS: tuple[Occasion, ...] = get_args(Occasion)
"""What a message can be about."""
USUAL: tuple[Occasion, ...] = ("opened", "expired")
"""The occasions of a channel that does not name any; in addition there are its own reminders."""
ExpiryChoice = Literal["skip", "accept", "cancel"]
EXPIRY_CHOICES: tuple[ExpiryChoice, ...] = get_args(ExpiryChoice)
"""What may happen when no person answers. `continue` is none of them: a run in which it were would never end."""
QUIET = r"^([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9]( [A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*)?$"
"""Matches quiet hours: 22:00-07:00, with a time zone if it is not that of the machine."""
_KEYS = ("to", "command", "on", "for", "remind", "quiet", "secret")
_EXPIRE_KEYS = ("after", "choice", "only")


class Channel(Value, frozen=True):
    """One way to tell people: an address or a command, and what it is told."""

    to: str = ""
    """A web hook, or an address that apprise understands. `${NAME}` stands for an environment variable."""
    command: tuple[str, ...] = ()
    on: tuple[Occasion, ...] = USUAL
    role: str = ""
    """The role whose questions it is told; empty for all questions."""
    remind: tuple[float, ...] = ()
    """When it is reminded of a question that is still open: seconds after it was opened."""
    quiet: str = ""
    """The hours in which nothing is sent. Messages wait until they end."""
    secret: str = ""
    """The environment variable with the secret that signs messages to a web hook."""


class Expiry(Value, frozen=True):
    """What happens to a question that no person answers."""

    after: float
    choice: ExpiryChoice
    only: tuple[Severity, ...] = (Severity.MEDIUM, Severity.LOW)
    """The severities of the questions that are decided. Of all others, people are reminded."""


def parse_notify(given: object) -> tuple[Channel, ...]:
    """The channels as a user writes them; times in seconds. Raises WorkflowError with all problems."""
    if isinstance(given, Mapping | str) or not isinstance(given, Sequence):
        raise WorkflowError(f"notify is {shown(given)}: expected a list of channels, each with `to` or `command`")
    channels, problems = list[Channel](), list[str]()
    for index, each in enumerate(given):
        try:
            channels.append(_channel(each))
        except WorkflowError as error:
            problems += [WorkflowProblem(f"notify {index + 1}: {why}", ("notify", index)) for why in error.problems]
    if problems:
        raise WorkflowError(tuple(problems))
    return tuple(channels)


def _channel(given: object) -> Channel:
    known: dict[str, Any] = mapping("a channel", given)
    _refuse_unknown(known, _KEYS)
    to, command = known.get("to", ""), words("command", known.get("command", ()))
    if not isinstance(to, str) or bool(to.strip()) == bool(command):
        raise WorkflowError("expected either `to` with an address or `command` with a program and its arguments")
    on = words("on", known.get("on", USUAL))
    for occasion in on:
        if occasion not in OCCASIONS:
            raise WorkflowError(f"on has {occasion!r}: {did_you_mean(occasion, OCCASIONS)}")
    quiet, remind = known.get("quiet", ""), known.get("remind", ())
    if quiet and not (isinstance(quiet, str) and re.fullmatch(QUIET, quiet)):
        raise WorkflowError(f"quiet is {shown(quiet)}: expected hours such as '22:00-07:00'")
    if isinstance(remind, str) or not isinstance(remind, Sequence) or not all(map(_is_time, remind)):
        raise WorkflowError(f"remind is {shown(remind)}: expected a list of times above 0")
    role, secret = (_text(known, key) for key in ("for", "secret"))
    if secret and command:
        raise WorkflowError("secret signs messages to a web hook, and a command gets none: remove it")
    return Channel(to, command, on, role, tuple(sorted({float(each) for each in remind})), quiet, secret)  # type: ignore[arg-type]  # each word of `on` was checked


def _text(given: Mapping[str, object], key: str) -> str:
    value = given.get(key, "")
    if not isinstance(value, str):
        raise WorkflowError(f"{key} is {shown(value)}: expected one word")
    return value


def _is_time(given: object) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and 0 < given < float("inf")


def _refuse_unknown(given: Mapping[str, object], keys: Sequence[str]) -> None:
    for key in given:
        if key not in keys:
            raise WorkflowError(f"it has the key {key!r}: {did_you_mean(key, keys)}")


def parse_expire(given: object) -> Expiry | None:
    """What happens to questions that no person answers, as a user writes it; times in seconds. Raises WorkflowError."""
    if given is None:
        return None
    try:
        return _expiry(mapping("expire", given))
    except WorkflowError as error:
        raise WorkflowError(tuple(WorkflowProblem(f"expire: {why}", ("expire",)) for why in error.problems)) from None


def _expiry(known: dict[str, Any]) -> Expiry:
    _refuse_unknown(known, _EXPIRE_KEYS)
    after, choice = known.get("after"), known.get("choice")
    if not _is_time(after):
        raise WorkflowError(f"after is {shown(after)}: expected a time above 0")
    if choice not in EXPIRY_CHOICES:
        raise WorkflowError(f"choice is {shown(choice)}: {did_you_mean(choice, EXPIRY_CHOICES)}")
    only = words("only", known.get("only", Expiry(1, "skip").only))
    for severity in only:
        if severity not in list(Severity):
            raise WorkflowError(f"only has {severity!r}: {did_you_mean(severity, Severity)}")
    return Expiry(float(after), choice, tuple(map(Severity, only)))  # type: ignore[arg-type]  # the choice was checked


def parse_roles(given: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The roles of people, each with the categories of findings that it is asked about. Raises WorkflowError."""
    return tuple((role, words(f"roles: {role}", each)) for role, each in mapping("roles", given).items())


def role_problems(
    channels: Sequence[Channel], roles: Mapping[str, object], steps: Mapping[str, Sequence[str]]
) -> list[WorkflowProblem]:
    """The roles without questions: those that `for` names and `roles` does not, or, without `roles`, those of channels that no
    step names. `steps` has the roles of each step."""
    known = list(roles) or sorted({role for each in steps.values() for role in each})
    found = []
    for name, each in steps.items() if roles else ():
        for role in each:
            if role not in known:
                why = f"step {name!r} is for {role!r}, which is not in roles: {did_you_mean(role, known)}"
                found.append(WorkflowProblem(why, ("steps", name, "for"), ("steps", name, "for")))
    for index, channel in enumerate(channels):
        if channel.role and channel.role not in known:
            meant = did_you_mean(channel.role, known) if known else "name it in `roles`, or in `for` of a step"
            why = f"notify {index + 1} is for {channel.role!r}, but no question is: {meant}"
            found.append(WorkflowProblem(why, ("notify", index, "for"), ("roles",)))
    return found
