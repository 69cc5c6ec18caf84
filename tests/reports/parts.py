"""What the tests of reports share."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

import pytest

from backedge.adapters.reports.places import FileNames
from backedge.adapters.reports.spec import ReportSpec
from backedge.adapters.reports.tests import ReportedTests
from backedge.catalog import ReportKind
from backedge.engine.protocol import Outcome

ROOT = Path(__file__).resolve().parents[2]
RECORDED = Path(__file__).parent / "recorded"
RUNNERS = ROOT / "build" / "runners"
"""Where `tools/install_runners` puts the test runners."""


def runner(name: str) -> str:
    """The program of a test runner. The test is skipped where it is not installed, unless that must not happen."""
    for place in (RUNNERS / "bin", RUNNERS / "node_modules" / ".bin"):
        if (place / name).exists():
            return str(place / name)
    found = shutil.which(name)
    return found if found is not None and _works(found) else missing(name)


@functools.cache
def _works(program: str) -> bool:
    """Whether a program can start: that of rustup is there before a toolchain is."""
    words = ("version",) if Path(program).name == "go" else ("--version",)
    return subprocess.run([program, *words], capture_output=True, timeout=60).returncode == 0


def missing(name: str) -> NoReturn:
    """Skip a test because a program is not installed, or fail where that must not happen."""
    if os.environ.get("BACKEDGE_REQUIRE_RUNNERS"):
        pytest.fail(f"{name} is not installed: `tools/install_runners` did not install it")
    pytest.skip(f"{name} is not installed: run `tools/install_runners`")


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


def recorded(name: str, folder: Path) -> bytes:
    """A report that a real tool wrote, as if it had run in a folder."""
    return (RECORDED / name).read_bytes().replace(b"{folder}", os.fsencode(folder))


def read(kind: ReportKind, text: bytes, folder: Path, log: bytes = b"") -> tuple[Outcome, ReportedTests]:
    return ReportSpec(kind).read(text, 0, "", FileNames(folder), log=log)
