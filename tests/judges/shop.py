"""A workspace with a product, shell scripts as its tests, and judges that really run."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from backedge.adapters.agents.command import CommandAgent
from backedge.adapters.agents.process import Bounds
from backedge.adapters.evidence.start import Judging
from backedge.adapters.judges.baseline import BaselineJudge
from backedge.adapters.judges.judge_program import JudgeCommand
from backedge.adapters.judges.run_evidence import EvidenceSettings
from backedge.adapters.judges.tool_judge import ToolJudge
from backedge.adapters.judges.workspace_evidence import WorkspaceEvidence
from backedge.adapters.judges.workspace_witness import StepRights, WorkspaceWitness
from backedge.adapters.reports.spec import ReportSpec
from backedge.core.briefing import BriefedFinding, Briefing
from backedge.core.evidence.values import Baseline
from backedge.core.model import Severity
from tests.evidence.parts import repository, write

RUN = "r-1"
RUNNER = """\
{ echo '<testsuite>'
  for test in tests/*.sh; do
    [ -e "$test" ] || continue
    name=$(basename "$test" .sh)
    sh "$test"
    case $? in
      0) inside= ;;
      77) inside='<skipped/>' ;;
      *) inside='<failure message="it fails"/>' ;;
    esac
    echo "<testcase classname='tests' name='$name' file='$test'>$inside</testcase>"
  done
  echo '</testsuite>'
} > "$1"
"""
"""A test runner: every script in tests/ is a test, which passes with 0 and is skipped with 77."""
RUN_TESTS = ("sh", "-c", RUNNER, "runner", "{report}")
FILES = {
    "total": "100\n",
    "count": "2\n",
    "tests/total.sh": '[ "$(cat total)" = 90 ]\n',
    "tests/count.sh": '[ "$(cat count)" = 2 ]\n',
}
NOBODY: Any = None
"""Judges and programs do not call the engine back."""


class Shop:
    """The workspace. A new one of the same folder is what another backedge process sees."""

    def __init__(
        self,
        folder: Path,
        argv: Sequence[str] = RUN_TESTS,
        report: ReportSpec | None = None,
        workspace: Path | None = None,
        producers: Mapping[str, Sequence[str] | None] | None = None,
        argvs: Sequence[Sequence[str]] = (),
        stories: Path | None = None,
        **command: Any,
    ) -> None:
        self.project = folder / "shop"
        self.folder = workspace or self.project
        if not (self.folder / ".git").exists():
            repository(self.folder, FILES)
        env = {**os.environ, "XDG_STATE_HOME": str(folder / "home")}
        self.evidence = WorkspaceEvidence(
            EvidenceSettings(
                self.folder,
                self.project,
                self.project / ".backedge",
                str(self.project / ".backedge" / "journal.db"),
                Judging((tuple(argv), *map(tuple, argvs)), stories=stories),
                command.get("room", "auto"),
                tuple(command.get("keeps", ())),
                producers if producers is not None else {"code": None},
                env,
            )
        )
        given = {"bounds": Bounds(60), **command}
        self.command = JudgeCommand("test", tuple(argv), report or ReportSpec("junit"), **given)
        self.judge = ToolJudge(self.evidence, self.command)

    def write(self, name: str, text: str) -> None:
        write(self.folder, {name: text})

    def read(self, name: str) -> str:
        return (self.folder / name).read_text()

    def begin(self, run: str = RUN) -> Baseline:
        return asyncio.run(self.begun(run))

    async def begun(self, run: str = RUN) -> Baseline:
        return (await BaselineJudge(self.evidence, self.command).baseline(run))[0]

    def judged(self, attempt: int = 1, **more: Any) -> Any:
        return asyncio.run(self.judging(attempt, **more))

    async def judging(self, attempt: int = 1, **more: Any) -> Any:
        return await self.judge.work(briefing("test", attempt, **more), NOBODY)

    def witness(self, step: str = "code", **rights: Any) -> WorkspaceWitness:
        return WorkspaceWitness(self.evidence, StepRights(step, **rights))

    def agent(self, script: str, step: str = "code", argv: Sequence[str] = (), **rights: Any) -> CommandAgent:
        """A command that is watched."""
        words = tuple(argv) or ("sh", "-c", script)
        settings = self.evidence.settings
        return CommandAgent(
            words,
            folder=self.folder,
            state=settings.state,
            judges=rights.get("judges", False),
            writes=rights.get("writes"),
            witness=self.witness(step, argv=words, **rights),
        )

    def does(self, script: str, step: str = "code", attempt: int = 1, mode: Any = "work", **rights: Any) -> Any:
        """What comes of one attempt of a command."""
        agent = self.agent(f"{script}\necho '{{}}'", step, **rights)
        return asyncio.run(agent.work(briefing(step, attempt, mode=mode), NOBODY))

    def reviews(self, script: str, attempt: int = 1, **more: Any) -> Any:
        """What comes of a reviewer that does something first, and passes."""
        agent = self.agent(f'{script}\necho \'{{"verdict": "pass"}}\'', "review", judges=True, **more)
        return asyncio.run(agent.work(briefing("review", attempt), NOBODY))

    @property
    def rooms(self) -> list[Path]:
        folder = self.evidence.scratch / "rooms"
        return list(folder.iterdir()) if folder.is_dir() else []

    @property
    def reports(self) -> list[Path]:
        return list((self.evidence.home / "reports").glob("*"))


def briefing(step: str, attempt: int = 1, run: str = RUN, mode: Any = "work", **more: Any) -> Briefing:
    return Briefing(run, step, "code", attempt, mode, **more)


def failing(test: str, name: str = "F-1") -> BriefedFinding:
    """An open finding of one of the tests."""
    file = f"tests/{test}.sh"
    id = f"{file}::tests::{test}"
    return BriefedFinding(name, f"{id}: it fails", Severity.HIGH, "test", category="test", test=id, file=file)


def answers(result: Any) -> dict[str, str]:
    return {each.finding: each.note or each.status for each in result.outcome.resolutions}


def asked(result: Any) -> dict[str, str]:
    return {each.file: each.reason for each in result.evidence.questions}
