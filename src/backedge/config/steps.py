"""The steps of a file: what the core keeps of them, and what only those who execute them need."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal

from backedge.config.agents import AgentSpec
from backedge.config.problems import Trail, quoted
from backedge.config.source import Source, listed
from backedge.core.model import HUMAN
from backedge.core.suggestions import did_you_mean
from backedge.core.value import Json, replace
from backedge.core.workflow.build import groups_of, members, pass_rule
from backedge.core.workflow.definition import Repeat, Step
from backedge.ports import PLACEHOLDER

LONGEST_QUESTION = 10_000
"""Characters of a question to a person that are kept."""


@dataclass(frozen=True)
class Report:
    """The evidence that backedge reads itself."""

    kind: Literal["junit", "sarif", "json", "exitcode"]
    path: str = ""
    """Relative to the workspace; empty for the file that `{report}` stands for."""


@dataclass(frozen=True)
class StepExtras:
    """What a step needs to be executed, besides its agents."""

    name: str
    workspace: Path
    report: Report | None = None
    writes: tuple[str, ...] | None = None
    """Globs of the files it may change; None if the file does not say."""
    accepts: Mapping[str, Json] = field(default_factory=dict)
    """JSON Schemas of its inputs, by producer."""
    schema: Json = None
    """The JSON Schema of its output."""
    plain: bool = False
    """Its program need not know the agent protocol: what it prints is its output."""


def core_step(source: Source, name: str, agents: Sequence[AgentSpec], extras: StepExtras) -> Step:
    """A step as the definition keeps it. Its agents are named by the step, so that a resumed run finds them again after
    other steps were edited."""
    given = source.value["steps"][name]
    judges = judged(given)
    timeouts = [agent.timeout for agent in agents]
    known = [each for each in timeouts if each is not None]
    evidence = extras.report is not None and extras.report.kind != "exitcode"
    return Step(
        name=name,
        phase=given.get("phase", ""),
        needs=tuple(need for need in listed(given.get("needs")) if need not in judges),
        judges=judges,
        tests="tests" in given,
        complete=given.get("complete", "tests" in given or evidence),
        agents=agent_names(name, agents),
        called=_called(name, agents),
        passes_if=pass_rule(_counts(given.get("passes_if"))),
        approval=given.get("approval"),
        on_doubt=given.get("on_doubt") or ("rerun" if given.get("idempotent") else "ask"),
        timeout=max(known) if known and len(known) == len(timeouts) else None,
        checked=bool(extras.accepts),
        reads=tuple((producer, tuple(pointers)) for producer, pointers in given.get("reads", {}).items()),
        when=listed(given.get("when")),
        repeat=_repeat(given["repeat"]) if "repeat" in given else None,
        group=given.get("group", ""),
        question=_question(agents),
        plans=given.get("plans", False),
    )


def _question(agents: Sequence[AgentSpec]) -> str:
    """What a person who does the step is asked, in the words of the file that `prompt` names."""
    text = next((agent.prompt for agent in agents if agent.kind == "human" and agent.prompt), "")
    return text.strip()[:LONGEST_QUESTION]


def _repeat(given: Mapping[str, Json]) -> Repeat:
    return Repeat(listed(given["until"]), int(given["max"]), given.get("to", ""))


def with_known_steps(step: Step, names: Collection[str]) -> Step:
    """A step without what it says about itself or about steps that do not exist."""
    known = [name for name in names if name != step.name]
    return replace(
        step,
        needs=tuple(need for need in step.needs if need in known),
        judges=tuple(subject for subject in step.judges if subject in known),
        reads=tuple((producer, pointers) for producer, pointers in step.reads if producer in known),
    )


def agent_names(step: str, rungs: Sequence[AgentSpec]) -> tuple[str, ...]:
    """The names under which a definition keeps the agents of a step; a person is a person everywhere."""
    names = rung_names(step, len(rungs))
    return tuple(HUMAN if agent.kind == "human" else name for name, agent in zip(names, rungs, strict=True))


def _called(step: str, rungs: Sequence[AgentSpec]) -> tuple[str, ...]:
    """What the file calls the agents of a step; nothing where that is what they are named."""
    called = tuple(agent.name for agent in rungs)
    return called if called != agent_names(step, rungs) else ()


def rung_names(step: str, rungs: int) -> tuple[str, ...]:
    """A name of its own for each agent of a step."""
    return tuple(step if rung == 0 else f"{step}#{rung + 1}" for rung in range(rungs))


def judged(given: Mapping[str, Json]) -> tuple[str, ...]:
    """The steps that a step judges."""
    return listed(given.get("reviews")) or listed(given.get("tests"))


def extras_of(source: Source, name: str) -> StepExtras:
    """What the core does not keep of a step."""
    given = source.value["steps"][name]
    trail: Trail = ("steps", name)
    workspace = source.path((*trail, "workspace"), given.get("workspace", "."), "folder")
    return StepExtras(
        name=name,
        workspace=workspace or source.folder,
        report=_report(source, (*trail, "report"), given.get("report")),
        writes=_writes(source, (*trail, "writes"), given.get("writes")),
        accepts=_accepts(source, name, given) if "accepts" in given else {},
        schema=source.own_schema((*trail, "schema"), given["schema"]) if "schema" in given else None,
    )


def _counts(rule: Json) -> Json:
    return {severity: int(count) for severity, count in rule.items()} if isinstance(rule, dict) else rule


def refuse_misplaced_report(source: Source, name: str, agents: Sequence[AgentSpec], report: Report | None) -> None:
    """Refuse a report that nobody writes, and a command that is to write one that nobody reads."""
    trail: Trail = ("steps", name)
    given = source.value["steps"][name]
    if name in source.flawed:
        return
    if report is not None and not judged(given):
        text = "is the evidence of a judge, but the step judges nothing: add `tests` or `reviews`, or remove it"
        source.refuse((*trail, "report"), text, at_key=True)
    elif report is not None and agents and not any(agent.kind == "command" for agent in agents):
        text = "has no effect: only commands leave a report, and nobody who does this step is one"
        source.refuse((*trail, "report"), text, at_key=True)
    if report is None or report.kind == "exitcode":
        why = "an exit code has no file" if report else "the step has no report"
        for agent in agents:
            for index, word in enumerate(agent.run):
                if "report" in PLACEHOLDER.findall(word):
                    place: Trail = (*trail, "run", index) if "run" in given else (*trail, _naming(given))
                    source.refuse(place, f"the command names {{report}}, but {why}: say which `report` it writes")


def _naming(given: Mapping[str, Json]) -> str:
    return "agent" if "agent" in given else "agents"


def _report(source: Source, trail: Trail, given: Json) -> Report | None:
    if not isinstance(given, Mapping):
        return Report(given) if given else None
    path = given.get("path", "")
    if path and given["kind"] == "exitcode":
        source.refuse((*trail, "path"), "an exit code has no file: remove the path", at_key=True)
    elif path and leaves(path):
        source.refuse((*trail, "path"), f"got {quoted(path)}, which leaves the workspace: use a path inside it")
    return Report(given["kind"], path)


def _writes(source: Source, trail: Trail, globs: Sequence[str] | None) -> tuple[str, ...] | None:
    for index, glob in enumerate(globs or ()):
        if leaves(glob):
            source.refuse((*trail, index), f"got {quoted(glob)}, which leaves the workspace: use a glob inside it")
    return None if globs is None else tuple(globs)


def leaves(path: str) -> bool:
    """Whether a relative path can lead out of its folder."""
    return PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts


def _accepts(source: Source, name: str, given: Mapping[str, Json]) -> dict[str, Json]:
    trail: Trail = ("steps", name, "accepts")
    groups = groups_of({each: step.get("group", "") for each, step in source.value["steps"].items()})
    inputs = members(groups, (*judged(given), *listed(given.get("needs"))), name)
    accepts = given["accepts"]
    if isinstance(accepts, str):
        if len(inputs) != 1 and name not in source.flawed:
            source.refuse(trail, f"is one schema, but the step needs {len(inputs)} steps: give a schema by producer")
        schema = source.own_schema(trail, accepts)
        return {inputs[0]: schema} if len(inputs) == 1 else {}
    found = {}
    for producer, schema in accepts.items():
        if producer not in inputs and name not in source.flawed:
            known = did_you_mean(producer, inputs) if inputs else "add it to needs"
            source.refuse((*trail, producer), f"the step does not need {quoted(producer)}: {known}", at_key=True)
        found[producer] = source.own_schema((*trail, producer), schema)
    return found
