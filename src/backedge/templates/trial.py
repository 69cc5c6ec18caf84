"""Tries the linters and type checkers that `init` proposes. One that fails on the files of today would send all that it finds
to agents that were asked for something else."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from backedge.templates.runners import Tool

PATIENCE = 60.0
"""Seconds for all of them together. One that takes longer counts as passing: its first run says more."""
LOOKERS = {"ruff", "mypy", "eslint", "tsc"}
"""Programs that only look, as `init` starts them. Others may change files, or download something first."""


def failing_judges(folder: Path, judges: Mapping[str, Tool]) -> tuple[str, ...]:
    """The names of the judges that fail now."""
    end = time.monotonic() + PATIENCE
    with tempfile.TemporaryDirectory() as beside:
        started: dict[str, subprocess.Popen[bytes]] = {}
        for name, tool in judges.items():
            if not LOOKERS.isdisjoint(word.rpartition("/")[2] for word in tool.run):
                words = [word.replace("{report}", f"{beside}/{name}") for word in tool.run]
                try:
                    started[name] = subprocess.Popen(
                        words,
                        cwd=folder,
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                        start_new_session=True,
                    )
                except OSError:
                    continue  # `check` says what is wrong with the program
        return tuple(name for name, process in started.items() if _code(process, end) != 0)


def _code(process: subprocess.Popen[bytes], end: float) -> int:
    """The exit code; 0 if it takes too long."""
    try:
        return process.wait(max(0.0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        return 0
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
