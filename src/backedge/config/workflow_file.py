"""From `backedge.yaml` to a definition and its agents, with every problem located and named at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from backedge.config.agents import AgentSpec, agents_of, named_agents
from backedge.config.check import flaws_of
from backedge.config.core_problems import flaw_of
from backedge.config.evidence import UNPROTECTED, EvidenceSpec, evidence_of
from backedge.config.finding import FILE_NAMES
from backedge.config.measures import comparing_agents
from backedge.config.notify import channels_of, expiry_of, warn_of_channels
from backedge.config.phases import check_phases
from backedge.config.prices import check_costs, prices_of
from backedge.config.problems import FILE_NAME, Flaw, Problem, WorkflowFileError
from backedge.config.schema import SCHEMA
from backedge.config.source import Source, seconds
from backedge.config.steps import (
    StepExtras,
    core_step,
    extras_of,
    refuse_misplaced_report,
    warn_of_unwatched_files,
    warn_of_weak_evidence,
    with_known_steps,
)
from backedge.config.stories import StoriesSpec, stories_of, with_last_step
from backedge.config.yaml import MAX_BYTES, Document, loaded
from backedge.core.errors import WorkflowError
from backedge.core.prices import Price
from backedge.core.value import Json
from backedge.core.workflow.build import build_workflow
from backedge.core.workflow.definition import MAX_STEPS, Step, Workflow
from backedge.core.workflow.limits import LIMITS
from backedge.core.workflow.steps import agent_names


@dataclass(frozen=True)
class WorkflowFile:
    """A workflow file that can run."""

    path: Path
    folder: Path
    definition: Workflow
    agents: Mapping[str, AgentSpec]
    """By the names that the steps of the definition use."""
    steps: Mapping[str, StepExtras]
    redact: tuple[str, ...] = ()
    """Environment variables whose values are removed from everything that is written."""
    named: Mapping[str, Json] = field(default_factory=dict)
    """The agents that steps can name, as the file has them."""
    stories: StoriesSpec | None = None
    evidence: EvidenceSpec = field(default_factory=EvidenceSpec)
    prices: Mapping[str, Price] = field(default_factory=dict)
    """By model, or by the name of an agent CLI."""
    data: bytes = b""
    """The contents of the file itself."""
    files: Mapping[str, str] = field(default_factory=dict)
    """The contents of the files that it names (prompts and schemas), by their paths from its folder."""
    warnings: tuple[str, ...] = ()
    """Probable mistakes, each with its location."""


Inspect = Callable[[AgentSpec, Path], Iterable[tuple[str, str]]]
"""Finds further problems of an agent, each with the option that it is about."""


def load(path: Path, inspect: Inspect | None = None) -> WorkflowFile:
    """A checked workflow file. Nothing of it is executed or imported, unless `inspect` does. Raises WorkflowFileError
    with all problems."""
    if not os.path.exists(path):
        if path.name in FILE_NAMES:
            raise _unplaced(f"no {FILE_NAME} in {path.parent.resolve()} or above: run `backedge init`")
        raise _unplaced(f"{path} does not exist: name a workflow file, or run `backedge init`")
    if not os.path.isfile(path):
        raise _unplaced(f"{path} is not a file: name a workflow file")
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise _unplaced(f"{path} cannot be read: {error.strerror}") from error
    return workflow_file(data, path, inspect=inspect)


def workflow_file(
    data: bytes, path: Path, files: Mapping[str, str] | None = None, inspect: Inspect | None = None
) -> WorkflowFile:
    """The contents of a file as a workflow. `path` says where the file is; paths in it are relative to that. `files` has
    the contents of the files it names that the run keeps."""
    document = loaded(data, _shown(path))
    if not isinstance(document.value, dict):
        raise WorkflowFileError([*document.problems, *_not_a_mapping(document)])
    source = Source(document, list(flaws_of(document.value, SCHEMA, document.written)), path.parent.resolve(), files)
    made = _built(source, path, inspect)
    problems = set(document.problems)
    # A value that could not be read has been reported already; its wrong type says nothing new.
    named = {(problem.line, problem.column) for problem in problems}
    problems |= {each for each in map(document.problem, source.flaws) if (each.line, each.column) not in named}
    if problems or made is None:
        raise WorkflowFileError(sorted(problems))
    warnings = [*sorted(map(document.problem, source.warnings)), *source.notes]
    return replace(made, data=data, files={**(files or {}), **source.files}, warnings=tuple(map(str, warnings)))


def _built(source: Source, path: Path, inspect: Inspect | None) -> WorkflowFile | None:
    known = named_agents(source)
    check_phases(source)
    last = with_last_step(source.value)
    stories = stories_of(source)
    agents: dict[str, AgentSpec] = {}
    extras: dict[str, StepExtras] = {}
    steps = []
    workers: list[AgentSpec] = []
    """The agents that may cost something: tools do not."""
    for name, given in source.value.get("steps", {}).items():
        own = agents_of(source, name, known)
        agents.update(zip(agent_names(name, len(own)), own, strict=True))
        extras[name] = replace(extras_of(source, name), plain=name == last)
        workers += own if extras[name].report is None else []
        refuse_misplaced_report(source, name, own, extras[name].report)
        warn_of_weak_evidence(source, name, extras[name].report)
        steps.append((core_step(source, name, own, extras[name]), own_limits(given.get("limits", {}))))
    if inspect is not None:
        _inspected(source, [*known.values(), *agents.values()], inspect)
    if not steps:
        return None
    agents.update(comparing_agents(source))
    definition = _definition(source, steps)
    if definition is None:
        # The core looks at the graph once all names are known: without the unknown ones it can, and says more.
        known_only = [(with_known_steps(step, source.value["steps"]), own) for step, own in steps]
        source.flawed |= {step.name for (step, _), (less, _) in zip(steps, known_only, strict=True) if step != less}
        _definition(source, known_only)
        return None
    redact, named = tuple(source.value.get("redact", ())), source.value.get("agents", {})
    evidence = evidence_of(source.value)
    if not evidence.protects:
        source.warn(("protects",), UNPROTECTED)
    warn_of_unwatched_files(source, definition.steps, agents)
    warn_of_channels(source)
    prices = prices_of(source.value)
    check_costs(source, workers, prices)
    return WorkflowFile(path, source.folder, definition, agents, extras, redact, named, stories, evidence, prices)


def _inspected(source: Source, agents: Iterable[AgentSpec], inspect: Inspect) -> None:
    for agent in agents:
        for option, problem in inspect(agent, source.folder):
            source.refuse(agent.trails.get(option) or agent.trails[""], problem)


def _definition(source: Source, steps: Sequence[tuple[Step, Mapping[str, object]]]) -> Workflow | None:
    value = source.value
    try:
        return build_workflow(
            value.get("name") or source.folder.resolve().name or "workflow",
            steps,
            profile=value.get("profile", "default"),
            limits=own_limits(value.get("limits", {})),
            phases=value.get("phases", ()),
            scope=value.get("scope"),
            routes=value.get("routes", ()),
            on_breach=value.get("on_breach", "manual"),
            new_findings=value.get("new_findings"),
            kinds=value.get("kinds"),
            agreement=value.get("agreement", "all"),
            authority=value.get("authority", ()),
            checks=value.get("checks"),
            gates=value.get("gates"),
            on_protected=value.get("on_protected", "review"),
            on_worse=value.get("on_worse", "keep"),
            max_steps=value.get("max_steps", MAX_STEPS),
            roles=value.get("roles"),
            notify=channels_of(source),
            expire=expiry_of(source),
        )
    except WorkflowError as error:
        located = [flaw_of(problem, source) for problem in error.problems]
        source.flaws += [flaw for flaw in located if flaw is not None]
        return None


def own_limits(given: Mapping[str, Any]) -> dict[str, object]:
    """Limits as the core takes them: durations in seconds, whole numbers as int."""
    return {name: _bound(name, bound) for name, bound in given.items()}


def _bound(name: str, bound: Any) -> object:
    if isinstance(bound, bool):
        return bound
    match LIMITS[name].unit:
        case "seconds":
            return seconds(bound)
        case "dollars":
            return float(bound)
        case _:
            return int(bound)


def _not_a_mapping(document: Document) -> list[Problem]:
    if document.value is None:
        return [Problem(1, 1, "", "the file is empty: `backedge init` writes one to start from", document.file)]
    return [document.problem(Flaw((), "expected `steps: …` at the top: `backedge init` writes an example"))]


def _unplaced(text: str) -> WorkflowFileError:
    return WorkflowFileError([Problem(0, 0, "", text)])


def _shown(path: Path) -> str:
    """The file as problems name it: relative if it is below the current folder."""
    whole, here = path.absolute(), Path.cwd()
    return str(whole.relative_to(here)) if whole.is_relative_to(here) else str(path)
