"""The interfaces that the engine needs: small Protocols, which an adapter implements without inheriting."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

import msgspec

from backedge.core.briefing import Briefing
from backedge.core.commands import DropAttempt, FailAttempt, FinishAttempt, LimitAttempt
from backedge.core.evidence.values import NO_EVIDENCE, Evidence, RestoredFiles, RestoreRule
from backedge.core.model import Change, Kind, Resolution, Usage
from backedge.core.value import Json, Value
from backedge.core.workflow.checks import Check, Gate
from backedge.core.workflow.definition import Step, Workflow

PLACEHOLDERS = ("attempt", "briefing", "outcome", "report", "reporter", "run", "step")
"""The placeholders of a command, which are written in braces."""
PLACEHOLDER = re.compile(rf"(?<![{{$])\{{({'|'.join(PLACEHOLDERS)})\}}(?!\}})")
"""Matches one placeholder in a text, but not ${run} or {{run}}, which belong to a shell or a template."""


class Append(msgspec.Struct, frozen=True, gc=False):
    """The events of one decision, to be stored after event number `after` of the run, all or none."""

    run: str
    after: int
    bodies: tuple[bytes, ...]
    """Each event as JSON text in UTF-8."""
    workflow: str = ""
    """The name of the workflow, for listings."""
    outcome: str = "running"
    """The outcome of the run after these events, for listings. It is not part of the chain."""
    payloads: Mapping[str, bytes] = {}
    """Large values by the hex sha256 of their bytes; stored in the same transaction, each once."""
    opened: tuple[str, ...] = ()
    """The escalations that these events open, for the index of open escalations."""
    closed: tuple[str, ...] = ()
    """The escalations that these events close."""
    fence: int | None = None
    """The number of the claim under which the run is executed; None for a command from another process, such as a
    decision."""
    key: str | None = None
    """Identifies this decision within its run, so that it can be sent again: the second time nothing is written. The
    events contain it too, so the chain covers it."""


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


class OpenEscalation(msgspec.Struct, frozen=True, gc=False):
    """One escalation that waits for a decision."""

    run: str
    escalation: str


OPEN = ("running", "waiting")
"""The outcomes of a run that has not ended."""

Listener = Callable[[str, int], None]
"""Called on the event loop with a run and its newest sequence number, after every commit of any process."""


class Listings(Protocol):
    """What a journal can list about all runs without reading their events. Runs can be listed page by page."""

    async def runs(self, limit: int | None = None, after: str | None = None) -> Sequence[RunHead]:
        """Runs, newest first: at most `limit`, from the one that follows the run `after`."""
        ...

    async def open_runs(self, limit: int | None = None, after: str | None = None) -> Sequence[RunHead]:
        """The same for runs that have not ended: those whose outcome is one of `OPEN`."""
        ...

    async def open_escalations(self, escalation: str | None = None) -> Sequence[OpenEscalation]:
        """The open escalations of all runs, or those with this id: oldest run first, in the order they were opened."""
        ...


class Journal(Listings, Protocol):
    """The append-only event log. Everything else is computed from it."""

    async def append(self, entry: Append) -> int:
        """Store all events of the entry, or none; durable on return. Returns the number of the entry's last event.

        Raises RunLost if the entry has a fence and the run was claimed again since, and JournalConflict if the run does not
        have exactly `entry.after` events. An entry whose key the run already has writes nothing: it returns what the
        first one returned, or raises KeyUsed if its events differ.
        """
        ...

    async def read(self, run: str, after: int = 0) -> Sequence[Record]:
        """The events of a run after number `after`, in order; empty for a run that does not exist."""
        ...

    async def payload(self, digest: str) -> bytes:
        """A large value by its digest. Raises JournalDamaged if it is missing or does not match its digest."""
        ...

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call the listener after every commit, for those of other processes within 50 ms. Returns a function that
        unsubscribes."""
        ...

    async def close(self) -> None:
        """Release every claim and close the journal. Appends that are still waiting fail."""
        ...


