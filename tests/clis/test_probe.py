"""Checking whether a CLI works, with programs that do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from backedge.adapters.agents.clis.registry import CLIS
from backedge.cli import agents
from tests.agents.parts import is_gone


def test_a_cli_that_does_not_answer_is_killed_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "codex"
    program.write_text(f"#!/bin/sh\nsleep 60 &\necho $! > {tmp_path}/child\nwait\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(agents, "PATIENCE", 0.5)
    probe = agents.probe(CLIS["codex"])
    assert (probe.installed, probe.works) == (True, False)
    assert probe.problem == "no version after 0.5 s"
    assert is_gone(int((tmp_path / "child").read_text()))
