"""Makes the agents of a workflow file."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from backedge.adapters.agents.clis.agent import CliAgent, NotInstalled, Workplace
from backedge.adapters.agents.command import CommandAgent
from backedge.adapters.agents.function import FunctionAgent
from backedge.adapters.agents.redaction import redacted
from backedge.adapters.agents.report_value import ReportValue
from backedge.adapters.agents.secrets import Secrets
from backedge.adapters.agents.step_schemas import StepSchemas, with_checks
from backedge.adapters.judges.tool_judge import ToolJudge
from backedge.catalog import AGENT_CLIS
from backedge.config import AgentSpec, WorkflowFile
from backedge.core.errors import WorkflowError
from backedge.core.model import HUMAN
from backedge.core.workflow.definition import Step
from backedge.ports import Agent
from backedge.project.evidence import FileEvidence
from backedge.project.functions import imported
from backedge.project.inspecting import options_of
from backedge.project.location import Project
from backedge.project.missing import one_word, unusable_script
from backedge.project.project import secrets_of

Views = Callable[[str], Mapping[str, str]]
"""The paths of the files that show a run to its agents, by their keys in the briefing."""


def agents_of(
    source: WorkflowFile,
    project: Project,
    views: Views | None = None,
    installed: bool = True,
    only: Collection[str] | None = None,
    imports: bool = True,
) -> dict[str, Agent]:
    """The agents of all steps, or of `only` these, which planners added, by the names that the definition uses, and the agents that measure for
    checks and gates.

    `views` says where the scratchpad and the progress file of a run are. An agent CLI that is not installed is refused, and
    so is a script that cannot be started as it is. With `installed=False` they are not: the file may still be valid. With `imports=False` functions are left
    out, because importing a module executes it."""
    factory = _AgentFactory(source, project, views, secrets_of(source), FileEvidence(source, project, only or ()))
    agents: dict[str, Agent] = {}
    problems: list[str] = []
    for step in source.definition.steps:
        for name in step.agents if only is None or step.name in only else ():
            if name == HUMAN or (not imports and source.agents[name].kind == "python"):
                continue
            script = unusable_script(source.agents[name], source.steps[step.name].workspace) if installed else ""
            if script:
                problems.append(f"step {step.name!r}: {script}")
                continue
            try:
                agents[name] = factory.agent(source.agents[name], step)
            except NotInstalled as error:
                problems += [f"step {step.name!r}: {error}"] if installed else []
            except (ValueError, TypeError, WorkflowError) as error:
                problems.append(f"step {step.name!r}: {error}")
    if problems:
        raise WorkflowError(tuple(problems))
    return agents | factory.measuring() if only is None else agents


@dataclass(frozen=True)
class _AgentFactory:
    """Makes agents from what they have in common."""

    source: WorkflowFile
    project: Project
    views: Views | None
    secrets: Secrets
    evidence: FileEvidence

    def measuring(self) -> dict[str, Agent]:
        """The agents that compare for checks and read the reports of gates."""
        found: dict[str, Agent] = {}
        for check in self.source.definition.checks:
            if check.command:
                run = self.source.agents[check.name].run
                made = CommandAgent(
                    run,
                    folder=self.source.folder,
                    state=self.project.state,
                    env=self.evidence.env,
                    writes=(),
                    judges=True,
                    secrets=self.secrets,
                    witness=self.evidence.comparing(self.source.agents[check.name]),
                )
                found[check.name] = redacted(made, self.secrets)
        for gate in self.source.definition.gates:
            if gate.report:
                found[gate.name] = ReportValue(self.source.folder, gate.report, gate.path, self.evidence.left_by_judge)
        return found

    def agent(self, spec: AgentSpec, step: Step) -> Agent:
        return redacted(self._made(spec, step), self.secrets)

    def _made(self, spec: AgentSpec, step: Step) -> Agent:
        if spec.kind == "command":
            return self._command(spec, step)
        if spec.kind == "cli":
            return self._cli(spec, step)
        if spec.kind == "python":
            extras = self.source.steps[step.name]
            made = FunctionAgent(imported(spec.function, self.source.folder), judges=bool(step.judges))
            return with_checks(made, StepSchemas(extras.accepts, extras.schema))
        raise WorkflowError(f"agent {spec.name!r} is {spec.kind}: it cannot be started")

    def _command(self, spec: AgentSpec, step: Step) -> Agent:
        extras = self.source.steps[step.name]
        _require_program(spec)
        if extras.report is not None:
            command = self.evidence.judge_command(spec, step.name, self.secrets)
            return ToolJudge(self.evidence.of(extras.workspace), command, StepSchemas(extras.accepts, extras.schema))
        return CommandAgent(
            spec.run,
            folder=extras.workspace,
            state=self.project.state,
            env={**self.evidence.env, **spec.env},
            writes=extras.writes,
            judges=bool(step.judges),
            accepts=extras.accepts,
            schema=extras.schema,
            timeout=spec.timeout,
            views=self.views,
            secrets=self.secrets,
            plain=extras.plain,
            witness=self.evidence.witness(step, spec),
        )

    def _cli(self, spec: AgentSpec, step: Step) -> Agent:
        extras = self.source.steps[step.name]
        return CliAgent(
            spec.cli,
            Workplace(extras.workspace, self.project.state, extras.writes),
            phase=step.phase,
            judges=bool(step.judges),
            options=options_of(spec),
            template=spec.prompt,
            session=spec.session,
            env={**self.evidence.env, **spec.env},
            accepts=extras.accepts,
            schema=extras.schema,
            agents=list(dict.fromkeys((*self.source.named, *AGENT_CLIS, HUMAN))),
            timeout=spec.timeout,
            views=self.views,
            secrets=self.secrets,
            witness=self.evidence.witness(step, spec),
            prices=self.source.prices,
        )


def _require_program(spec: AgentSpec) -> None:
    """Raises NotInstalled if the program is not on the PATH. A step may still create a program that is named by a path."""
    program = spec.run[0] if spec.run else ""
    if not program or "/" in program or "{" in program:
        return
    if shutil.which(program, path=spec.env.get("PATH")) is None:
        why = one_word(spec) or f"cannot start {program!r}: there is no such program; install it, or correct `run`"
        raise NotInstalled(why)
