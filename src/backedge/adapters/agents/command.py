"""A command in any language as an agent: it reads its briefing from a file and writes its outcome to one."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from backedge.adapters.agents.artifact import ArtifactFiles
from backedge.adapters.agents.attempt_folder import AttemptFolder, Ended
from backedge.adapters.agents.briefing_json import briefing_json
from backedge.adapters.agents.evidence import evidence
from backedge.adapters.agents.execution import Program
from backedge.adapters.agents.file_digests import FileDigests
from backedge.adapters.agents.outcome import last_lines, reported, tail
from backedge.adapters.agents.process import Bounds
from backedge.adapters.agents.program_agent import ProgramAgent
from backedge.adapters.agents.secrets import NO_SECRETS, Secrets
from backedge.adapters.agents.step_schemas import StepSchemas
from backedge.adapters.agents.witness import Witness, witnessed
from backedge.adapters.agents.workspace import Snapshot
from backedge.core.briefing import Briefing
from backedge.core.errors import AgentError
from backedge.core.evidence.values import NO_EVIDENCE
from backedge.core.value import Json
from backedge.engine.protocol import Outcome, parse_outcome
from backedge.ports import PLACEHOLDER, Attempt, Result

OURS = "BACKEDGE_"
"""How the names of the environment variables begin that tell a command about its attempt."""
LOG_KEPT = 256 * 1024
"""How many bytes at the end of a command's stderr are stored with the attempt."""


class ReportReader(Protocol):
    """How to read the report file of a command."""

    @property
    def path(self) -> str: ...

    @property
    def suffix(self) -> str: ...

    @property
    def is_file(self) -> bool: ...

    def outcome(self, text: bytes, code: int | None, last_output: str, folder: Path) -> Outcome: ...


