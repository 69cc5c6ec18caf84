"""One process of an attempt: started so that it survives a crash of backedge, waited for, and ended with all its children.

Its input and output are files, not pipes. If backedge dies the process goes on, and the next `resume` waits for the same
process and reads the same files. It leads a session of its own: one signal reaches its whole group, and a Ctrl-C for
backedge does not reach it. Its parent is a supervisor, which ends everything that the process leaves and says how it
ended. As long as backedge lives, only what the supervisor says counts: a file could have been written by the agent.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from backedge.adapters.agents import spawner
from backedge.adapters.agents.attempt_folder import AttemptFolder, Ended, RunningProcess
from backedge.adapters.agents.not_started import why_not
from backedge.adapters.agents.output_filter import Filter, outputs
from backedge.adapters.agents.process_tree import Identity, family, lives, marked, row_of, send
from backedge.adapters.agents.supervisor import Talk, start_supervised
from backedge.core.errors import AgentError

LOOK = 0.1
"""Seconds between two checks of how much a process has written."""
POLL = 0.05
"""Seconds between two checks of a process that cannot be watched."""
LAST_WORDS = 2.0
"""Seconds to wait for the last output of an ended process to pass its filter."""
PATIENCE = 5.0
"""Seconds after which we give up on a process that cannot be killed because it hangs in a system call."""
SUPERVISOR_ENDS = spawner.PATIENCE + 2.0
"""Seconds that a supervisor has to end what an ended process left, and to say how it ended."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long a process may run, how much it may print, and how long it has to end when asked."""

    timeout: float | None = None
    max_stdout: int = 64 * 1024 * 1024
    grace: float = 2.0


