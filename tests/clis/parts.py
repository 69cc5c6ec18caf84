"""What the tests of agent CLIs share: where the CLIs are, an environment without anybody's settings, and agents."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from backedge.adapters.agents.clis.agent import CliAgent, Workplace
from backedge.adapters.agents.clis.folder import CliFolder
from backedge.adapters.agents.process_tree import marked
from backedge.core.briefing import Briefing
from backedge.core.errors import AgentError
from backedge.engine.protocol import Outcome
from backedge.ports import Result
from tests.agents.parts import Hands, play, told
from tests.clis.model import Model

ROOT = Path(__file__).parents[2]
PLACES = (ROOT / "build" / "clis" / "node_modules" / ".bin", ROOT / "build" / "clis" / "node" / "bin")
PATH = os.pathsep.join([*map(str, PLACES), os.environ.get("PATH", os.defpath)])
PATIENCE = 120.0
REQUIRED = ("BACKEDGE_REQUIRE_CLIS", "BACKEDGE_REQUIRE_SANDBOX")
"""Set where the tests must not be skipped."""


def needs(cli: str) -> None:
    """Skip a test whose CLI is not there; fail where it has to be."""
    if shutil.which(cli, path=PATH) is None:
        why = f"{cli} is not installed: run tools/install_clis"
        pytest.fail(why) if os.environ.get("BACKEDGE_REQUIRE_CLIS") == "1" else pytest.skip(why)


def environment(cli: str, model: Model, home: Path) -> dict[str, str]:
    """The whole environment of a CLI: a home of its own, and the stand-in as its model."""
    home.mkdir(parents=True, exist_ok=True)
    return {"PATH": PATH, "HOME": str(home), **_SETUP[cli](model, home)}


def _claude(model: Model, home: Path) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": "sk-ant-dummy",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",
    }


def _codex(model: Model, home: Path) -> dict[str, str]:
    config = [
        'model_provider = "standin"',
        'model = "gpt-5-codex"',
        "[model_providers.standin]",
        'name = "standin"',
        f'base_url = "{model.url}/v1"',
        'env_key = "STANDIN_KEY"',
        'wire_api = "responses"',
        "request_max_retries = 1",
        "stream_max_retries = 1",
    ]
    (home / ".codex").mkdir(exist_ok=True)
    (home / ".codex" / "config.toml").write_text("\n".join(config))
    return {"STANDIN_KEY": "dummy"}


def _gemini(model: Model, home: Path) -> dict[str, str]:
    (home / ".gemini").mkdir(exist_ok=True)
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    return {"GEMINI_API_KEY": "dummy", "GOOGLE_GEMINI_BASE_URL": model.url}


def _opencode(model: Model, home: Path) -> dict[str, str]:
    config = {"provider": {"anthropic": {"options": {"baseURL": f"{model.url}/v1", "apiKey": "dummy"}}}}
    return {"OPENCODE_CONFIG_CONTENT": json.dumps(config), "OPENCODE_DISABLE_MODELS_FETCH": "1"}


_SETUP = {"claude": _claude, "codex": _codex, "gemini": _gemini, "opencode": _opencode}


class Bench:
    """One CLI with its model, its home and its workspace."""

    def __init__(self, cli: str, model: Model, folder: Path) -> None:
        needs(cli)
        self.cli, self.model = cli, model
        self.home, self.work = folder / "home", folder / "work"
        self.work.mkdir()
        self.env = environment(cli, model, self.home)

    def agent(self, **more: Any) -> CliAgent:
        place = Workplace(self.work, self.work / ".backedge", more.pop("writes", ("**",)))
        return CliAgent(self.cli, place, **{"env": self.env, "phase": "code", "grace": 1.0, **more})

    def result(self, briefing: Briefing | None = None, **more: Any) -> Result:
        result = play(self.agent(**more).work(briefing or told(), Hands()), PATIENCE)
        assert result is not None
        return result

    def outcome(self, briefing: Briefing | None = None, **more: Any) -> Outcome:
        outcome = self.result(briefing, **more).outcome
        assert isinstance(outcome, Outcome)
        return outcome

    def error(self, briefing: Briefing | None = None, **more: Any) -> AgentError:
        with pytest.raises(AgentError) as caught:
            self.result(briefing, **more)
        return caught.value

    def recover(self, briefing: Briefing | None = None, **more: Any) -> Result | None:
        return play(self.agent(**more).recover(briefing or told(), Hands()), PATIENCE)

    def folder(self, briefing: Briefing | None = None) -> CliFolder:
        briefing = briefing or told()
        return CliFolder(self.work / ".backedge", briefing.run, briefing.step, briefing.attempt)

    def survivors(self, briefing: Briefing | None = None) -> list[int]:
        return [row.identity.pid for row in marked(self.folder(briefing).mark)]


def without_settings(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Take everything out of the environment that could be somebody's configuration."""
    for name in list(os.environ):
        if name not in ("PATH", "TMPDIR", "LANG", "LC_ALL", "PYTEST_CURRENT_TEST", *REQUIRED):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder / "home"))
