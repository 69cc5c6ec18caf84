"""A workflow file in execution: its agents, and those of steps that planners add to its runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from backedge.config import WorkflowFile
from backedge.config.added import added_steps
from backedge.core.define import added as joined
from backedge.core.plans import replanned
from backedge.core.workflow import Workflow
from backedge.ports import Agent, Hired
from backedge.project.agents import Views, agents_of
from backedge.project.place import Place, keep_more


@dataclass(frozen=True)
class FileWorkflow:
    """A workflow from a file, with those who execute it."""

    source: WorkflowFile
    place: Place
    agents: Mapping[str, Agent]
    views: Views | None = None

    @property
    def definition(self) -> Workflow:
        return self.source.definition

    def hired(self, added: Mapping[str, object], workflow: Workflow) -> Hired:
        """Who does steps that a planner adds to a run of this file. Raises WorkflowError with all that is wrong."""
        specs = dict(added)
        found = added_steps(self.source, specs)
        steps = joined(workflow, found.steps)
        whole = replanned(workflow, steps, (), {})
        file = replace(self.source, definition=whole, agents=found.agents, steps=found.extras)
        agents = agents_of(file, self.place, self.views, only=specs)
        return Hired(steps, agents, specs, lambda run: keep_more(self.place, run, found.files))
