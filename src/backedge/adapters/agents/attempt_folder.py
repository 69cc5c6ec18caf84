"""Everything about one attempt of a command, in one folder: what it was told, what it said, how it ended.

The files are what outlives a crash of backedge: the command goes on writing into them, and whoever resumes the run
reads there what became of it.

    briefing.json   what it was told, also on its stdin
    before.json     the workspace before it began, until it has ended
    starting        written before the process is made: from here on it may have run
    process.json    which process it is
    stdout, log     what it said; `log` is its stderr
    outcome.json    what it reports
    exit.json       how the process ended, by the one that started it and outlives us
    ended.json      how it ended, by whoever saw it
    files.diff      what it changed in the files of the workspace, for people
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
    """What was so just before the process was made."""

    at: float
    """Seconds since the epoch."""
    report: tuple[int, ...] | None = None
    """The state of the report file, if there was one: a report that still is the same one is stale."""


class Running(msgspec.Struct, frozen=True):
    """Which process does the attempt."""

    pid: int
    began: str
    argv: tuple[str, ...]
    filter: tuple[int, str] | None = None
    """The process that keeps secrets out of its stdout and log, if there is one: number and beginning."""
    supervisor: tuple[int, str] | None = None
    """The process that started it and records how it ends."""


class Ended(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a process ended. Without code and signal nobody knows: it was not our child any more."""

    code: int | None = None
    signal: int | None = None
    because: str = ""
    """Why backedge ended it, or why it could not be started; the error of the attempt."""
    cancelled: bool = False
    """Somebody took it back: there is no outcome to look for."""
    unwatched: bool = False
    """Nobody of us lived when it ended; its supervisor recorded it."""

    @property
    def known(self) -> bool:
        return self.code is not None or self.signal is not None or bool(self.because)

    @property
    def beyond_doubt(self) -> bool:
        """Whether an attempt without an outcome has simply failed. One that ended well while nobody of us lived may
        have lost its outcome with us."""
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
        """What every process of this attempt has in its environment, and no other process."""
        return b"BACKEDGE_OUTCOME=" + os.fsencode(self.outcome)

    def make(self) -> None:
        """Make the folder, empty. What an attempt of the same name left, in a journal that is gone, is put aside."""
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
        """Free of secrets what the program itself wrote here."""
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
    def running(self) -> Running | None:
        return _read(self.path / "process.json", Running)

    @running.setter
    def running(self, record: Running) -> None:
        self.write(self.path / "process.json", msgspec.json.encode(record))

    @property
    def ended(self) -> Ended | None:
        return _read(self.path / "ended.json", Ended)

    @ended.setter
    def ended(self, record: Ended) -> None:
        self.write(self.path / "ended.json", msgspec.json.encode(record))

    @property
    def exited(self) -> Ended | None:
        """How the process ended, if its supervisor saw it."""
        return _read(self.exit, Ended)

    @property
    def started_ns(self) -> int:
        """When the process was about to be made, by the clock that also stamps the files it writes."""
        return (self.path / "starting").stat().st_mtime_ns


def write_whole(path: Path, text: bytes) -> None:
    """Write a file so that no reader ever sees half of it. It may be lost if the machine stops: then the journal still
    says that the attempt began, and its step's `on_doubt` decides."""
    draft = path.with_name(f".{path.name}.new")
    draft.write_bytes(text)
    draft.replace(path)


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise AgentError(f"{path.name} of the attempt cannot be read ({error}): something else wrote it") from error
