"""Steps that a planner adds to a run. They are written and checked like those of the workflow file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from backedge.config.agents import AgentSpec, agents_of, named_agents
from backedge.config.check import flaws_of
from backedge.config.phases import check_declared
from backedge.config.problems import Trail, shown_trail
from backedge.config.schema import SCHEMA
from backedge.config.source import Source
from backedge.config.steps import StepExtras, core_step, extras_of, refuse_misplaced_report
from backedge.config.workflow_file import WorkflowFile, own_limits
from backedge.config.yaml import Document
from backedge.core.errors import WorkflowError
from backedge.core.value import Json
from backedge.core.workflow.definition import Step
from backedge.core.workflow.steps import agent_names

HERE = "add_steps"


@dataclass(frozen=True)
class AddedSteps:
    """Added steps with their own limits, and everything needed to execute them."""

    steps: Sequence[tuple[Step, Mapping[str, object]]]
    agents: Mapping[str, AgentSpec]
    extras: Mapping[str, StepExtras]
    files: Mapping[str, str]
    """The contents of the files that the steps name."""


def added_steps(file: WorkflowFile, specs: Json) -> AddedSteps:
    """The steps to add to a run of this file; they may name its agents. Raises WorkflowError with all problems."""
    value = {"name": file.definition.name, "agents": file.named, "steps": specs}
    texts = dict(_scalars(value, ()))
    document = Document(value, HERE, texts=texts)
    source = Source(document, list(flaws_of(value, SCHEMA, document.written)), file.folder, file.files)
    steps, agents, extras = [], dict[str, AgentSpec](), dict[str, StepExtras]()
    if not source.flaws:
        known = named_agents(source)
        for name in source.value["steps"]:
            if file.definition.phases and (phase := source.value["steps"][name].get("phase")):
                check_declared(source, name, phase, file.definition.phases)
            own = agents_of(source, name, known)
            agents.update(zip(agent_names(name, len(own)), own, strict=True))
            extras[name] = extras_of(source, name)
            refuse_misplaced_report(source, name, own, extras[name].report)
            _refuse_rights(source, name, own, known)
            limits = own_limits(source.value["steps"][name].get("limits", {}))
            steps.append((core_step(source, name, own, extras[name]), limits))
    if source.flaws:
        raise WorkflowError(tuple(f"{_shown(flaw.trail)}: {flaw.text}" for flaw in source.flaws))
    return AddedSteps(steps, agents, extras, source.files)


def _refuse_rights(source: Source, name: str, own: Sequence[AgentSpec], known: Mapping[str, AgentSpec]) -> None:
    """A planner is an agent: what only the person who wrote the workflow file may allow, it cannot allow either."""
    given = source.value["steps"][name]
    for key in ("installs", "sandbox"):
        if given.get(key) not in (None, False, "bwrap"):
            source.refuse(
                ("steps", name, key),
                f"a planner may not add a step with `{key}: {source.written(('steps', name, key), given[key])}`: leave it out, "
                "or have the person who wrote the workflow file add such a step there",
            )
    functions = {each.function for each in known.values() if each.kind == "python"}
    for each in own:
        if each.kind == "python" and each.function not in functions:
            source.refuse(
                each.trails.get("", ("steps", name)),
                f"a planner may not add the function {each.function!r}, which would run inside backedge: use `run`, or name "
                "an agent of the workflow file",
            )


def _shown(trail: Trail) -> str:
    return shown_trail((HERE, *trail[1:]) if trail[:1] == ("steps",) else trail)


def _scalars(value: Json, trail: Trail) -> Iterator[tuple[Trail, str]]:
    """The scalars of a value as a file would contain them."""
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _scalars(each, (*trail, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _scalars(each, (*trail, index))
    else:
        yield trail, value if isinstance(value, str) else json.dumps(value)
