"""What a workflow file may contain: the one source for the checker, the published JSON Schema and the reference."""

from __future__ import annotations

import json

from backedge.catalog import AGENT_CLIS, REPORTS, ROLES
from backedge.config.evidence import ROOMS, SANDBOXES
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
from backedge.core.workflow.notify import EXPIRY_CHOICES, OCCASIONS, QUIET
from backedge.core.workflow.profiles import PROFILES
from backedge.core.workflow.routes import ROUTE_KEYS

SCHEMA_FILE = "backedge.schema.json"
"""The file name of the published schema, beside a workflow file."""

EDITOR_LINE = f"# yaml-language-server: $schema={SCHEMA_FILE}\n"
"""As the first line of a workflow file, it lets editors complete and check the file."""

_POLICIES = ("rework", "defer", "ask")
_POINTER = "^(/([^~/]|~[01])*)*$"

_LIMITS: dict[str, Schema] = {name: limit(spec) for name, spec in LIMITS.items()}

_OPTIONS: dict[str, Schema] = {
    "model": text("The model that an agent CLI uses.", "sonnet"),
    "prompt": path(
        f"A file with the prompt of an agent CLI, or the role whose shipped prompt it gets ({', '.join(ROLES)}); "
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
        "group": text(
            "The set of steps that it belongs to; a step that needs the group needs all of them.", "design", **NAMES
        ),
        "when": words(
            "Runs only if these conditions hold; otherwise it is skipped, and what needs it runs without it.",
            "plan:/ui == true",
            ["plan:/ui == true", "open_loops == 0", "feedback_from:test > 0"],
        ),
        "repeat": record(
            "Repeats the step until conditions on its artifact hold, before anything that needs it starts.",
            {
                "until": words("The conditions.", "polish:/score >= 90"),
                "max": number("The most executions in a row.", 4, whole=True),
                "to": text(
                    "The step that gets a fix_request if the repeats are not enough; otherwise a person is asked.",
                    "plan",
                ),
            },
            {"until": "polish:/score >= 90", "max": 4},
            required=["until", "max"],
        ),
        "run": _RUN,
        "agent": text(
            "The agent that does it: an agent CLI, human, python:module:function or a name from agents.",
            *AGENT_CLIS,
            "human",
        ),
        "agents": either(
            "A ladder of agents: round 2 and later use the next one; or, for a judge, one for its verdicts and one that "
            "verifies fixes.",
            listed("A ladder.", text("An agent."), ["coder", "claude"], least=1),
            record(
                "The agents of a judge.",
                {
                    "first": text("Gives the first verdict, and that about every change for another reason."),
                    "verify": text("Verifies fixes of this judge's own findings: it may be cheaper."),
                },
                {"first": "reviewer", "verify": "quick-reviewer"},
                required=["first", "verify"],
            ),
            examples=(["coder", "claude"], {"first": "reviewer", "verify": "quick-reviewer"}),
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
            "The parts of its inputs that make it run again when they change, as JSON pointers by producer.",
            listed(
                "JSON pointers.", text("A JSON pointer.", "/api", title="a JSON pointer like /api", pattern=_POINTER)
            ),
            {"plan": ["/units", "/api"]},
        ),
        "writes": listed(
            "The files that it may change, as globs in its workspace; [] means none.", text("A glob."), ["src/**"]
        ),
        "workspace": path("The folder that it works in; by default the folder of this file.", "services/api"),
        "installs": flag("It may change installed packages and programs; judges run with what it leaves."),
        "room": choice("How this judge is kept apart from the workspace, if not as at the top.", *ROOMS),
        "sandbox": choice("What confines this agent, if not what the top says.", *SANDBOXES),
        "baseline": flag("Whether this judge runs once on the files of the start, if not as at the top."),
        "reruns": number(
            "How often this judge runs again while tests fail; a test that passes then is flaky.",
            2,
            least=0,
            whole=True,
        ),
        "keeps": listed(
            "The files that this judge may leave in the workspace, as globs; all others are dropped.",
            text("A glob."),
            ["coverage.json"],
        ),
        "passes_if": either(
            "When a judge passes, computed from its findings: a rule's name, or how many of each severity still pass.",
            choice("A rule.", *PASS_RULES),
            record("How many findings still pass, by severity.", _COUNTS, minProperties=1),
            examples=("ai-sdlc", {"critical": 0, "high": 2}),
        ),
        "limits": record(
            "The limits of the loops that a judge starts, where they differ from the workflow's.",
            {name: schema for name, schema in _LIMITS.items() if name not in OF_THE_RUN},
        ),
        "approval": either(
            "Asks a person for approval: before each execution, or of each result beyond a threshold before it is used: so "
            "many changed `files` or more, changes in these `paths`, or less `confidence` than this.",
            choice("Before each execution.", "human"),
            record(
                "Of the result.",
                {
                    "when": record(
                        "A person is asked if one of these is the case.",
                        {
                            "files": number(
                                "From how many changed files on, since a person last approved.", 10, least=1, whole=True
                            ),
                            "paths": words("Globs of files whose change needs approval.", ["infra/**"]),
                            "confidence": {
                                **number(
                                    "Below which confidence that the agent reports, from 0 to 1; also if it reports none."
                                ),
                                "maximum": 1,
                            },
                        },
                        {"files": 10, "paths": ["infra/**"], "confidence": 0.6},
                        minProperties=1,
                    )
                },
                required=["when"],
            ),
            examples=("human", {"when": {"files": 10, "confidence": 0.6}}),
        ),
        "plans": either(
            "It may add, replace and remove steps while the run goes on, but no judges of this file.",
            flag("Whether it may."),
            record(
                "What else it may change.",
                {"judges": flag("Whether it may replace and remove judges of this file too.")},
            ),
            examples=(True, {"judges": True}),
        ),
        "on_doubt": choice("What happens to an attempt that a crash left in doubt.", "ask", "rerun"),
        "idempotent": flag("An attempt that a crash left in doubt may run again."),
        "on_error": choice(
            "What happens to the files that a broken attempt has changed: they stay, or are restored before the next one; if "
            "neither is said, they are restored unless the next attempt continues the same conversation.",
            "keep",
            "restore",
        ),
        "on_worse": choice(
            "For a judge: what happens to a rework of its findings that leaves more or graver ones, if that differs from the "
            "workflow's.",
            "keep",
            "rollback",
        ),
        "hidden": flag(
            "A held-out judge: the steps that rework learn only that it failed; keep its files outside the workspace."
        ),
        "canary": flag(
            "Before this judge with `report: exitcode` passes, it must notice that a changed file is broken; if it does not, "
            "it is blind to that file."
        ),
        "for": words(
            "The roles of the people who are asked about this step; by default everybody.",
            "security",
            ["security", "legal"],
        ),
        "complete": flag("A judge that lists everything it finds: a finding that it does not repeat is fixed."),
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

_SEVERITY = text("The severity of a failure.", "high", title="a severity, such as critical, high, medium or low")
_REFERENCE = text("A location in the artifact of a step.", "test:/coverage", title="a reference like test:/coverage")

_CHECK = record(
    "Values in artifacts of different steps that must agree, compared when these steps are done.",
    {
        "compare": listed("The values.", _REFERENCE, ["ux:/breakpoints", "arch:/breakpoints"], least=2),
        "rule": choice("How they must agree.", *RULES),
        "compatible": record(
            "Which values are compatible: by a table, or by a command that says pass or fail.",
            {
                "table": mapped(
                    "The values that are compatible with each value of the first reference.", words("These values.")
                ),
                "run": _RUN,
            },
            {"table": {"ie11": ["react17", "preact"]}},
            oneOf=required_one("table", "run"),
        ),
        "resolve": choice(
            "How a disagreement ends: all agree on a position, or that of the first authority wins.", *RESOLUTIONS
        ),
        "authority": words("The steps whose position wins, in this order.", ["ux", "arch"]),
        "severity": _SEVERITY,
        "options": listed(
            "Ways to end a disagreement, for the steps that disagree and for people.",
            either(
                "An option.",
                text("What could be done.", "use polyfills"),
                record(
                    "What could be done, and what follows.",
                    {
                        "option": text("What could be done.", "use polyfills"),
                        "effort": text("How much work it is.", "low"),
                        "impact": text("What it means for the product.", "slower pages"),
                        "rework": words(
                            "The steps that rework if it is chosen; by default those that disagree.", ["arch"]
                        ),
                        "accept": flag("Whether choosing it accepts the disagreement: nothing is fixed."),
                    },
                    required=["option"],
                ),
            ),
            ["use polyfills"],
        ),
    },
    {"compare": ["ux:/breakpoints", "arch:/breakpoints"], "rule": "equal"},
    required=["compare"],
)


def _threshold(description: str, *kinds: str) -> Schema:
    return {"description": description, "title": f"a {' or a '.join(kinds)}", "type": list(kinds)}


_GATE = record(
    "A metric that must reach a threshold before anything that needs its subject starts.",
    {
        "metric": either(
            "What is measured: a location in an artifact, or in a JSON report in the workspace.",
            _REFERENCE,
            record(
                "A report and the location in it.",
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
        "zero": {"description": "Only 0 or an empty value passes.", "title": "true", "type": "boolean", "const": True},
        "causes": {**_REFERENCE, "description": "The location of a list of root causes, in the artifact of a step."},
        "requests": mapped(
            "The request to each step, or to human; otherwise the producer of the metric gets the feedback.",
            text("The request."),
            {"code": "add tests for the uncovered lines"},
        ),
        "needs": words("Steps that must be done before it is measured.", "test"),
        "severity": _SEVERITY,
    },
    {"metric": "test:/coverage", "at_least": 80},
    required=["metric"],
    oneOf=required_one(*BOUNDS),
)

_STORIES = record(
    "The project has stories: Markdown files with front matter, each worked on by a separate run.",
    {
        "folder": path("The folder with the stories.", "stories"),
        "worktree": flag("Each story has its own git worktree, on the branch story/ID."),
        "create_pr": arguments(
            "The last step of a story that passed its reviews: any program and its arguments; what it prints is its output.",
            ["gh", "pr", "create", "--fill"],
        ),
        "on_breach": choice(
            "What happens when a story hits a limit: manual waits for you, error ends with exit code 1, skip goes on with the others.",
            "manual",
            "error",
            "skip",
        ),
        "circuit_breaker": flag(
            "Whether the number of reworks of a story is limited; rounds_total applies in any case."
        ),
    },
    {"folder": "stories", "worktree": True},
)

_CHANNEL = record(
    "An address or a command that is told about questions.",
    {
        "to": text(
            "A web hook (https://…), or an address of another service as apprise writes it (slack://…, mailto://…); ${NAME} "
            "stands for an environment variable.",
            "${SLACK_URL}",
            "https://example.com/hook",
        ),
        "command": arguments(
            "A program and its arguments, with placeholders such as {title}; it gets the message as JSON on stdin.",
            ["notify-send", "{title}"],
        ),
        "on": listed(
            "What it is told; by default opened and expired, and its own reminders.",
            choice("An occasion.", *OCCASIONS),
            ["opened", "decided"],
            least=1,
        ),
        "for": text("The role whose questions it is told; by default all questions.", "security"),
        "remind": listed(
            "When to remind of a question that is still open, counted from when it was opened.",
            duration("A time.", "30m"),
            ["30m", "4h"],
        ),
        "quiet": text(
            "The hours in which nothing is sent, in local time or that of a zone: messages wait until they end.",
            "22:00-07:00",
            "22:00-07:00 Europe/Berlin",
            title="hours such as 22:00-07:00",
            pattern=QUIET,
        ),
        "secret": text(
            "The environment variable with the secret that signs messages to a web hook.",
            "HOOK_SECRET",
            title="the name of an environment variable",
            pattern=VARIABLE,
        ),
    },
    {"to": "${SLACK_URL}", "for": "security", "remind": ["30m", "4h"], "quiet": "22:00-07:00"},
    oneOf=required_one("to", "command"),
)

_POLICY = "What happens to findings that a judge could have made earlier"

SCHEMA: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "a workflow of backedge",
    **record(
        "A workflow: steps done by agents, and judges whose findings go back to the step that caused them.",
        {
            "name": text(
                "The name of the workflow; by default that of its folder.",
                "user-management",
                pattern=r"\S",
                title="a name",
            ),
            "profile": choice("The limits and other defaults to start from.", *PROFILES),
            "phases": listed(
                "The order of the phases; other phases that steps name come after these.",
                text("A phase."),
                ["planning", "code", "test"],
            ),
            "scope": choice("Which steps feedback may go to: those upstream, or any.", "upstream", "any"),
            "limits": record(
                "Bounds of the run and its loops; false switches one off.",
                _LIMITS,
                {"rounds_per_loop": 3, "cost_usd": 5},
            ),
            "routes": listed(f"Where findings go by {' or '.join(ROUTE_KEYS)}; the first match wins.", _ROUTE),
            "on_breach": choice("What happens when a limit is hit.", "manual", "error", "skip", "replan"),
            "new_findings": either(
                f"{_POLICY}: one policy, or one per severity.",
                choice("One policy for all.", *_POLICIES),
                record("Policies by severity.", {each.value: choice("The policy.", *_POLICIES) for each in Severity}),
                examples=("ask", {"medium": "rework"}),
            ),
            "agreement": choice(
                "How several targets of a choice agree: the first answer wins, all must give the same answer, or the first in "
                "authority decides.",
                "first",
                "all",
                "authority",
            ),
            "authority": words(
                "The steps that decide, highest first, if the agreement is authority.", ["architect", "pm"]
            ),
            "kinds": mapped(
                "Your own kinds of feedback: each behaves like a built-in kind and keeps its name in reports.",
                choice("The kind that it behaves as.", *map(str, Kind)),
                {"security_block": "fix_request"},
                keys=NAMES,
            ),
            "checks": mapped("Comparisons of artifacts, by name.", _CHECK, keys=NAMES),
            "gates": mapped("Thresholds of metrics, by name.", _GATE, keys=NAMES),
            "on_protected": choice(
                "What a change of tests or of the configuration of judges needs if a judge asks about it: the approval of a "
                "reviewer, or of a person if there is none; always that of a person; or it is a finding.",
                "review",
                "ask",
                "refuse",
            ),
            "on_error": choice(
                "What happens to the files that broken attempts have changed, for all steps that do not say it themselves.",
                "keep",
                "restore",
            ),
            "on_worse": choice(
                "What happens to a rework that leaves more or graver findings than there were before it: it stays, or the "
                "version before it is restored, and the next round starts from that.",
                "keep",
                "rollback",
            ),
            "max_steps": number(
                "With a planning step: the most steps that a run may ever have, including removed and replaced ones.",
                50,
                least=1,
                whole=True,
            ),
            "protects": either(
                "The files that judges rely on, whose changes have to be approved: tests, and the configuration of judges.",
                choice("The default set.", "default"),
                {"description": "Nothing is protected.", "title": "false", "type": "boolean", "const": False},
                record(
                    "The default set, with more files and without some.",
                    {
                        "add": listed("More protected files, as globs.", text("A glob."), ["golden/**"]),
                        "except": listed("Files that are not protected, as globs.", text("A glob."), ["package.json"]),
                    },
                    minProperties=1,
                ),
                examples=("default", {"add": ["golden/**"], "except": ["package.json"]}),
            ),
            "room": choice("How tool judges are kept apart from the workspace.", *ROOMS),
            "sandbox": choice("What confines agents that are commands; auto: bubblewrap, where it works.", *SANDBOXES),
            "baseline": flag("Whether tool judges run once on the files of the start, before anything changes them."),
            "agents": mapped("Agents by the names that steps use.", _AGENT, keys=NAMES),
            "prices": mapped(
                "Prices of models, for agents that report tokens and no cost (codex, gemini): US dollars per million tokens, "
                "by the `model` of the agent, or by the name of its CLI.",
                record(
                    "The price of a model.",
                    {
                        "input": number("For tokens that it reads.", 1.25, least=0),
                        "cached_input": number("For tokens that it reads from its cache.", 0.125, least=0),
                        "output": number("For tokens that it writes.", 10, least=0),
                    },
                    required=["input", "output"],
                ),
                {"gpt-5-codex": {"input": 1.25, "cached_input": 0.125, "output": 10}},
            ),
            "redact": listed(
                "Environment variables whose values, of 6 characters or more, are removed from everything written or shown.",
                text("A name.", title="the name of an environment variable", pattern=VARIABLE),
                ["ANTHROPIC_API_KEY"],
            ),
            "roles": mapped(
                "The roles of people, each with the categories of findings that it is asked about.",
                words("The categories; [] if only steps name the role.", ["authorization", "injection"]),
                {"security": ["authorization", "injection"], "legal": []},
                keys=NAMES,
            ),
            "notify": listed("The channels on which people are told about questions.", _CHANNEL),
            "expire": record(
                "What happens to a question that no person answers; where this may not decide, people are reminded once.",
                {
                    "after": duration("How long people have to answer.", "24h"),
                    "choice": choice(
                        "The choice that is then made: never accept or cancel for anything critical.", *EXPIRY_CHOICES
                    ),
                    "only": listed(
                        "The severities that it decides; by default medium and low.",
                        choice("A severity.", *map(str, Severity)),
                        ["medium", "low"],
                    ),
                },
                {"after": "24h", "choice": "skip", "only": ["medium", "low"]},
                required=["after", "choice"],
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
