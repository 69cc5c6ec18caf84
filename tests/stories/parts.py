"""A project with stories in a folder, its agents played by a script, driven by the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from backedge.stories.rules.front_matter import parse_story

# An agent that plays its script: the reply of its attempt for its story, the last one repeated.
AGENT = """\
import json, os, sys, time
told = json.load(sys.stdin)
step, attempt, story = os.environ["BACKEDGE_STEP"], int(os.environ["BACKEDGE_ATTEMPT"]), told["input"]["story"]["id"]
here = os.path.dirname(os.path.abspath(__file__))
seen = here + ".seen"
with open(os.path.join(seen, "executions"), "a") as file:
    file.write(f"{story} {step} {attempt} {os.getcwd()}\\n")
with open(os.path.join(seen, "briefings", f"{story}.{step}.{attempt}.json"), "w") as file:
    json.dump(told, file)
with open(os.path.join(here, "scripts.json"), encoding="utf-8") as file:
    script = json.load(file).get(story, {}).get(step)
if script is None:
    judge = {"verdict": "pass", "resolutions": [{"finding": each["id"], "status": "fixed"} for each in told["verify"]]}
    script = [judge if step.endswith("review") else {"output": {"attempt": attempt}}]
reply = script[min(attempt, len(script)) - 1]
time.sleep(reply.pop("!sleep", 0))
if "!exit" in reply:
    sys.exit(reply["!exit"])
print(json.dumps(reply))
"""

PATIENCE = 600
"""Seconds that a command may take: thirty stories take long on a machine that does much else."""
STEPS = {
    "research": {"phase": "research"},
    "plan": {"phase": "planning", "needs": ["research"]},
    "implement": {"phase": "code", "needs": ["plan"]},
    "review": {"reviews": "implement"},
}
PASS = {"verdict": "pass"}


def rejected(*findings: str | Mapping[str, Any]) -> dict[str, Any]:
    """A failing review; a text stands for a blocker."""
    stated = [{"description": each, "severity": "blocker"} if isinstance(each, str) else each for each in findings]
    return {"verdict": "fail", "findings": stated}


class Stories:
    """A project with stories."""

    def __init__(self, folder: Path, stories: Mapping[str, Any] | None = None, **more: Any) -> None:
        self.folder = folder
        self.seen = folder.with_name(f"{folder.name}.seen")
        """What the agents saw. It lies outside the workspace, where no step is held to its `writes`."""
        (self.seen / "briefings").mkdir(parents=True)
        (folder / "stories").mkdir(parents=True)
        (folder / "agent.py").write_text(AGENT)
        self.workflow(stories, **more)
        self.scripts: dict[str, Any] = {}
        self.script()

    def workflow(self, stories: Mapping[str, Any] | None = None, **more: Any) -> None:
        steps = more.pop("steps", STEPS)
        command = [sys.executable, "-I", "-S", str(self.folder / "agent.py")]
        made = {name: {"run": command, "writes": [], **step} for name, step in steps.items()}
        file = {"name": "w", "profile": "ai-sdlc", "stories": stories or {}, "steps": made, **more}
        (self.folder / "backedge.yaml").write_text(json.dumps(file, indent=1))

    def script(self, **stories: Mapping[str, Sequence[Any]]) -> None:
        """What the agents reply, by story, step and attempt."""
        self.scripts |= stories
        (self.folder / "scripts.json").write_text(json.dumps(self.scripts))

    def story(self, id: str, text: str = "Make it.\n", /, **fields: object) -> Path:
        lines = [f"{name}: {json.dumps(value)}" for name, value in {"id": id, "status": "ready", **fields}.items()]
        path = self.folder / "stories" / f"{id}.md"
        path.write_text("\n".join(["---", *lines, "---", text]))
        return path

    def says(self, id: str) -> dict[str, Any]:
        """The front matter of a story."""
        return dict(parse_story((self.folder / "stories" / f"{id}.md").read_bytes(), id).values)

    def text(self, id: str) -> str:
        return (self.folder / "stories" / f"{id}.md").read_text()

    def told(self, story: str, step: str, attempt: int) -> Any:
        return json.loads((self.seen / "briefings" / f"{story}.{step}.{attempt}.json").read_bytes())

    def executions(self) -> list[list[str]]:
        path = self.seen / "executions"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "backedge.cli.main", *words],
            cwd=self.folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def backedge(self, *words: str, expect: int = 0) -> tuple[str, str]:
        """What the command says on stdout and stderr."""
        going = self.start(*words)
        out, err = going.communicate(timeout=PATIENCE)
        assert "Traceback" not in err, err
        assert going.returncode == expect, f"{going.returncode}: {out}{err}"
        return out, err

    def json(self, *words: str, expect: int = 0) -> Any:
        return json.loads(self.backedge(*words, "--json", expect=expect)[0])

    def auto(self, *words: str, expect: int = 0) -> str:
        """All that is said: the progress, and then the result."""
        out, err = self.backedge("run", "--auto", *words, expect=expect)
        return err + out

    def actions(self, story: str, expect: int = 0) -> list[Any]:
        """Work through one story, action by action, until only a person can help or it is done."""
        return [each["kind"] for each in self.json("run", "--auto", "--story", story, expect=expect)["actions"]]


def environment() -> dict[str, str]:
    """Ours, but compiled files are kept between the many starts of the command."""
    left = ("PYTHONDONTWRITEBYTECODE", "COLUMNS", "PYTHONWARNINGS")
    ours = {key: value for key, value in os.environ.items() if key not in left and not key.startswith("BACKEDGE_")}
    return {**ours, "BACKEDGE_SANDBOX": "off"}
