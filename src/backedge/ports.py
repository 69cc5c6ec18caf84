"""What the engine needs from the world: narrow Protocols, satisfied by shape."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from backedge.core.briefing import Briefing
from backedge.core.model import Change, Resolution, Usage
from backedge.core.value import Json
from backedge.core.workflow.definition import Step, Workflow

PLACEHOLDERS = ("attempt", "briefing", "outcome", "report", "run", "step")
"""The words in braces that are filled in where they stand in a command."""
PLACEHOLDER = re.compile(rf"(?<![{{$])\{{({'|'.join(PLACEHOLDERS)})\}}(?!\}})")
"""One of them in a text. What a shell or a template fills in, ${run} and {{run}}, is left to it."""


class Append(msgspec.Struct, frozen=True, gc=False):
    """The events of one decision, to be stored after event number `after` of the run, all or none."""

    run: str
    after: int
    bodies: tuple[bytes, ...]
    """Each event as JSON text in UTF-8."""
    workflow: str = ""
    """The name of the workflow, for listings."""
    outcome: str = "running"
    """Where the run stands after these events, for listings: a view, not part of the chain."""
    payloads: Mapping[str, bytes] = {}
    """Large values by the hex sha256 of their bytes; stored in the same transaction, each once."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """One stored event."""

    seq: int
    body: bytes
    link: str


class RunHead(msgspec.Struct, frozen=True, gc=False):
    """One run as listings show it."""

    run: str
    workflow: str
    outcome: str
    seq: int
    link: str


Listener = Callable[[str, int], None]
"""Called with a run and its newest sequence number, on the event loop, after every commit by anyone."""


class Journal(Protocol):
    """The append-only event log; everything else is computed from it."""

    async def append(self, entry: Append) -> None:
        """Store all events of the entry, or none; durable on return.

        Raises JournalConflict if the run does not have exactly `entry.after` events.
        """
        ...

    async def read(self, run: str, after: int = 0) -> Sequence[Record]:
        """The events of a run after number `after`, in order; empty for a run that does not exist."""
        ...

    async def runs(self) -> Sequence[RunHead]:
        """Every run, newest first."""
        ...

    async def payload(self, digest: str) -> bytes:
        """A large value by its digest. Raises JournalDamaged if it is missing or does not match its digest."""
        ...

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Tell the listener of every commit, other processes' within 50 ms; returns what ends the subscription."""
        ...


class Claims(Protocol):
    """Who executes a run: one process at a time, by a lock that dies with its process."""

    def claim(self, run: str) -> None:
        """Take the run. Raises RunHeld, naming the holder, if somebody else has it, in this process or another."""
        ...

    def holder(self, run: str) -> str | None:
        """Who executes the run, in words; None if nobody does."""
        ...

    def release(self, run: str) -> None:
        """Give the run back; nothing happens if it was not held here."""
        ...


class Clock(Protocol):
    """Time as the engine sees it."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class Result(msgspec.Struct, frozen=True):
    """What an agent brings back from an attempt besides its outcome."""

    outcome: object
    """An Outcome of `backedge.engine.protocol`."""
    workspace: str | None = None
    """The digest of the files that are part of the artifact; None for an agent that has no files."""
    files: tuple[Change, ...] = ()
    """Where these files differ from before the attempt."""
    log: bytes = b""
    """What the agent said on the way, for people to read."""
    session: str | None = None
    """The conversation that a rework can continue."""


@runtime_checkable
class Agent(Protocol):
    """Who executes a step."""

    async def work(self, briefing: Briefing, attempt: Attempt) -> object:
        """Do the work and report it. May be called again for the same step after a crash, with another attempt.

        Returns an Outcome of `backedge.engine.protocol`, or a Result that holds one; anything that it raises is an error
        of the agent.
        """
        ...

    def input_errors(self, inputs: Mapping[str, Json]) -> Sequence[tuple[str, str, str]]:
        """Why inputs do not fit what the step accepts: (producer, JSON pointer, problem); empty if they fit."""
        ...


class ResolvedSteps(msgspec.Struct, frozen=True):
    """Steps that join a run, and who does them."""

    steps: tuple[Step, ...]
    agents: Mapping[str, Agent]
    """By the names that the steps have for them."""
    specs: dict[str, Json]
    """The steps as they were written, by name: enough to find the same agents again."""
    on_joined: Callable[[str], None] = lambda _: None
    """Told the run that the steps have become part of, now and at every resume of it."""


@runtime_checkable
class StepResolver(Protocol):
    """Who finds agents for steps that a planner adds to a run."""

    def resolve(self, added: Mapping[str, object], workflow: Workflow) -> ResolvedSteps:
        """The steps, checked as if they had been in the workflow from the start. Raises WorkflowError with all that is
        wrong. What it returns as specs, it takes as `added` in any later process."""
        ...


@runtime_checkable
class Recoverable(Protocol):
    """An agent whose attempts can outlive the process that started them."""

    async def recover(self, briefing: Briefing, attempt: Attempt) -> object | None:
        """What an attempt that an earlier process started has left: its result, waited for if it still works.

        None if nothing says how it ended: the attempt is in doubt then.
        """
        ...


class Attempt(Protocol):
    """What an agent can do while it works.

    A plain function gets the same methods without `await`: they block its own thread.
    """

    @property
    def inputs(self) -> Mapping[str, Json]:
        """The outputs it works from, by producer; newer than in the briefing if they changed while the attempt
        waited."""
        ...

    def spend(self, usage: Usage) -> None:
        """Report usage in addition to that of the outcome. It counts however the attempt ends."""
        ...

    async def raise_feedback(self, feedback: object) -> str:
        """Send feedback; returns its loop. Raises FeedbackRefused, with the reason, if it cannot be delivered."""
        ...

    async def wait_for(self, loop: str, timeout: float | None = None) -> Resolution:
        """Wait until the feedback is settled; `inputs` may be newer then."""
        ...
