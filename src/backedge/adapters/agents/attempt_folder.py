"""Everything about one attempt of a command, in one folder: its briefing, its output, how it ended.

The files survive a crash of backedge. The command continues to write to them, and the next `resume` reads them to find
out how it ended.

    briefing.json   its briefing, also on its stdin
    before.json     the workspace before it began; removed when it has ended
    starting        written before the process is made: from here on it may have run
    process.json    which process it is
    stdout, log     what it printed; `log` is its stderr
    outcome-….json  what it reports; only the attempt itself is told the whole name
    report-….xml    the report of a tool, in the same way
    exit.json       how the process ended, written by its supervisor; read only if backedge died meanwhile
    ended.json      how the attempt ended, written by backedge
    files.diff      what it changed in the workspace, for people
"""

from __future__ import annotations

import os
import secrets as randomness
import string
from copy import copy
from pathlib import Path
from typing import TypeVar

import msgspec

from backedge.adapters.agents.file_name import file_name
from backedge.adapters.agents.secrets import NO_SECRETS, Secrets
from backedge.core.errors import AgentError
from backedge.core.ready_types import make_ready

T = TypeVar("T")


class Starting(msgspec.Struct, frozen=True):
    """The situation just before the process was started."""

    at: float
    """Seconds since the epoch."""
    ticks: float | None = None
    """Seconds on a clock that nobody can set, which all processes of one boot share."""
    report: tuple[int, ...] | None = None
    """The state of the report file, if there was one. If it has not changed at the end, the report is stale."""
    token: str = ""
    """The part of the names of its files that nobody else can guess."""
    mark: str = ""
    """NAME=VALUE of the environment variable by which all its processes are recognised."""
    run: str = ""
    step: str = ""


class RunningProcess(msgspec.Struct, frozen=True):
    """Which process executes the attempt."""

    pid: int
    began: str
    argv: tuple[str, ...]
    filter: tuple[int, str] | None = None
    """The process that removes secrets from its stdout and log, if there is one: number and start time."""
    supervisor: tuple[int, str] | None = None
    """The process that started it and records how it ends."""


