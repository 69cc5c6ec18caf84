"""Detects what a workflow can use in a folder: tests, linters, agent CLIs."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from backedge.catalog import AGENT_CLIS
from backedge.templates import runners
from backedge.templates.runners import Tool

_VENVS = (".venv/bin", "venv/bin", ".venv/Scripts", "venv/Scripts")
_FOREIGN = {"node_modules", "venv", "__pycache__", "site-packages", "agents", "example"}
MOST_LOOKED_AT = 5_000
"""How many files to look at: enough to find a test, and fast in a large repository."""
MOST_READ = 200
"""How many test files to read."""
_PYTHON_TEST = re.compile(r"test_.*\.py|.*_test\.py")
_JS_TEST = re.compile(r"(?:.*[._-])?test\.[cm]?[jt]s|test-.*\.[cm]?js")


@dataclass(frozen=True)
class Found:
    """The programs that can be started, and whether the folder has something for them to do."""

    git: bool = False
    clis: tuple[str, ...] = ()
    """The agent CLIs that are installed."""
    pytest: str = ""
    ruff: str = ""
    npm: bool = False
    scripts: Mapping[str, str] = field(default_factory=dict)
    """The scripts `test` and `lint` of package.json, if there are any."""
    packages: tuple[str, ...] = ()
    """The programs in node_modules."""
    node: bool = False
    """Node, and tests for `node --test` without a script for them."""
    go: bool = False
    """Go, and a module with tests."""
    cargo: bool = False
    """Cargo, and a package."""
    python_files: bool = False
    python_tests: bool = False
    unittest: str = ""
    """The Python that runs tests for unittest, if there are any."""
    unittest_folder: str = ""
    """Their folder, if discovery does not find it by itself."""
    python: str = "python3"

    @property
    def cli(self) -> str:
        """The agent CLI to propose; empty if there is none."""
        return next(iter(self.clis), "")

    def words(self) -> Iterator[tuple[str, str]]:
        """What was found of each tool; empty if it is missing."""
        yield "git", "a repository" if self.git else ""
        for name in AGENT_CLIS:
            yield name, "installed" if name in self.clis else ""
        tests = "" if self.python_tests else ", but there are no tests yet"
        yield "pytest", f"{self.pytest}{tests}" if self.pytest else ""
        if self.unittest:
            yield "unittest", "tests"
        files = "" if self.python_files else ", but there is no Python yet"
        yield "ruff", f"{self.ruff}{files}" if self.ruff else ""
        scripts = (
            f"package.json with {', '.join(self.scripts)}" if self.scripts else "no package.json with test or lint"
        )
        yield "npm", scripts if self.npm else ""
        for name, there in (("node", self.node), ("go", self.go), ("cargo", self.cargo)):
            if there:
                yield name, "tests"

    @property
    def test(self) -> Tool | None:
        """The tests of the folder; None if it has none."""
        if self.pytest and self.python_tests:
            return runners.pytest(self.pytest)
        if self.unittest:
            return runners.unittest(self.unittest, self.unittest_folder)
        if self.npm and "test" in self.scripts:
            return runners.npm_test(self.scripts["test"], self.packages)
        if self.node:
            return runners.npm_test("node --test")
        if self.go:
            return runners.go()
        return runners.cargo() if self.cargo else None

    @property
    def lint(self) -> Tool | None:
        """The linter of the folder; None if it has none."""
        if self.ruff and self.python_files:
            return runners.ruff(self.ruff)
        if self.npm and "lint" in self.scripts:
            return runners.npm_lint(self.scripts["lint"], self.packages)
        return None


def found_in(folder: Path) -> Found:
    """Look at a folder and at the programs of this machine."""
    files = list(_files(folder))
    names = [path.name for path in files]
    tests = [path for path in files if _PYTHON_TEST.fullmatch(path.name)]
    scripts = _scripts(folder)
    cases = [path for path in tests[:MOST_READ] if path.name.startswith("test") and b"unittest" in _start(path)]
    return Found(
        git=any((each / ".git").exists() for each in (folder, *folder.parents)),
        clis=tuple(name for name in AGENT_CLIS if shutil.which(name)),
        pytest=_program(folder, "pytest"),
        ruff=_program(folder, "ruff"),
        npm=shutil.which("npm") is not None,
        scripts=scripts,
        packages=tuple(sorted(path.name for path in (folder / "node_modules" / ".bin").glob("*"))),
        node=shutil.which("node") is not None and "test" not in scripts and any(map(_uses_node_test, files)),
        go=_has(folder, "go", "go.mod") and any(name.endswith("_test.go") for name in names),
        cargo=_has(folder, "cargo", "Cargo.toml"),
        python_files=any(name.endswith(".py") for name in names),
        python_tests=bool(tests),
        unittest=_program(folder, "python3") if cases else "",
        unittest_folder=_apart(folder, cases),
        python=next((name for name in ("python3", "python") if shutil.which(name)), "python3"),
    )


def _program(folder: Path, name: str) -> str:
    """How to start a program: from the virtual environment of the folder, if it is there."""
    for venv in _VENVS:
        if os.access(folder / venv / name, os.X_OK):
            return f"{venv}/{name}"
    return name if shutil.which(name) else ""


def _has(folder: Path, program: str, file: str) -> bool:
    return shutil.which(program) is not None and (folder / file).is_file()


def _apart(folder: Path, tests: list[Path]) -> str:
    """The folder of tests if it is not a package: discovery looks only into packages."""
    if not tests or tests[0].parent == folder or (tests[0].parent / "__init__.py").exists():
        return ""
    return tests[0].parent.relative_to(folder).as_posix()


def _uses_node_test(path: Path) -> bool:
    return _JS_TEST.fullmatch(path.name) is not None and b"node:test" in _start(path)


def _start(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(10_000)
    except OSError:
        return b""


def _files(folder: Path) -> Iterator[Path]:
    count = 0
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _FOREIGN and not name.startswith(".")]
        for name in names:
            yield Path(place, name)
            count += 1
            if count >= MOST_LOOKED_AT:
                return


def _scripts(folder: Path) -> dict[str, str]:
    try:
        package = json.loads((folder / "package.json").read_text(encoding="utf-8"))
        scripts = package.get("scripts", {})
        # The default script of npm says that there are no tests, and fails.
        return {
            name: scripts[name]
            for name in ("test", "lint")
            if isinstance(scripts.get(name), str) and "no test specified" not in scripts[name]
        }
    except (OSError, ValueError, AttributeError):
        return {}