class Process:
    """The process of one attempt, started by this backedge process or by an earlier one."""

    def __init__(
        self,
        identity: Identity,
        folder: AttemptFolder,
        supervisor: Identity | None = None,
        filter: Filter | None = None,
        talk: Talk | None = None,
    ) -> None:
        self.identity = identity
        self._folder = folder
        self._supervisor = supervisor
        self._filter = filter
        self._talk = talk
        """The socket to its supervisor, if this backedge process started it."""
        self._hurried = False

    @classmethod
    def start(
        cls, folder: AttemptFolder, argv: Sequence[str], cwd: Path, env: Mapping[str, str], stdin: Path | None = None
    ) -> Process:
        """Start a program, without a shell; its stdin is the briefing, or another file. Raises AgentError if it cannot be
        started."""
        name, _, value = os.fsdecode(folder.mark).partition("=")
        env = {**env, name: value}
        with (stdin or folder.briefing).open("rb") as given, outputs(folder) as (stdout, log, filter):
            try:
                files = given.fileno(), stdout, log
                identity, supervisor, talk = start_supervised(argv, files, cwd, env, folder.exit)
            except (OSError, ValueError) as error:
                why = _why_not(error, argv[0], cwd)
                folder.ended = Ended(because=why)
                raise AgentError(why) from error
        try:
            folder.running = RunningProcess(*identity, tuple(argv), filter.identity if filter else None, supervisor)
        except OSError as error:
            with suppress(ProcessLookupError):
                os.killpg(identity.pid, signal.SIGKILL)
            raise AgentError(f"the process was killed again because it cannot be recorded: {error}") from error
        return cls(identity, folder, supervisor, filter, talk)

    @classmethod
    def found(cls, folder: AttemptFolder) -> Process | None:
        """The process that an earlier backedge process started; None if it cannot be found."""
        running = folder.running
        if running is not None:
            filter = Filter(Identity(*running.filter)) if running.filter else None
            supervisor = Identity(*running.supervisor) if running.supervisor else None
            return cls(Identity(running.pid, running.began), folder, supervisor, filter)
        # backedge died between making the process and recording it. If it lives, it still carries the attempt's mark.
        for row in marked(folder.mark):
            if row.session == row.identity.pid:
                return cls(row.identity, folder)
        return None

    @property
    def lives(self) -> bool:
        return lives(self.identity)

    async def ended(self, bounds: Bounds, spent: float = 0.0) -> Ended:
        """Wait until it has ended and say how. `spent` seconds of its time have passed already.

        A timeout, too much output and cancellation end it with everything that it started.
        """
        gone = asyncio.ensure_future(self._gone())
        try:
            because = await self._watched(gone, bounds, spent)
        except asyncio.CancelledError:
            await self.cancel(bounds.grace)
            raise
        finally:
            gone.cancel()
        if because:
            await self._stopped(bounds.grace)
            self._shorten(bounds.max_stdout)
        await self.end_known()
        ended = self._recorded(because)
        await self.swept(bounds.grace)
        return ended

    async def cancel(self, grace: float) -> None:
        """End it with everything that it started. Returns only when that is done, even if cancelled meanwhile."""
        await self._stopped(grace)
        await self.end_known()
        await self._filtered()
        self._recorded(cancelled=True)
        self._folder.scrub()

    async def swept(self, grace: float) -> None:
        """End what an ended process left if its supervisor could not: it would go on changing files that are already an
        artifact. On return all its output is in its files."""
        if self._exited() is None:
            await self._stopped(grace)
        await self._filtered()
        if self._hurried:
            raise asyncio.CancelledError

    async def _watched(self, gone: asyncio.Future[None], bounds: Bounds, spent: float) -> str:
        """Wait for its end, or return why it must be ended."""
        loop = asyncio.get_running_loop()
        deadline = None if bounds.timeout is None else loop.time() + max(0.0, bounds.timeout - spent)
        while True:
            left = LOOK if deadline is None else min(LOOK, max(0.0, deadline - loop.time()))
            await asyncio.wait({gone}, timeout=left)
            for name, file in (("stdout", self._folder.stdout), ("stderr", self._folder.log)):
                if _size(file) > bounds.max_stdout:
                    return (
                        f"the command wrote more than {bounds.max_stdout:,} bytes on {name}: "
                        "print less, and write large results to files"
                    )
            if gone.done():
                return ""
            self._wake_supervisor()
            if deadline is not None and loop.time() >= deadline:
                return f"timeout: no outcome after {bounds.timeout:g} s"

    async def _gone(self) -> None:
        """Return when the process has ended, with all that it left, and its supervisor has said how."""
        if self._talk is not None:
            await _readable(self._talk)
        elif self._supervisor is not None:
            await _over(self._supervisor)
        await _over(self.identity)

    def _wake_supervisor(self) -> None:
        """Let the supervisor of an ended process go on, if somebody stopped it: it has to say how the process ended."""
        if self._supervisor is None or self.lives:
            return
        row = row_of(self._supervisor.pid)
        if row is not None and row.identity == self._supervisor and row.state in "Tt":
            send(self._supervisor, [self._supervisor], signal.SIGCONT)

    async def _stopped(self, grace: float) -> None:
        """Ask it and everything that it started to end, and kill them after the grace. Cancelling only shortens the grace:
        an abandoned attempt must not go on working."""
        known = self._family()
        if not known:
            return
        if self._talk is not None:
            self._talk.grant(grace)
        send(self.identity, known, signal.SIGTERM)
        await self._passed(known, grace)
        for _ in range(int(PATIENCE / POLL)):
            # List them again: they may have started others in the meantime.
            known |= self._family()
            if not any(map(lives, known)):
                return
            send(self.identity, known, signal.SIGKILL)
            await self._passed(known, POLL, at_least=True)

    async def _passed(self, members: set[Identity], seconds: float, at_least: bool = False) -> None:
        """Wait until the members have ended, at most so many seconds. A second cancellation also ends the wait."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while any(map(lives, members)) and loop.time() < until and (at_least or not self._hurried):
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                self._hurried = True

    async def _filtered(self) -> None:
        """Wait for the last output: the filter ends with the last process that writes to it. A process that moved to a
        session of its own may keep it open; then what was printed so far is there anyway."""
        if self._filter is not None:
            await self._passed({self._filter.identity}, LAST_WORDS, at_least=True)
            self._filter.reap()

    async def end_known(self) -> None:
        """Wait until the supervisor has said or recorded how it ended: it does so once nothing is left."""
        running = self._folder.running if self._talk is None else None
        if self._supervisor is None and running is not None and running.supervisor is not None:
            self._supervisor = Identity(*running.supervisor)  # recorded after we found the process
        self._wake_supervisor()
        if self._talk is not None:
            until = asyncio.get_running_loop().time() + SUPERVISOR_ENDS
            self._talk.listen()
            while not self._talk.over and asyncio.get_running_loop().time() < until:
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(0.005)
                self._talk.listen()
        elif self._supervisor is not None:
            await self._passed({self._supervisor}, SUPERVISOR_ENDS, at_least=True)
        elif running is None:
            for _ in range(int(LAST_WORDS / POLL)):
                if self._folder.exited is not None:
                    break
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(POLL)

    def _family(self) -> set[Identity]:
        found = family(self.identity, self._folder.mark, self._supervisor)
        return found | ({self.identity} if self.lives else set())

    def _exited(self) -> Ended | None:
        """How it ended: as its supervisor said, or recorded for us; None if the supervisor was killed before that."""
        if self._talk is None:
            return self._folder.exited
        if not self._talk.said:
            return None
        said = msgspec.json.decode(self._talk.said, type=Ended)
        return msgspec.structs.replace(said, left=tuple(map(self._folder.secrets.text, said.left)))

    def _recorded(self, because: str = "", cancelled: bool = False) -> Ended:
        """Record how it ended, and why."""
        seen = self._folder.ended if self._talk is None else None
        if seen is not None:
            return seen  # an earlier backedge process recorded it
        exited = self._exited() or Ended()
        ended = Ended(exited.code, exited.signal, because, cancelled, left=exited.left)
        if ended.known or cancelled:
            with suppress(OSError):  # a full disk: the result is returned anyway
                self._folder.ended = ended
        return ended

    def _shorten(self, most: int) -> None:
        for file in (self._folder.stdout, self._folder.log):
            if _size(file) > most:
                os.truncate(file, most)


async def _readable(talk: Talk) -> None:
    """Return when a supervisor has said all that it has to say."""
    loop = asyncio.get_running_loop()
    talk.listen()
    while not talk.over:
        spoke = asyncio.Event()
        try:
            loop.add_reader(talk.fileno(), spoke.set)
            try:
                await spoke.wait()
            finally:
                if not talk.over:
                    loop.remove_reader(talk.fileno())
        except (NotImplementedError, OSError):
            await asyncio.sleep(POLL)  # this event loop cannot watch descriptors, or not one more
        talk.listen()


async def _over(identity: Identity) -> None:
    """Return when a process has ended. It need not be our child."""
    watch = _pidfd(identity.pid)
    if watch is not None:
        loop = asyncio.get_running_loop()
        over = asyncio.Event()
        try:
            loop.add_reader(watch, over.set)
            # The number may belong to another process by now.
            if lives(identity):
                await over.wait()
        except (NotImplementedError, OSError):
            pass  # this event loop cannot watch descriptors, or not one more
        finally:
            with suppress(NotImplementedError):
                loop.remove_reader(watch)
            os.close(watch)
    while lives(identity):  # noqa: ASYNC110 - nothing announces the end of a process that is not our child
        await asyncio.sleep(POLL)


def _pidfd(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None where the system has none."""
    try:
        return os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
    except OSError:
        return None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _why_not(error: OSError | ValueError, program: str, cwd: Path) -> str:
    number = error.errno if isinstance(error, OSError) else None
    return why_not(number, program, cwd) or f"cannot start {program!r}: {error}"
