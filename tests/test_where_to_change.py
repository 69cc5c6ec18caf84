"""ARCHITECTURE.md says where to change what. These tests make such changes in a copy of the package, and nowhere else."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "backedge"
TESTS = ROOT / "tests"
PYTHON = sys.executable
# Compiled files are kept: each test starts the command several times.
ENVIRONMENT = {**{key: each for key, each in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}, "NO_COLOR": "1"}
QUOTED = re.compile(r"`([^`]+)`")


def table() -> dict[str, tuple[str, str]]:
    """The rows of "Where do I change …?": where and which tests, by what."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = text.partition("## Where do I change …?")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return {what: (where, tests) for what, where, tests in rows if what != "what"}


def paths_in(where: str) -> list[str]:
    return [word for word in QUOTED.findall(where) if word.endswith((".py", "/"))]


def names_in(where: str) -> list[str]:
    return [word for word in QUOTED.findall(where) if not word.endswith((".py", "/"))]


@pytest.mark.parametrize("what", table())
def test_a_row_names_what_exists(what: str) -> None:
    for folder, cell in zip((PACKAGE, ROOT), table()[what], strict=True):
        assert paths_in(cell), "a cell names at least one file or folder"
        files = [folder / path for path in paths_in(cell)]
        assert [path.name for path in files if not path.exists()] == []
        text = "\n".join(path.read_text(encoding="utf-8") for path in files if path.is_file())
        for name in names_in(cell):
            assert re.search(rf"^(?:class|def|async def)? ?{name}\b", text, re.MULTILINE), (
                f"{name} is not defined there"
            )