@runtime_checkable
class Audited(Protocol):
    """A journal that can detect whether whole runs, or parts of them, are missing.

    How it does that is up to the journal: numbers without gaps, a counter, a hash. The head is text that only this
    journal understands.
    """

    async def missing(self) -> str | None:
        """What is missing, in words; None if the journal finds nothing missing."""
        ...

    async def pruned(self) -> Sequence[str]:
        """The digests of the large values that were removed to free space."""
        ...

    async def head(self) -> str:
        """A proof of everything that is stored now: keep it elsewhere, for `disproof`."""
        ...

    async def disproof(self, head: str) -> str | None:
        """Why the journal does not contain everything that a head proves, in words; None if it does."""
        ...


class Claim(msgspec.Struct, frozen=True, gc=False):
    """The right to execute a run, until it is released or lost."""

    run: str
    fence: int
    """Increases with every claim of the run: the journal refuses appends under an older one."""
    holder: str
    """The process that holds it, in words."""


LostListener = Callable[[Claim], None]
"""Called on the event loop with a claim that another process has taken over."""


class Claims(Protocol):
    """The right to execute a run: one process at a time has it."""

    async def claim(self, run: str) -> Claim:
        """Claim the run. Raises RunHeld, which names the holder, if it is claimed already, in this process or
        another."""
        ...

    async def holds(self, claim: Claim) -> bool:
        """Whether the claim is still valid: neither released nor taken over."""
        ...

    async def holder(self, run: str) -> str | None:
        """The process that executes the run, in words; None if no process does."""
        ...

    async def release(self, claim: Claim) -> None:
        """Release the run. A claim that is no longer valid is ignored."""
        ...

    def on_lost(self, listener: LostListener) -> Callable[[], None]:
        """Call the listener with each claim made here that is lost. Returns a function that unsubscribes. The call is a
        hint and may come late: check with `holds` before you act on what you read."""
        ...


class JournalWithClaims(Journal, Claims, Protocol):
    """What an engine works on: the event log, and the claims on its runs."""


class Clock(Protocol):
    """Time as the engine sees it."""

    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class Result(msgspec.Struct, frozen=True):
    """An outcome with the other things that an agent returns."""

    outcome: object
    """An Outcome of `backedge.engine.protocol`."""
    workspace: str | None = None
    """The digest of the files that are part of the artifact; None for an agent without files."""
    files: tuple[Change, ...] = ()
    """Where these files differ from before the attempt."""
    log: bytes = b""
    """What the agent printed, for people to read."""
    session: str | None = None
    """The conversation that a rework can continue."""
    evidence: Evidence = NO_EVIDENCE
    """What was seen of the attempt, beside what the agent reported."""
    payloads: Mapping[str, bytes] = {}
    """Large values that the evidence names, by their digests."""


@runtime_checkable
class Agent(Protocol):
    """Does the work of a step: a function, a command, an agent CLI."""

    async def work(self, briefing: Briefing, attempt: Attempt) -> object:
        """Do the work and report it. May be called again for the same step after a crash, with another attempt.

        Returns an Outcome of `backedge.engine.protocol`, or a Result that holds one. Whatever it raises is recorded as an
        error of the agent. A Recoverable one returns None if nothing shows how the attempt ended: it is then in doubt.
        """
        ...

    def input_errors(self, inputs: Mapping[str, Json]) -> Sequence[tuple[str, str, str]]:
        """Why inputs do not fit what the step accepts: (producer, JSON pointer, problem); empty if they fit."""
        ...


@runtime_checkable
class Recoverable(Protocol):
    """An agent whose attempts can outlive the process that started them."""

    async def recover(self, briefing: Briefing, attempt: Attempt) -> object | None:
        """The result of an attempt that an earlier process started; waits for it if it is still running.

        None if nothing shows how it ended: the attempt is then in doubt.
        """
        ...