class CommandAgent(ProgramAgent[AttemptFolder]):
    """Starts a command for every attempt, in its workspace, and reads what it reports.

    With `plain` it may be any program: if it reports no outcome, what it printed is its output."""

    noun = "the command"

    def __init__(
        self,
        argv: Sequence[str],
        *,
        folder: Path,
        state: Path,
        env: Mapping[str, str] | None = None,
        report: ReportReader | None = None,
        writes: Sequence[str] | None = None,
        judges: bool = False,
        accepts: Mapping[str, Json] | None = None,
        schema: Json = None,
        timeout: float | None = None,
        max_output: int = 16 * 1024 * 1024,
        max_stdout: int = 64 * 1024 * 1024,
        grace: float = 2.0,
        views: Callable[[str], Mapping[str, str]] | None = None,
        digests: FileDigests | None = None,
        secrets: Secrets = NO_SECRETS,
        plain: bool = False,
        witness: Witness | None = None,
    ) -> None:
        if not argv or not argv[0]:
            raise ValueError("the command is empty: name the program to start")
        if report is not None and not judges:
            raise ValueError("the step has a report but is not a judge: add `reviews` or `tests`, or remove the report")
        if any("report" in PLACEHOLDER.findall(word) for word in argv) and not (report and report.is_file):
            raise ValueError("the command names {report}, but the step has no report file: set `report`")
        self._argv = tuple(argv)
        self._folder, self._state = folder.absolute(), state.absolute()
        self._env = dict(env or {})
        self._report = report
        self._files = ArtifactFiles(folder, state, writes, digests, judges)
        super().__init__(StepSchemas(accepts, schema), Bounds(timeout, max_stdout, grace), witness)
        self._max_output = max_output
        self._views = views
        self._secrets = secrets
        self._plain = plain

    async def work(self, briefing: Briefing, attempt: Attempt) -> Result | None:  # noqa: ARG002 - a command cannot call the engine
        folder = self._attempt_folder(briefing)
        folder.choose_names()
        before = await asyncio.to_thread(self._files.before)
        async with witnessed(self._witness, briefing, folder.path):
            return await self._ran(briefing, folder, self._program(briefing, folder, before))

    def _attempt_folder(self, briefing: Briefing) -> AttemptFolder:
        return AttemptFolder(self._state, briefing.run, briefing.step, briefing.attempt, self._secrets)

    def _program(self, briefing: Briefing, folder: AttemptFolder, before: Snapshot | None) -> Program:
        report = self._report_file(folder)
        words = {
            "briefing": str(folder.briefing),
            "outcome": str(folder.outcome),
            "run": briefing.run,
            "step": briefing.step,
            "attempt": str(briefing.attempt),
            **({"report": str(report)} if report else {}),
        }
        # In one pass: placeholders inside inserted values are not replaced.
        argv = [PLACEHOLDER.sub(lambda word: words.get(word[1], word[0]), part) for part in self._argv]
        env = self._environment(words)
        return Program(
            argv=self._witness.argv(argv, folder.path, env) if self._witness is not None else argv,
            cwd=self._folder,
            env=env,
            briefing=briefing_json(briefing, self._views(briefing.run) if self._views else None),
            before=before,
            report=report,
            is_briefed=self._report is None,
        )

    def _environment(self, words: Mapping[str, str]) -> dict[str, str]:
        """The environment of the program. What a tool judge runs must not know that it is judged, nor any secret."""
        if self._report is None:
            return {**os.environ, **self._env, **{f"{OURS}{key.upper()}": value for key, value in words.items()}}
        kept = {name for name in os.environ if not name.startswith(OURS) and name not in self._secrets.values}
        return {**{name: os.environ[name] for name in kept}, **self._env}

    def _report_file(self, folder: AttemptFolder) -> Path | None:
        if self._report is None or not self._report.is_file:
            return None
        return self._folder / self._report.path if self._report.path else folder.report(self._report.suffix)

    def _result(
        self, briefing: Briefing, folder: AttemptFolder, ended: Ended, before: Snapshot | None
    ) -> Result | None:
        """The result of the attempt; None if its end is unknown and it wrote nothing complete."""
        log, _ = tail(folder.log, LOG_KEPT)
        try:
            outcome = self._outcome(folder, ended)
            if outcome is None:
                return None
            self._schemas.require(briefing, outcome.output, outcome.usage)
        except AgentError as error:
            error.log = log
            raise
        digest, changes = self._files.after(briefing, before, folder)
        folder.before.unlink(missing_ok=True)
        seen = self._witness.after(briefing, folder.path) if self._witness is not None else NO_EVIDENCE
        return Result(outcome, digest, changes, log, evidence=seen)

    def _outcome(self, folder: AttemptFolder, ended: Ended) -> Outcome | None:
        code, fault = ended.code, ended.because
        last_output = last_lines(tail(folder.log, LOG_KEPT)[0]) or last_lines(tail(folder.stdout, LOG_KEPT)[0])
        if not fault and ended.signal is not None:
            fault = f"the command was ended by {_signal_name(ended.signal)}: {last_output or 'it printed nothing'}"
        elif not fault and code and self._report is None:
            why = self._witness.explained(last_output) if self._witness is not None else ""
            fault = f"the command failed (exit code {code}){why}: {last_output or 'it printed nothing'}"
        if fault:
            raise AgentError(fault, usage=self._spent(folder))
        in_file = False
        try:
            if self._report is not None:
                found = self._by_report(self._report, folder, code)
                # If it is not known how a tool ended, a report without findings may be incomplete.
                return found if ended.known or found.verdict == "fail" else None
            read, in_file = reported(folder.outcome, folder.stdout, self._max_output)
            # A complete outcome file counts in any case; after what was printed, the command may have failed.
            return parse_outcome(read) if ended.known or in_file else None
        except AgentError:
            if self._plain and ended.known and not folder.outcome.exists():
                return _words(folder.stdout)
            if ended.beyond_doubt or in_file:
                raise
            return None

    def _by_report(self, report: ReportReader, folder: AttemptFolder, code: int | None) -> Outcome:
        printed, logged = (last_lines(tail(file, LOG_KEPT)[0], most=20) for file in (folder.stdout, folder.log))
        last_output = "\n".join(part for part in (logged, printed) if part)
        path = self._report_file(folder)
        try:
            text = evidence(path, self._folder, folder) if path else b""
        except AgentError as error:
            ended = "" if code is None else f" (exit code {code}: {last_output or 'it printed nothing'})"
            raise AgentError(f"{error}{ended}") from error
        return report.outcome(text, code, last_output, self._folder)

    def _spent(self, folder: AttemptFolder) -> object:
        """The usage that a failed command reported, which counts no matter how it ended."""
        try:
            return parse_outcome(reported(folder.outcome, folder.stdout, self._max_output)[0]).usage
        except AgentError as error:
            return error.usage


def _words(stdout: Path) -> Outcome:
    """The output of a program that does not write outcomes: what it printed."""
    printed = last_lines(tail(stdout, LOG_KEPT)[0])
    return Outcome(printed or None, printed.rpartition("\n")[2])


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
