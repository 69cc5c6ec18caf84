"""The evidence of the runs of a workflow file: what is protected, who is watched, and which judges have a baseline."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

from backedge.adapters.agents.file_digests import FileDigests
from backedge.adapters.agents.process import Bounds
from backedge.adapters.agents.secrets import Secrets
from backedge.adapters.evidence.names import name_of
from backedge.adapters.evidence.protected import Protects
from backedge.adapters.evidence.sandbox import Sandbox, SandboxKind
from backedge.adapters.evidence.start import Judging
from backedge.adapters.judges.baseline import BaselineJudge
from backedge.adapters.judges.judge_program import CannotRun, JudgeCommand
from backedge.adapters.judges.orphans import end_orphans
from backedge.adapters.judges.run_evidence import EvidenceSettings
from backedge.adapters.judges.workspace_evidence import WorkspaceEvidence
from backedge.adapters.judges.workspace_witness import StepRights, WorkspaceWitness
from backedge.adapters.reports.spec import ReportSpec
from backedge.config import AgentSpec, WorkflowFile
from backedge.core.errors import WorkflowError
from backedge.core.evidence.values import Baseline
from backedge.core.workflow.definition import Step
from backedge.project.held_out import held_out_files
from backedge.project.location import Project
from backedge.project.project import secrets_of
from backedge.project.pruning import remove_evidence
from backedge.project.worktrees import imports_in

SANDBOX = "BACKEDGE_SANDBOX"
"""The environment variable that decides where the file says auto."""


class FileEvidence:
    """Makes what guards the evidence of one workflow file. Steps in the same workspace share it."""

    def __init__(self, source: WorkflowFile, project: Project, planned: Collection[str] = ()) -> None:
        """`planned` are the steps that planners added."""
        self._source, self._project, self._planned = source, project, planned
        self._digests = FileDigests()
        self._workspaces: dict[Path, WorkspaceEvidence] = {}

    def of(self, workspace: Path) -> WorkspaceEvidence:
        found = self._workspaces.get(workspace)
        if found is None:
            settings = EvidenceSettings(
                workspace,
                self._source.folder,
                self._project.state,
                os.fspath(self._project.journal),
                self._judging(workspace),
                self._source.evidence.room,
                self._keeps(workspace),
                self._producers(workspace),
            )
            found = self._workspaces[workspace] = WorkspaceEvidence(settings, self._digests)
        return found

    def _judging(self, workspace: Path) -> Judging:
        said = self._source.evidence
        judges = [step for step in self._source.definition.steps if step.judges]
        argvs = tuple(
            self._source.agents[name].run
            for step in judges
            if step.name in self._source.steps and self._source.steps[step.name].workspace == workspace
            for name in step.agents
            if name in self._source.agents and self._source.agents[name].run
        )
        named = tuple(self._source.files) if workspace == self._source.folder else ()
        stories = self._source.stories.folder if self._source.stories is not None else None
        return Judging(argvs, Protects(said.adds, said.leaves_out, said.protects), named, stories)

    def _keeps(self, workspace: Path) -> tuple[str, ...]:
        """What the judges of a workspace leave there."""
        steps = self._source.steps.values()
        return tuple(dict.fromkeys(glob for each in steps if each.workspace == workspace for glob in each.keeps))

    def _producers(self, workspace: Path) -> dict[str, Sequence[str] | None]:
        """The steps that work in a workspace, with their `writes`."""
        steps = (
            (step.name, self._source.steps.get(step.name)) for step in self._source.definition.steps if not step.judges
        )
        return {name: extras.writes for name, extras in steps if extras is not None and extras.workspace == workspace}

    @cached_property
    def env(self) -> dict[str, str]:
        """What agents and judges have in their environment because of where they work."""
        return imports_in(self._project, self._source.folder)

    def judge_command(self, spec: AgentSpec, step: str, secrets: Secrets) -> JudgeCommand:
        extras = self._source.steps[step]
        assert extras.report is not None
        return JudgeCommand(
            step,
            tuple(spec.run),
            ReportSpec(extras.report.kind, extras.report.path),
            {**self.env, **spec.env},
            Bounds(spec.timeout),
            extras.room or self._source.evidence.room,
            extras.reruns,
            extras.keeps,
            frozenset(_inside(extras.workspace, path) for path in self._measured),
            secrets,
            extras.canary,
        )

    @cached_property
    def _measured(self) -> list[Path]:
        """The reports that gates read."""
        return [self._source.folder / gate.report for gate in self._source.definition.gates if gate.report]

    def left_by_judge(self, run: str, report: str) -> bytes | None:
        """A report of a gate as a judge left it; None if none has."""
        for workspace in {each.workspace for each in self._source.steps.values() if each.keeps}:
            store = self.of(workspace).of(run).store
            digest = store.left.get(name_of(_inside(workspace, self._source.folder / report)))
            if digest is not None:
                return store.get(digest)
        return None

    def witness(self, step: Step, spec: AgentSpec) -> WorkspaceWitness:
        extras = self._source.steps[step.name]
        kind: Literal["command", "cli"] = "cli" if spec.kind == "cli" else "command"
        rights = StepRights(
            step.name,
            bool(step.judges),
            extras.writes,
            extras.installs,
            step.name in self._judged_by_tools,
            tuple(spec.run),
            extras.on_error or self._source.evidence.on_error,
            step.name in self._planned,
        )
        hides = () if step.hidden else self._held_out
        return WorkspaceWitness(self.of(extras.workspace), rights, self._sandbox(extras.sandbox, kind), hides)

    def comparing(self, spec: AgentSpec) -> WorkspaceWitness:
        """The eyes on the command of a check: its script is that of the start, and it may only look."""
        return WorkspaceWitness(self.of(self._source.folder), StepRights(spec.name, judges=True, argv=tuple(spec.run)))

    def _sandbox(self, own: SandboxKind | None, kind: str) -> Sandbox | None:
        """What confines an agent. An agent CLI has a sandbox of its own, so it gets ours only if the file asks for it."""
        chosen = own or self._source.evidence.sandbox
        if chosen == "auto":
            chosen = "off" if kind == "cli" or os.environ.get(SANDBOX) == "off" else "auto"
        return None if chosen == "off" else Sandbox(chosen)

    def confinement(self, step: str, kinds: Collection[str]) -> str:
        """What confines the agents of a step here: bwrap, or none if one of them is free."""
        chosen = {
            self._sandbox(self._source.steps[step].sandbox, kind) if kind in ("command", "cli") else None
            for kind in kinds
        }
        found = {each.in_force if each is not None else "off" for each in chosen}
        return "bwrap" if found == {"bwrap"} else "none"

    def has_baseline(self, step: str) -> bool:
        own = self._source.steps[step].baseline
        return self._source.evidence.baseline if own is None else own

    @cached_property
    def _held_out(self) -> tuple[Path, ...]:
        return held_out_files(self._source)

    @cached_property
    def _judged_by_tools(self) -> frozenset[str]:
        return frozenset(name for step in self._source.definition.steps if step.tool for name in step.judges)

    @cached_property
    def _installs(self) -> bool:
        return any(each.installs for each in self._source.steps.values())

    async def baselines(
        self, run: str, tell: Callable[[str], None] = lambda _: None
    ) -> tuple[tuple[Baseline, ...], dict[str, bytes]]:
        """Record how the run begins, and run its tool judges on that; `tell` is told what runs. Raises WorkflowError if a
        tool cannot run at all."""
        found: list[Baseline] = []
        payloads: dict[str, bytes] = {}
        secrets = secrets_of(self._source)
        await end_orphans(self._project.state)
        # The ids of the runs of stories are known before: what is there is left from a start that was interrupted, or an
        # agent put it there.
        await asyncio.to_thread(remove_evidence, self._project, run)
        for step in self._source.definition.steps:
            extras = self._source.steps.get(step.name)
            if extras is None:
                continue
            evidence = self.of(extras.workspace)
            await asyncio.to_thread(evidence.of, run)
            specs = [self._source.agents[name] for name in step.agents if name in self._source.agents]
            if not step.tool or not self.has_baseline(step.name) or not specs or not specs[0].run:
                for spec in specs if not step.tool else ():
                    await asyncio.to_thread(self.witness(step, spec).begin, run)
                continue
            tell(f"baseline: {step.name} …")
            try:
                command = self.judge_command(specs[0], step.name, secrets)
                baseline, more = await BaselineJudge(evidence, command, self._installs).baseline(run)
            except CannotRun as error:
                raise WorkflowError(f"the judge {step.name!r} cannot run: {error}") from error
            found.append(baseline)
            payloads |= more
        for check in self._source.definition.checks:
            if check.command:
                await asyncio.to_thread(self.comparing(self._source.agents[check.name]).begin, run)
        return tuple(found), payloads


def _inside(workspace: Path, path: Path) -> str:
    """A path as seen from a workspace."""
    return os.path.relpath(path, workspace)
