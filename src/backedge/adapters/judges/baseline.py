"""What a tool judge reports about the files of the start of a run. The same files are measured only once."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from backedge.adapters.agents.attempt_folder import write_whole
from backedge.adapters.evidence.store import NOTHING_PRINTED, FoundBefore, KnownTests, Printed
from backedge.adapters.judges.broken_tool import is_broken, missing_tool, misused_tool
from backedge.adapters.judges.judge_program import (
    CannotRun,
    JudgeCommand,
    JudgeProgram,
    NoRoom,
    Part,
    judge_environment,
)
from backedge.adapters.judges.memory import silences
from backedge.adapters.judges.reported_files import keep_reported
from backedge.adapters.judges.run_evidence import RunEvidence
from backedge.adapters.judges.runs import Reading
from backedge.adapters.judges.test_ids import stands_for_many
from backedge.adapters.judges.workspace_evidence import WorkspaceEvidence
from backedge.adapters.reports.tests import ReportedTests, Result
from backedge.core.errors import AgentError
from backedge.core.evidence.values import Baseline, TestCounts
from backedge.core.ready_types import make_ready
from backedge.core.text import clean
from backedge.core.value import replace as changed

MOST_FAILING = 200
MOST_PLACES = 2_000
"""How many places that a tool printed are remembered."""
LONGEST_LINE = 1_000
MOST_LINES = 200
"""How many lines of what a tool printed are remembered."""
MOST_KEPT = 100
"""How many baselines a project keeps for later runs."""
_VOLATILE = re.compile(
    r"_|PWD|OLDPWD|SHLVL|TERM.*|COLUMNS|LINES|COLORTERM|WINDOWID|SSH_.*|XDG_SESSION_.*|DBUS_.*|DISPLAY|WAYLAND_.*"
    r"|HISTFILE|PS1|LS_COLORS|INVOCATION_ID|JOURNAL_STREAM|TMUX.*|STY|VSCODE_.*|PYTEST_.*"
)
"""Variables that change with the terminal, and no judge depends on."""


_PLACE = re.compile(r"(?P<file>[\w./@+-]+\.\w+)(?::|\()(?P<line>\d{1,7})\b")
"""How tools print a place: `shop/cart.py:3:7` or `src/cart.ts(3,7)`."""


_RULE = re.compile(r"\b[A-Z]{1,5}\d{2,5}\b|\[[a-z]+(?:-[a-z]+)*\]|\([a-z]+(?:-[a-z]+)+\)")
"""How tools print the rule of a finding: `F821`, `[name-defined]` or `(undefined-variable)`."""


MOST_CHANGED = 10
_FORMAT = 4
"""Raised when a kept baseline says more than before."""


class KeptBaseline(msgspec.Struct, frozen=True):
    """A baseline of an earlier run: all that a later one needs of it."""

    results: dict[str, Result] = {}
    files: dict[str, str] = {}
    shown: tuple[str, ...] = ()
    """The findings of a tool that does not name its tests."""
    found: tuple[FoundBefore, ...] = ()
    """Where they are, if they made it fail."""
    printed: Printed = NOTHING_PRINTED
    """What a tool with nothing but an exit code printed about its tests."""
    changed: tuple[str, ...] = ()
    """The first files that it changed although it may only look."""


make_ready(KeptBaseline)


class BaselineJudge:
    """Runs one judge on the files of the start. If some step `installs`, a tool may still be missing then."""

    def __init__(self, evidence: WorkspaceEvidence, command: JudgeCommand, installs: bool = False) -> None:
        self._evidence, self._command, self._installs = evidence, command, installs
        self._folder = evidence.home / "baselines"

    async def baseline(self, run: str) -> tuple[Baseline, dict[str, bytes]]:
        """The baseline of a run, and payloads to store with it. Raises CannotRun if the tool itself cannot run."""
        evidence = await asyncio.to_thread(self._evidence.of, run)
        found, payloads = await self._measured(run, evidence)
        return changed(found, start=evidence.start.digest), payloads

    async def _measured(self, run: str, evidence: RunEvidence) -> tuple[Baseline, dict[str, bytes]]:
        clock = asyncio.get_running_loop().time
        started = clock()
        place = self._folder / f"{self._key(evidence)}.json"
        kept = _read(place)
        if kept is not None:
            found, payloads = self._recorded(evidence, kept)
            return changed(found, cached=True, seconds=round(clock() - started, 3)), payloads
        part = Part(run, 0, "delivered", allow_empty=True, fills=True)
        try:
            result = await JudgeProgram(self._evidence, self._command).run(part)
        except NoRoom as error:
            raise CannotRun(str(error)) from error
        except AgentError as error:
            self._refuse(missing_tool(_text(error.log)), misused_tool(_text(error.log)))
            if isinstance(error, CannotRun) and is_broken(str(error)) and not self._installs:
                raise
            return Baseline(self._command.step, error=str(error)[:500], seconds=round(clock() - started, 3)), {}
        if result.reading.outcome.verdict == "fail" and result.reading.printed.tests is None:
            printed = _text(result.printed) if not result.reading.tests.results else ""
            self._refuse(missing_tool(printed), misused_tool(printed))
        base = evidence.start.base.tree.files
        touched = [name for name in result.changed if name in base]
        kept = _kept(result.reading, result.printed, touched[:MOST_CHANGED])
        await asyncio.to_thread(self._keep, place, kept)
        found, payloads = self._recorded(evidence, kept)
        return changed(found, seconds=round(clock() - started, 3)), payloads

    def _refuse(self, missing: str, misused: str) -> None:
        """Stop before money is spent for work that this tool could never judge."""
        if missing and not self._installs:
            raise CannotRun(f"there is no {missing}: install it, or say `installs: true` at the step that does")
        if misused:
            raise CannotRun(misused)

    def _key(self, run: RunEvidence) -> str:
        """Everything that the result depends on."""
        command, report = self._command, self._command.report
        env = {key: value for key, value in judge_environment(command).items() if not _VOLATILE.fullmatch(key)}
        parts = [
            _FORMAT,
            run.digest(run.start.base.tree),
            command.argv,
            report.kind,
            report.path,
            run.fingerprint(),
            sorted(env.items()),
            command.keeps,
        ]
        return sha256(msgspec.json.encode(parts)).hexdigest()

    def _keep(self, place: Path, kept: KeptBaseline) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_whole(place, msgspec.json.encode(kept))
        for old in sorted(self._folder.glob("*.json"), key=lambda path: path.stat().st_mtime, reverse=True)[MOST_KEPT:]:
            old.unlink(missing_ok=True)

    def _recorded(self, run: RunEvidence, kept: KeptBaseline) -> tuple[Baseline, dict[str, bytes]]:
        """Remember what ran, and describe it."""
        tests, step = ReportedTests(kept.results, kept.files), self._command.step
        failing = tuple(sorted(tests.failed))
        files = {test: tests.files.get(test, "") for test in sorted(tests.ran)}
        keep_reported(run, files)
        base = run.start.base.tree.files
        product = {"", *(name for name in base if run.start.protected.kind(name) is None)}
        found = tuple(each for each in kept.found if each.file in product)
        known = KnownTests(
            files,
            tuple(files),
            len(tests.results) if tests.results else None,
            # An id without a name of its own stands for a file that could not be loaded.
            complete=bool(tests.results) and not any(map(stands_for_many, failing)),
            failed=failing,
            versions={test: base.get(file, "") for test, file in files.items()},
            silences=silences(run, {each.file for each in found if each.file}),
            found=found,
            printed=kept.printed,
        )
        run.store.save_tests(step, known)
        if not tests.results:
            return Baseline(step, failing=kept.shown, changes=kept.changed), {}
        results = msgspec.json.encode(dict(sorted(tests.results.items())))
        digest = sha256(results).hexdigest()
        skipped = sum(result == "skipped" for result in tests.results.values())
        counts = TestCounts(len(tests.results), len(failing), skipped)
        return Baseline(step, counts, failing[:MOST_FAILING], digest, changes=kept.changed), {digest: results}


def _kept(reading: Reading, printed: bytes, touched: Sequence[str]) -> KeptBaseline:
    shown = tuple(each.description for each in reading.outcome.findings[:MOST_FAILING])
    found, said = tuple(_found(reading, printed)), reading.printed
    if reading.outcome.verdict != "fail":
        said = msgspec.structs.replace(said, failures=())
    said = msgspec.structs.replace(said, lines=() if said.certain else said.lines[:MOST_LINES])
    return KeptBaseline(dict(reading.tests.results), dict(reading.tests.files), shown, found, said, tuple(touched))


def _found(reading: Reading, printed: bytes) -> Iterator[FoundBefore]:
    if reading.outcome.verdict == "fail":
        for each in reading.outcome.findings:
            if not each.test:
                yield FoundBefore(each.file or "", each.line, each.description, each.category)
            if not each.test and not each.file:
                # An exit code does not say where. What the tool printed often does.
                text = _text(printed)
                places = [at for line in text.splitlines() if (at := _PLACE.search(line[:LONGEST_LINE]))]
                rules = " ".join(dict.fromkeys(_RULE.findall(text)))
                for at in places[:MOST_PLACES]:
                    yield FoundBefore(at["file"], int(at["line"]), at.string.strip("-> ")[:200], rules)


def _text(printed: bytes) -> str:
    return clean(printed.decode("utf-8", "replace"))


def _read(place: Path) -> KeptBaseline | None:
    try:
        return msgspec.json.decode(place.read_bytes(), type=KeptBaseline)
    except (OSError, msgspec.DecodeError):
        return None
