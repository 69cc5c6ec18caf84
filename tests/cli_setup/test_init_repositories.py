"""`init` in real repositories: it proposes the commands as the repository runs them, asks what it cannot know, and is not in
the way of anybody's linter."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from backedge.config import load
from backedge.templates import TEMPLATES, Found, rendered
from backedge.templates.runners import command
from tests.cli_setup.parts import asked, backedge, environment, git, install

TOOLS = Path(sys.executable).parent
PYPROJECT = """
[project]
name = "shop"
version = "1"
[dependency-groups]
dev = ["pytest>=8", "ruff", "mypy"]
[tool.uv]
[tool.mypy]
strict = true
"""
HATCH = '[tool.hatch.envs.default.scripts]\ntest = "pytest {args:tests}"\n'
NOX = "import nox\n\n\n@nox.session(python=False)\ndef tests(session):\n    session.run('pytest', *session.posargs)\n"
VITEST = '{"scripts": {}, "devDependencies": {"vitest": "2"}}'


@pytest.mark.parametrize(
    ("files", "programs", "proposed"),
    [
        (
            {"pyproject.toml": PYPROJECT, "uv.lock": "", "src/a.py": "", "tests/test_a.py": ""},
            ["uv"],
            {
                "test": "uv run --no-sync pytest --junitxml {report}",
                "lint": "uv run --no-sync ruff check --no-fix --output-format sarif --output-file {report}",
                "types": "uv run --no-sync mypy src",
            },
        ),
        (
            {"tox.ini": "[testenv]\ncommands = pytest {posargs}\n", "test_a.py": ""},
            ["tox"],
            {"test": "tox run -q -e py -- --junitxml {report}"},
        ),
        ({"tox.ini": "[testenv]\ncommands = ./all.sh\n", "test_a.py": ""}, ["tox", "pytest"], {"test": "tox run -q"}),
        ({"noxfile.py": NOX, "test_a.py": ""}, ["nox"], {"test": "nox -s tests -- --junitxml {report}"}),
        ({"pyproject.toml": HATCH, "test_a.py": ""}, ["hatch"], {"test": "hatch run test --junitxml {report}"}),
        ({"pyrightconfig.json": "{}", "a.py": ""}, ["pyright"], {"types": "pyright"}),
        ({"a.py": ""}, ["pyright", "mypy"], {}),
        ({"mypy.ini": "[mypy]\nfiles = a.py\n", "a.py": ""}, ["mypy"], {"types": "mypy"}),
        (
            {".pre-commit-config.yaml": "repos: []", "a.py": ""},
            ["pre-commit"],
            {"pre_commit": "pre-commit run --all-files"},
        ),
        (
            {".pre-commit-config.yaml": "repos: []", "a.py": ""},
            ["pre-commit", "ruff"],
            {"lint": "ruff check --no-fix --output-format sarif --output-file {report}"},
        ),
        (
            {
                "package.json": VITEST,
                "vitest.config.js": "",
                "eslint.config.js": "",
                "node_modules/.bin/vitest": "",
                "node_modules/.bin/eslint": "",
            },
            ["npm"],
            {
                "test": "node_modules/.bin/vitest run --reporter=junit --outputFile={report}",
                "lint": "node_modules/.bin/eslint .",
            },
        ),
        ({"package.json": '{"scripts": {"typecheck": "tsc --noEmit"}}'}, ["npm"], {"types": "npm run typecheck"}),
        ({"package.json": '{"scripts": {"type-check": "vue-tsc"}}'}, ["npm"], {"types": "npm run type-check"}),
        (
            {
                "package.json": '{"scripts": {}, "jest": {}}',
                "tsconfig.json": "{}",
                ".eslintrc.json": "{}",
                "node_modules/.bin/jest": "",
                "node_modules/.bin/tsc": "",
                "node_modules/.bin/eslint": "",
            },
            ["npm"],
            {
                "test": "node_modules/.bin/jest --no-cache --json --outputFile={report}",
                "lint": "node_modules/.bin/eslint .",
                "types": "node_modules/.bin/tsc --noEmit",
            },
        ),
        (
            {"package.json": "{}", "vite.config.ts": "", "node_modules/.bin/vitest": ""},
            ["npm"],
            {"test": "node_modules/.bin/vitest run --reporter=junit --outputFile={report}"},
        ),
        (
            {"Makefile": "test: all\n\t./run\nlint:\n\t./lint\nchecks := 1\ntypecheck:\n\tx\n"},
            ["make"],
            {"test": "make test", "lint": "make lint", "types": "make typecheck"},
        ),
        ({"Makefile": "test := 1\n"}, ["make"], {}),
    ],
    ids=[
        "uv",
        "tox",
        "tox without posargs",
        "nox",
        "hatch",
        "pyright",
        "not configured",
        "mypy.ini",
        "pre-commit",
        "pre-commit and ruff",
        "vitest and eslint",
        "tsc",
        "type-check",
        "jest and eslint without scripts",
        "vitest in vite",
        "make",
        "no target",
    ],
)
def test_init_proposes_the_commands_as_the_repository_runs_them(
    files: dict[str, str], programs: list[str], proposed: dict[str, str], folder: Path, bare: dict[str, str]
) -> None:
    for name in programs:
        install(bare, name)
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    backedge(folder, "init", "--template", "review-only", "--agent", "scripts", env=bare)
    loaded = load(folder / "backedge.yaml")
    assert {
        step: " ".join(loaded.agents[step].run) for step in loaded.steps if step not in ("change", "review")
    } == proposed


def test_an_agent_cli_may_run_the_tests_and_has_a_timeout_and_plans_write_nothing(
    folder: Path, bare: dict[str, str]
) -> None:
    (folder / "test_a.py").touch()
    for name in ("claude", "codex", "pytest"):
        install(bare, name)
    backedge(folder, "init", env=bare)
    loaded = load(folder / "backedge.yaml")
    assert loaded.agents["code"].allowed_tools == ("Bash(pytest:*)",)
    assert loaded.agents["plan"].allowed_tools is None
    assert {loaded.agents[name].timeout for name in ("plan", "design", "code", "review", "test")} == {1800.0}
    assert [step.name for step in loaded.definition.steps if step.writes == ()] == ["plan", "design"]
    backedge(folder, "init", "--force", "--agent", "codex", "--test", "python3 -m pytest -x", env=bare)
    loaded = load(folder / "backedge.yaml")
    assert loaded.agents["code"].allowed_tools is None, "codex has no such option"
    assert loaded.agents["test"].run == ("python3", "-m", "pytest", "-x", "--junitxml", "{report}")
    assert "close its quotes" in backedge(folder, "init", "--force", "--test", "a 'b", env=bare, expect=2).stderr


@pytest.mark.parametrize(
    ("typed", "run", "report"),
    [
        ("poetry run pytest tests", "poetry run pytest tests --junitxml {report}", "junit"),
        ("go test ./pkg", "go test -json -count=1 ./pkg", "gotest"),
        ("cargo test --workspace", "cargo test --workspace", "cargo"),
        ("pnpm vitest src", "pnpm vitest run --reporter=junit --outputFile={report} src", "junit"),
        ("make check", "make check", "exitcode"),
    ],
)
def test_a_typed_test_command_gets_a_report_that_names_its_tests(typed: str, run: str, report: str) -> None:
    tool = command(typed)
    assert (" ".join(tool.run), tool.report) == (run, report)


def test_init_asks_three_questions_on_a_terminal_and_none_with_yes(folder: Path, bare: dict[str, str]) -> None:
    (folder / "test_a.py").touch()
    for name in ("claude", "pytest"):
        install(bare, name)
    said = typed(folder, bare, "tight-loop\n\nmake check\n", "init")
    for question in ("What do you want to do?", "Which agent does the work?", "How are your tests run?"):
        assert said.count(question) == 1
    assert "agent (claude, codex, gemini, opencode, scripts) [claude]" in said
    assert "test command [pytest --junitxml" in said
    loaded = load(folder / "backedge.yaml")
    assert list(loaded.steps) == ["implement", "review", "test"]
    assert (loaded.agents["implement"].cli, loaded.agents["test"].run) == ("claude", ("make", "check"))
    assert "?" not in typed(folder, bare, "", "init", "--yes", "--force").replace("[?", "")
    said = typed(folder, bare, "\n", "init", "--force", "--agent", "scripts", "--template", "tdd")
    assert "How are your tests run?" in said and "Which agent" not in said, "what is given is not asked"


def typed(folder: Path, env: dict[str, str], keys: str, *words: str) -> str:
    """What is on a terminal where a person types."""
    above, below = pty.openpty()
    os.write(above, keys.encode())
    argv = [sys.executable, "-m", "backedge.cli.main", *words]
    done = subprocess.run(
        argv,
        cwd=folder,
        env={**environment(), **env, "TERM": "dumb"},
        stdin=below,
        stdout=below,
        stderr=below,
        timeout=60,
        check=False,
    )
    os.close(below)
    said = b""
    while True:
        try:
            more = os.read(above, 65536)
        except OSError:
            break
        said += more
    os.close(above)
    assert done.returncode == 0, said.decode()
    return said.decode()


def test_no_tool_of_a_repository_looks_at_the_stand_ins(folder: Path, bare: dict[str, str]) -> None:
    """They are there for every linter to see: ruff with all rules, mypy --strict and pytest look at the whole folder."""
    git(folder, "init", "-q")
    (folder / "pyproject.toml").write_text(
        '[tool.ruff]\nline-length = 60\nlint.select = ["ALL"]\n'
        'lint.ignore = ["D203", "D213", "COM812", "S101", "CPY001"]\n[tool.mypy]\nstrict = true\n'
    )
    (folder / "tests").mkdir()
    (folder / "tests/__init__.py").write_text('"""Tests."""\n')
    (folder / "tests/test_it.py").write_text(
        '"""Tests."""\n\n\ndef test_it() -> None:\n    """It works."""\n    assert True\n'
    )
    env = {"PATH": f"{bare['PATH']}{os.pathsep}{TOOLS}"}
    backedge(folder, "init", "--agent", "scripts", env=env)
    assert sorted(path.name for path in (folder / ".backedge-agents").iterdir()) == ["code", "design", "plan", "review"]
    backedge(folder, "run", "--quiet", env=env)
    report = asked(folder, "show")
    assert report["outcome"] == "verified"
    assert {"lint", "types"} <= report["steps"].keys()
    assert {each["found_by"] for each in report["findings"]} == {"review"}, "no tool has found anything"


def test_a_linter_that_fails_today_is_a_comment(folder: Path, bare: dict[str, str]) -> None:
    git(folder, "init", "-q")
    (folder / "old.py").write_text("import os\n")
    (folder / "mypy.ini").write_text("[mypy]\n")
    (folder / "test_it.py").write_text("def test_it():\n    pass\n")
    env = {"PATH": f"{bare['PATH']}{os.pathsep}{TOOLS}"}
    said = backedge(folder, "init", "--template", "tight-loop", "--agent", "scripts", env=env).stdout
    assert "fails    lint     ruff check finds something in the files of today" in said and "fails    types" not in said
    text = (folder / "backedge.yaml").read_text()
    assert "\n  # lint:\n  #   reviews: implement\n  #   run: [ruff, check, --no-fix" in text
    backedge(folder, "run", "--quiet", env=env)
    report = asked(folder, "show")
    assert (report["outcome"], list(report["steps"])) == ("verified", ["implement", "types", "review", "test"])
    (folder / "old.py").write_text('"""Nothing."""\n')
    backedge(folder, "init", "--force", "--template", "feature", "--agent", "scripts", env=env)
    assert "needs: [lint, types]" in (folder / "backedge.yaml").read_text()
    (folder / "old.py").write_text("import os\nx: int = ''\n")
    backedge(folder, "init", "--force", "--template", "feature", "--agent", "scripts", env=env)
    assert list(load(folder / "backedge.yaml").steps) == ["plan", "design", "design_review", "code", "review", "test"]


def test_the_stand_ins_keep_to_79_columns() -> None:
    for template in TEMPLATES:
        for path, text in rendered(template, "shop", Found(), "").items():
            if path.startswith(".backedge-agents/"):
                assert max(map(len, text.splitlines())) <= 79, path


def test_the_folder_of_the_journal_ignores_itself_without_init_too(folder: Path) -> None:
    git(folder, "init", "-q")
    (folder / "backedge.yaml").write_text("name: w\nsteps:\n  a: {run: [echo, '{}']}\n")
    backedge(folder, "run", "--quiet")
    assert (folder / ".backedge/.gitignore").read_text() == "*\n"
    assert git(folder, "status", "--short") == "?? backedge.yaml\n"
