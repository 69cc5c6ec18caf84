"""The steps of a file: the part that the core records, and the part that is needed only to execute them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from backedge.catalog import REPORTERS, WITHOUT_FILE, ReportKind
from backedge.config.agents import AgentSpec
from backedge.config.evidence import OnError, Room, SandboxChoice
from backedge.config.problems import Trail, quoted
from backedge.config.source import Source, listed
from backedge.core.model import HUMAN
from backedge.core.suggestions import did_you_mean
from backedge.core.value import Json, replace
from backedge.core.workflow.build import groups_of, members
from backedge.core.workflow.definition import Step
from backedge.core.workflow.steps import agent_names, parse_step
from backedge.ports import PLACEHOLDER

EXIT_CODE = (
    "an exit code proves only that the program ended; with a report that names each test (junit, node, jest …), tests that "
    "vanish or are skipped are noticed"
)
LONGEST_QUESTION = 10_000
"""The most characters of a question to a person."""


@dataclass(frozen=True)
class ToolReport:
    """A report of a tool that backedge reads itself."""

    kind: ReportKind
    path: str = ""
    """Relative to the workspace; empty for the file that `{report}` stands for."""


@dataclass(frozen=True)
class StepExtras:
    """What is needed to execute a step, in addition to its agents."""

    name: str
    workspace: Path
    report: ToolReport | None = None
    writes: tuple[str, ...] | None = None
    """Globs of the files it may change; None if the file does not say."""
    accepts: Mapping[str, Json] = field(default_factory=dict)
    """JSON Schemas of its inputs, by producer."""
    schema: Json = None
    """The JSON Schema of its output."""
    installs: bool = False
    on_error: OnError | None = None
    """What happens to the files of a broken attempt; None if the file does not say."""
    room: Room | None = None
    sandbox: SandboxChoice | None = None
    baseline: bool | None = None
    reruns: int = 0
    keeps: tuple[str, ...] = ()
    canary: bool = False
    """Whether a pass counts only if the judge notices that a changed file is broken."""
    plain: bool = False
    """Its program does not use the agent protocol: what it prints is its output."""


def core_step(source: Source, name: str, agents: Sequence[AgentSpec], extras: StepExtras) -> Step:
    """A step as the definition records it. Its agents are named after the step, so that a resumed run finds them again
    after other steps were edited."""
    timeouts = [agent.timeout for agent in agents]
    known = [each for each in timeouts if each is not None]
    step = parse_step(
        name,
        source.value["steps"][name],
        agents=_agent_names(name, agents),
        called=_called(name, agents),
        timeout=max(known) if known and len(known) == len(timeouts) else None,
        question=_question(agents),
        lists_findings=extras.report is not None and extras.report.kind != "exitcode",
    )
    return replace(
        step,
        checked=bool(extras.accepts),
        tool=bool(step.judges) and extras.report is not None,
        writes=extras.writes,
        workspace=str(source.value["steps"][name].get("workspace", "")),
    )


def _question(agents: Sequence[AgentSpec]) -> str:
    """The question to a person who does the step: the contents of the file that `prompt` names."""
    text = next((agent.prompt for agent in agents if agent.kind == "human" and agent.prompt), "")
    return text.strip()[:LONGEST_QUESTION]


def with_known_steps(step: Step, names: Collection[str]) -> Step:
    """A step without its references to itself or to steps that do not exist."""
    known = [name for name in names if name != step.name]
    return replace(
        step,
        needs=tuple(need for need in step.needs if need in known),
        judges=tuple(subject for subject in step.judges if subject in known),
        reads=tuple((producer, pointers) for producer, pointers in step.reads if producer in known),
    )


def _agent_names(step: str, agents: Sequence[AgentSpec]) -> tuple[str, ...]:
    """The names that a definition uses for the agents of a step; a person is `human` everywhere."""
    names = agent_names(step, len(agents))
    return tuple(HUMAN if agent.kind == "human" else name for name, agent in zip(names, agents, strict=True))


def _called(step: str, agents: Sequence[AgentSpec]) -> tuple[str, ...]:
    """The names of a step's agents in the file; empty if the definition uses the same names."""
    called = tuple(agent.name for agent in agents)
    return called if called != _agent_names(step, agents) else ()


