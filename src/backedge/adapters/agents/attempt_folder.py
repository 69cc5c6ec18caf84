"""Everything about one attempt of a command, in one folder: its briefing, its output, how it ended.

The files survive a crash of backedge. The command continues to write to them, and the next `resume` reads them to find
out how it ended.

    briefing.json   its briefing, also on its stdin
    before.json     the workspace before it began; removed when it has ended
    starting        written before the process is made: from here on it may have run
    process.json    which process it is
    stdout, log     what it printed; `log` is its stderr
    outcome.json    what it reports
    exit.json       how the process ended, written by its supervisor
    ended.json      how the attempt ended, written by backedge
    files.diff      what it changed in the workspace, for people
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeVar

import msgspec

from backedge.adapters.agents.file_name import file_name
from backedge.adapters.agents.secrets import NO_SECRETS, Secrets
from backedge.core.errors import AgentError

T = TypeVar("T")


class Starting(msgspec.Struct, frozen=True):
    """The situation just before the process was started."""

    at: float
    """Seconds since the epoch."""
    report: tuple[int, ...] | None = None
    """The state of the report file, if there was one. If it has not changed at the end, the report is stale."""


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

    @property
    def known(self) -> bool:
        return self.code is not None or self.signal is not None or bool(self.because)

    @property
    def beyond_doubt(self) -> bool:
        """Whether an attempt without an outcome has certainly failed. If it ended well while no backedge process was
        running, its outcome may have been lost in our crash."""
        return self.known and not (self.unwatched and not self.code)


class AttemptFolder:
    """The paths of one attempt, and the records in them."""

    def __init__(self, state: Path, run: str, step: str, attempt: int, secrets: Secrets = NO_SECRETS) -> None:
        self.secrets = secrets
        self.path = state.absolute() / "attempts" / file_name(run) / f"{file_name(step)}-{attempt}"
        self.briefing = self.path / "briefing.json"
        self.before = self.path / "before.json"
        self.outcome = self.path / "outcome.json"
        self.stdout = self.path / "stdout"
        self.log = self.path / "log"
        self.files = self.path / "files.diff"
        self.exit = self.path / "exit.json"

    @property
    def mark(self) -> bytes:
        """The environment variable that every process of this attempt has, and no other process."""
        return b"BACKEDGE_OUTCOME=" + os.fsencode(self.outcome)

    def make(self) -> None:
        """Make the folder, empty. An old folder of the same name, from a journal that was deleted, is renamed."""
        if self.path.exists():
            number = 1
            while (aside := self.path.with_name(f"{self.path.name}~{number}")).exists():
                number += 1
            self.path.rename(aside)
        self.path.mkdir(parents=True, mode=0o700)

    def write(self, path: Path, text: bytes) -> None:
        """Write one of the files, without secrets, so that no reader ever sees half of it."""
        write_whole(path, self.secrets.content(text))

    def scrub(self) -> None:
        """Remove secrets from what the program itself wrote here."""
        if self.secrets:
            for path in (self.outcome, *self.path.glob("report.*")):
                self.secrets.scrub(path)

    @property
    def starting(self) -> Starting | None:
        return _read(self.path / "starting", Starting)

    @starting.setter
    def starting(self, record: Starting) -> None:
        self.write(self.path / "starting", msgspec.json.encode(record))

    @property
    def running(self) -> RunningProcess | None:
        return _read(self.path / "process.json", RunningProcess)

    @running.setter
    def running(self, record: RunningProcess) -> None:
        self.write(self.path / "process.json", msgspec.json.encode(record))

    @property
    def ended(self) -> Ended | None:
        return _read(self.path / "ended.json", Ended)

    @ended.setter
    def ended(self, record: Ended) -> None:
        self.write(self.path / "ended.json", msgspec.json.encode(record))

    @property
    def exited(self) -> Ended | None:
        """How the process ended, as its supervisor recorded it."""
        return _read(self.exit, Ended)

    @property
    def started_ns(self) -> int:
        """When the process was about to be made, by the clock that also stamps the files that it writes."""
        return (self.path / "starting").stat().st_mtime_ns


def write_whole(path: Path, text: bytes) -> None:
    """Write a file so that no reader ever sees half of it. It may be lost if the machine stops: then the journal still
    says that the attempt began, and its step's `on_doubt` decides."""
    # Two processes may write the same file at once: each writes its own draft, and the last one wins.
    draft = path.with_name(f".{path.name}.{os.getpid()}.new")
    draft.write_bytes(text)
    draft.replace(path)


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise AgentError(
            f"{path.name} of the attempt cannot be read ({error}): another program changed it; run the attempt again"
        ) from error
