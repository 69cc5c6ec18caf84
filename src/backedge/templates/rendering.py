"""Templates filled in for a folder."""

from __future__ import annotations

import json
import re
from importlib.resources import files

from backedge.templates.found import Found

PATTERNS = ("constraint", "infeasible", "conflict", "gate", "dependency", "circular")
"""Templates that show one kind of feedback each, with one script that plays all agents."""

TEMPLATES = ("feature", "tight-loop", "tdd", "review-only", "stories", *PATTERNS)
STORIES = ("greeting", "farewell", "checkout")
"""The stories of the template `stories`."""

_FILL_IN = re.compile(r"^(\s*)@(\w+)(?: (\w+))?@$")
_CONDITION = re.compile(r"\s*#\? (\w+)$")
_BETTER = "# better: tests of your own, with `report: junit` or `exitcode`"
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")


def rendered(template: str, name: str, found: Found, cli: str) -> dict[str, str]:
    """The files of a template by path: the workflow file first, then its scripts."""
    test, lint = _test(template, found), _lint(found)
    holds = {"cli": bool(cli), "scripts": not cli, "test": bool(test), "lint": bool(lint)}
    scripts: dict[str, None] = {}

    def script(role: str) -> list[str]:
        scripts[role] = None
        return [f"run: [{found.python}, agents/{role}.py]"]

    def lines_of(word: str, role: str | None) -> list[str]:
        match word, role:
            case "agent", str():
                return [f"agent: {cli}"] if cli else script(role)
            case "entry", str():
                return [f"cli: {cli}"] if cli else script(role)
            case "script", str():
                return script(role)
            case "test", _:
                return test or ([f"agent: {cli}  {_BETTER}"] if cli else script("check"))
            case "lint", _:
                return lint
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
            text.append(
                line.replace("@name@", name if _PLAIN.fullmatch(name) else json.dumps(name, ensure_ascii=False))
            )
        else:
            text += [f"{place[1]}{made}" for made in lines_of(place[2], place[3])]
    made = {"backedge.yaml": "\n".join(text) + "\n"}
    made |= {f"agents/{role}.py": _shipped(f"agents/{role}.py") for role in scripts}
    if template == "stories":
        made |= {f"stories/{story}.md": _shipped(f"stories/{story}.md") for story in STORIES}
    return made


def _test(template: str, found: Found) -> list[str]:
    """The lines of a step that runs the tests of the folder; none if it has no tests."""
    if found.pytest and (found.python_tests or template == "tdd"):
        return [f'run: [{found.pytest}, --junitxml, "{{report}}"]', "report: junit"]
    if found.npm and "test" in found.scripts:
        return ["run: [npm, test]", "report: exitcode"]
    return []


def _lint(found: Found) -> list[str]:
    if found.ruff and found.python_files:
        return [f'run: [{found.ruff}, check, --output-format, sarif, --output-file, "{{report}}"]', "report: sarif"]
    if found.npm and "lint" in found.scripts:
        return ["run: [npm, run, lint]", "report: exitcode"]
    return []


def _shipped(path: str) -> str:
    return (files("backedge") / "templates" / path).read_text("utf-8")
