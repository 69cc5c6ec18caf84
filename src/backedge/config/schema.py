"""What may stand in a workflow file: the one source for the checker, the published JSON Schema and the reference."""

from __future__ import annotations

import json

from backedge.catalog import AGENT_CLIS, REPORTS, ROLES
from backedge.config.pieces import (
    FUNCTION,
    NAMES,
    VARIABLE,
    Schema,
    arguments,
    choice,
    duration,
    either,
    flag,
    limit,
    listed,
    mapped,
    number,
    path,
    plain,
    record,
    required_one,
    text,
    words,
)
from backedge.core.model import Kind, Severity
from backedge.core.workflow.checks import BOUNDS, RESOLUTIONS, RULES
from backedge.core.workflow.definition import PASS_RULES
from backedge.core.workflow.limits import LIMITS, OF_THE_RUN
from backedge.core.workflow.profiles import PROFILES
from backedge.core.workflow.routes import ROUTE_KEYS

SCHEMA_FILE = "backedge.schema.json"
"""The name under which the schema is published beside a workflow file."""

EDITOR_LINE = f"# yaml-language-server: $schema={SCHEMA_FILE}\n"
"""Put in front of a workflow file, it makes editors complete and check it."""

_POLICIES = ("rework", "defer", "ask")
_POINTER = "^(/([^~/]|~[01])*)*$"

_LIMITS: dict[str, Schema] = {name: limit(spec) for name, spec in LIMITS.items()}

_OPTIONS: dict[str, Schema] = {
    "model": text("The model that an agent CLI uses.", "sonnet"),
    "prompt": path(
        f"A file with the prompt of an agent CLI, or the role whose prompt it gets ({', '.join(ROLES)}); "
        "or a file with the question to a person.",
        "prompts/code.md",
        "review",
    ),
    "session": choice("Whether a rework resumes the agent's conversation or starts a fresh one.", "resume", "fresh"),
    "allowed_tools": listed("The tools that an agent CLI may use.", text("A tool."), ["Read", "Edit"]),
    "permission_mode": text("The permission mode of an agent CLI, in its own words.", "acceptEdits"),
    "max_turns": number("The most turns that an agent CLI may take in one attempt.", 30, whole=True),
    "max_budget_usd": number("The most that an agent CLI may spend in one attempt, in US dollars.", 0.5),
    "timeout": duration("How long an attempt may take before it is stopped.", "90s"),
    "env": mapped(
        "Environment variables of the program, added to those of backedge.",
        plain("The value."),
        {"CI": "1"},
        keys={"pattern": VARIABLE, "title": "the name of an environment variable"},
    ),
}

_RUN = arguments("A program and its arguments, as a list; no shell is used.", ["pytest", "-q"])

_AGENT = record(
    "An agent that steps can name: a command, an agent CLI, a Python function or a person.",
    {
        "run": _RUN,
        "cli": choice("An agent CLI that is installed on this machine.", *AGENT_CLIS),
        "python": text(
            "A Python function that does the work.", "agents.coder:work", title="module:function", pattern=FUNCTION
        ),
        "human": {
            "description": "The step is a question to a person.",
            "title": "true",
            "type": "boolean",
            "const": True,
        },
        **_OPTIONS,
    },
    oneOf=required_one("run", "cli", "python", "human"),
)

_OWN_SCHEMA: Schema = {"description": "A JSON Schema.", "title": "a JSON Schema (a mapping)", "type": "object"}

_COUNTS = {
    each: number(f"How many {each} findings still pass.", 0, least=0, whole=True) for each in (*Severity, "blocking")
}

