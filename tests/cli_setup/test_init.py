"""`init` writes a file that runs, whatever the folder contains."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from backedge.catalog import AGENT_CLIS
from backedge.config import EDITOR_LINE, load
from backedge.templates import PATTERNS, TEMPLATES, Found, found_in, rendered
from tests.cli_setup.parts import asked, backedge, git, install

TOOLS = Path(sys.executable).parent
FLOWS = tuple(name for name in TEMPLATES if name not in PATTERNS)
"""Templates that are for work on a repository, with its tests and linters."""


NODE = "node --test --test-reporter {reporter} --test-reporter-destination {report}"


@pytest.mark.parametrize("template", [name for name in FLOWS if name != "stories"])
def test_an_empty_folder_gets_a_workflow_that_runs_at_once(template: str, folder: Path, bare: dict[str, str]) -> None:
    git(folder, "init", "-q")
    said = backedge(folder, "init", "--template", template, env=bare).stdout
    missing = ", ".join((*AGENT_CLIS, "pytest", "ruff", "npm"))
    assert f"found    git      a repository\nmissing  {missing}\n" in said
    assert "wrote    .backedge-agents/review" in said
    assert "next:    backedge check" in said
    assert (folder / "backedge.yaml").read_text().startswith(EDITOR_LINE)
    assert "A run usually makes about" in backedge(folder, "check", env=bare).stdout
    backedge(folder, "run", "--quiet", env=bare)
    report = asked(folder, "show")
    assert (report["outcome"], report["workflow"]) == ("verified", "shop")
    loops = {loop["kind"]: loop["state"] for loop in report["loops"]}
    reviewed = {} if template == "tdd" else {"review_rejection": "resolved"}
    tested = {} if template == "tight-loop" else {"test_failure": "resolved"}  # its failing review skips the tests
    assert loops == ({} if template == "review-only" else reviewed | tested)


def test_an_empty_folder_gets_a_backlog_that_can_be_worked_through(folder: Path, bare: dict[str, str]) -> None:
    said = backedge(folder, "init", "--template", "stories", env=bare).stdout
    assert "wrote    stories/greeting.md" in said and "backedge run --auto" in said
    backedge(folder, "run", "--auto", "--quiet", env=bare, expect=3)
    columns = asked(folder, "board")
    assert [card["story"] for card in columns["done"]] == ["farewell", "greeting"]
    assert [(card["story"], card["rounds"]) for card in columns["blocked"]] == [("checkout", 3)]
    backedge(folder, "unblock", "checkout", env=bare)
    backedge(folder, "run", "--auto", "--quiet", env=bare)
    assert asked(folder, "next") == []


def test_a_review_only_gate_fails_a_change_that_is_not_finished(folder: Path, bare: dict[str, str]) -> None:
    backedge(folder, "init", "--template", "review-only", env=bare)
    (folder / "a.py").write_text("a = 1\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        git(folder, *words)
    backedge(folder, "run", "--quiet", env=bare)
    (folder / "a.py").write_text("a = 2  # FIX" + "ME later\n")
    backedge(folder, "run", "--quiet", "--input", "base=HEAD", env=bare, expect=1)
    report = asked(folder, "show")
    assert report["outcome"] == "failed"
    assert report["steps"]["change"]["attempts"] == 1
    git(folder, "checkout", "-q", "a.py")
    (folder / "new.py").write_text("b = 1  # FIX" + "ME\n")
    backedge(folder, "run", "--quiet", env=bare, expect=1)
    assert "new.py" in asked(folder, "show")["steps"]["change"]["output"]["files"]


@pytest.mark.parametrize("words", [["--input", "base=no-such-branch"], []], ids=["no such base", "no repository"])
def test_a_change_that_cannot_be_read_does_not_pass_the_gate(
    words: list[str], folder: Path, bare: dict[str, str]
) -> None:
    if words:
        git(folder, "init", "-q")
    said = backedge(folder, "init", "--template", "review-only", env=bare).stdout
    assert ("run `git init` first" in said) is (not words)
    backedge(folder, "run", "--quiet", *words, env=bare, expect=1)
    assert asked(folder, "show")["outcome"] == "failed"


def test_the_folder_that_init_makes_for_the_journal_is_for_its_user_only(folder: Path, bare: dict[str, str]) -> None:
    backedge(folder, "init", env=bare)
    assert (folder / ".backedge").stat().st_mode & 0o777 == 0o700


def test_init_overwrites_nothing_without_force(folder: Path, bare: dict[str, str]) -> None:
    backedge(folder, "init", env=bare)
    (folder / "backedge.yaml").write_text("mine")
    (folder / ".backedge-agents" / "code").write_text("mine")
    assert "exists: use `--force` to overwrite it" in backedge(folder, "init", env=bare, expect=2).stderr
    (folder / "backedge.yaml").unlink()
    assert "kept     .backedge-agents/code" in backedge(folder, "init", env=bare).stdout
    assert (folder / ".backedge-agents" / "code").read_text() == "mine"
    backedge(folder, "init", "--force", "--name", 'a "strange": name', env=bare)
    assert (folder / ".backedge-agents" / "code").read_text() != "mine"
    assert load(folder / "backedge.yaml").definition.name == 'a "strange": name'


def test_state_stays_out_of_the_repository(folder: Path, bare: dict[str, str]) -> None:
    git(folder, "init", "-q")
    backedge(folder, "init", env=bare)
    backedge(folder, "run", "--quiet", env=bare)
    assert ".backedge/" not in git(folder, "status", "--short", "--untracked-files=all")


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("cli", ["claude", ""])
@pytest.mark.parametrize(
    "found",
    [
        Found(),
        Found(pytest="pytest", ruff=".venv/bin/ruff", python_files=True, python_tests=True),
        Found(npm=True, scripts={"test": "make test", "lint": "make lint"}),
        Found(npm=True, scripts={"test": "node --test", "lint": "eslint --fix src"}),
        Found(npm=True, scripts={"test": "vitest"}),
        Found(npm=True, scripts={"test": "npx jest --coverage"}),
        Found(npm=True, scripts={"test": "mocha"}),
        Found(unittest=".venv/bin/python3", unittest_folder="my tests"),
        Found(node=True),
        Found(go=True),
        Found(cargo=True),
    ],
    ids=["nothing", "python", "npm", "node --test", "vitest", "jest", "mocha", "unittest", "node", "go", "cargo"],
)
def test_every_generated_file_is_valid(template: str, cli: str, found: Found, tmp_path: Path) -> None:
    made = rendered(template, "shop", found, cli)
    (tmp_path / "backedge.yaml").write_text(made["backedge.yaml"])
    loaded = load(tmp_path / "backedge.yaml")
    assert "@" not in made["backedge.yaml"]
    assert "#?" not in made["backedge.yaml"]
    programs = {Path(spec.run[1]).as_posix() for spec in loaded.agents.values() if spec.run[:1] == ("python3",)}
    assert programs == {path for path in made if path.startswith(".backedge-agents/")}
    kinds = {spec.cli for spec in loaded.agents.values() if spec.kind == "cli"}
    assert kinds == ({cli} if cli else set())
    if cli:
        # A stand-in would test the example of the stand-in coder, which no real agent writes.
        assert ".backedge-agents/check" not in made
    reports = {name: extras.report.kind for name, extras in loaded.steps.items() if extras.report}
    if template in PATTERNS:
        assert reports == {}, "a pattern has judges of its own"
    elif found.pytest:
        assert (reports.get("test"), reports.get("lint")) == ("junit", "sarif")
    else:
        assert reports.get("test") == (found.test.report if found.test else None)
        assert reports.get("lint") == (found.judges["lint"].report if "lint" in found.judges else None)


@pytest.mark.parametrize("cli", AGENT_CLIS)
def test_the_only_agent_cli_that_is_installed_is_proposed(cli: str, folder: Path, bare: dict[str, str]) -> None:
    install(bare, cli)
    said = backedge(folder, "init", env=bare).stdout
    assert f"found    {cli:8} installed" in said
    assert f"agent: {cli}\n" in (folder / "backedge.yaml").read_text()
    assert not (folder / ".backedge-agents").exists(), "no stand-ins where there is a real agent"
    backedge(folder, "check", env=bare)


def test_the_first_of_several_installed_clis_is_proposed_unless_you_name_one(
    folder: Path, bare: dict[str, str]
) -> None:
    install(bare, "gemini")
    install(bare, "codex")
    backedge(folder, "init", env=bare)
    assert "agent: codex\n" in (folder / "backedge.yaml").read_text()
    backedge(folder, "init", "--force", "--agent", "gemini", env=bare)
    assert "agent: gemini\n" in (folder / "backedge.yaml").read_text()


def test_a_proposal_for_an_installed_cli_is_checked_with_it(folder: Path, bare: dict[str, str]) -> None:
    install(bare, "claude")
    for template in TEMPLATES:
        assert (
            "found    claude   installed"
            in backedge(folder, "init", "--force", "--template", template, env=bare).stdout
        )
        assert "agent: claude" in (folder / "backedge.yaml").read_text()
        backedge(folder, "check", env=bare)


def test_init_finds_the_tools_of_a_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.devnull)
    assert found_in(folder) == Found()
    (folder / ".venv" / "bin").mkdir(parents=True)
    for name in ("pytest", "ruff"):
        shutil.copy(shutil.which("true", path="/usr/bin:/bin") or sys.executable, folder / ".venv" / "bin" / name)
    (folder / "src").mkdir()
    (folder / "src" / "a.py").touch()
    (folder / "tests").mkdir()
    (folder / "tests" / "test_a.py").touch()
    (folder / "package.json").write_text('{"scripts": {"test": "echo no test specified", "lint": "eslint ."}}')
    found = found_in(folder)
    assert (found.pytest, found.ruff) == (".venv/bin/pytest", ".venv/bin/ruff")
    assert (found.python_files, found.python_tests, found.scripts) == (True, True, {"lint": "eslint ."})
    (folder / "package.json").write_text("[1")
    assert found_in(folder).scripts == {}


@pytest.mark.parametrize(
    ("script", "proposed", "report"),
    [
        (
            "node --test --test-reporter=spec test/",
            "node --test --test-reporter {reporter} --test-reporter-destination {report} test/",
            "node",
        ),
        ("node check.js", "npm test", "exitcode"),
        ("vitest --watch", "npx --no -- vitest run --reporter=junit --outputFile={report}", "junit"),
        ("vitest run --coverage", "npx --no -- vitest run --reporter=junit --outputFile={report} --coverage", "junit"),
        ("npx jest -i", "npx --no -- jest --no-cache --json --outputFile={report} -i", "jest"),
        ("mocha test", "npx --no -- mocha --reporter=xunit --reporter-option=output={report} test", "junit"),
        ("mocha -R dot", "npm test", "exitcode"),
        ("CI=1 jest", "npm test", "exitcode"),
        ("tsc && jest", "npm test", "exitcode"),
        ("jest 'unbalanced", "npm test", "exitcode"),
    ],
)
def test_the_runner_behind_a_script_gets_a_reporter_that_names_its_tests(
    script: str, proposed: str, report: str
) -> None:
    tool = Found(npm=True, scripts={"test": script}).test
    assert tool is not None
    assert (" ".join(tool.run), tool.report) == (proposed, report)


def test_a_runner_in_node_modules_is_started_directly(folder: Path) -> None:
    write = {"package.json": '{"scripts": {"test": "jest"}}', "node_modules/.bin/jest": ""}
    for name, text in write.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    found = found_in(folder)
    assert found.packages == ("jest",)
    tool = Found(npm=True, scripts=found.scripts, packages=found.packages).test
    assert tool is not None and tool.run == ("node_modules/.bin/jest", "--no-cache", "--json", "--outputFile={report}")


def test_a_proposed_linter_does_not_change_what_it_judges() -> None:
    ruff = Found(ruff="ruff", python_files=True).judges["lint"]
    assert "--no-fix" in ruff.run
    eslint = Found(npm=True, scripts={"lint": "eslint --fix --max-warnings 0 src"}).judges["lint"]
    assert eslint.run == ("npx", "--no", "--", "eslint", "--max-warnings", "0", "src")


@pytest.mark.parametrize(
    ("files", "programs", "proposed"),
    [
        ({"test/a.test.js": 'import test from "node:test"'}, ["node"], NODE),
        ({"test/a.test.js": "test()"}, ["node"], None),
        ({"go.mod": "", "a_test.go": ""}, ["go"], "go test -json -count=1 ./..."),
        ({"go.mod": "", "a.go": ""}, ["go"], None),
        ({"Cargo.toml": ""}, ["cargo"], "cargo test --no-fail-fast"),
        ({"tests/test_a.py": "import unittest"}, ["python3"], "python3 {reporter} {report} discover -s tests"),
        ({"test_a.py": "import unittest"}, ["python3"], "python3 {reporter} {report}"),
        ({"tests/__init__.py": "", "tests/test_a.py": "import unittest"}, ["python3"], "python3 {reporter} {report}"),
        ({"test_a.py": "import unittest"}, ["python3", "pytest"], "pytest --junitxml {report}"),
    ],
)
def test_init_proposes_the_runner_of_the_tests_that_it_finds(
    files: dict[str, str],
    programs: list[str],
    proposed: str | None,
    folder: Path,
    bare: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = folder.parent / "programs"
    place.mkdir()
    for name in programs:
        install({"PATH": str(place)}, name)
    monkeypatch.setenv("PATH", str(place))
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    test = found_in(folder).test
    assert (" ".join(test.run) if test else None) == proposed


@pytest.mark.parametrize("template", [name for name in FLOWS if name != "stories"])
def test_real_tests_and_a_real_linter_judge_the_scripted_coder(
    template: str, folder: Path, bare: dict[str, str]
) -> None:
    git(folder, "init", "-q")
    (folder / "test_greeting.py").write_text("def test_it():\n    assert True\n")
    (folder / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "--import-mode=importlib"\n')
    env = {"PATH": f"{bare['PATH']}{os.pathsep}{TOOLS}"}
    backedge(folder, "init", "--template", template, env=env)
    text = (folder / "backedge.yaml").read_text()
    assert "report: sarif" in text and "report: junit" in text
    checked = backedge(folder, "check", env=env)
    assert checked.stderr == ""
    backedge(folder, "run", "--quiet", env=env)
    report = asked(folder, "show")
    assert report["outcome"] == "verified"
    # Also where tests and linters of your own judge: a finding comes back, is fixed and is verified.
    assert [each["state"] for each in report["loops"]] == ([] if template == "review-only" else ["resolved"])


def test_without_git_init_says_to_install_it_first(folder: Path, bare: dict[str, str]) -> None:
    said = backedge(folder, "init", "--template", "review-only", env={**bare, "PATH": str(folder)}).stdout
    assert "this folder is not in a repository: install git and run `git init` first." in said
