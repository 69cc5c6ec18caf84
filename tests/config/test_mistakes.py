"""Each typical mistake once: the exact line and column, the key, and a sentence that says what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from backedge.core.workflow.routes import ROUTE_KEYS
from tests.config.files import EXAMPLE, problems, step

ROUTE_WORDS = " or ".join(f"`{key}`" for key in ROUTE_KEYS)
FINE = "name: w\nsteps: {a: {run: [x]}}\n"


def judge(more: str, word: str = "y") -> str:
    """A file with a judge `t` of one line, the fourth."""
    return f"name: w\nsteps:\n  a: {{run: [x]}}\n  t: {{tests: a, run: [x, {word}], {more}}}\n"


MISTAKES: list[tuple[str, str, list[str]]] = [
    ("empty", "", ["1:1: the file is empty: `backedge init` writes one to start from"]),
    ("only a comment", "# hm\n", ["1:1: the file is empty: `backedge init` writes one to start from"]),
    (
        "a list",
        "- a\n",
        ["1:1: expected `steps: …` at the top: `backedge init` writes an example"],
    ),
    (
        "nothing required is there",
        "scope: any\n",
        ["1:1: steps: missing: expected a mapping (key: value)"],
    ),
    ("no name", "name:\nsteps: {a: {run: [x]}}\n", ["1:1: name: got nothing, expected a name"]),
    ("blank name", "name: ' '\nsteps: {a: {run: [x]}}\n", ["1:7: name: got the text ' ', expected a name"]),
    ("no steps", "name: w\nsteps: {}\n", ["2:8: steps: got an empty mapping, expected at least one entry"]),
    (
        "steps as a list",
        "name: w\nsteps:\n  - a: {run: [x]}\n",
        ["3:3: steps: got a list, expected a mapping (key: value): write `name: …` lines, without dashes"],
    ),
    (
        "a step without anything",
        "name: w\nsteps:\n  a:\n",
        ["3:3: steps.a: got nothing, expected a mapping (key: value)"],
    ),
    ("misspelt key", "name: w\nstps: {a: {run: [x]}}\n", ["2:1: stps: unknown key: did you mean 'steps'?"]),
    ("capital key", "Name: w\nsteps: {a: {run: [x]}}\n", ["1:1: Name: unknown key: did you mean 'name'?"]),
    (
        "misspelt key of a step",
        step(run="[x]", nedds="[b]"),
        ["5:5: steps.a.nedds: unknown key: did you mean 'needs'?"],
    ),
    (
        "the key of another tool",
        step(run="[x]", depends_on="[b]"),
        ["5:5: steps.a.depends_on: unknown key: did you mean 'needs'?"],
    ),
    ("a command by another name", step(command="[x]"), ["4:5: steps.a.command: unknown key: did you mean 'run'?"]),
    (
        "hyphens",
        step(run="[x]", on_doubt="ask") + "on-breach: skip\n",
        ["6:1: on-breach: unknown key: did you mean 'on_breach'?"],
    ),
    (
        "a condition that says nothing",
        step(run="[x]", when="b:/x = 1"),
        ["5:5: steps.a.when: step 'a' has when: condition 'b:/x = 1' has the unknown operator '=': did you mean '=='?"],
    ),
    (
        "a condition on a step that runs later",
        step(run="[x]", when="b:/x") + "  b: {needs: a, run: [x]}\n",
        [
            "5:5: steps.a.when: step 'a' has a when condition on 'b', which does not run before it: add that step to needs"
        ],
    ),
    (
        "a repetition without an end",
        step(run="[x]", repeat="{until: 'a:/x'}"),
        ["5:5: steps.a.repeat.max: missing: expected a whole number above 0"],
    ),
    (
        "a group that is a step",
        step(run="[x]", group="a"),
        ["5:5: steps.a.group: step 'a' has group 'a', which is the name of a step: rename one of them"],
    ),
    (
        "a key like no other",
        FINE + "zzz: 1\n",
        [
            "3:1: zzz: unknown key: use one of: name, profile, phases, scope, limits, routes, on_breach, new_findings, "
            "agreement, authority, kinds, checks, gates, on_protected, on_error, on_worse, max_steps, protects, room, sandbox, "
            "baseline, agents, prices, redact, roles, notify, expire, stories, steps"
        ],
    ),
    (
        "a channel without an address",
        FINE + "notify: [{on: [opened]}]\n",
        ["3:10: notify[0]: missing: expected to or command"],
    ),
    (
        "a misspelt occasion",
        FINE + "notify:\n  - {to: x, on: [open]}\n",
        ["4:18: notify[0].on[0]: got the text 'open': did you mean 'opened'?"],
    ),
    (
        "a misspelt key of a channel",
        FINE + "notify:\n  - {to: x, reminds: [30m]}\n",
        ["4:13: notify[0].reminds: unknown key: did you mean 'remind'?"],
    ),
    (
        "quiet hours that are none",
        FINE + "notify:\n  - {to: x, quiet: 22-7}\n",
        ["4:20: notify[0].quiet: got the text '22-7', expected hours such as 22:00-07:00"],
    ),
    (
        "quiet hours in a zone that does not exist",
        FINE + "notify:\n  - {to: x, quiet: 22:00-07:00 Europe/Berlim}\n",
        ["4:20: notify[0].quiet: unknown time zone 'Europe/Berlim': use a name such as Europe/Berlin"],
    ),
    (
        "a channel for a role that nobody has",
        "name: w\nsteps: {a: {run: [x], for: security}}\nnotify:\n  - {to: x, for: secuirty}\n",
        ["4:18: notify[0].for: notify 1 is for 'secuirty', but no question is: did you mean 'security'?"],
    ),
    (
        "a step for a role that is not declared",
        "name: w\nsteps: {a: {run: [x], for: secuirty}}\nroles: {security: []}\n",
        ["2:23: steps.a.for: step 'a' is for 'secuirty', which is not in roles: did you mean 'security'?"],
    ),
    (
        "an expiry that would go on for ever",
        FINE + "expire: {after: 24h, choice: continue}\n",
        ["3:30: expire.choice: got the text 'continue': use one of: skip, accept, cancel"],
    ),
    (
        "an expiry without a time",
        FINE + "expire: {choice: skip, only: [hihg]}\n",
        [
            "3:1: expire.after: missing: expected a number above 0, or text like 90s, 10m or 1h",
            "3:31: expire.only[0]: got the text 'hihg': did you mean 'high'?",
        ],
    ),
    (
        "a key twice",
        step(run="[x]") + "name: v\n",
        ["5:1: name: is defined twice, in line 1, column 1 and in line 5, column 1: keep one"],
    ),
    (
        "a step twice",
        "name: w\nsteps:\n  a: {run: [x]}\n  a: {run: [y]}\n",
        ["4:3: steps.a: is defined twice, in line 3, column 3 and in line 4, column 3: keep one"],
    ),
    (
        "a shell line",
        step(run="pytest -q"),
        ["4:10: steps.a.run: got the text 'pytest -q': write a list: [pytest, -q]"],
    ),
    (
        "a shell line that is not so simple",
        step(run="'make && make test'"),
        ["4:10: steps.a.run: got the text 'make && make test': write a list: [pytest, -q]"],
    ),
    (
        "nothing to run",
        step(run="[]"),
        ["4:10: steps.a.run: got an empty list, expected a list with at least one entry"],
    ),
    (
        "an empty program",
        step(run="['', x]"),
        ["4:11: steps.a.run[0]: got an empty text, expected a program: name the program to start"],
    ),
    (
        "braces without quotes",
        step(run="[pytest, {report}]"),
        ['4:19: steps.a.run[1]: got a mapping, expected text: write "{report}" in quotes'],
    ),
    (
        "a switch as an argument",
        step(run="[x, true]"),
        ['4:14: steps.a.run[1]: got true, expected text: write "true" in quotes'],
    ),
    ("nobody does it", step(phase="code"), ["3:3: steps.a: missing: expected one of run, agent or agents"]),
    (
        "two do it",
        step(run="[x]", agent="claude"),
        ["5:5: steps.a.agent: cannot be combined with run: keep one of run, agent or agents"],
    ),
    (
        "it reviews and tests",
        "name: w\nsteps:\n  b: {run: [x]}\n  a: {run: [x], reviews: b, tests: b}\n",
        ["4:29: steps.a.tests: cannot be combined with reviews: keep one, or make it two steps"],
    ),
    ("unknown agent", step(agent="cluade"), ["4:12: steps.a.agent: unknown agent 'cluade': did you mean 'claude'?"]),
    (
        "unknown rung",
        "name: w\nagents: {coder: {cli: codex}}\nsteps:\n  a: {agents: [coder, coder2]}\n",
        ["4:23: steps.a.agents[1]: unknown agent 'coder2': did you mean 'coder'?"],
    ),
    (
        "a command as an agent",
        step(agent="python agents/x.py"),
        [
            "4:12: steps.a.agent: got 'python agents/x.py', expected the name of an agent: a command goes into `run`, "
            "as a list"
        ],
    ),
    (
        "a function without a module",
        step(agent="python:work"),
        ["4:12: steps.a.agent: got 'python:work', expected python:module:function"],
    ),
    (
        "a function and a line break",
        step(agent='"python:m:f\\n"'),
        ["4:12: steps.a.agent: got 'python:m:f\\n', expected python:module:function"],
    ),
    (
        "a function in another notation",
        "name: w\nagents: {x: {python: agents.x.work}}\nsteps: {a: {agent: x}}\n",
        ["2:22: agents.x.python: got the text 'agents.x.work', expected module:function"],
    ),
    (
        "an agent of two kinds",
        "name: w\nagents: {x: {cli: claude, human: true}}\nsteps: {a: {agent: x}}\n",
        ["2:27: agents.x.human: cannot be combined with cli: keep one of run, cli, python or human"],
    ),
    (
        "an agent of no kind",
        "name: w\nagents: {x: {model: opus}}\nsteps: {a: {agent: x}}\n",
        ["2:10: agents.x: missing: expected one of run, cli, python or human"],
    ),
    (
        "an unknown CLI",
        "name: w\nagents: {x: {cli: claud, model: m}}\nsteps: {a: {agent: x, max_turns: 3}}\n",
        ["2:19: agents.x.cli: got the text 'claud': did you mean 'claude'?"],
    ),
    (
        "the person as a name",
        "name: w\nagents: {human: {cli: claude}}\nsteps: {a: {agent: human}}\n",
        ["2:10: agents.human: is a reserved name: it is the person behind the inbox"],
    ),
    (
        "human: false",
        "name: w\nagents: {x: {human: no}}\nsteps: {a: {agent: x}}\n",
        ["2:21: agents.x.human: got the text 'no', expected true"],
    ),
    (
        "an option that nothing would keep",
        step(run="[x]", max_budget_usd="1"),
        ["5:5: steps.a.max_budget_usd: has no effect on a command: remove it, or use another agent"],
    ),
    (
        "an option for the wrong agent",
        "name: w\nagents: {x: {python: 'm:f', env: {A: b}}}\nsteps: {a: {agent: human, model: m}, b: {agent: x}}\n",
        [
            "2:29: agents.x.env: has no effect on a Python function: remove it, or use another agent",
            "3:27: steps.a.model: has no effect on a person: remove it, or use another agent",
        ],
    ),
    (
        "off is text",
        FINE + "limits: {same_finding: off}\n",
        [
            "3:24: limits.same_finding: got the text 'off', expected a whole number of 1 or more, or false to switch it "
            "off: write false"
        ],
    ),
    (
        "on is no bound",
        FINE + "limits: {no_change: on}\n",
        ["3:21: limits.no_change: got the text 'on', expected a whole number of 0 or more, or false to switch it off"],
    ),
    (
        "true is no bound",
        FINE + "limits: {no_change: true}\n",
        ["3:21: limits.no_change: got true, expected a whole number of 0 or more, or false to switch it off"],
    ),
    (
        "an empty limit",
        FINE + "limits:\n  tokens:\n",
        ["4:3: limits.tokens: got nothing, expected a whole number of 1 or more, or false to switch it off"],
    ),
    (
        "half a round",
        FINE + "limits: {rounds_total: 1.5}\n",
        [
            "3:24: limits.rounds_total: got the number 1.5, expected a whole number of 0 or more, or false to switch it off"
        ],
    ),
    (
        "no attempts at all",
        FINE + "limits: {attempts: 0}\n",
        ["3:20: limits.attempts: got the number 0, expected a whole number of 1 or more, or false to switch it off"],
    ),
    (
        "more than anybody means",
        FINE + "limits: {tokens: 10000000000000}\n",
        [
            "3:18: limits.tokens: got the number 10000000000000, expected a whole number of 1 or more, or false to switch "
            "it off: the largest is 1000000000000"
        ],
    ),
    (
        "a number in quotes",
        FINE + "limits: {rounds_total: '3'}\n",
        [
            "3:24: limits.rounds_total: got the text '3', expected a whole number of 0 or more, or false to switch it "
            "off: write 3 without quotes"
        ],
    ),
    (
        "an infinite limit",
        FINE + "limits: {tokens: .inf}\n",
        ["3:18: limits.tokens: is not a finite number: write a number, or false to switch a limit off"],
    ),
    (
        "a misspelt limit",
        FINE + "limits: {round_per_loop: 3}\n",
        ["3:10: limits.round_per_loop: unknown key: did you mean 'rounds_per_loop'?"],
    ),
    (
        "diverging has no number",
        FINE + "limits: {diverging: yes}\n",
        ["3:21: limits.diverging: got the text 'yes', expected true or false: write true"],
    ),
    (
        "a duration without a unit it knows",
        step(run="[x]", timeout="90sec"),
        ["5:14: steps.a.timeout: got the text '90sec', expected a number above 0, or text like 90s, 10m or 1h"],
    ),
    (
        "no time",
        step(run="[x]", timeout="0s"),
        [
            "5:14: steps.a.timeout: got the text '0s', expected a number above 0, or text like 90s, 10m or 1h: leave it out if nothing should be stopped"
        ],
    ),
    ("a misspelt word", FINE + "scope: upstraem\n", ["3:8: scope: got the text 'upstraem': did you mean 'upstream'?"]),
    (
        "a word that is none",
        FINE + "on_breach: retry\n",
        ["3:12: on_breach: got the text 'retry': use one of: manual, error, skip, replan"],
    ),
    ("an unknown profile", FINE + "profile: bmat\n", ["3:10: profile: got the text 'bmat': did you mean 'bmad'?"]),
    (
        "an unknown policy",
        FINE + "new_findings: {low: ignore}\n",
        ["3:21: new_findings.low: got the text 'ignore': use one of: rework, defer, ask"],
    ),
    (
        "a severity that is none",
        FINE + "new_findings: {hihg: ask}\n",
        ["3:16: new_findings.hihg: unknown key: did you mean 'high'?"],
    ),
    (
        "a switch as text",
        step(run="[x]", idempotent="yes"),
        ["5:17: steps.a.idempotent: got the text 'yes', expected true or false: write true"],
    ),
    (
        "a bad name of a step",
        "name: w\nsteps:\n  my step: {run: [x]}\n",
        ["3:3: steps.'my step': got the name 'my step', expected a name of letters, digits, _ - and ."],
    ),
    (
        "a number as a name",
        "name: w\nsteps:\n  1: {run: [x]}\n",
        ['3:3: steps: the key 1 is not text: write "1" in quotes'],
    ),
    (
        "the reserved name of a step",
        "name: w\nsteps:\n  human: {run: [x]}\n",
        [
            "3:3: steps.human: step 'human' has a reserved name, which stands for the person who answers the inbox: rename it"
        ],
    ),
    (
        "a secret instead of its name",
        FINE + "redact: [sk-ant-secret]\n",
        ["3:10: redact[0]: got a text, expected the name of an environment variable"],
    ),
    (
        "a switch in the environment",
        step(run="[x]", env="{DEBUG: true}"),
        ['5:18: steps.a.env.DEBUG: got true, expected text: write "true" in quotes'],
    ),
    (
        "a variable of the protocol",
        step(run="[x]", env="{BACKEDGE_RUN: x}"),
        ["5:11: steps.a.env.BACKEDGE_RUN: got the name 'BACKEDGE_RUN', expected the name of an environment variable"],
    ),
    (
        "an unknown report",
        step(run="[x]", report="junti"),
        ["5:13: steps.a.report: got the text 'junti': did you mean 'junit'?"],
    ),
    (
        "a report without a kind",
        step(run="[x]", report="{path: x.xml}"),
        [
            "5:5: steps.a.report.kind: missing: expected one of junit, unittest, node, jest, gotest, cargo, tap, sarif, json, exitcode"
        ],
    ),
    (
        "an exit code with a file",
        judge("report: {kind: exitcode, path: x}"),
        ["4:55: steps.t.report.path: an exit code has no file: remove the path"],
    ),
    (
        "a printed report with a file",
        judge("report: {kind: cargo, path: x}"),
        ["4:52: steps.t.report.path: the report cargo is read from stdout: remove the path"],
    ),
    (
        "a route without a word",
        FINE + "routes: [{to: a, category: x}, {to: planning, category: []}]\n",
        [f"3:37: routes[1].to: a route to 'planning' matches nothing: give it {ROUTE_WORDS}"],
    ),
    (
        "a pointer that is none",
        "name: w\nsteps:\n  p: {run: [x]}\n  a: {run: [x], needs: p, reads: {p: [units]}}\n",
        ["4:39: steps.a.reads.p[0]: got the text 'units', expected a JSON pointer like /api"],
    ),
    (
        "a glob that leaves",
        step(run="[x]", writes="[../x, /etc/*]"),
        [
            "5:14: steps.a.writes[0]: got '../x', which leaves the workspace: use a glob inside it",
            "5:20: steps.a.writes[1]: got '/etc/*', which leaves the workspace: use a glob inside it",
        ],
    ),
    (
        "a glob without quotes",
        step(run="[x]", writes="[*.py]"),
        ["5:14: steps.a.writes[0]: there is no anchor &.py above: put text that starts with * in quotes"],
    ),
    (
        "a report of a step that judges nothing",
        step(run="[x]", report="junit"),
        [
            "5:5: steps.a.report: is only for judges, but the step judges nothing: "
            "add `tests` or `reviews`, or remove it"
        ],
    ),
    (
        "a report of an agent that leaves none",
        "name: w\nsteps:\n  a: {run: [x]}\n  t: {tests: a, agent: human, report: junit}\n",
        ["4:31: steps.t.report: has no effect: only commands write a report, and no agent of this step is a command"],
    ),
    (
        "a command that writes a report that nobody reads",
        "name: w\nsteps:\n  a: {run: [x]}\n  t: {tests: a, run: [pytest, '--junitxml={report}']}\n",
        ["4:31: steps.t.run[1]: the command uses {report}, but the step has no report: set `report`"],
    ),
    (
        "a report file of an exit code",
        judge("report: exitcode", "'{report}'"),
        ["4:26: steps.t.run[1]: the command uses {report}, but an exit code has no file: set `report`"],
    ),
    (
        "an agent that writes a report for a step that has none",
        "name: w\nagents: {tool: {run: [x, '{report}']}}\nsteps:\n  a: {run: [x]}\n  t: {tests: a, agent: tool}\n",
        ["5:24: steps.t.agent: the command uses {report}, but the step has no report: set `report`"],
    ),
    (
        "a schema that is none",
        step(run="[x]", schema="{type: objekt, properties: {a: {minimum: low}}}"),
        [
            "5:20: steps.a.schema.type: is not legal in a JSON Schema: 'objekt' is not one of "
            "['array', 'boolean', 'integer', 'null', 'number', 'object', 'string']",
            "5:54: steps.a.schema.properties.a.minimum: is not legal in a JSON Schema: 'low' is not of type 'number'",
        ],
    ),
    (
        "a pattern that is none",
        step(run="[x]", schema='{pattern: "("}'),
        ["5:23: steps.a.schema.pattern: is not legal in a JSON Schema: '(' is not a 'regex'"],
    ),
    (
        "a reference to nothing",
        step(run="[x]", schema='{$ref: "#/$defs/unit"}'),
        [
            "5:20: steps.a.schema.$ref: got '#/$defs/unit', which the schema does not contain: "
            "add it to the schema (nothing is downloaded)"
        ],
    ),
    (
        "a version of JSON Schema that is none",
        step(run="[x]", schema="{$schema: http://example.com/x}"),
        [
            "5:23: steps.a.schema.$schema: got 'http://example.com/x', which is not a version of JSON Schema: "
            "remove it, or correct it"
        ],
    ),
    (
        "what it accepts is no schema",
        "name: w\nsteps:\n  p: {run: [x]}\n  a: {run: [x], needs: p, accepts: {p: {required: units}}}\n",
        ["4:51: steps.a.accepts.p.required: is not legal in a JSON Schema: 'units' is not of type 'array'"],
    ),
]


@pytest.mark.parametrize(("text", "expected"), [each[1:] for each in MISTAKES], ids=[each[0] for each in MISTAKES])
def test_a_mistake_is_located_and_explained(text: str, expected: list[str], tmp_path: Path) -> None:
    assert problems(text, tmp_path) == expected


JUDGE = "name: w\nsteps:\n  a: {phase: code, run: [x]}\n"

WHOLE: list[tuple[str, str, list[str]]] = [
    (
        "needs a stranger",
        JUDGE + "  b: {run: [x], needs: [a, aa]}\n",
        ["4:28: steps.b.needs[1]: step 'b' needs 'aa', which does not exist: did you mean 'a'?"],
    ),
    (
        "needs itself",
        JUDGE + "  b: {run: [x], needs: b}\n",
        ["4:24: steps.b.needs: step 'b' needs itself: remove its own name"],
    ),
    (
        "reviews a stranger",
        JUDGE + "  b: {run: [x], reviews: c}\n",
        ["4:26: steps.b.reviews: step 'b' judges 'c', which does not exist: use one of: a, b"],
    ),
    (
        "tests a judge",
        JUDGE + "  b: {run: [x], reviews: a}\n  c: {run: [x], tests: [b]}\n",
        ["5:25: steps.c.tests[0]: step 'c' judges 'b', which is a judge: name the step that it judges"],
    ),
    (
        "reads without needing",
        JUDGE + "  b: {run: [x], reads: {a: [/x]}}\n",
        ["4:25: steps.b.reads.a: step 'b' reads 'a' without needing it: add it to needs"],
    ),
    (
        "a circle",
        "name: w\nsteps:\n  a: {run: [x], needs: c}\n  b: {run: [x], needs: a}\n  c: {run: [x], needs: [b]}\n",
        ["4:24: steps.b.needs: steps need each other in a circle: a → b → c → a; remove one of these needs"],
    ),
    (
        "against the phases",
        JUDGE + "  b: {phase: planning, run: [x], needs: a}\n",
        [
            "4:41: steps.b.needs: step 'b' (phase planning) needs 'a' of the later phase code: change one of the phases, "
            "or order them with `phases`"
        ],
    ),
    (
        "a phase twice",
        JUDGE + "phases: [code, test, code]\n",
        ["4:22: phases[2]: phase 'code' is listed twice in phases: remove one of them"],
    ),
    (
        "a rule for somebody who judges nothing",
        JUDGE + "  b: {run: [x], passes_if: ai-sdlc}\n",
        ["4:17: steps.b.passes_if: step 'b' has passes_if but is not a judge: remove it, or add `reviews` or `tests`"],
    ),
    (
        "limits for somebody who judges nothing",
        JUDGE + "  b: {run: [x], limits: {no_change: 1}}\n",
        [
            "4:17: steps.b.limits: step 'b' has limits but is not a judge: set them on a judge, or in the limits of the workflow"
        ],
    ),
    (
        "a budget of a judge",
        JUDGE + "  b: {run: [x], reviews: a, limits: {cost_usd: 1}}\n",
        ["4:38: steps.b.limits.cost_usd: unknown key: it limits the whole run, so set it in `limits` at the top"],
    ),
    (
        "a route to nowhere",
        JUDGE + "routes: [{to: a, keywords: x}, {to: b, keywords: x}]\n",
        [
            "4:37: routes[1].to: a route leads to 'b', which is not a step or a phase: use one of: a, research, planning, "
            "design, code, test"
        ],
    ),
    (
        "a route to a judge",
        JUDGE + "  b: {run: [x], reviews: a}\nroutes: [{to: b, keywords: x}]\n",
        ["5:15: routes[0].to: a route leads to 'b', which is a judge: name the step that should fix it"],
    ),
    (
        "a route of the profile to a judge",
        JUDGE + "  research: {run: [x], reviews: a}\nprofile: ai-sdlc\n",
        ["5:10: profile: a route leads to 'research', which is a judge: name the step that should fix it"],
    ),
    (
        "a route that looks for nothing",
        JUDGE + "routes: [{to: a, keywords: x}, {to: a, keywords: '-'}]\n",
        ["4:37: routes[1].to: a route to 'a' looks for '-' in keywords: expected a word"],
    ),
    (
        "a decision by a stranger",
        JUDGE + "agreement: authority\nauthority: [a, x]\n",
        ["5:16: authority[1]: authority names 'x', which is not a step: use one of: a, human"],
    ),
    (
        "a decision by nobody",
        JUDGE + "agreement: authority\n",
        [
            "4:12: agreement: agreement is 'authority', but authority is empty: list the steps that decide, highest first"
        ],
    ),
    (
        "a kind that exists",
        JUDGE + "kinds: {fix_request: test_failure}\n",
        ["4:9: kinds.fix_request: kind 'fix_request' in kinds has the name of a built-in kind: choose another name"],
    ),
    (
        "a gate on a stranger",
        JUDGE + "gates: {cover: {metric: 'b:/x', at_least: 1}}\n",
        ["4:9: gates.cover: gate 'cover' names 'b', which does not exist: use one of: a"],
    ),
    (
        "a check that compares nothing",
        JUDGE + "checks: {same: {compare: ['a:/x', 'a:/y'], rule: compatible}}\n",
        [
            "4:10: checks.same: check 'same' has rule 'compatible': give `compatible` a table or a command if, and only if, the rule is 'compatible'"
        ],
    ),
    (
        "a condition on a later step",
        JUDGE + "  b: {run: [x], when: 'a:/x == 1'}\n",
        [
            "4:17: steps.b.when: step 'b' has a when condition on 'a', which does not run before it: add that step to needs"
        ],
    ),
    (
        "a mistake, but not what it causes",
        JUDGE + "  b: {phase: planning, run: [x], needs: a}\nphases: planning, code\n",
        ["5:9: phases: got the text 'planning, code': write a list: [planning, code]"],
    ),
    (
        "nothing bounds it",
        JUDGE + "limits: {rounds_total: false}\n",
        [
            "4:1: limits: nothing bounds this workflow: set limits.attempts, or errors_in_a_row together with one of "
            "rounds_total, rounds_per_step and rounds_per_pair"
        ],
    ),
    (
        "accepts what it does not need",
        JUDGE + "  b: {run: [x], needs: a, accepts: {type: object}}\n",
        [
            "4:37: steps.b.accepts.type: the step does not need 'type': use one of: a",
            "4:43: steps.b.accepts.type: got 'object', which is not a file here: create it, or correct the path",
        ],
    ),
]


@pytest.mark.parametrize(("text", "expected"), [each[1:] for each in WHOLE], ids=[each[0] for each in WHOLE])
def test_what_is_wrong_with_the_whole_is_located_too(text: str, expected: list[str], tmp_path: Path) -> None:
    assert problems(text, tmp_path) == expected


def test_all_problems_are_told_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = (
        EXAMPLE.replace("profile: default", "profil: default")
        .replace("cost_usd: 5", "cost_usd: off")
        .replace("needs: [plan]", "needs: [pln]")
        .replace("reviews: design,", "reviews: design, tests: design,")
        .replace("report: junit", "report: xml, report: junit")
        .replace("phase: code, needs: [design]", "phase: research, needs: [design]")
        .replace("agent: claude", "agent: claud")
    )
    assert [line.split(": ", 2)[:2] for line in problems(text, tmp_path)] == [
        ["2:1", "profil"],
        ["3:40", "limits.cost_usd"],
        ["6:42", "steps.design.needs[0]"],
        ["7:36", "steps.design_review.tests"],
        ["8:44", "steps.code.needs[0]"],
        ["8:60", "steps.code.agent"],
        ["8:75", "steps.code.prompt"],
        ["9:79", "steps.test.report"],
        ["9:84", "steps.test.report"],
    ]


def test_what_only_follows_from_a_flaw_is_not_told(tmp_path: Path) -> None:
    misspelt = JUDGE + "  b: {run: [x], revews: a, passes_if: ai-sdlc, limits: {no_change: 1}, accepts: {a: {}}}\n"
    assert problems(misspelt, tmp_path) == ["4:17: steps.b.revews: unknown key: did you mean 'reviews'?"]
    unknown = JUDGE + "  b: {run: [x], reviews: aa, passes_if: ai-sdlc}\n"
    assert len(problems(unknown, tmp_path)) == 1
    phases = JUDGE + "  b: {phase: planning, run: [x], needs: a}\nphases: code, planning\n"
    assert problems(phases, tmp_path) == ["5:9: phases: got the text 'code, planning': write a list: [code, planning]"]


@pytest.mark.parametrize("value", ["0", "true", "false", '"0s"'])
def test_a_timeout_of_nothing_is_told_how_to_have_none(value: str, tmp_path: Path) -> None:
    (said,) = problems(step(run="[x]", timeout=value), tmp_path)
    assert said.endswith(": leave it out if nothing should be stopped")


def test_a_limit_that_is_no_bound_is_named_where_it_stands(tmp_path: Path) -> None:
    text = "name: w\nlimits: {wall_clock: 0, cost_usd: 0, tokens: 0}\nsteps: {a: {run: [x]}}\n"
    assert problems(text, tmp_path) == [
        "2:22: limits.wall_clock: got the number 0, expected a number above 0, or text like 90s, 10m or 1h, or false to "
        "switch it off",
        "2:35: limits.cost_usd: got the number 0, expected a number above 0, or false to switch it off",
        "2:46: limits.tokens: got the number 0, expected a whole number of 1 or more, or false to switch it off",
    ]


def test_a_route_that_looks_for_nothing_is_told_what_it_can_look_for(tmp_path: Path) -> None:
    (problem,) = problems(FINE + "routes: [{to: a}]\n", tmp_path)
    assert problem.startswith("3:10: routes[0]: missing: expected ")
    assert all(key in problem for key in ROUTE_KEYS)
