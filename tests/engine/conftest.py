"""Processes of their own, for the tests that need some."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PROGRAM = str(Path(__file__).with_name("engine_process.py"))
Process = subprocess.Popen[str]
Start = Callable[..., Process]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts engine processes, and ends those that are left over."""
    started: list[Process] = []

    def begin(*arguments: object, **environment: str) -> Process:
        command = [sys.executable, PROGRAM, *map(str, arguments)]
        env = {**os.environ, **environment}
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env))
        return started[-1]

    yield begin
    for process in started:
        process.kill()
        process.communicate()
