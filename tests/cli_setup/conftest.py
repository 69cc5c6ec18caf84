"""No test of this folder waits for ever. Some start on a machine that has little, in an empty folder."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.cli.patience import patience

__all__ = ["patience"]


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """A machine with Python and git, and nothing else."""
    place = tmp_path / "bin"
    place.mkdir()
    for name, target in (("python3", sys.executable), ("git", shutil.which("git"))):
        (place / name).write_text(f'#!/bin/sh\nexec "{target}" "$@"\n')
        (place / name).chmod(0o755)
    return {"PATH": str(place)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "shop"
    made.mkdir()
    return made
