"""The demo: it ends verified, or says why it cannot be told."""

from __future__ import annotations

import os
from pathlib import Path

from tests.cli_setup.parts import backedge


def test_the_demo_is_told_to_its_verified_end(tmp_path: Path) -> None:
    said = backedge(tmp_path, "demo", env={"TMPDIR": str(tmp_path)}).stdout
    assert "■ verified (exit code 0)" in said
    for beat in ("L-1 review_rejection: lint → code", "L-2 test_failure: test → code", "kill -9", "works on"):
        assert beat in said
    for beat in ("? E-1 about L-2: limit same_finding (2/2)", "decided: revise by you", "review → plan", "none twice"):
        assert beat in said
    assert "│" not in said
    assert list(tmp_path.iterdir()) == []


def test_a_missing_tool_is_a_sentence(tmp_path: Path) -> None:
    said = backedge(tmp_path, "demo", env={"PATH": os.devnull}, expect=2).stdout
    assert said.startswith("The demo uses real tools, and git cannot be found")