def judged(given: Mapping[str, Json]) -> tuple[str, ...]:
    """The steps that a step judges."""
    return listed(given.get("reviews")) or listed(given.get("tests"))


def extras_of(source: Source, name: str) -> StepExtras:
    """The parts of a step that the core does not record."""
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
        installs=given.get("installs", False),
        on_error=given.get("on_error"),
        room=given.get("room"),
        sandbox=given.get("sandbox"),
        baseline=given.get("baseline"),
        reruns=given.get("reruns", 0),
        keeps=tuple(given.get("keeps", ())),
        canary=given.get("canary", False),
    )


def refuse_misplaced_report(source: Source, name: str, agents: Sequence[AgentSpec], report: ToolReport | None) -> None:
    """Refuse a report that no agent writes, and a command that writes a report that is not read."""
    trail: Trail = ("steps", name)
    given = source.value["steps"][name]
    if name in source.flawed:
        return
    if report is not None and not judged(given):
        text = "is only for judges, but the step judges nothing: add `tests` or `reviews`, or remove it"
        source.refuse((*trail, "report"), text, at_key=True)
    elif report is not None and agents and not any(agent.kind == "command" for agent in agents):
        text = "has no effect: only commands write a report, and no agent of this step is a command"
        source.refuse((*trail, "report"), text, at_key=True)
    if given.get("canary") and (report is None or report.kind != "exitcode"):
        text = "is for judges with `report: exitcode`: other reports show which tests ran; remove it"
        source.refuse((*trail, "canary"), text, at_key=True)
    elif given.get("canary") and given.get("room", source.value.get("room")) == "off":
        source.refuse((*trail, "canary"), "needs a room to break files in: remove `room: off`", at_key=True)
    for agent in agents:
        for index, word in enumerate(agent.run):
            where: Trail = (*trail, "run", index) if "run" in given else (*trail, _naming(given))
            used = PLACEHOLDER.findall(word)
            if "report" in used and (report is None or report.kind in WITHOUT_FILE):
                why = _no_file(report.kind) if report else "the step has no report"
                source.refuse(where, f"the command uses {{report}}, but {why}: set `report`")
            if "reporter" in used and (report is None or report.kind not in REPORTERS):
                kinds = " or ".join(REPORTERS)
                source.refuse(where, f"the command uses {{reporter}}, which needs the report {kinds}: set `report`")


def warn_of_weak_evidence(source: Source, name: str, report: ToolReport | None) -> None:
    """Warn of a judge whose verdict says little about the work: tests that nobody can count. A linter or a type checker
    names no tests."""
    if report is not None and report.kind == "exitcode" and "reviews" not in source.value["steps"][name]:
        trail: Trail = ("steps", name, "report")
        source.warn(trail, EXIT_CODE)


def warn_of_unwatched_files(source: Source, steps: Sequence[Step], agents: Mapping[str, AgentSpec]) -> None:
    """Warn of rollbacks that restore only outputs, because nobody knows which files a Python function changes."""
    trails: list[Trail] = [("on_worse",), *(("steps", step.name, "on_worse") for step in steps)]
    trail = next((each for each in trails if _at(source.value, each) == "rollback"), None)
    makers = (step for step in steps if not step.judges)
    functions = [
        step.name for step in makers if any(agents[name].kind == "python" for name in step.agents if name in agents)
    ]
    if trail is not None and functions:
        source.warn(
            trail,
            f"a rollback restores only the output of {', '.join(functions)}: it is not known which files a Python function "
            "changes",
        )


def _at(value: Json, trail: Trail) -> Json:
    for key in trail:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _no_file(kind: ReportKind) -> str:
    return "an exit code has no file" if kind == "exitcode" else f"the report {kind} is read from stdout"


def _naming(given: Mapping[str, Json]) -> str:
    return "agent" if "agent" in given else "agents"


def _report(source: Source, trail: Trail, given: Json) -> ToolReport | None:
    if not isinstance(given, Mapping):
        return ToolReport(given) if given else None
    path = given.get("path", "")
    if path and given["kind"] in WITHOUT_FILE:
        source.refuse((*trail, "path"), f"{_no_file(given['kind'])}: remove the path", at_key=True)
    elif path and leaves(path):
        source.refuse((*trail, "path"), f"got {quoted(path)}, which leaves the workspace: use a path inside it")
    return ToolReport(given["kind"], path)


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
