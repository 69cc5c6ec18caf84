"""One run of a judge's program in a room, and the report that it leaves there."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from backedge.adapters.agents.attempt_folder import AttemptFolder, Ended
from backedge.adapters.agents.execution import Program, executed, recover
from backedge.adapters.agents.file_digests import Stamp
from backedge.adapters.agents.globs import Globs
from backedge.adapters.agents.outcome import content, last_lines, tail
from backedge.adapters.agents.process import Bounds
from backedge.adapters.agents.secrets import NO_SECRETS, Secrets
from backedge.adapters.evidence.names import path_of
from backedge.adapters.evidence.room import Room, found_room, open_room
from backedge.adapters.evidence.room_opening import RoomKind, probed
from backedge.adapters.evidence.room_plan import Means
from backedge.adapters.evidence.store import NOTHING_PRINTED, Printed
from backedge.adapters.judges.compiled import built_since, compiled, compiled_packages, compiled_python
from backedge.adapters.judges.make_targets import made_since
from backedge.adapters.judges.orphans import OWNER, owner_note
from backedge.adapters.judges.printed import read_printed
from backedge.adapters.judges.report_folders import ReportFolder
from backedge.adapters.judges.run_evidence import RunEvidence
from backedge.adapters.judges.runs import Reading
from backedge.adapters.judges.tool_caches import configured_caches, shared_caches, tool_caches
from backedge.adapters.judges.workspace_evidence import WorkspaceEvidence
from backedge.adapters.reports.places import FileNames
from backedge.adapters.reports.spec import ReportSpec
from backedge.adapters.reports.tests import ReportedTests
from backedge.core.errors import AgentError
from backedge.engine.protocol import Outcome
from backedge.ports import PLACEHOLDER

LOG_KEPT = 256 * 1024
LARGEST_REPORT = 64 * 1024 * 1024
_ROOM, _REPORT = "room", "report"
"""Beside the records of a part: the name of its room and the path of its report, to find them again after a crash."""
_NOT_RENAMED = ("Invalid cross-device link", "cross-device link not permitted", "EXDEV")
"""What programs print if they rename a folder of an overlay, which says that the two names are on different devices."""
_ROOM_NAME = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class JudgeCommand:
    """A tool judge as the workflow file describes it."""

    step: str
    argv: tuple[str, ...]
    report: ReportSpec
    env: Mapping[str, str] = field(default_factory=dict)
    bounds: Bounds = field(default_factory=Bounds)
    room: RoomKind = "auto"
    reruns: int = 0
    keeps: tuple[str, ...] = ()
    measured: frozenset[str] = frozenset()
    """The files of its workspace that gates read: if it leaves one, they read that."""
    secrets: Secrets = NO_SECRETS
    canary: bool = False
    """Whether a pass counts only if the program notices broken files."""

    @property
    def prints_report(self) -> bool:
        """Whether stdout is the report."""
        told = any("report" in PLACEHOLDER.findall(word) for word in self.argv)
        return not self.report.is_file or (self.report.is_printed and not told)


@dataclass(frozen=True)
class Part:
    """One of the runs that a verdict needs."""

    run: str
    attempt: int
    name: str
    restore: Mapping[str, tuple[Path, int]] = field(default_factory=dict)
    """Files of the workspace that have another content here, and their modes."""
    remove: Sequence[str] = ()
    """Files that are not there."""
    allow_empty: bool = False
    """Whether a report without tests counts: something else says what should have run."""
    fills: bool = False
    """Whether it runs on the files of the start, so that what it compiles may be kept."""
    moving: bool = False
    """Whether others change the workspace meanwhile: the judge gets a copy."""
    plain: bool = False
    """Whether there may be no overlay at all, also not over a copy."""


@dataclass(frozen=True)
class PartResult:
    """What one run of the program showed."""

    reading: Reading
    room: str = ""
    changed: tuple[str, ...] = ()
    """Files of the workspace that the program changed in its room."""
    log: bytes = b""
    opened: tuple[str, ...] = ()
    """Restored files that the program has read."""
    again: bool = False
    """Whether it is not known how the program ended that was started first, before a crash."""
    ended: tuple[str, ...] = ()
    """The processes that the program left and that were ended, in words."""
    printed: bytes = b""
    """The end of everything that it printed."""
    copied: Mapping[str, Stamp] = field(default_factory=dict)
    """The states of the files when they were copied for the program, by name; empty if it saw the files themselves."""

    @property
    def tests(self) -> ReportedTests:
        return self.reading.tests


def cannot_rename(found: PartResult) -> bool:
    """Whether a program failed in a room, and says that it could not rename a folder."""
    outcome = found.reading.outcome
    if found.room not in ("overlay", "copy") or outcome.verdict == "pass":
        return False
    said = found.printed.decode("utf-8", "replace") + "".join(
        f"{each.description}{each.evidence}" for each in outcome.findings
    )
    return any(words in said for words in _NOT_RENAMED)


class CannotRun(AgentError):
    """The tool itself could not start: this says nothing about what it should judge."""


class NoRoom(AgentError):
    """There is no room for the tool on this machine, or none of the kind that the workflow file wants."""


class JudgeProgram:
    """Runs the program of one judge."""

    def __init__(self, evidence: WorkspaceEvidence, command: JudgeCommand) -> None:
        self._evidence, self._command = evidence, command
        self._renames = False

    async def run(self, part: Part) -> PartResult:
        """Run the program to its end and read its report. One that cannot rename a folder in an overlay runs in a copy."""
        found = await self._run(dataclasses.replace(part, plain=True) if self._renames else part)
        return await self._run(dataclasses.replace(part, plain=True)) if self._needs_copy(found) else found

    def _needs_copy(self, found: PartResult) -> bool:
        """Whether a program failed because an overlay cannot rename a folder. From then on, it always gets a copy."""
        if self._renames or self._command.room not in ("auto", "copy") or not cannot_rename(found):
            return False
        self._renames = True
        return True

    async def _run(self, part: Part) -> PartResult:
        room, reports = await asyncio.to_thread(self._opened, part)
        folder = self._folder(part)
        try:
            folder.choose_names()
            ended = await executed(folder, self._program(part, reports.path, room), self._command.bounds)
            return await asyncio.to_thread(self._read, folder, room, ended, part)
        finally:
            await asyncio.shield(asyncio.to_thread(_closed, room, reports))

    async def recover(self, part: Part) -> PartResult | None:
        """The result of a part that an earlier backedge process may have started: it is awaited and read. If its end is not
        known it is run again, which does no harm in a room; None if it has none."""
        folder = self._folder(part)
        if folder.starting is None:
            return await self.run(part)
        room = self._found_room(folder)
        ended = await recover(folder, self._command.bounds)
        reports = self._evidence.reports.found(_note(folder, _REPORT))
        try:
            if room is not None and ended is not None and ended.known:
                found = await asyncio.to_thread(self._read, folder, room, ended, part)
                if not self._needs_copy(found):
                    return found
        finally:
            if room is not None:
                await asyncio.shield(asyncio.to_thread(_closed, room, reports))
        if self._command.room == "off":
            return None
        return dataclasses.replace(await self.run(part), again=True)

    def _folder(self, part: Part) -> AttemptFolder:
        state = self._evidence.settings.state
        return AttemptFolder(state, part.run, self._command.step, part.attempt, self._command.secrets, part.name)

    def _opened(self, part: Part) -> tuple[Room, ReportFolder]:
        settings, command = self._evidence.settings, self._command
        # An overlay needs a workspace that stands still: while an agent is at work, the judge gets a copy.
        moving = part.moving or self._evidence.under_way.working
        kind = "copy" if (moving and command.room in ("auto", "overlay")) or part.plain else command.room
        found = probed(settings.folder, settings.folder, self._evidence.scratch) if part.plain else None
        settings.state.mkdir(parents=True, exist_ok=True, mode=0o700)  # only a folder that is there can be hidden
        reports = self._evidence.reports.make()
        removed, hidden = list(part.remove), [self._evidence.home, settings.state]
        if kind != "off":
            caches = tool_caches(settings.folder, self._evidence.names)
            run = self._evidence.of(part.run)
            since = command.argv, settings.folder, run.start.base.tree.files, run.store.began
            built = {*built_since(*since), *made_since(*since), *configured_caches(*since[:3])}
            removed += [
                *compiled(settings.folder),
                *compiled_packages(command.argv, settings.folder, run.store.began),
                *compiled_python(
                    settings.folder, self._evidence.names, lambda name: name in run.tree().files, run.store.began
                ),
                *caches.files,
                *(path for path in sorted(built) if path not in part.restore),
            ]
            hidden += [*(settings.folder / path for path in caches.folders), *shared_caches()]
        try:
            room = open_room(
                kind,
                settings.folder,
                self._evidence.scratch,
                part.restore,
                removed,
                hides=hidden,
                shows=[reports.path],
                fingerprint=self._evidence.of(part.run).fingerprint(),
                fills=part.fills,
                means=Means(overlay=False, mounts=found.mounts) if found else None,
            )
        except AgentError as error:
            reports.remove()
            raise NoRoom(str(error)) from error
        reports.belongs_to(room.name)
        return room, reports

    def _program(self, part: Part, reports: Path, room: Room) -> Program:
        report = self._report_file(reports, room)
        words = {"run": part.run, "step": self._command.step, "attempt": str(part.attempt)}
        if report is not None:
            words["report"] = str(report)
        if self._command.report.reporter is not None:
            words["reporter"] = str(self._command.report.reporter)
        argv = [PLACEHOLDER.sub(lambda found: words.get(found[1], found[0]), word) for word in self._command.argv]
        return Program(
            argv=room.argv(argv),
            cwd=room.cwd,
            env={**judge_environment(self._command), **room.env},
            briefing=b"",
            is_briefed=False,
            notes={
                _ROOM: room.name.encode(),
                _REPORT: os.fsencode(report or ""),
                OWNER: owner_note(part.run, self._command.step, part.name),
            },
        )

    def _report_file(self, reports: Path, room: Room) -> Path | None:
        report = self._command.report
        if self._command.prints_report:
            return None
        return room.cwd / report.path if report.path else reports / f"report{report.suffix}"

    def _found_room(self, folder: AttemptFolder) -> Room | None:
        name = _note(folder, _ROOM)
        return found_room(self._evidence.scratch, name) if _ROOM_NAME.fullmatch(name) else None

    def _read(self, folder: AttemptFolder, room: Room, ended: Ended, part: Part) -> PartResult:
        """The report of a program that has ended. Raises AgentError if it does not count, CannotRun if it did not start."""
        folder.scrub()
        log = tail(folder.log, LOG_KEPT)[0]
        printed = tail(folder.stdout, LOG_KEPT)[0]
        last = "\n".join(text for text in (last_lines(log, most=20), last_lines(printed, most=20)) if text)
        try:
            self._refuse_failure(room, ended, last)
            names = FileNames(
                self._evidence.settings.folder, room.cwd, {name: path for name, (path, _) in part.restore.items()}
            )
            outcome, tests = self._reported(folder, room, ended.code, last, part.allow_empty, names)
        except AgentError as error:
            error.log, error.ended = log or printed, ended.left
            raise
        opened = room.opened() if room.kind != "off" else ()
        run = self._evidence.of(part.run)
        base, began = run.start.base.tree.files, run.store.began
        made = made_since(self._command.argv, self._evidence.settings.folder, base, began)
        changed = set(room.changed()) - self._keep(run, room, part) - {self._command.report.path, *made}
        kind = room.kind if room.kind != "off" else ""
        return PartResult(
            Reading(outcome, tests, printed=self._printed(log + b"\n" + printed)),
            kind,
            tuple(sorted(changed)),
            log or printed,
            opened,
            ended=ended.left,
            printed=log + b"\n" + printed,
            copied=room.copied(),
        )

    def _keep(self, run: RunEvidence, room: Room, part: Part) -> set[str]:
        """Bring what the judge may leave to the workspace, unless it saw other files than those there. Returns the names of
        what it may leave."""
        if not self._command.keeps:
            return set()
        if part.restore or part.remove:
            may_leave = Globs(self._command.keeps)
            return {name for name in room.changed() if may_leave.match(path_of(name))}
        before = run.tree()
        kept = room.keep(self._command.keeps)
        run.keep_left(name for name in kept if path_of(name) in self._command.measured)
        own = run.notes.data_of_tests(kept, run.start.base.tree, before)
        if own:
            run.notes.keep(own, run.tree())
        return set(kept)

    def _printed(self, text: bytes) -> Printed:
        return read_printed(text) if self._command.report.kind == "exitcode" else NOTHING_PRINTED

    def _refuse_failure(self, room: Room, ended: Ended, last: str) -> None:
        problem = room.problem(self._command.argv[0])
        if problem:
            raise (NoRoom if problem.startswith("no room") else CannotRun)(problem)
        if ended.because:
            raise AgentError(ended.because)
        if ended.signal is not None:
            raise AgentError(f"the command was ended by signal {ended.signal}: {last or 'it printed nothing'}")

    def _reported(
        self, folder: AttemptFolder, room: Room, code: int | None, last: str, allow_empty: bool, names: FileNames
    ) -> tuple[Outcome, ReportedTests]:
        report, secrets = self._command.report, self._command.secrets
        if report.kind == "exitcode":
            return report.read(b"", code, last, names)
        if self._command.prints_report:
            text = content(folder.stdout, LARGEST_REPORT, "what the command printed") or b""
            log = content(folder.log, LARGEST_REPORT, "what the command printed on stderr") or b""
            if not text.strip() and report.is_file:
                raise CannotRun(f"the command printed no {report.kind} report (exit code {code}): {last or 'nothing'}")
            return report.read(secrets.content(text), code, last, names, allow_empty, secrets.content(log))
        path = room.written(report.path) if report.path else Path(os.fsdecode((folder.path / _REPORT).read_bytes()))
        if report.path and room.kind == "off":
            path = self._evidence.settings.folder / report.path
        found = content(path, LARGEST_REPORT, "the report") if path is not None else None
        if found is None:
            wanted = report.path or f"{{report}} ({report.kind})"
            printed = last or "it printed nothing"
            raise CannotRun(f"the command wrote no report {wanted} (exit code {code}): {printed}")
        outcome, tests = report.read(secrets.content(found), code, last, names, allow_empty)
        if code and not outcome.findings and outcome.verdict != "fail" and (tests.ran or report.kind != "junit"):
            # Runners fail if there are no tests, which is accepted here. Nothing else excuses a failure without a finding.
            raise AgentError(
                f"the tool failed (exit {code}) but its report lists nothing: {last or 'it printed nothing'}"
            )
        return outcome, tests


def judge_environment(command: JudgeCommand) -> dict[str, str]:
    """The environment of a judge's program: nothing tells it that backedge runs it, and it gets no secrets."""
    secret = set(command.secrets.names)
    inherited = {
        key: value for key, value in os.environ.items() if not key.startswith("BACKEDGE_") and key not in secret
    }
    return {**inherited, **command.env}


def _note(folder: AttemptFolder, name: str) -> str:
    try:
        return os.fsdecode((folder.path / name).read_bytes())
    except OSError:
        return ""


def _closed(room: Room, reports: ReportFolder | None) -> None:
    room.close()
    if reports is not None:
        reports.remove()
