"""The real Claude Code in a run that is stopped during a turn: its usage so far was paid for, and counts."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

from backedge.adapters.agents.clis.agent import CliAgent, Workplace
from backedge.adapters.agents.clis.folder import CliFolder
from backedge.adapters.agents.process_tree import marked
from backedge.core.errors import AgentError
from backedge.core.model import Usage
from tests.agents.parts import Hands, play, told, until
from tests.clis.model import IN, Call, Hang, Model, model
from tests.clis.parts import environment, needs
from tests.clis.test_run import backedge, command

WORKFLOW = 'name: greeting\nsteps:\n  code: {phase: code, agent: claude, writes: ["*.py"], timeout: 60s}\n'
SAID = {"type": "assistant", "message": {"id": "m1", "usage": {"input_tokens": 70, "output_tokens": 5}, "content": []}}


class Purse(Hands):
    """An attempt that records its usage."""

    def __init__(self) -> None:
        self.used = Usage()

    def spend(self, usage: Usage) -> None:
        self.used += usage


def slow(folder: Path) -> CliAgent:
    """A CLI that prints something and never ends."""
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin" / "claude").write_text(f"#!/bin/sh\necho '{json.dumps(SAID)}'\necho . > begun\nsleep 60\n")
    (folder / "bin" / "claude").chmod(0o755)
    env = {"PATH": f"{folder / 'bin'}:/usr/bin:/bin"}
    return CliAgent("claude", Workplace(folder, folder / ".backedge", ()), env=env, grace=0.5)


def test_a_cancelled_attempt_reports_its_usage(tmp_path: Path) -> None:
    purse = Purse()

    async def scenario() -> None:
        work = asyncio.create_task(slow(tmp_path).work(told(), purse))
        await until((tmp_path / "begun").exists)
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work

    play(scenario())
    assert purse.used == Usage(0.0, 70, 5)


def test_an_attempt_in_doubt_reports_its_usage(tmp_path: Path) -> None:
    early, late = Purse(), Purse()

    async def scenario() -> None:
        work = asyncio.create_task(slow(tmp_path).work(told(), early))
        await until((tmp_path / "begun").exists)
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work
        assert await slow(tmp_path).recover(told(), late) is None

    play(scenario())
    assert late.used == Usage(0.0, 70, 5)


def test_an_attempt_cancelled_after_a_crash_reports_its_usage(tmp_path: Path) -> None:
    early, late = Purse(), Purse()

    async def scenario() -> None:
        first = asyncio.create_task(slow(tmp_path).work(told(), early))
        await until((tmp_path / "begun").exists)
        again = asyncio.create_task(slow(tmp_path).recover(told(), late))
        await asyncio.sleep(0.2)
        again.cancel()
        with suppress(asyncio.CancelledError):
            await again
        with suppress(AgentError):
            await first

    play(scenario())
    assert late.used == Usage(0.0, 70, 5)


def begun(script: Model, folder: Path, env: dict[str, str]) -> subprocess.Popen[str]:
    """A run whose agent has written a file, and waits for the model."""
    folder.mkdir()
    (folder / "backedge.yaml").write_text(WORKFLOW)
    script.says(Call("Write", {"file_path": str(folder / "greeting.py"), "content": "1"}), Hang())
    run = subprocess.Popen(
        command("run", "--json"), cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert script.hanging.wait(60)
    return run


def used(told: str) -> Any:
    return json.loads(told)["usage"]["tokens_in"]


def test_the_usage_of_an_interrupted_run_counts(tmp_path: Path) -> None:
    needs("claude")
    with model() as script:
        env = environment("claude", script, tmp_path / "home")
        run = begun(script, tmp_path / "work", env)
        run.send_signal(signal.SIGINT)
        said, complaints = run.communicate(timeout=60)
        assert run.returncode == 130, complaints
        assert used(said) == IN
        script.says(Call("StructuredOutput", {"output": 1, "summary": "done"}))
        done = backedge(tmp_path / "work", env, "resume", "--json")
    assert done.returncode == 0, done.stderr
    assert used(done.stdout) == 2 * IN


def test_the_usage_of_an_attempt_in_doubt_counts(tmp_path: Path) -> None:
    needs("claude")
    with model() as script:
        env = environment("claude", script, tmp_path / "home")
        run = begun(script, tmp_path / "work", env)
        run.kill()
        run.communicate()
        state = tmp_path / "work" / ".backedge"
        (attempts,) = (state / "attempts").iterdir()
        for row in marked(CliFolder(state, attempts.name, "code", 1).mark):
            with suppress(ProcessLookupError):
                os.kill(row.identity.pid, signal.SIGKILL)
        asked = backedge(tmp_path / "work", env, "resume", "--json")
    assert asked.returncode == 3, asked.stderr
    assert "in doubt" in asked.stdout
    assert used(asked.stdout) == IN


def test_the_usage_of_a_cancelled_run_counts(tmp_path: Path) -> None:
    needs("claude")
    with model() as script:
        env = environment("claude", script, tmp_path / "home")
        run = begun(script, tmp_path / "work", env)
        (name,) = json.loads(backedge(tmp_path / "work", env, "runs", "--json").stdout)
        assert backedge(tmp_path / "work", env, "cancel", name["run"]).returncode == 0
        said, complaints = run.communicate(timeout=60)
    assert run.returncode == 1, complaints
    assert json.loads(said)["outcome"] == "cancelled"
    assert used(said) == IN
