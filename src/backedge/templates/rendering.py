"""Templates filled in for a folder."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from itertools import takewhile

from backedge.catalog import TOKENS_ONLY
from backedge.templates import runners
from backedge.templates.found import Found
from backedge.templates.runners import Tool

PATTERNS = ("constraint", "infeasible", "conflict", "gate", "dependency", "circular")
"""Templates that show one kind of feedback each, with one script that plays all agents."""

TEMPLATES = ("feature", "tight-loop", "tdd", "review-only", "stories", *PATTERNS)
ABOUT = {
    "feature": "plan, design, code, review and test a feature",
    "tight-loop": "implement, review and test, again and again until both pass",
    "tdd": "write the tests first, then the code",
    "review-only": "judge a change that is already there, as a gate in CI",
    "stories": "work through a backlog of Markdown files",
}
"""What each template is for, except the patterns."""
STORIES = ("greeting", "farewell", "checkout")
"""The stories of the template `stories`."""

AGENTS = ".backedge-agents"
"""The folder of the scripts that play the agents. It is not in .backedge, because a team commits them. Linters, type
checkers and test runners do not look at them: most skip folders that begin with a dot, and the rest looks at endings."""
PATIENCE = "30m"
"""How long an attempt of an agent CLI may take."""
_CODERS = ("code", "story_code")
_ALLOWED = {"claude": "Bash({}:*)", "gemini": "run_shell_command({})"}
"""How an agent CLI names a command that is allowed with any words after it."""
_OF_REPORT = re.compile(r"--(?:junit|test-reporter|reporter|outputFile|json|no-cache)|.*\{report")
_FILL_IN = re.compile(r"^(\s*)@(\w+)(?: (\w+))?@$")
_CONDITION = re.compile(r"\s*#\? (\w+)$")
_BETTER = "# better: tests of your own, with `report: junit`, `node`, `gotest` …"
_FAILS = "# This fails on the files of today, and agents would get all that it finds. When it passes, remove the #."
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")


def rendered(template: str, name: str, found: Found, cli: str) -> dict[str, str]:
    """The files of a template by path: the workflow file first, then its scripts. Judges that fail today are comments."""
    test, judges = _test(template, found), found.passing
    holds = {"cli": bool(cli), "scripts": not cli, "test": bool(test), "lint": bool(judges)}
    holds |= {"cost": bool(cli) and cli not in TOKENS_ONLY, "tokens": cli in TOKENS_ONLY}
    scripts: dict[str, None] = {}

    def script(role: str) -> list[str]:
        scripts[role] = None
        return [f"run: [{found.python}, {AGENTS}/{role}]"]

    def lines_of(word: str, role: str | None) -> list[str]:
        match word, role:
            case "agent", str():
                if not cli:
                    return script(role)
                return [f"agent: {cli}", *_tools(cli, test if role in _CODERS else None), f"timeout: {PATIENCE}"]
            case "entry", str():
                return [f"cli: {cli}"] if cli else script(role)
            case "script", str():
                return script(role)
            case "test", _:
                lines = test.lines() if test is not None else [f"agent: {cli}  {_BETTER}"] if cli else script("check")
                return [*lines, f"timeout: {PATIENCE}"] if cli else lines
            case "lint", str():
                return [
                    line for step, tool in found.judges.items() for line in _judge(step, role, tool, step in judges)
                ]
            case _:
                raise ValueError(f"template {template!r} has the unknown word @{word}@")

    text: list[str] = []
    for line in _shipped(f"{template}.yaml").splitlines():
        condition = _CONDITION.search(line)
        if condition is not None:
            if not holds[condition[1]]:
                continue
            line = line[: condition.start()]
        place = _FILL_IN.match(line)
        if place is None:
            plain = name if _PLAIN.fullmatch(name) else json.dumps(name, ensure_ascii=False)
            text.append(line.replace("@name@", plain).replace("@linters@", ", ".join(judges)))
        else:
            text += [f"{place[1]}{made}" for made in lines_of(place[2], place[3])]
    made = {"backedge.yaml": "\n".join(text) + "\n"}
    made |= {f"{AGENTS}/{role}": _shipped(f"agents/{role}.py") for role in scripts}
    if template == "stories":
        made |= {f"stories/{story}.md": _shipped(f"stories/{story}.md") for story in STORIES}
    return made


def _judge(step: str, reviewed: str, tool: Tool, passes: bool) -> list[str]:
    lines = [f"{step}:", *(f"  {line}" for line in (f"reviews: {reviewed}", *tool.lines()))]
    return lines if passes else [_FAILS, *(f"# {line}" for line in lines)]


def _tools(cli: str, test: Tool | None) -> list[str]:
    """Lets a coder run the tests: an agent CLI denies a command that nobody allowed."""
    form = _ALLOWED.get(cli)
    if form is None or test is None:
        return []
    # Without the words of the report: a coder runs single tests, in its own way.
    words = list(takewhile(lambda word: word != "--" and not _OF_REPORT.match(word), test.run))
    return [f"allowed_tools: [{json.dumps(form.format(' '.join(words)))}]"]


def _test(template: str, found: Found) -> Tool | None:
    """The tests of the folder; None if it has none."""
    if template == "tdd" and found.pytest and found.test is None:
        return runners.pytest(found.pytest)  # its first step writes the tests
    return found.test


def _shipped(path: str) -> str:
    return (files("backedge") / "templates" / path).read_text("utf-8")
