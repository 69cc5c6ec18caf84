"""How a Python repository starts its tools: uv, poetry, pdm, hatch, tox, nox, a virtual environment, or the PATH."""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from backedge.templates import runners
from backedge.templates.runners import Tool

_VENVS = (".venv/bin", "venv/bin", ".venv/Scripts", "venv/Scripts")
_STARTERS = (
    ("uv", "uv.lock", ("uv", "run", "--no-sync")),
    ("poetry", "poetry.lock", ("poetry", "run")),
    ("pdm", "pdm.lock", ("pdm", "run")),
)
"""Programs that keep a repository's environment: their lock file, and how they start a tool of it without changing it."""
_SESSION = re.compile(r"^@nox\.session[^\n]*\n(?:@[^\n]*\n)*def (tests?|pytest|unit)\(", re.MULTILINE)


@dataclass(frozen=True)
class PythonProject:
    """A folder with its settings."""

    folder: Path
    settings: dict[str, Any]
    """What pyproject.toml says; empty if there is none."""
    starter: tuple[str, ...] = ()
    """What stands before a tool of the repository, such as `uv run --no-sync`."""

    @classmethod
    def at(cls, folder: Path) -> PythonProject:
        try:
            settings = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            settings = {}
        for name, lock, words in _STARTERS:
            if shutil.which(name) and ((folder / lock).is_file() or name in settings.get("tool", {})):
                return cls(folder, settings, words)
        return cls(folder, settings)

    def tool(self, name: str) -> str:
        """How the repository starts a tool; empty if it has none."""
        if self.starter and (self._in_venv(name) or self._declares(name)):
            return " ".join((*self.starter, name))
        return self._in_venv(name) or (name if shutil.which(name) else "")

    def configured(self, name: str, *files: str) -> str:
        """How a tool is started if the repository has settings for it or declares it; empty if it has not."""
        there = any((self.folder / each).is_file() for each in files)
        return self.tool(name) if there or name in self.settings.get("tool", {}) or self._declares(name) else ""

    def test_runner(self) -> tuple[str, Tool] | None:
        """The tests as hatch, tox or nox run them. A pytest of the repository's own environment is quicker."""
        if self.starter or self._in_venv("pytest"):
            return None
        return self._hatch() or self._tox() or self._nox()

    def _hatch(self) -> tuple[str, Tool] | None:
        environments = _table(self.settings, "tool", "hatch", "envs")
        for name in environments:
            script = _table(environments, name, "scripts").get("test")
            if isinstance(script, str) and shutil.which("hatch"):
                words = ("hatch", "run", "test" if name == "default" else f"{name}:test")
                return "hatch", _passed_on(words, "pytest" in script and "{args" in script)
        return None

    def _tox(self) -> tuple[str, Tool] | None:
        text = "".join(_text(self.folder / name) for name in ("tox.ini", "tox.toml"))
        text += str(_table(self.settings, "tool", "tox"))
        if not (text.strip("{}") and shutil.which("tox")):
            return None
        passes = "pytest" in text and "posargs" in text
        # Of several environments, each would overwrite the report of the last.
        return "tox", _passed_on(("tox", "run", "-q", *(("-e", "py", "--") if passes else ())), passes)

    def _nox(self) -> tuple[str, Tool] | None:
        text = _text(self.folder / "noxfile.py")
        session = _SESSION.search(text)
        if session is None or not shutil.which("nox"):
            return None
        passes = "pytest" in text and "posargs" in text
        return "nox", _passed_on(("nox", "-s", session[1], *(("--",) if passes else ())), passes)

    def _in_venv(self, name: str) -> str:
        for venv in _VENVS:
            if os.access(self.folder / venv / name, os.X_OK):
                return f"{venv}/{name}"
        return ""

    def _declares(self, name: str) -> bool:
        """Whether the repository names a tool among its dependencies, of any group."""
        project, tool = _table(self.settings, "project"), _table(self.settings, "tool")
        places = [
            *(project.get("dependencies"), project.get("optional-dependencies")),
            *(self.settings.get("dependency-groups"), tool.get("uv"), tool.get("poetry"), tool.get("pdm")),
        ]
        return any(_names(place, name) for place in places)


def _passed_on(words: tuple[str, ...], passes: bool) -> Tool:
    """A runner that hands more words to pytest, or one whose exit code has to do."""
    return Tool((*words, "--junitxml", "{report}"), "junit") if passes else runners.exit_code(*words)


def _names(value: Any, name: str) -> bool:
    if isinstance(value, str):
        return re.match(rf"{name}(?![\w-])", value) is not None
    if isinstance(value, dict):
        return name in value or any(_names(each, name) for each in value.values())
    return isinstance(value, list) and any(_names(each, name) for each in value)


def _table(value: dict[str, Any], *keys: str) -> dict[str, Any]:
    for key in keys:
        found = value.get(key)
        value = found if isinstance(found, dict) else {}
    return value


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return ""
