"""The demo ends verified, or says why it cannot run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from backedge.adapters.evidence.sandbox import Sandbox
from tests.cli_setup.parts import backedge, environment

WITHOUT_NAMESPACES = ["bwrap", "--dev-bind", "/", "/", "--unshare-user", "--disable-userns", "--cap-drop", "ALL"]
"""Starts a program that can make neither a sandbox nor an overlay, as on many machines."""


def test_the_demo_ends_verified(tmp_path: Path) -> None:
    said = backedge(tmp_path, "demo", env={"TMPDIR": str(tmp_path), "BACKEDGE_SANDBOX": ""}).stdout
    assert "■ verified (exit code 0)" in said
    the_edited_test_is_reported(said)
    confined = "in a sandbox (bubblewrap)" if Sandbox().in_force == "bwrap" else "without a sandbox"
    assert f"the agents ran {confined}" in said
    for beat in ("L-1 code ◄── lint", "L-2 code ◄── test", "kill -9", "keeps working"):
        assert beat in said
    for beat in (
        "? E-1 about L-2: limit same_finding (2/2)",
        "decided: revise by you",
        "plan ◄── review",
        "none twice",
    ):
        assert beat in said
    for beat in (
        "farewell |            story file: recorded refinement attempt 2 of 3",
        "checkout |            ? blocked: Max refinement attempts (3/3)",
        "the backlog is done: 3 stories",
    ):
        assert beat in said
    assert "│" not in said
    ending = said[said.index("── Now in your own repository") :]
    for command in ("backedge doctor", "backedge init", "backedge check", 'backedge run --input task="your task"'):
        assert f"\n  {command} " in ending
    # `make demo` leaves backedge in a virtual environment that is not on the PATH.
    installed = shutil.which("backedge") is not None
    assert ("\n  pip install . " in ending, "\n  make demo SERVE=1 " in ending) == (not installed, not installed)
    assert ("\n  backedge demo --serve " in ending) == installed
    assert list(tmp_path.iterdir()) == []


def the_edited_test_is_reported(said: str) -> None:
    """The coder edited the test, and everything passed with it; backedge ran the test as it was."""
    for beat in (
        "✓ code ($0.05): fixed the failing test",
        '+    assert price.total(["1.005"]) > Decimal("1.00")',
        "code changed tests/test_price.py",
        "test, files as delivered: 2 tests, 0 failed",
        "F-2 not_fixed: it is still there with the tests as they were",
        "What was in force: the judges ran in",
    ):
        assert beat in said
    assert (
        said.index("fixed the failing test") < said.index("? E-1 about L-2") < said.index("decimals, rounded half up")
    )


@pytest.mark.skipif(Sandbox().in_force == "off", reason="bubblewrap is needed to take namespaces away")
def test_the_demo_catches_the_coder_without_namespaces_too(tmp_path: Path) -> None:
    done = subprocess.run(
        [*WITHOUT_NAMESPACES, sys.executable, "-m", "backedge.demo"],
        env={**environment(), "TMPDIR": str(tmp_path), "NO_COLOR": "1", "BACKEDGE_SANDBOX": ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    the_edited_test_is_reported(done.stdout)
    assert "the judges ran in a copy of the files" in done.stdout
    assert "the agents ran without a sandbox" in done.stdout


def test_an_interrupted_demo_leaves_nothing_behind(tmp_path: Path) -> None:
    going = subprocess.Popen(
        [sys.executable, "-m", "backedge.demo"],
        env={**environment(), "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert going.stdout is not None
    said = ""
    while "▸ code" not in said:
        said = going.stdout.readline()
        assert said, "it ended before its coder began"
    going.send_signal(signal.SIGINT)
    out, err = going.communicate(timeout=60)
    assert (going.returncode, err) == (130, "")
    assert out.endswith("The demo was interrupted.\n")
    assert list(tmp_path.iterdir()) == []
    agents = [path for path in Path("/proc").glob("[0-9]*/cwd") if _inside(path, tmp_path)]
    assert agents == []


def _inside(link: Path, folder: Path) -> bool:
    try:
        return str(folder) in os.readlink(link)
    except OSError:
        return False  # it has ended meanwhile, or is not ours


def test_a_missing_tool_is_a_clear_error(tmp_path: Path) -> None:
    done = backedge(tmp_path, "demo", env={"PATH": os.devnull}, expect=2)
    assert done.stderr.startswith(
        "backedge: the demo needs git, pytest and ruff: git is not installed: install git (`apt"
    )
    assert (done.stdout, "pip install" in done.stderr) == ("", False)
