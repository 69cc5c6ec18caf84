"""The command as people start it, in a folder of the test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

STORY = {
    "plan.py": """
import json, sys
told = json.load(sys.stdin)["feedback"]["findings"]
print(json.dumps({"output": {"units": ["a", *[each["description"] for each in told]]}, "summary": f"{1 + len(told)} units"}))
""",
    "code.py": """
import json, os, pathlib, sys, time
briefing = json.load(sys.stdin)
scratchpad = pathlib.Path(briefing["scratchpad"]).read_text()
progress = json.loads(pathlib.Path(briefing["progress"]).read_text())["feedback_loop"]
print("iteration", progress["current_iteration"], "\\x1b[31mred\\x1b[0m", file=sys.stderr, flush=True)
time.sleep(float(os.environ.get("SLOW", "0")))
pathlib.Path("made.txt").write_text(f"version {briefing['attempt']}\\n")
seen = {"iteration": progress["current_iteration"], "told": scratchpad.count("FAIL")}
print(json.dumps({"output": {**seen, "large": "x" * 40_000}, "summary": "coded", "usage": {"cost_usd": 0.25}}))
""",
    "review.py": """
import json, sys
attempt = json.load(sys.stdin)["attempt"]
finding = {"description": f"issue {attempt}", "severity": "high", "file": "made.txt", "line": 1}
print(json.dumps({"verdict": "fail", "findings": [finding]} if attempt < WRONG else {"verdict": "pass"}))
""",
}
WORKFLOW = """
name: story
limits: {rounds_per_loop: 2, cost_usd: 5}
steps:
  plan: {phase: planning, run: [PYTHON, plan.py], writes: []}
  code: {phase: code, needs: [plan], run: [PYTHON, code.py], writes: [made.txt]}
  review: {reviews: code, run: [PYTHON, review.py]}
"""


def environment() -> dict[str, str]:
    """Ours, but compiled files are kept between the many starts of the command."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


def backedge(
    folder: Path, *words: str, expect: int = 0, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "backedge.cli.main", *words],
        cwd=folder,
        env={**environment(), "NO_COLOR": "1", **(env or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == expect, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


def asked(folder: Path, *words: str) -> Any:
    return msgspec.json.decode(backedge(folder, *words, "--json").stdout)


def story(folder: Path, wrong: int = 2) -> Path:
    """A project whose reviewer fails the work until its attempt number `wrong`."""
    folder.mkdir(exist_ok=True)
    for name, text in STORY.items():
        (folder / name).write_text(text.replace("WRONG", str(wrong)))
    (folder / "backedge.yaml").write_text(WORKFLOW.replace("PYTHON", sys.executable))
    return folder


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    done = subprocess.run(
        ["git", *who, *words],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
    )
    return done.stdout


def install(bare: dict[str, str], name: str) -> None:
    program = Path(bare["PATH"]) / name
    program.write_text("#!/bin/sh\necho 2.1.0\n")
    program.chmod(0o755)