class Copy:
    """A copy of the package in which only the files of one row of the table may be changed."""

    def __init__(self, what: str, folder: Path) -> None:
        self._may_change = paths_in(table()[what][0])
        self._home = folder / "src"
        self._folder = folder / "project"
        self._folder.mkdir()
        shutil.copytree(PACKAGE, self._home / "backedge")

    def add(self, path: str, text: str) -> None:
        """A new file."""
        target = self._allowed(path)
        assert not target.exists()
        target.write_text(text, encoding="utf-8")

    def insert(self, path: str, before: str, line: str) -> None:
        target = self._allowed(path)
        text = target.read_text(encoding="utf-8")
        assert text.count(before) == 1, f"{before!r} is not once in {path}"
        target.write_text(text.replace(before, line + before), encoding="utf-8")

    def change(self, path: str, before: str, after: str) -> None:
        self.insert(path, before, after)
        target = self._allowed(path)
        target.write_text(target.read_text(encoding="utf-8").replace(after + before, after), encoding="utf-8")

    def _allowed(self, path: str) -> Path:
        named = [each for each in self._may_change if path == each or (each.endswith("/") and path.startswith(each))]
        assert named, f"the table does not say that {path} is to be changed"
        return self._home / "backedge" / path

    def project(self, **files: str) -> None:
        for name, text in files.items():
            path = self._folder / (f"{name}.yaml" if name == "backedge" else f"{name}.py")
            path.write_text(text, encoding="utf-8")

    def program(self, name: str, text: str) -> dict[str, str]:
        """The only program on the PATH besides Python and what a shell script needs."""
        folder = self._home / "bin"
        folder.mkdir()
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o755)
        return {"PATH": str(folder)}

    def python(self, *words: str, expect: int = 0, env: dict[str, str] | None = None) -> str:
        done = subprocess.run(
            [PYTHON, *words],
            cwd=self._folder,
            env={**ENVIRONMENT, "PYTHONPATH": str(self._home), **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert done.returncode == expect, done.stdout + done.stderr
        return done.stdout + (done.stderr if expect else "")

    def backedge(self, *words: str, expect: int = 0, env: dict[str, str] | None = None) -> str:
        return self.python("-m", "backedge.cli.main", *words, expect=expect, env=env)

    def failing_tests(self, *words: str) -> set[str]:
        """The existing tests that fail with the copy."""
        done = subprocess.run(
            [PYTHON, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no", "-rfE", *words],
            cwd=TESTS,
            env={**ENVIRONMENT, "PYTHONPATH": str(self._home)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert re.search(r"\d+ passed", done.stdout), done.stdout + done.stderr
        return {
            line.partition(" ")[2].partition(" - ")[0].rpartition("::")[2]
            for line in done.stdout.splitlines()
            if line.startswith(("FAILED", "ERROR"))
        }

    def report(self) -> Any:
        return json.loads(self.backedge("show", "--json"))

    def text(self, name: str) -> str:
        return (self._folder / name).read_text(encoding="utf-8")


LIMIT_TESTS = (
    *("core/test_limits.py", "core/test_profiles.py", "core/test_replay.py", "stories/test_assessor.py"),
    *("config/test_mistakes.py", "config/test_workflow_file.py"),
)
CLI_TESTS = (
    "clis/test_calls.py::test_a_cli_that_is_not_installed_is_named_with_its_package",
    "clis/test_calls.py::test_no_secret_is_in_a_prompt_however_it_is_written_there",
    "cli/test_check.py::test_agents_lists_what_is_installed_and_works",
    "cli_setup/test_init.py::test_an_empty_folder_gets_a_workflow_that_runs_at_once[review-only]",
)
ROUTE_TESTS = (
    *("core/test_routing.py", "core/test_written.py", "core/test_replay.py"),
    *("config/test_mistakes.py", "config/test_workflow_file.py"),
)
WORK = "print('{\"output\": 1}')\n"
REVIEW = """
import json
import sys

failing = not json.load(sys.stdin)["verify"]
texts = ["no login", "no limit", "no logout", "no tests", "no docs", "no errors"]
found = [{"description": text, "severity": "high", "file": "api.md"} for text in texts]
print(json.dumps({"verdict": "fail", "findings": found} if failing else {"verdict": "pass"}))
"""
STEPS = f"""
steps:
  plan: {{phase: planning, run: [{PYTHON}, work.py]}}
  code: {{phase: code, needs: plan, run: [{PYTHON}, work.py]}}
  review: {{reviews: code, run: [{PYTHON}, review.py]}}
"""


def with_a_limit(folder: Path) -> Copy:
    copy = Copy("a limit", folder)
    copy.insert(
        "core/workflow/limits.py",
        "    same_finding: Annotated[",
        '    findings_per_round: Annotated[int | None, LimitSpec("The most findings of one round.")] = None\n',
    )
    # A level: what was granted is not added to it.
    copy.insert(
        "core/breaches.py",
        "    if own.same_finding is not None:\n",
        "    if own.findings_per_round is not None and not next_round_granted(loop):\n"
        '        yield "findings_per_round", len(loop.finding_ids), own.findings_per_round\n',
    )
    return copy


def test_a_limit(tmp_path: Path) -> None:
    copy = with_a_limit(tmp_path)
    copy.project(work=WORK, review=REVIEW, backedge="limits: {findings_per_round: -1}" + STEPS)
    assert "limits.findings_per_round: got the number -1, expected a whole number of 0 or more" in copy.backedge(
        "check", expect=2
    )
    copy.project(backedge="limits: {findings_per_round: 2}" + STEPS)
    for answer in (["continue", "--rounds", "1"], ["revise", "--note", "begin with the login"]):
        copy.backedge("run", "--quiet", expect=3)
        (escalation,) = copy.report()["escalations"]
        assert escalation["breach"] == {"limit": "findings_per_round", "count": 6, "bound": 2}
        copy.backedge("decide", "E-1", *answer)
        copy.backedge("resume", "--quiet")
        report = copy.report()
        assert (report["outcome"], len(report["escalations"]), report["loops"][0]["rounds"]) == ("verified", 1, 1)
    published = json.loads(copy.backedge("schema"))["properties"]["limits"]["properties"]
    assert published["findings_per_round"]["description"] == "The most findings of one round."


def with_words_of_a_route(folder: Path) -> Copy:
    copy = Copy("words that a route looks for", folder)
    copy.insert(
        "core/workflow/routes.py",
        "    blockers: int = 0\n",
        '    files: Annotated[tuple[str, ...], RouteKey("Whole words of the path.", "api")] = ()\n',
    )
    copy.insert(
        "core/workflow/routes.py",
        "    return has_words(finding.category, rule.category)",
        '    if has_words(finding.file or "", rule.files):\n        return True\n',
    )
    return copy


def test_words_that_a_route_looks_for(tmp_path: Path) -> None:
    copy = with_words_of_a_route(tmp_path)
    copy.project(work=WORK, review=REVIEW, backedge="routes: [{to: plan, files: api}]" + STEPS)
    copy.backedge("run", "--quiet")
    (loop,) = copy.report()["loops"]
    assert (loop["targets"], loop["routed_by"], loop["state"]) == (["plan"], "routes", "resolved")
    copy.project(backedge="routes: [{to: plan, file: api}]" + STEPS)
    assert "did you mean 'files'?" in copy.backedge("check", expect=2)
    python = "import backedge; backedge.Workflow('w', [backedge.Step('a', print)], routes={'to': 'a', 'files': '-'})"
    assert "a route to 'a' looks for '-' in files: expected a word" in copy.python("-c", python, expect=1)


def with_another_key_of_a_route(folder: Path) -> Copy:
    """A severity that a finding must have, in addition to the words."""
    copy = Copy("another key of a route", folder)
    routes = "core/workflow/routes.py"
    copy.insert(routes, "    blockers: int = 0\n", '    severity: str = ""\n')
    copy.insert(
        routes,
        "    return has_words(finding.category, rule.category)",
        "    if rule.severity and finding.severity != rule.severity:\n        return False\n",
    )
    copy.change(routes, 'known = ("to", *ROUTE_KEYS)', 'known = ("to", *ROUTE_KEYS, "severity")')
    copy.change(
        routes,
        "return replace(RouteRule(to), **phrases)",
        'return replace(RouteRule(to), severity=given.get("severity", ""), **phrases)',
    )
    copy.insert(
        "config/schema.py",
        "        **{name: words(key.meaning, key.example)",
        '        "severity": choice("Only findings of this severity.", *map(str, Severity)),\n',
    )
    return copy


def test_another_key_of_a_route(tmp_path: Path) -> None:
    copy = with_another_key_of_a_route(tmp_path)
    for severity, targets in (("low", ["code"]), ("high", ["plan", "code"])):
        route = f"routes: [{{to: plan, keywords: login, severity: {severity}}}]"
        copy.project(work=WORK, review=REVIEW, backedge=route + STEPS)
        copy.backedge("run", "--quiet")
        assert copy.report()["loops"][0]["targets"] == targets
    copy.project(backedge="routes: [{to: plan, keywords: login, severity: hgih}]" + STEPS)
    assert "did you mean 'high'?" in copy.backedge("check", expect=2)


NEW_CLI = """
from backedge.adapters.agents.clis.cli import Cli, CliReport


class NewCli(Cli):
    name = "newcli"
    package = "@example/newcli"
    options = frozenset({"model"})
    modes = ()

    def arguments(self, call):
        return ["--json"]

    def read(self, events, stderr, before):
        said = [event["text"] for event in events if "text" in event]
        return CliReport(complete=bool(said), text=said[-1] if said else "")


CLI = NewCli()
"""
PROGRAM = """#!/bin/sh
printf '%s\\n' '{"text": "{\\"output\\": \\"made by newcli\\"}"}'
"""


def with_an_agent_cli(folder: Path) -> Copy:
    copy = Copy("an agent CLI", folder)
    copy.add("adapters/agents/clis/newcli.py", NEW_CLI)
    copy.insert("catalog.py", '"claude", "codex"', '"newcli", ')
    return copy


def test_an_agent_cli(tmp_path: Path) -> None:
    copy = with_an_agent_cli(tmp_path)
    only = copy.program("newcli", PROGRAM)
    assert "found    newcli   installed\n" in copy.backedge("init", env=only)
    assert "agent: newcli\n" in copy.text("backedge.yaml")
    copy.project(backedge="steps: {make: {agent: newcli, model: small}}")
    copy.backedge("check", env=only)
    copy.backedge("run", "--quiet", env=only)
    assert copy.report()["steps"]["make"]["output"] == "made by newcli"
    copy.project(backedge="steps: {make: {agent: newcli, max_turns: 3}}")
    assert "newcli has no flag for max_turns" in copy.backedge("check", env=only, expect=2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("with_change", "tests", "failing"),
    [
        (
            with_a_limit,
            LIMIT_TESTS,
            {"test_every_limit_is_in_the_tables", "test_everything_uses_every_key_there_is"},
        ),
        (with_words_of_a_route, ROUTE_TESTS, set()),
        (with_another_key_of_a_route, ROUTE_TESTS, set()),
        (with_an_agent_cli, CLI_TESTS, set()),
    ],
)
def test_only_the_tests_that_the_table_names_have_to_change(
    with_change: Callable[[Path], Copy], tests: tuple[str, ...], failing: set[str], tmp_path: Path
) -> None:
    """Two tests ask for a line about every limit: the table says so in parentheses. No other list has to be edited."""
    assert with_change(tmp_path).failing_tests(*tests) == failing


CONTRACT = """
from backedge.adapters.journals.other import OtherJournal
from backedge.testing import JournalContract


class TestOther(JournalContract):
    first = None

    def open(self, folder):
        self.first = self.first or OtherJournal()
        return OtherJournal(self.first)

    async def take_over(self, other, run):
        return other.take_over(run)
"""


def test_a_database(tmp_path: Path) -> None:
    copy = Copy("a database", tmp_path)
    # Its own copy of a journal that keeps the contract: what counts is that no other file has to know of it.
    memory = (PACKAGE / "adapters" / "journals" / "memory.py").read_text()
    copy.add("adapters/journals/other.py", memory.replace("MemoryJournal", "OtherJournal"))
    copy.project(test_other=CONTRACT)
    said = copy.python("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "test_other.py")
    passed = re.search(r"(\d+) passed", said)
    assert passed is not None and int(passed[1]) > 20
