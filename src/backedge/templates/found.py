"""Detects what a workflow can use in a folder: tests, linters, agent CLIs."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from backedge.catalog import AGENT_CLIS
from backedge.templates import runners
from backedge.templates.python_project import PythonProject
from backedge.templates.runners import Tool

_FOREIGN = {"node_modules", "venv", "__pycache__", "site-packages", "agents", "example"}
MOST_LOOKED_AT = 5_000
"""How many files to look at: enough to find a test, and fast in a large repository."""
MOST_READ = 200
"""How many test files to read."""
TYPE_CHECKS = ("typecheck", "type-check", "check-types", "types", "tsc")
"""How repositories call the script that checks types."""
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
    """The scripts `test`, `lint` and `typecheck` of package.json, or how it calls them, if there are any."""
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
    starter: str = ""
    """What starts the tools of the repository, such as uv."""
    runner: tuple[str, Tool] | None = None
    """The tests as hatch, tox or nox run them, and the name of that program."""
    mypy: str = ""
    mypy_checks: str = ""
    """What mypy looks at; empty if its settings say that."""
    pyright: str = ""
    pre_commit: bool = False
    targets: tuple[str, ...] = ()
    """The targets `test`, `lint` and `typecheck` of the Makefile, if there are any."""
    typed: Tool | None = None
    """What a person typed as the test command."""
    failing: tuple[str, ...] = ()
    """The judges that fail on the files of today."""

    @property
    def cli(self) -> str:
        """The agent CLI to propose; empty if there is none."""
        return next(iter(self.clis), "")

    def words(self) -> Iterator[tuple[str, str]]:
        """What was found of each tool; empty if it is missing."""
        yield "git", "a repository" if self.git else ""
        for name in AGENT_CLIS:
            yield name, "installed" if name in self.clis else ""
        other = not self.python_files and self.test is not None
        tests = "" if self.python_tests else ", but there are no tests yet"
        if self.pytest or not other:
            yield "pytest", f"{self.pytest}{tests}" if self.pytest else ""
        if self.unittest:
            yield "unittest", "tests"
        files = "" if self.python_files else ", but there is no Python yet"
        if self.ruff or not other:
            yield "ruff", f"{self.ruff}{files}" if self.ruff else ""
        scripts = (
            f"package.json with {', '.join(self.scripts)}" if self.scripts else "no package.json with test or lint"
        )
        if self.scripts or not self.python_files:
            yield "npm", scripts if self.npm else ""
        for name, there in (("node", self.node), ("go", self.go), ("cargo", self.cargo)):
            if there:
                yield name, "tests"
        if self.starter:
            yield self.starter, "starts the tools of this repository"
        if self.runner is not None:
            yield self.runner[0], "runs the tests"
        for name, program in (("mypy", self.mypy), ("pyright", self.pyright)):
            if program:
                yield name, program
        if self.pre_commit:
            unused = "" if "pre_commit" in self.judges else ", not used: its linters are started directly"
            yield "pre-commit", f"a configuration{unused}"
        if self.targets:
            yield "make", f"targets {', '.join(self.targets)}"

    @property
    def test(self) -> Tool | None:
        """The tests of the folder; None if it has none."""
        if self.typed is not None:
            return self.typed
        if self.runner is not None:
            return self.runner[1]
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
        if self.cargo:
            return runners.cargo()
        return runners.exit_code("make", "test") if "test" in self.targets else None

    @property
    def judges(self) -> dict[str, Tool]:
        """The linters and type checkers of the folder, by the name of their step."""
        found: dict[str, Tool] = {}
        if self.ruff and self.python_files:
            found["lint"] = runners.ruff(self.ruff)
        elif self.npm and "lint" in self.scripts:
            found["lint"] = runners.npm_lint(self.scripts["lint"], self.packages)
        elif "lint" in self.targets:
            found["lint"] = runners.exit_code("make", "lint")
        if self.mypy:
            found["types"] = runners.mypy(self.mypy, self.mypy_checks)
        elif self.pyright:
            found["types"] = runners.exit_code(*self.pyright.split(" "))
        elif self.npm and (name := next((each for each in TYPE_CHECKS if each in self.scripts), "")):
            found["types"] = runners.npm_types(name, self.scripts[name], self.packages)
        elif "typecheck" in self.targets:
            found["types"] = runners.exit_code("make", "typecheck")
        if self.pre_commit and not found:
            found["pre_commit"] = runners.exit_code("pre-commit", "run", "--all-files")
        return found

    @property
    def passing(self) -> dict[str, Tool]:
        """Those of them that do not fail on the files of today."""
        return {name: tool for name, tool in self.judges.items() if name not in self.failing}


def found_in(folder: Path) -> Found:
    """Look at a folder and at the programs of this machine."""
    files = list(_files(folder))
    names = [path.name for path in files]
    tests = [path for path in files if _PYTHON_TEST.fullmatch(path.name)]
    project = PythonProject.at(folder)
    packages = tuple(sorted(path.name for path in (folder / "node_modules" / ".bin").glob("*")))
    scripts = _scripts(folder, packages)
    cases = [path for path in tests[:MOST_READ] if path.name.startswith("test") and b"unittest" in _start(path)]
    return Found(
        git=any((each / ".git").exists() for each in (folder, *folder.parents)),
        clis=tuple(name for name in AGENT_CLIS if shutil.which(name)),
        pytest=project.tool("pytest"),
        ruff=project.tool("ruff"),
        npm=shutil.which("npm") is not None,
        scripts=scripts,
        packages=packages,
        node=shutil.which("node") is not None and "test" not in scripts and any(map(_uses_node_test, files)),
        go=_has(folder, "go", "go.mod") and any(name.endswith("_test.go") for name in names),
        cargo=_has(folder, "cargo", "Cargo.toml"),
        python_files=any(name.endswith(".py") for name in names),
        python_tests=bool(tests),
        unittest=project.tool("python3") if cases else "",
        unittest_folder=_apart(folder, cases),
        python=next((name for name in ("python3", "python") if shutil.which(name)), "python3"),
        starter=next(iter(project.starter), ""),
        runner=project.test_runner() if tests else None,
        mypy=(mypy := project.configured("mypy", "mypy.ini", ".mypy.ini")),
        mypy_checks=_mypy_checks(folder, project) if mypy else "",
        pyright=project.configured("pyright", "pyrightconfig.json"),
        pre_commit=_has(folder, "pre-commit", ".pre-commit-config.yaml"),
        targets=_targets(folder) if shutil.which("make") else (),
    )


def _mypy_checks(folder: Path, project: PythonProject) -> str:
    """What mypy needs on its command line: nothing if its settings name files or packages."""
    settings = project.settings.get("tool", {}).get("mypy", {})
    named = isinstance(settings, dict) and settings.keys() & {"files", "packages", "modules"}
    in_file = any(b"files" in _start(folder / name) for name in ("mypy.ini", ".mypy.ini"))
    return "" if named or in_file else "src" if (folder / "src").is_dir() else "."


def _targets(folder: Path) -> tuple[str, ...]:
    text = b"".join(_start(folder / name) for name in ("GNUmakefile", "makefile", "Makefile"))
    found = set(re.findall(rb"^(test|lint|typecheck)\s*:(?!=)", text, re.MULTILINE))
    return tuple(name for name in ("test", "lint", "typecheck") if name.encode() in found)


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


def _scripts(folder: Path, packages: Collection[str]) -> dict[str, str]:
    """The scripts of package.json that test, lint or check types; without one, what is installed and configured."""
    try:
        package = json.loads((folder / "package.json").read_text(encoding="utf-8"))
        scripts = package.get("scripts", {})
        # The default script of npm says that there are no tests, and fails.
        found = {
            name: scripts[name]
            for name in ("test", "lint", *TYPE_CHECKS)
            if isinstance(scripts.get(name), str) and "no test specified" not in scripts[name]
        }
    except (OSError, ValueError, AttributeError):
        return {}
    configured = {
        "test": (
            ("vitest", "vitest", "vitest.config.*"),
            ("vitest", "vitest", "vite.config.*"),
            ("jest", "jest", "jest.config.*"),
        ),
        "lint": (("eslint", "eslint .", "eslint.config.*"), ("eslint", "eslint .", ".eslintrc*")),
        "typecheck": (("tsc", "tsc --noEmit", "tsconfig.json"),),
    }
    for name, ways in configured.items():
        there = any(each in found for each in TYPE_CHECKS) if name == "typecheck" else name in found
        for program, script, settings in () if there else ways:
            if program in packages and (any(folder.glob(settings)) or program in package):
                found.setdefault(name, script)
    return found
