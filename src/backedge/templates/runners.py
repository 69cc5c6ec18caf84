"""The test runners and linters that `init` proposes, each with a report that names the tests."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Tool:
    """A command and how its report is read."""

    run: tuple[str, ...]
    report: str

    def lines(self) -> list[str]:
        """The lines of a step."""
        return [f"run: [{', '.join(_quoted(word) for word in self.run)}]", f"report: {self.report}"]


def exit_code(*words: str) -> Tool:
    """A program that says nothing but whether it passed."""
    return Tool(words, "exitcode")


def pytest(program: str) -> Tool:
    return Tool((*program.split(" "), "--junitxml", "{report}"), "junit")


def unittest(python: str, folder: str = "") -> Tool:
    """Discovery starts here, or in a folder of tests that is not a package."""
    return Tool((python, "{reporter}", "{report}", *(("discover", "-s", folder) if folder else ())), "unittest")


def go() -> Tool:
    return Tool(("go", "test", "-json", "-count=1", "./..."), "gotest")


def cargo() -> Tool:
    return Tool(("cargo", "test", "--no-fail-fast"), "cargo")


def ruff(program: str) -> Tool:
    # A configuration with `fix = true` would make the linter change what it judges.
    return Tool(
        (*program.split(" "), "check", "--no-fix", "--output-format", "sarif", "--output-file", "{report}"), "sarif"
    )


def mypy(program: str, checks: str) -> Tool:
    """`checks` is what to look at, unless the settings of the repository say that."""
    return exit_code(*program.split(" "), *((checks,) if checks else ()))


def command(text: str) -> Tool:
    """A test command that a person typed, with a report that names the tests if it is a known runner."""
    words = shlex.split(text)
    for place, word in enumerate(words):
        name = word.rpartition("/")[2]
        if name in ("pytest", "py.test"):
            return Tool((*words, "--junitxml", "{report}"), "junit")
        if words[place : place + 2] == ["go", "test"]:
            return Tool((*words[: place + 2], "-json", "-count=1", *words[place + 2 :]), "gotest")
        if words[place : place + 2] == ["cargo", "test"]:
            return Tool(tuple(words), "cargo")
        found = _RUNNERS[name](words[place + 1 :]) if name in _RUNNERS else None
        if found is not None:
            return Tool((*words[: place + 1], *found.run[1:]), found.report)
    return exit_code(*words)


def npm_test(script: str, installed: Collection[str] = ()) -> Tool:
    """The runner behind the script `test` of package.json; if it is not a known one, npm and its exit code. `installed` are
    the programs in node_modules."""
    words = _words(script)
    for name, tool in _RUNNERS.items():
        if words[:1] == [name]:
            found = tool(words[1:])
            if found is not None:
                return _started(found, installed)
    return exit_code("npm", "test")


def npm_lint(script: str, installed: Collection[str] = ()) -> Tool:
    """The linter behind the script `lint`, without the options that make it change files."""
    words = _words(script)
    if words[:1] == ["eslint"]:
        fixless = tuple(word for word in words if not word.startswith("--fix"))
        return _started(exit_code(*fixless), installed)
    return exit_code("npm", "run", "lint")


def npm_types(name: str, script: str, installed: Collection[str] = ()) -> Tool:
    """The type checker behind a script of package.json."""
    words = _words(script)
    if words[:1] == ["tsc"] and "--noEmit" in words and "tsc" in installed:
        return _started(exit_code(*words), installed)
    return exit_code("npm", "run", name)


def _started(tool: Tool, installed: Collection[str]) -> Tool:
    """A program of node_modules, started directly where it is there. Without the dashes, npx would take its options."""
    name, *rest = tool.run
    if name == "node":
        return tool
    start = (f"node_modules/.bin/{name}",) if name in installed else ("npx", "--no", "--", name)
    return Tool((*start, *rest), tool.report)


def _words(script: str) -> list[str]:
    """The words of a script that is one plain command; none if a shell has to interpret it."""
    if re.search(r"[|&;<>$`*?(){}\[\]~\n]|^\s*\w+=", script):
        return []
    try:
        words = shlex.split(script)
    except ValueError:
        return []
    return words[1:] if words[:1] == ["npx"] else words


def _node(options: Sequence[str]) -> Tool | None:
    if "--test" not in options:
        return None
    rest = [each for each in options if each != "--test" and not each.startswith("--test-reporter")]
    reporter = ("--test-reporter", "{reporter}", "--test-reporter-destination", "{report}")
    return Tool(("node", "--test", *reporter, *rest), "node")


def _vitest(options: Sequence[str]) -> Tool:
    rest = [each for each in options if each not in ("run", "--run", "watch", "--watch") and "reporter" not in each]
    return Tool(("vitest", "run", "--reporter=junit", "--outputFile={report}", *rest), "junit")


def _jest(options: Sequence[str]) -> Tool:
    rest = [
        each for each in options if not each.startswith(("--watch", "--json", "--outputFile", "--cache", "--no-cache"))
    ]
    return Tool(("jest", "--no-cache", "--json", "--outputFile={report}", *rest), "jest")


def _mocha(options: Sequence[str]) -> Tool | None:
    if any("reporter" in each or each == "-R" for each in options):
        return None
    return Tool(("mocha", "--reporter=xunit", "--reporter-option=output={report}", *options), "junit")


_RUNNERS: Mapping[str, Callable[[Sequence[str]], Tool | None]] = {
    "node": _node,
    "vitest": _vitest,
    "jest": _jest,
    "mocha": _mocha,
}


def _quoted(word: str) -> str:
    """A word as it stands in a list of YAML."""
    plain = re.fullmatch(r"[A-Za-z0-9_./-][A-Za-z0-9_./@+=-]*", word)
    other = re.fullmatch(r"[-+]?\.?\d[\w.+-]*|-+|\.|(?i:y|n|yes|no|on|off|true|false|null)", word)
    return word if plain and not other else json.dumps(word, ensure_ascii=False)