@runtime_checkable
class Restorable(Protocol):
    """An agent that can undo what attempts changed in its workspace."""

    async def restore(
        self, run: str, attempts: Sequence[tuple[str, int]], judges: Sequence[str], rule: RestoreRule
    ) -> RestoredFiles:
        """Undo what attempts of any steps in this workspace changed, the last one first; and let the `judges` remember only
        what they did before. All files are restored, or none if `rule` is unless_edited and one of them was edited since.

        May be called again for the same attempts after a crash.
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
        """Report usage so far, in addition to the usage in the outcome. It counts no matter how the attempt ends."""
        ...

    async def raise_feedback(self, feedback: object) -> str:
        """Send feedback; returns its loop. Raises FeedbackRefused, with the reason, if it cannot be delivered."""
        ...

    async def wait_for(self, loop: str, timeout: float | None = None) -> Resolution:
        """Wait until the feedback is settled; `inputs` may be newer afterwards."""
        ...


class Task(Value, frozen=True):
    """Everything that an executor needs to make one attempt. It is plain data: an attempt can be made in another
    process."""

    agent: str
    """The name under which the agent of the step is registered."""
    briefing: Briefing
    """Also names the run, the step and the attempt."""
    timeout: float | None = None
    """Seconds from the start of the execution after which the agent is told to stop."""
    recover: bool = False
    """Whether an earlier process started this attempt. Then find out how it ended instead of doing the work."""
    check: Check | None = None
    gate: Gate | None = None
    """What the engine itself has to judge, for a step that is a check or a gate."""
    has_previous: bool = False
    """Whether the step has made an artifact before; `briefing.previous` is its output, which may be null."""
    kinds: tuple[tuple[str, Kind], ...] = ()
    """The kinds of feedback that the workflow adds."""
    plans: bool = False
    """Whether the step may add and remove steps."""

    @property
    def step(self) -> str:
        return self.briefing.step

    @property
    def attempt(self) -> int:
        return self.briefing.attempt


AttemptCommand: TypeAlias = FinishAttempt | FailAttempt | LimitAttempt | DropAttempt
"""The commands that end an attempt."""


class AttemptReport(Value, frozen=True):
    """The report of an attempt: the command that records how it ended. Usage, log and session are part of the
    command."""

    command: AttemptCommand
    payloads: dict[str, bytes] = {}
    """The large values that the command names by their digests, to be stored with it."""


class Executor(Protocol):
    """Makes attempts, here or on another machine."""

    async def execute(self, task: Task, attempt: Attempt) -> AttemptReport:
        """Make one attempt and return its report.

        An error of the agent is reported as a failed attempt. If this call is cancelled, the agent is told to stop, and
        nothing is reported.
        """
        ...


class Workspaces(Protocol):
    """The files that attempts work on, on whichever machine they run."""

    async def prepare(self, task: Task, version: str) -> Path:
        """A folder for this attempt only, with the files of this version and nothing else.

        Preparing the same attempt again gives the same files, no matter what an earlier try left behind.
        """
        ...

    async def keep(self, task: Task, folder: Path) -> str:
        """Store the files that an attempt left in its folder, and return their version.

        On return, `prepare` gives these files on every machine. Files that did not change keep their version.
        """
        ...


class Blobs(Protocol):
    """Large values by their digests. They are stored before the event that names them."""

    async def put(self, value: bytes) -> str:
        """Store a value, durable on return, and return its hex sha256. Storing a value twice keeps one copy."""
        ...

    async def get(self, digest: str) -> bytes:
        """A value by its digest. Raises JournalDamaged if it is missing or does not match its digest."""
        ...


class ResolvedSteps(msgspec.Struct, frozen=True):
    """Steps that a planner adds to a run, with their agents."""

    steps: tuple[Step, ...]
    agents: Mapping[str, Agent]
    """The agents, by the names that the steps use."""
    specs: dict[str, Json]
    """The steps as they were written, by name: enough to find the same agents again, with the files."""
    files: Mapping[str, bytes] = {}
    """The contents of the files that the steps name, by path: they are stored with the run."""
    on_joined: Callable[[str], None] = lambda _: None
    """Called with the run once the steps are part of it, and again whenever the run is resumed."""


@runtime_checkable
class StepResolver(Protocol):
    """Finds agents for steps that a planner adds to a run."""

    def resolve(self, added: Mapping[str, object], workflow: Workflow) -> ResolvedSteps:
        """The steps, checked as if they had been in the workflow from the start. Raises WorkflowError with all
        problems. A later process can pass the returned specs as `added` to get the same agents again."""
        ...
