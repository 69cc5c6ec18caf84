"""Detects what a workflow can use in a folder: tests, linters, agent CLIs."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from backedge.catalog import AGENT_CLIS

_VENVS = (".venv/bin", "venv/bin", ".venv/Scripts", "venv/Scripts")
_FOREIGN = {"node_modules", "venv", "__pycache__", "site-packages", "agents", "example"}
MOST_LOOKED_AT = 5_000
"""How many files to look at: enough to find a test, and fast in a large repository."""


@dataclass(frozen=True)
class Found:
    """The programs that can be started, and whether the folder has something for them to do."""

    git: bool = False
    clis: tuple[str, ...] = ()
    """The agent CLIs that are installed."""
    pytest: str = ""
    ruff: str = ""
    npm: bool = False
    scripts: tuple[str, ...] = ()
    """The scripts `test` and `lint` of package.json, if there are any."""
    python_files: bool = False
    python_tests: bool = False
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
        files = "" if self.python_files else ", but there is no Python yet"
        yield "ruff", f"{self.ruff}{files}" if self.ruff else ""
        scripts = (
            f"package.json with {', '.join(self.scripts)}" if self.scripts else "no package.json with test or lint"
        )
        yield "npm", scripts if self.npm else ""


def found_in(folder: Path) -> Found:
    """Look at a folder and at the programs of this machine."""
    files = list(_files(folder))
    return Found(
        git=any((each / ".git").exists() for each in (folder, *folder.parents)),
        clis=tuple(name for name in AGENT_CLIS if shutil.which(name)),
        pytest=_program(folder, "pytest"),
        ruff=_program(folder, "ruff"),
        npm=shutil.which("npm") is not None,
        scripts=_scripts(folder),
        python_files=any(name.endswith(".py") for name in files),
        python_tests=any(name.endswith(".py") and ("test_" in name[:5] or name.endswith("_test.py")) for name in files),
        python=next((name for name in ("python3", "python") if shutil.which(name)), "python3"),
    )


def _program(folder: Path, name: str) -> str:
    """How to start a program: from the virtual environment of the folder, if it is there."""
    for venv in _VENVS:
        if os.access(folder / venv / name, os.X_OK):
            return f"{venv}/{name}"
    return name if shutil.which(name) else ""


def _files(folder: Path) -> Iterator[str]:
    count = 0
    for _, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in _FOREIGN and not name.startswith(".")]
        for name in names:
            yield name
            count += 1
            if count >= MOST_LOOKED_AT:
                return


def _scripts(folder: Path) -> tuple[str, ...]:
    try:
        package = json.loads((folder / "package.json").read_text(encoding="utf-8"))
        scripts = package.get("scripts", {})
        # The default script of npm says that there are no tests, and fails.
        return tuple(
            name
            for name in ("test", "lint")
            if isinstance(scripts.get(name), str) and "no test specified" not in scripts[name]
        )
    except (OSError, ValueError, AttributeError):
        return ()
