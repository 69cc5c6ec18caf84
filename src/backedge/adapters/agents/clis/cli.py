"""What agent CLIs have in common: how they are called, and what they report."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from backedge.adapters.agents.clis.provider_limit import ReachedLimit
from backedge.core.model import Usage
from backedge.core.suggestions import did_you_mean
from backedge.core.value import Json

Event = Mapping[str, Any]
"""One line of what a CLI prints while it works."""

NONE = Usage()
"""No usage."""

_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")


@dataclass(frozen=True, slots=True)
class Options:
    """The options of an agent CLI in the workflow file, except its prompt."""

    model: str = ""
    allowed_tools: tuple[str, ...] | None = None
    permission_mode: str = ""
    max_turns: int | None = None
    max_budget_usd: float | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """A conversation, and the tokens that it had used so far."""

    cli: str
    id: str
    used: Usage = NONE
    cached: int = 0
    """How many of the tokens in came from a cache."""

    def __str__(self) -> str:
        """As the journal stores it: claude:0f5c…, codex:0199…:2400:60, codex:0199…:2400:60:1200."""
        used = [self.used.tokens_in, self.used.tokens_out] if self.used != NONE else []
        used += [self.cached] if used and self.cached else []
        return ":".join([self.cli, self.id, *map(str, used)])

    @classmethod
    def of(cls, text: str | None, cli: str) -> Session | None:
        """The conversation that a text names; None if it belongs to another CLI: the agents of a ladder share the text."""
        owner, *rest = (text or "").split(":")
        if owner != cli or not rest or not _ID.fullmatch(rest[0]):
            return None
        numbers = [int(each) for each in rest[1:] if each.isascii() and each.isdigit()]
        if len(numbers) not in (2, 3):
            return cls(cli, rest[0])
        return cls(cli, rest[0], Usage(0.0, *numbers[:2]), sum(numbers[2:]))


@dataclass(frozen=True, slots=True)
class Call:
    """One invocation."""

    options: Options
    judges: bool
    resume: str | None
    """The id of the conversation that it continues."""
    schema: Json
    schema_file: Path


@dataclass(frozen=True, slots=True)
class CliReport:
    """What a CLI reported about one invocation, in the same form for all CLIs."""

    complete: bool = False
    """It reported how it ended. Otherwise the report may be cut off."""
    problem: str = ""
    """Why it failed. The exit code does not say that."""
    text: str = ""
    """Its final message."""
    structured: Json = None
    usage: Usage = NONE
    """What this invocation used."""
    used: Usage = NONE
    """What its conversation used in total, if the CLI counts that way."""
    cached: int = 0
    """How many of the tokens that it read came from a cache; those of the whole conversation if `used` is."""
    model: str = ""
    """The model that it used, if it says so."""
    session: str | None = None
    unknown_session: bool = False
    """It did not find the conversation that it should continue, and did nothing."""
    transcript: tuple[str, ...] = ()
    """Its messages and tool calls while it worked, one line each."""
    denied: tuple[str, ...] = ()
    """The tools that it asked for and was not permitted to use, each with what it was for."""
    refused: str = ""
    """Why its last answer did not match the schema, if it gave no other after that."""
    limit: ReachedLimit | None = None
    """The limit of its provider that ended it, or that it was waiting for."""


class Cli(ABC):
    """One agent CLI: how it is called, and how its report is read."""

    name: ClassVar[str]
    package: ClassVar[str]
    """The npm package that has it."""
    options: ClassVar[frozenset[str]]
    """The fields of Options that it has a flag for."""
    modes: ClassVar[tuple[str, ...]]
    """The permission modes that it knows."""
    has_schema: ClassVar[bool] = False
    """It makes the model follow a JSON Schema; otherwise the prompt has to ask for that."""
    strict: ClassVar[bool] = False
    """Its schemas allow no optional keys and no free values."""
    mentions: ClassVar[bool] = False
    """It reads files that its prompt names after an @, even if that is in inserted data."""
    env: ClassVar[Mapping[str, str]] = {}
    """The environment variables that it needs to run unattended."""

    @abstractmethod
    def arguments(self, call: Call) -> list[str]:
        """Its arguments. The prompt goes to its stdin."""

    @abstractmethod
    def read(self, events: Iterable[Event], stderr: str, before: Usage) -> CliReport:
        """Its report. `before` is what the conversation had used when this invocation began."""


def refusals(cli: Cli, options: Options) -> list[tuple[str, str]]:
    """Why a CLI cannot be started with these options, each with the option: a limit that is silently ignored is worse than
    none."""
    given = [name for name in Options.__slots__ if getattr(options, name) not in ("", None)]
    found = [
        (name, f"{cli.name} has no flag for {name}: remove it, or use another agent")
        for name in given
        if name not in cli.options
    ]
    mode = options.permission_mode
    if mode and "permission_mode" in cli.options and mode not in cli.modes:
        found.append(
            ("permission_mode", f"{cli.name} has no permission_mode {mode!r}: {did_you_mean(mode, cli.modes)}")
        )
    words = [("model", options.model), *(("allowed_tools", tool) for tool in options.allowed_tools or ())]
    found += [
        (name, f"{word!r} would be read as a flag of {cli.name}: correct it")
        for name, word in words
        if word.startswith("-")
    ]
    return found


def mapping(value: Any) -> Mapping[str, Any]:
    """A part of a report that should be an object; empty if it is something else."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """A part of a report that should be a list."""
    return value if isinstance(value, list) else []


def words(value: Any) -> str:
    """A part of a report that should be a text."""
    return value if isinstance(value, str) else ""


def count(value: Any) -> int:
    """A part of a report that should be a number of tokens."""
    return int(value) if isinstance(value, int | float) and 0 <= value < 1e15 else 0


def money(value: Any) -> float:
    """A part of a report that should be an amount in US dollars."""
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e9 else 0.0