_STEP = record(
    "One step of the workflow, done by one agent.",
    {
        "phase": text("The phase of the step; a judge has its subject's.", "planning", "design", "code", "test"),
        "needs": words(
            "The steps, or groups of steps, whose artifacts it gets, and after which it runs.",
            "plan",
            ["plan", "design"],
        ),
        "reviews": words("The steps that it reviews; makes it a judge of them.", "code"),
        "tests": words("The steps that it tests; makes it a judge of them.", "code"),
        "group": text("The set of steps that it belongs to; who needs the group needs all of them.", "design", **NAMES),
        "when": words(
            "Runs only if this is so, or all of these are; else it is skipped, and what needs it runs without it.",
            "plan:/ui == true",
            ["plan:/ui == true", "open_loops == 0"],
        ),
        "repeat": record(
            "Runs again until conditions on its artifact are met, before anything that needs it starts.",
            {
                "until": words("What has to be met.", "polish:/score >= 90"),
                "max": number("The most executions in a row.", 4, whole=True),
                "to": text(
                    "The step that gets a fix_request when that was not enough; else a person is asked.", "plan"
                ),
            },
            {"until": "polish:/score >= 90", "max": 4},
            required=["until", "max"],
        ),
        "run": _RUN,
        "agent": text(
            "Who does it: an agent CLI, human, python:module:function or a name from agents.", *AGENT_CLIS, "human"
        ),
        "agents": listed(
            "A ladder of agents: round 2 and later use the next one.", text("An agent."), ["coder", "claude"], least=1
        ),
        "report": either(
            "The evidence that decides its verdict, read by backedge itself.",
            choice("The kind of report.", *REPORTS),
            record(
                "The kind of report and its file.",
                {
                    "kind": choice("The kind of report.", *REPORTS),
                    "path": text("The file, relative to the workspace.", "build/junit.xml"),
                },
                required=["kind"],
            ),
            examples=("junit", {"kind": "junit", "path": "build/junit.xml"}),
        ),
        "accepts": either(
            "What its inputs must look like, checked before it runs: a JSON Schema, or a file with one, by producer.",
            path("A file with the JSON Schema of its only input.", "schemas/plan.json"),
            mapped(
                "JSON Schemas by producer.", either("A JSON Schema, or a file with one.", path("A file."), _OWN_SCHEMA)
            ),
        ),
        "schema": either(
            "What its output must look like: a JSON Schema, or a file with one.",
            path("A file with a JSON Schema.", "schemas/plan.json"),
            _OWN_SCHEMA,
        ),
        "reads": mapped(
            "The parts of its inputs, as JSON pointers by producer, whose change makes it run again.",
            listed(
                "JSON pointers.", text("A JSON pointer.", "/api", title="a JSON pointer like /api", pattern=_POINTER)
            ),
            {"plan": ["/units", "/api"]},
        ),
        "writes": listed(
            "The files that it may change, as globs in its workspace; [] means none.", text("A glob."), ["src/**"]
        ),
        "workspace": path("The folder that it works in; by default the folder of this file.", "services/api"),
        "passes_if": either(
            "When a judge passes, worked out from its findings: a rule's name, or how many of each severity still pass.",
            choice("A rule.", *PASS_RULES),
            record("How many findings still pass, by severity.", _COUNTS, minProperties=1),
            examples=("ai-sdlc", {"critical": 0, "high": 2}),
        ),
        "limits": record(
            "The limits of the loops that a judge starts, where they differ from the workflow's.",
            {name: schema for name, schema in _LIMITS.items() if name not in OF_THE_RUN},
        ),
        "approval": choice("Who has to approve each execution before it starts.", "human"),
        "plans": flag("It may add, replace and remove steps while the run goes on."),
        "on_doubt": choice("What becomes of an attempt that a crash left in doubt.", "ask", "rerun"),
        "idempotent": flag("An attempt that a crash left in doubt may simply be run again."),
        "complete": flag("A judge that lists all it sees: a finding that it does not repeat is fixed."),
        **_OPTIONS,
    },
    {"needs": ["design"], "run": ["python", "agents/code.py"]},
    oneOf=required_one("run", "agent", "agents"),
    **{"not": {"required": ["reviews", "tests"]}},
)

_ROUTE = record(
    "Findings that contain one of these words go to this phase or step.",
    {
        "to": text("A phase or a step.", "planning"),
        **{name: words(key.meaning, key.example) for name, key in ROUTE_KEYS.items()},
    },
    {"to": "planning", "category": "architecture"},
    required=["to"],
    anyOf=required_one(*ROUTE_KEYS),
)

_SEVERITY = text("How bad that is.", "high", title="a severity, such as critical, high, medium or low")
_REFERENCE = text("A place in the artifact of a step.", "test:/coverage", title="a reference like test:/coverage")

_CHECK = record(
    "Places in artifacts of different steps that have to agree, compared when these are done.",
    {
        "compare": listed("The places.", _REFERENCE, ["ux:/breakpoints", "arch:/breakpoints"], least=2),
        "rule": choice("How they have to agree.", *RULES),
        "compatible": record(
            "What goes together: by a table, or by a command that says pass or fail.",
            {
                "table": mapped("What goes with each value of the first place.", words("All that goes with it.")),
                "run": _RUN,
            },
            {"table": {"ie11": ["react17", "preact"]}},
            oneOf=required_one("table", "run"),
        ),
        "resolve": choice("Whether all agree on a position, or that of the first authority stands.", *RESOLUTIONS),
        "authority": words("The steps whose position stands, the first first.", ["ux", "arch"]),
        "severity": _SEVERITY,
    },
    {"compare": ["ux:/breakpoints", "arch:/breakpoints"], "rule": "equal"},
    required=["compare"],
)


def _threshold(description: str, *kinds: str) -> Schema:
    return {"description": description, "title": f"a {' or a '.join(kinds)}", "type": list(kinds)}