class Ended(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a process ended. Without code and signal, its end is unknown."""

    code: int | None = None
    signal: int | None = None
    because: str = ""
    """Why backedge ended it, or why it could not be started. This is the error of the attempt."""
    cancelled: bool = False
    """Whether it was cancelled. Then there is no outcome."""
    unwatched: bool = False
    """Whether no backedge process was running when it ended. Then its supervisor recorded the end."""
    left: tuple[str, ...] = ()
    """The processes that were left when the program had ended, and that its supervisor ended, in words."""

    @property
    def known(self) -> bool:
        return self.code is not None or self.signal is not None or bool(self.because)

    @property
    def beyond_doubt(self) -> bool:
        """Whether an attempt without an outcome has certainly failed. If it ended well while no backedge process was
        running, its outcome may have been lost in our crash."""
        return self.known and not (self.unwatched and not self.code)


make_ready(Starting, RunningProcess, Ended)


class AttemptFolder:
    """The paths of one attempt, and the records in them."""

    def __init__(
        self, state: Path, run: str, step: str, attempt: int, secrets: Secrets = NO_SECRETS, part: str = ""
    ) -> None:
        """`part` names one of several programs that an attempt runs; each has a folder of its own in the attempt's."""
        self.secrets = secrets
        self.run, self.step = run, step
        self.path = state.absolute() / "attempts" / file_name(run) / f"{file_name(step)}-{attempt}" / part
        self.briefing = self.path / "briefing.json"
        self.before = self.path / "before.json"
        self.stdout = self.path / "stdout"
        self.log = self.path / "log"
        self.files = self.path / "files.diff"
        self.exit = self.path / "exit.json"
        self._names: tuple[str, str] | None = None
        self._starting: Starting | None = None
        self._started_ns: int | None = None

    def choose_names(self) -> None:
        """Choose new names for what only this attempt may know: its outcome, its report and its mark."""
        # A name that means nothing: what an agent or a test finds in its environment must not tell it who is asking.
        name = "".join(randomness.choice(string.ascii_uppercase) for _ in range(8))
        self._names = randomness.token_hex(12), f"{name}={randomness.token_hex(12)}"

    def as_found(self) -> AttemptFolder:
        """The same folder as an earlier attempt of the same name left it, with the names that it chose."""
        found = copy(self)
        found._names = found._starting = found._started_ns = None
        return found

    @property
    def names(self) -> tuple[str, str]:
        """The token in the names of its files, and its mark; chosen by us, or by the process that started it."""
        if self._names is None:
            starting = self.starting
            self._names = (starting.token, starting.mark) if starting is not None else ("", "")
        return self._names

    @property
    def outcome(self) -> Path:
        return self._named("outcome", ".json")

    def report(self, suffix: str) -> Path:
        """The report of a tool that says nothing about where it writes it."""
        return self._named("report", suffix)

    def _named(self, noun: str, suffix: str) -> Path:
        token, _ = self.names
        return self.path / (f"{noun}-{token}{suffix}" if token else f"{noun}{suffix}")

    @property
    def mark(self) -> bytes:
        """The environment variable that every process of this attempt has, and no other process: NAME=VALUE."""
        # An attempt of version 0.1 has no mark of its own.
        return os.fsencode(self.names[1] or f"BACKEDGE_OUTCOME={self.outcome}")

    def make(self) -> None:
        """Make the folder, empty. An old folder of the same name, from a journal that was deleted, is renamed."""
        if self.path.exists():
            number = 1
            while (aside := self.path.with_name(f"{self.path.name}~{number}")).exists():
                number += 1
            self.path.rename(aside)
        self.path.mkdir(parents=True, mode=0o700)
        if self._names is None:
            self.choose_names()

    def write(self, path: Path, text: bytes) -> None:
        """Write one of the files, without secrets, so that no reader ever sees half of it."""
        write_whole(path, self.secrets.content(text))

    def scrub(self) -> None:
        """Remove secrets from what the program itself wrote here."""
        if self.secrets:
            for path in (self.outcome, self.exit, *self.path.glob("report[.-]*")):
                self.secrets.scrub(path)

    @property
    def starting(self) -> Starting | None:
        # What we wrote ourselves is not read again: the agent could have changed it.
        return self._starting or read_record(self.path / "starting", Starting)

    @starting.setter
    def starting(self, record: Starting) -> None:
        token, mark = self.names
        record = msgspec.structs.replace(record, token=token, mark=mark, run=self.run, step=self.step)
        self.write(self.path / "starting", msgspec.json.encode(record))
        self._starting, self._started_ns = record, (self.path / "starting").stat().st_mtime_ns

    @property
    def running(self) -> RunningProcess | None:
        return read_record(self.path / "process.json", RunningProcess)

    @running.setter
    def running(self, record: RunningProcess) -> None:
        self.write(self.path / "process.json", msgspec.json.encode(record))

    @property
    def ended(self) -> Ended | None:
        return read_record(self.path / "ended.json", Ended)

    @ended.setter
    def ended(self, record: Ended) -> None:
        self.write(self.path / "ended.json", msgspec.json.encode(record))

    @property
    def exited(self) -> Ended | None:
        """How the process ended, as its supervisor recorded it."""
        return read_record(self.exit, Ended)

    @property
    def started_ns(self) -> int:
        """When the process was about to be made, by the clock that also stamps the files that it writes."""
        return (self.path / "starting").stat().st_mtime_ns if self._started_ns is None else self._started_ns


def write_whole(path: Path, text: bytes) -> None:
    """Write a file so that no reader ever sees half of it. It may be lost if the machine stops: then the journal still
    says that the attempt began, and its step's `on_doubt` decides."""
    # Two processes may write the same file at once: each writes its own draft, and the last one wins.
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    draft.write_bytes(text)
    draft.replace(path)


def read_record(path: Path, kind: type[T]) -> T | None:
    """One of the records of an attempt; None if there is none. Raises AgentError if it cannot be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise AgentError(
            f"{path.name} of the attempt cannot be read ({error}): another program changed it; run the attempt again"
        ) from error
