"""The agents of a workflow file: commands, agent CLIs, Python functions and people."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from backedge.catalog import AGENT_CLIS, ROLES
from backedge.config.pieces import FUNCTION
from backedge.config.problems import Trail, quoted
from backedge.config.source import Source, seconds
from backedge.core.model import HUMAN
from backedge.core.suggestions import closest, did_you_mean
from backedge.core.value import Json
from backedge.ports import PLACEHOLDERS

Kind = Literal["command", "cli", "python", "human"]

_NOUNS: dict[Kind, str] = {
    "command": "a command",
    "cli": "an agent CLI",
    "python": "a Python function",
    "human": "a person",
}
_OPTIONS = ("model", "prompt", "session", "allowed_tools", "permission_mode", "max_turns", "max_budget_usd")
_FITTING_OPTIONS: dict[Kind, tuple[str, ...]] = {
    "command": ("timeout", "env"),
    "cli": (*_OPTIONS, "timeout", "env"),
    "python": ("timeout",),
    "human": ("prompt", "timeout"),
}
_BRACES = re.compile(r"(?<![{$])\{([A-Za-z_]+)\}(?!\})")


@dataclass(frozen=True)
class AgentSpec:
    """One agent with everything needed to start it, including the options of its step."""

    name: str
    """Its name in the file; the step's name if the step has a command of its own."""
    kind: Kind
    run: tuple[str, ...] = ()
    """The program and its arguments, of a command."""
    cli: str = ""
    """Which agent CLI: a name from `AGENT_CLIS`."""
    function: str = ""
    """module:function, not imported yet."""
    model: str = ""
    prompt: str | None = None
    """The contents of the file that `prompt` names."""
    session: Literal["resume", "fresh"] = "resume"
    allowed_tools: tuple[str, ...] | None = None
    permission_mode: str = ""
    max_turns: int | None = None
    max_budget_usd: float | None = None
    timeout: float | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    trails: Mapping[str, Trail] = field(default_factory=dict, compare=False, repr=False)
    """The trail of each of its options; "" has the trail of its name."""


def named_agents(source: Source) -> dict[str, AgentSpec]:
    """The agents that steps can name: those of the file, the agent CLIs and the person."""
    known = {cli: AgentSpec(cli, "cli", cli=cli) for cli in AGENT_CLIS}
    for name, given in source.value.get("agents", {}).items():
        trail: Trail = ("agents", name)
        if name == HUMAN:
            source.refuse(trail, "is a reserved name: it is the person behind the inbox", at_key=True)
            continue
        options = _options(source, trail, given)
        known[name] = _with_options(source, trail, options, [_agent(source, trail, name, given)])[0]
    return {**known, HUMAN: AgentSpec(HUMAN, "human")}


def agents_of(source: Source, step: str, known: Mapping[str, AgentSpec]) -> list[AgentSpec]:
    """The agents of a step: one, or one per round of its ladder."""
    trail: Trail = ("steps", step)
    given = source.value["steps"][step]
    options = _options(source, trail, given)
    if "run" in given:
        return _with_options(source, trail, options, [_agent(source, trail, step, given)])
    ladder = given.get("agents", ())
    places = ladder.items() if isinstance(ladder, Mapping) else enumerate(ladder)
    named: list[tuple[Trail, str]] = [((*trail, "agents", at), word) for at, word in places]
    named.sort(key=lambda each: str(each[0][-1]) == "verify")
    if "agent" in given:
        named = [((*trail, "agent"), given["agent"])]
    agents = [_named_agent(source, where, word, known) for where, word in named]
    found = [agent for agent in agents if agent is not None]
    return _with_options(source, trail, options, found) if found and len(found) == len(agents) else found


def _agent(source: Source, trail: Trail, name: str, given: Mapping[str, Json]) -> AgentSpec:
    if "cli" in given:
        return AgentSpec(name, "cli", cli=given["cli"], trails={"": (*trail, "cli")})
    if "python" in given:
        return AgentSpec(name, "python", function=given["python"], trails={"": (*trail, "python")})
    if "human" in given:
        return AgentSpec(name, "human")
    run = tuple(source.written((*trail, "run", index), part) for index, part in enumerate(given.get("run", ())))
    if run and not run[0].strip():
        source.refuse((*trail, "run", 0), "got an empty text, expected a program: name the program to start")
    warn_of_misspelt_placeholders(source, (*trail, "run"), run)
    return AgentSpec(name, "command", run=run, trails={"": (*trail, "run")})


