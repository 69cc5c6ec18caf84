"""An agent CLI as an agent: it gets a prompt, works in its workspace, and its report is read."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from backedge.adapters.agents.artifact import ArtifactFiles
from backedge.adapters.agents.attempt_folder import Ended
from backedge.adapters.agents.briefing_json import briefing_json
from backedge.adapters.agents.clis.cli import Call, Cli, CliReport, Options, Session, refusals
from backedge.adapters.agents.clis.folder import SCRATCHPAD, Begun, CliFolder
from backedge.adapters.agents.clis.registry import CLIS
from backedge.adapters.agents.clis.report import UnknownSession, log_of, outcome_of
from backedge.adapters.agents.clis.response_contract import ResponseContract
from backedge.adapters.agents.execution import Program
from backedge.adapters.agents.file_digests import FileDigests
from backedge.adapters.agents.outcome import tail
from backedge.adapters.agents.process import Bounds
from backedge.adapters.agents.program_agent import ProgramAgent
from backedge.adapters.agents.prompts import problems_of, prompt, role_of, shipped
from backedge.adapters.agents.secrets import NO_SECRETS, Secrets
from backedge.adapters.agents.step_schemas import StepSchemas
from backedge.adapters.agents.witness import Witness, witnessed
from backedge.adapters.agents.workspace import Snapshot
from backedge.core.briefing import Briefing
from backedge.core.errors import AgentError, WorkflowError
from backedge.core.evidence.values import DENIED, NO_EVIDENCE
from backedge.core.model import Usage
from backedge.core.prices import Price, cost_of
from backedge.core.value import Json
from backedge.ports import Attempt, Result

LOG_KEPT = 256 * 1024
"""How many bytes at the end of a log are stored with the attempt."""


class NotInstalled(WorkflowError):
    """The CLI is not installed on this machine; the step is fine otherwise."""


@dataclass(frozen=True)
class Workplace:
    """The folder in which a step works, and the folder for its attempts."""

    folder: Path
    state: Path
    writes: Sequence[str] | None = None


class CliAgent(ProgramAgent[CliFolder]):
    """Calls an agent CLI for every attempt, and continues the conversation of the last one."""

    noun = "the CLI"

    def __init__(
        self,
        name: str,
        workplace: Workplace,
        *,
        phase: str = "",
        judges: bool = False,
        options: Options | None = None,
        template: str | None = None,
        session: Literal["resume", "fresh"] = "resume",
        env: Mapping[str, str] | None = None,
        accepts: Mapping[str, Json] | None = None,
        schema: Json = None,
        agents: Sequence[str] = (),
        timeout: float | None = None,
        max_stdout: int = 256 * 1024 * 1024,
        grace: float = 2.0,
        views: Callable[[str], Mapping[str, str]] | None = None,
        digests: FileDigests | None = None,
        secrets: Secrets = NO_SECRETS,
        witness: Witness | None = None,
        prices: Mapping[str, Price] | None = None,
    ) -> None:
        self._prices = prices or {}
        self._cli: Cli = CLIS[name]
        self._options = options or Options()
        problems = [text for _, text in refusals(self._cli, self._options)]
        self._env = {**self._cli.env, **os.environ, **(env or {})}
        self._template = shipped(role_of(judges, phase)) if template is None else template
        problems += [f"the prompt cannot be used: {wrong}" for wrong in problems_of(self._template)]
        if problems:
            raise WorkflowError(tuple(problems))
        self._program = _installed(self._cli, self._env.get("PATH"))
        self._workplace = Workplace(workplace.folder.absolute(), workplace.state.absolute(), workplace.writes)
        self._judges = judges
        self._resumes = session == "resume"
        self._contract = ResponseContract(self._cli, judges, schema, agents)
        self._files = ArtifactFiles(workplace.folder, workplace.state, workplace.writes, digests, judges)
        super().__init__(StepSchemas(accepts, schema), Bounds(timeout, max_stdout, grace), witness)
        self._views = views
        self._secrets = secrets

    async def work(self, briefing: Briefing, attempt: Attempt) -> Result | None:
        with self._counted(briefing, attempt):
            found = await self._worked(briefing)
        if found is None:
            attempt.spend(self._used(briefing))
        return found

    async def recover(self, briefing: Briefing, attempt: Attempt) -> Result | None:
        with self._counted(briefing, attempt):
            found = await super().recover(briefing, attempt)
        if found is None:
            attempt.spend(self._used(briefing))
        return found

    @contextmanager
    def _counted(self, briefing: Briefing, attempt: Attempt) -> Iterator[None]:
        try:
            yield
        except asyncio.CancelledError:
            attempt.spend(self._used(briefing))
            raise

    def _used(self, briefing: Briefing) -> Usage:
        """The usage of an attempt without a report, which costs money too."""
        return self._report(self._attempt_folder(briefing), "").usage

    async def _worked(self, briefing: Briefing) -> Result | None:
        before = await asyncio.to_thread(self._files.before)
        async with witnessed(self._witness, briefing, self._attempt_folder(briefing).path, self._resumes):
            return await self._conversed(briefing, before)

    async def _conversed(self, briefing: Briefing, before: Snapshot | None) -> Result | None:
        known = Session.of(briefing.session, self._cli.name) if self._resumes else None
        try:
            return await self._called(briefing, before, Begun(str(known) if known else None))
        except UnknownSession as error:
            note = f"backedge: {error}; a fresh conversation was begun"
        return await self._called(briefing, before, Begun(note=note))

    async def _called(self, briefing: Briefing, before: Snapshot | None, begun: Begun) -> Result | None:
        schema = self._contract.schema(briefing)
        views = self._views(briefing.run) if self._views else {}
        folder = self._attempt_folder(
            briefing,
            {
                **_rounds_so_far(views),
                "briefing.json": briefing_json(briefing, views),
                "schema.json": msgspec.json.encode(schema),
                "call.json": msgspec.json.encode(replace(begun, cli=self._cli.name)),
            },
        )
        folder.choose_names()
        resumed = Session.of(begun.session, self._cli.name)
        call = Call(self._options, self._judges, resumed.id if resumed else None, schema, folder.schema)
        argv = [self._program, *self._cli.arguments(call)]
        env = {**self._env, **_marks(briefing, folder)}
        program = Program(
            argv=self._witness.argv(argv, folder.path, env) if self._witness is not None else argv,
            cwd=self._workplace.folder,
            env=env,
            briefing=self._prompt(briefing, folder),
            before=before,
        )
        return await self._ran(briefing, folder, program)

    def _attempt_folder(self, briefing: Briefing, more: Mapping[str, bytes] | None = None) -> CliFolder:
        return CliFolder(self._workplace.state, briefing.run, briefing.step, briefing.attempt, more, self._secrets)

    def _prompt(self, briefing: Briefing, folder: CliFolder) -> bytes:
        """The prompt, without secrets wherever it goes. They are removed before it is put together: in a text that was
        shortened, or whose @ is written \\@, a secret would not be recognised."""
        shown = self._secrets.value(briefing)
        template, answer = self._secrets.text(self._template), self._secrets.text(self._contract.words(shown))
        scratchpad = str(folder.path / SCRATCHPAD) if folder.has(SCRATCHPAD) else ""
        text = prompt(template, shown, answer, str(folder.whole), self._cli.mentions, scratchpad)
        return text.encode("utf-8", "replace")

    def _result(self, briefing: Briefing, folder: CliFolder, ended: Ended, before: Snapshot | None) -> Result | None:
        """The result of the attempt; None if its end is not known and its report is incomplete."""
        begun = folder.begun
        resumed = Session.of(begun.session, self._cli.name)
        stderr = tail(folder.log, LOG_KEPT)[0].decode("utf-8", "replace")
        report = self._report(folder, stderr)
        log = log_of(begun.note, report, stderr)[-LOG_KEPT:]
        session = self._left(report, resumed)
        try:
            if report.structured is not None:
                folder.require_unique_keys(self._cli.name)
            outcome = outcome_of(self._cli, report, ended, stderr, resumed)
            if outcome is None:
                return None
            self._schemas.require(briefing, outcome.output, report.usage)
        except AgentError as error:
            error.usage, error.log, error.session = report.usage, log, session
            raise
        digest, changes = self._files.after(briefing, before, folder)
        folder.before.unlink(missing_ok=True)
        seen = self._witness.after(briefing, folder.path) if self._witness is not None else NO_EVIDENCE
        if report.denied:
            seen = replace(seen, notes=(*seen.notes, *(f"{DENIED}{each}" for each in report.denied)))
        return Result(replace(outcome, usage=report.usage), digest, changes, log, session, seen)

    def _report(self, folder: CliFolder, stderr: str) -> CliReport:
        resumed = Session.of(folder.begun.session, self._cli.name)
        report = self._cli.read(folder.events(), stderr, resumed.used if resumed else Usage())
        return dataclasses.replace(report, usage=self._priced(report, resumed.cached if resumed else 0))

    def _priced(self, report: CliReport, cached_before: int) -> Usage:
        """The usage with its cost, from the prices in the workflow file if the CLI reports none."""
        names = (self._options.model, report.model, self._cli.name)
        price = next((self._prices[name] for name in names if name in self._prices), None)
        usage = report.usage
        if price is None or usage.cost_usd:
            return usage
        cumulative = report.used != Usage() and report.cached >= cached_before
        cached = report.cached - cached_before if cumulative else report.cached
        return replace(usage, cost_usd=cost_of(price, usage.tokens_in, usage.tokens_out, cached))

    def _left(self, report: CliReport, resumed: Session | None) -> str | None:
        """The conversation that the next attempt can continue."""
        if report.session is not None:
            return str(
                Session(self._cli.name, report.session, report.used, report.cached if report.used != Usage() else 0)
            )
        return str(resumed) if resumed and not report.unknown_session else None


def _installed(cli: Cli, path: str | None) -> str:
    """The program of a CLI. Raises NotInstalled if it is not there."""
    found = shutil.which(cli.name, path=path)
    if found is None:
        raise NotInstalled(f"{cli.name} is not installed: run `npm install -g {cli.package}`, or put it on the PATH")
    return os.path.abspath(found)


def _rounds_so_far(views: Mapping[str, str]) -> dict[str, bytes]:
    """The file of all iterations, as it is now. A copy in the folder of the attempt can be read in a sandbox too."""
    try:
        return {SCRATCHPAD: Path(views["scratchpad"]).read_bytes()} if "scratchpad" in views else {}
    except OSError:
        return {}


def _marks(briefing: Briefing, folder: CliFolder) -> dict[str, str]:
    """The environment variables by which every process of the attempt is recognised."""
    return {
        "BACKEDGE_BRIEFING": str(folder.whole),
        "BACKEDGE_OUTCOME": str(folder.outcome),
        "BACKEDGE_RUN": briefing.run,
        "BACKEDGE_STEP": briefing.step,
        "BACKEDGE_ATTEMPT": str(briefing.attempt),
    }