_GATE = record(
    "A metric that has to reach a threshold before anything that needs its subject goes on.",
    {
        "metric": either(
            "What is measured: a place in an artifact, or in a JSON report of the workspace.",
            _REFERENCE,
            record(
                "A report and the place in it.",
                {
                    "report": text("The file, relative to the folder of this file.", "coverage.json"),
                    "path": text(
                        "A JSON pointer.", "/totals/percent_covered", title="a JSON pointer", pattern=_POINTER
                    ),
                },
                required=["report"],
            ),
            examples=("test:/coverage", {"report": "coverage.json", "path": "/totals/percent_covered"}),
        ),
        "at_least": _threshold("The smallest value that passes.", "number", "string"),
        "at_most": _threshold("The largest value that passes.", "number", "string"),
        "equals": _threshold("The only value that passes.", "number", "string", "boolean"),
        "zero": {"description": "Nothing passes but none.", "title": "true", "type": "boolean", "const": True},
        "causes": {**_REFERENCE, "description": "A place with root causes, in the artifact of a step."},
        "requests": mapped(
            "What each step, or human, is asked for, in words of its own; else who made the metric gets it.",
            text("The request."),
            {"code": "add tests for the uncovered lines"},
        ),
        "needs": words("Steps that have to be done before it is measured.", "test"),
        "severity": _SEVERITY,
    },
    {"metric": "test:/coverage", "at_least": 80},
    required=["metric"],
    oneOf=required_one(*BOUNDS),
)

_STORIES = record(
    "The project has stories: Markdown files with front matter, each worked on by a run of its own.",
    {
        "folder": path("The folder with the stories.", "stories"),
        "worktree": flag("Each story is worked on in a git worktree of its own, on the branch story/ID."),
        "create_pr": arguments(
            "What ends a story that passed its reviews, as a last step: any program and its arguments; what it prints is its output.",
            ["gh", "pr", "create", "--fill"],
        ),
        "on_breach": choice(
            "What a story that hits a limit does to the others: manual waits for you, error ends with exit code 1, skip passes it over.",
            "manual",
            "error",
            "skip",
        ),
        "circuit_breaker": flag("Whether a story may be reworked only so often; rounds_total holds all the same."),
    },
    {"folder": "stories", "worktree": True},
)

_POLICY = "What becomes of findings that a judge could have made earlier"

SCHEMA: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "a workflow of backedge",
    **record(
        "A workflow: steps done by agents, and judges whose findings go back to the step that caused them.",
        {
            "name": text(
                "The name of the workflow; that of its folder, if not given.",
                "user-management",
                pattern=r"\S",
                title="a name",
            ),
            "profile": choice("The limits and habits to start from.", *PROFILES),
            "phases": listed(
                "The order of the phases; others that steps name come after these.",
                text("A phase."),
                ["planning", "code", "test"],
            ),
            "scope": choice("Which steps feedback may go to: those upstream, or any.", "upstream", "any"),
            "limits": record(
                "Bounds of the run and its loops; false switches one off.",
                _LIMITS,
                {"rounds_per_loop": 3, "cost_usd": 5},
            ),
            "routes": listed("Where findings go by category or keywords; the first match wins.", _ROUTE),
            "on_breach": choice("What happens when a limit is hit.", "manual", "error", "skip", "replan"),
            "new_findings": either(
                f"{_POLICY}: one policy, or one per severity.",
                choice("One policy for all.", *_POLICIES),
                record("Policies by severity.", {each.value: choice("The policy.", *_POLICIES) for each in Severity}),
                examples=("ask", {"medium": "rework"}),
            ),
            "agreement": choice(
                "How several targets of a choice agree: the first answer holds, all have to say the same, or the word of "
                "the first in authority holds.",
                "first",
                "all",
                "authority",
            ),
            "authority": words("Whose word holds first, where the agreement is authority.", ["architect", "pm"]),
            "kinds": mapped(
                "Kinds of feedback of its own: each behaves as one of ours and keeps its name in reports.",
                choice("The kind that it behaves as.", *map(str, Kind)),
                {"security_block": "fix_request"},
                keys=NAMES,
            ),
            "checks": mapped("Comparisons of artifacts, by name.", _CHECK, keys=NAMES),
            "gates": mapped("Thresholds of metrics, by name.", _GATE, keys=NAMES),
            "max_steps": number(
                "Where a step plans: the most steps that a run may ever have, removed and replaced ones included.",
                50,
                least=1,
                whole=True,
            ),
            "agents": mapped("Agents by the names that steps use.", _AGENT, keys=NAMES),
            "redact": listed(
                "Environment variables whose values, of 6 characters or more, are kept out of all that is written or shown.",
                text("A name.", title="the name of an environment variable", pattern=VARIABLE),
                ["ANTHROPIC_API_KEY"],
            ),
            "stories": _STORIES,
            "steps": mapped("The steps by name, in order.", _STEP, keys=NAMES, least=1),
        },
        required=["steps"],
    ),
}


def schema_text() -> str:
    """The JSON Schema as it is published."""
    return json.dumps(SCHEMA, indent=2, ensure_ascii=False) + "\n"