def warn_of_misspelt_placeholders(source: Source, trail: Trail, run: Sequence[str]) -> None:
    """Warn of words in braces that look like a misspelt placeholder. Any others are for the program itself."""
    for index, part in enumerate(run):
        for word in dict.fromkeys(_BRACES.findall(part)):
            meant = closest(word, PLACEHOLDERS) if word not in PLACEHOLDERS else ""
            if meant:
                source.warn((*trail, index), f"{{{word}}} is left as it is: did you mean '{{{meant}}}'?")


def _named_agent(source: Source, trail: Trail, word: str, known: Mapping[str, AgentSpec]) -> AgentSpec | None:
    if word in known:
        return replace(known[word], trails={"": trail, **known[word].trails})
    if word.startswith("python:"):
        function = word.removeprefix("python:")
        if re.fullmatch(FUNCTION, function):
            return AgentSpec(word, "python", function=function, trails={"": trail})
        source.refuse(trail, f"got {quoted(word)}, expected python:module:function")
    elif re.search(r"[\s/\\]", word):
        source.refuse(trail, f"got {quoted(word)}, expected the name of an agent: a command goes into `run`, as a list")
    else:
        source.refuse(trail, f"unknown agent {quoted(word)}: {did_you_mean(word, known)}")
    return None


def _with_options(source: Source, trail: Trail, options: dict[str, Any], agents: list[AgentSpec]) -> list[AgentSpec]:
    """The agents with the options of their step or entry. An option that no agent can use is refused: a bound that
    is not enforced is worse than none."""
    for key in options:
        # A command without a program is an agent of unknown kind: its options cannot be checked.
        if not any(
            key in _FITTING_OPTIONS[agent.kind] or (agent.kind == "command" and not agent.run) for agent in agents
        ):
            noun = _NOUNS[agents[0].kind]
            source.refuse((*trail, key), f"has no effect on {noun}: remove it, or use another agent", at_key=True)
    fitting = ({key: each for key, each in options.items() if key in _FITTING_OPTIONS[agent.kind]} for agent in agents)
    return [_with_own(agent, own, trail) for agent, own in zip(agents, fitting, strict=True)]


def _with_own(agent: AgentSpec, options: dict[str, Any], trail: Trail) -> AgentSpec:
    trails = {**agent.trails, **{key: (*trail, key) for key in options}}
    env = {**agent.env, **options.pop("env", {})}
    return replace(agent, env=env, trails=trails, **options)


def _options(source: Source, trail: Trail, given: Mapping[str, Json]) -> dict[str, Any]:
    options: dict[str, Any] = {key: given[key] for key in (*_OPTIONS, "timeout", "env") if key in given}
    if "prompt" in options:
        options["prompt"] = _prompt(source, (*trail, "prompt"), options["prompt"])
    if "allowed_tools" in options:
        options["allowed_tools"] = tuple(options["allowed_tools"])
    if "max_turns" in options:
        options["max_turns"] = int(options["max_turns"])
    if "max_budget_usd" in options:
        options["max_budget_usd"] = float(options["max_budget_usd"])
    if "timeout" in options:
        options["timeout"] = seconds(options["timeout"])
    if "env" in options:
        options["env"] = {key: source.written((*trail, "env", key), each) for key, each in options["env"].items()}
        for key in options["env"]:
            if key in source.value.get("redact", ()):
                source.refuse(
                    (*trail, "env", key),
                    "is listed in redact, but its value is in this file: set it in the environment of backedge, which agents inherit",
                    at_key=True,
                )
    return options


def _prompt(source: Source, trail: Trail, text: str) -> str | None:
    """The text of a prompt: from a file of the user or, if `text` is the name of a role, one that backedge ships."""
    if text in ROLES and not source.has_file(text):
        from importlib.resources import files

        return (files("backedge") / "prompts" / f"{text}.md").read_text("utf-8")
    return source.file(trail, text)
