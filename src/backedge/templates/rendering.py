"""Templates filled in for a folder."""

from __future__ import annotations

import json
import re
from importlib.resources import files

from backedge.catalog import TOKENS_ONLY
from backedge.templates import runners
from backedge.templates.found import Found

PATTERNS = ("constraint", "infeasible", "conflict", "gate", "dependency", "circular")
"""Templates that show one kind of feedback each, with one script that plays all agents."""

TEMPLATES = ("feature", "tight-loop", "tdd", "review-only", "stories", *PATTERNS)
STORIES = ("greeting", "farewell", "checkout")
"""The stories of the template `stories`."""

_FILL_IN = re.compile(r"^(\s*)@(\w+)(?: (\w+))?@$")
_CONDITION = re.compile(r"\s*#\? (\w+)$")
_BETTER = "# better: tests of your own, with `report: junit`, `node`, `gotest` …"
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")


def rendered(template: str, name: str, found: Found, cli: str) -> dict[str, str]:
    """The files of a template by path: the workflow file first, then its scripts."""
    test, lint = _test(template, found), found.lint.lines() if found.lint is not None else []
    holds = {"cli": bool(cli), "scripts": not cli, "test": bool(test), "lint": bool(lint)}
    holds |= {"cost": bool(cli) and cli not in TOKENS_ONLY, "tokens": cli in TOKENS_ONLY}
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
    if template == "tdd" and found.pytest and found.test is None:
        return runners.pytest(found.pytest).lines()  # its first step writes the tests
    return found.test.lines() if found.test is not None else []


def _shipped(path: str) -> str:
    return (files("backedge") / "templates" / path).read_text("utf-8")
