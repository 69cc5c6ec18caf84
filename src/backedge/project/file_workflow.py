"""A workflow file for the engine: its agents, and those of steps that planners add to its runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from backedge.config import WorkflowFile
from backedge.config.added import added_steps
from backedge.core.evidence.values import Baseline
from backedge.core.workflow.build import build_added_steps as joined
from backedge.core.workflow.definition import Workflow
from backedge.core.workflow.plan import with_plan
from backedge.ports import Agent, ResolvedSteps
from backedge.project.agents import Views, agents_of
from backedge.project.evidence import FileEvidence
from backedge.project.location import Project
from backedge.project.project import keep_added_files


@dataclass(frozen=True)
class FileWorkflow:
    """A workflow from a file, with its agents."""

    source: WorkflowFile
    project: Project
    agents: Mapping[str, Agent]
    views: Views | None = None
    tell: Callable[[str], None] = lambda _: None
    """Told what happens before a run begins."""

    @property
    def definition(self) -> Workflow:
        return self.source.definition

    @property
    def files(self) -> dict[str, bytes]:
        """The workflow file and the files it names, by path from its folder; the workflow file first."""
        named = {path: text.encode() for path, text in self.source.files.items()}
        return {self.source.path.name: self.source.data, **named}

    async def begin(self, run: str) -> tuple[tuple[Baseline, ...], dict[str, bytes]]:
        """Record how a run begins: its files, and what the tool judges report about them."""
        return await FileEvidence(self.source, self.project).baselines(run, self.tell)

    def resolve(self, added: Mapping[str, object], workflow: Workflow) -> ResolvedSteps:
        """The agents of steps that a planner adds to a run of this file. Raises WorkflowError with all problems."""
        specs = dict(added)
        found = added_steps(self.source, specs)
        steps = joined(workflow, found.steps)
        whole = with_plan(workflow, steps, (), {})
        file = replace(self.source, definition=whole, agents=found.agents, steps=found.extras)
        agents = agents_of(file, self.project, self.views, only=specs)
        files = {path: text.encode() for path, text in found.files.items()}
        return ResolvedSteps(steps, agents, specs, files, lambda run: keep_added_files(self.project, run, found.files))
