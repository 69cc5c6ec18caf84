"""A whole run from a workflow file: claude writes, claude reviews, the finding goes back, and claude continues."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.clis.model import Call, Model, model
from tests.clis.parts import environment, needs

WORKFLOW = """\
name: greeting
steps:
  code:   {phase: code, agent: claude, writes: ["*.py"], timeout: 60s}
  review: {reviews: code, agent: claude, prompt: review.md, session: fresh}
"""
REVIEW = "Judge the step's work.\n\n{{feedback}}\n"


def command(*words: str) -> list[str]:
    program = Path(sys.executable).with_name("backedge")
    return [str(program), *words] if program.exists() else [sys.executable, "-m", "backedge.cli.main", *words]


def backedge(folder: Path, env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*words), cwd=folder, env=env, capture_output=True, text=True, timeout=180)


def project(folder: Path) -> Path:
    folder.mkdir()
    (folder / "backedge.yaml").write_text(WORKFLOW)
    (folder / "review.md").write_text(REVIEW)
    return folder


def scripted(script: Model, folder: Path) -> None:
    def write(content: str) -> Call:
        return Call("Write", {"file_path": str(folder / "greeting.py"), "content": content})

    def answer(**outcome: Any) -> Call:
        return Call("StructuredOutput", outcome)

    finding = {"description": "greets nobody", "severity": "high", "file": "greeting.py", "line": 1}
    mended = [{"finding": "F-1", "status": "fixed"}]
    script.says(
        *(write("print('hello')\n"), answer(output="a greeting", summary="wrote it")),
        answer(verdict="fail", summary="not yet", findings=[finding]),
        *(write("print('hello world')\n"), answer(output="a greeting", summary="mended it", resolutions=mended)),
        answer(verdict="pass", summary="good", findings=[], resolutions=mended),
    )


def test_a_finding_goes_back_to_claude_which_continues_and_the_run_is_verified(tmp_path: Path) -> None:
    needs("claude")
    with model() as script:
        folder = project(tmp_path / "work")
        scripted(script, folder)
        done = backedge(
            folder, environment("claude", script, tmp_path / "home"), "run", "--json", "--input", "task=greet"
        )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["outcome"] == "verified"
    assert told["steps"]["code"]["attempts"] == 2
    assert told["steps"]["review"]["attempts"] == 2
    assert [finding["status"] for finding in told["findings"]] == ["fixed"]
    assert told["usage"]["cost_usd"] > 0
    assert told["usage"]["tokens_in"] == 6 * 1200
    assert (folder / "greeting.py").read_text() == "print('hello world')\n"
    rework = script.asked_text(3)
    assert "toolu_1" in rework, "the coder goes on with its conversation"
    assert "greets nobody" in rework
    second_review = script.asked_text(5)
    assert "toolu_3" not in second_review, "the reviewer looks with fresh eyes"
    assert "Report for each of these whether it is fixed" in second_review


def test_a_cli_that_is_not_installed_is_named_before_anything_starts(tmp_path: Path) -> None:
    folder = project(tmp_path / "work")
    done = backedge(folder, {"PATH": str(tmp_path), "HOME": str(tmp_path)}, "run", "--json")
    assert done.returncode == 2
    assert "claude is not installed" in done.stderr
    assert "@anthropic-ai/claude-code" in done.stderr
    assert "Traceback" not in done.stderr
