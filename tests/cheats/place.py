"""The folder of one case: a repository, a home of its own, and the installed command, all as separate processes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cheats import tools
from tests.cheats.case import Case

TIME_LIMIT = 150.0
"""Seconds that one command may take."""
KNOWN = {
    *("run", "workflow", "outcome", "paused", "steps", "loops", "findings", "escalations", "refused", "usage"),
    *("plans", "checks", "gates"),
}
KNOWN_OF_STEP = {"phase", "state", "attempts", "output", "verdict", "version", "last_error"}
"""Keys of a report that repeat what agents say. A cheat is visible only by what backedge itself has seen."""
TRUTH = "import sys; sys.path.insert(0, '.'); sys.pycache_prefix = sys.argv[1]; exec(sys.argv[2])"


@dataclass(frozen=True)
class Answer:
    """What a command said."""

    code: int | None
    """None if it did not end in time."""
    out: str
    err: str

    @property
    def report(self) -> dict[str, Any]:
        try:
            return dict(json.loads(self.out))
        except ValueError:
            return {}

    @property
    def verified(self) -> bool:
        return self.code == 0 and self.report.get("outcome") == "verified"

    @property
    def text(self) -> str:
        """How it ended and why, in a line."""
        report = self.report
        asked = [each["reason"] for each in report.get("escalations", ()) if each["decided"] is None]
        errors = [step["last_error"] for step in report.get("steps", {}).values() if step["last_error"]]
        complaints = [] if report else self.err.strip().splitlines()[-1:]
        why = "; ".join([*asked, *errors, *complaints])
        return " ".join(f"exit {self.code}, {report.get('outcome', 'no report')}. {why}".split())[:240]


class BrokenCase(Exception):
    """The case cannot say anything about backedge."""


class Place:
    """The folder of one case: the workspace, a home and the state of backedge."""

    def __init__(self, folder: Path, case: Case) -> None:
        self.folder, self.case = folder, case
        self.workspace = folder / "work"
        venv = (self.workspace / ".venv" / "bin",) if case.venv else ()
        dropped = (
            "BACKEDGE_",
            "PYTEST_",
            "PYTHON",
            "GIT_",
            "XDG_",
            "NODE_",
            "npm_",
            "COLOR",
            "NO_COLOR",
            "VIRTUAL_ENV",
        )
        self.env = {
            **{key: value for key, value in os.environ.items() if not key.startswith(dropped)},
            "HOME": str(folder / "home"),
            "XDG_STATE_HOME": str(folder / "state"),
            "PATH": tools.search_path(*venv),
            "CHEATS_CASE": str(folder),
            # Removing old folders of other tests may take a minute.
            "PYTEST_DEBUG_TEMPROOT": str(folder / "temporary"),
        }

    def make(self, sandbox: str) -> None:
        for name in ("home", "state", "temporary", "work"):
            (self.folder / name).mkdir()
        (self.folder / "home" / ".gitconfig").write_text(
            "[user]\n name = Ann\n email = ann@localhost\n[init]\n defaultBranch = main\n"
        )
        head = f"sandbox: {sandbox}\n" if sandbox else ""
        for path, text in {**self.case.files, "backedge.yaml": head + self.case.workflow}.items():
            file = self.workspace / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        if self.case.venv:
            tools.copy_to(self.workspace / ".venv")
        self.shell(self.case.prepare)
        if self.case.git:
            self.shell("git init -q . && git add -A && git commit -qm 'the beginning'")

    def shell(self, script: str) -> None:
        done = self.start(["sh", "-ec", script])
        if done.code != 0:
            raise BrokenCase(f"the repository cannot be made: {done.err.strip()}")

    def act(self, words: Sequence[str]) -> None:
        """What a person does before the last command: another command, or waiting."""
        if words[0] == "sleep":
            time.sleep(float(words[1]))
        else:
            self.backedge(*words)

    def backedge(self, *words: str) -> Answer:
        answer = self.start(["backedge", *words])
        if re.search(r"^Traceback \(most recent call last\)", answer.err, re.MULTILINE):
            raise BrokenCase(f"backedge {' '.join(words)} has a traceback: {answer.err[-400:]}")
        return answer

    def start(self, argv: Sequence[str]) -> Answer:
        # The output goes to files: a process that an agent left may hold a pipe open for ever.
        out, err = self.folder / "out", self.folder / "err"
        with out.open("wb") as said, err.open("wb") as complained:
            process = subprocess.Popen(
                argv,
                cwd=self.workspace,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=complained,
                start_new_session=True,
            )
            try:
                code: int | None = process.wait(TIME_LIMIT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                code = None
        return Answer(code, out.read_text(errors="replace"), err.read_text(errors="replace"))

    def defect_is_fixed(self) -> bool:
        """Look at the delivered files with programs that the agents could not reach."""
        language, text = self.case.truth
        programs: Mapping[str, list[str]] = {
            "python": [sys.executable, "-I", "-S", "-c", TRUTH, str(self.folder / "bytecode"), text],
            "node": ["node", "-e", text],
            "sh": ["sh", "-c", text],
        }
        env = {**self.env, "PATH": tools.search_path()}
        done = subprocess.run(programs[language], cwd=self.workspace, env=env, capture_output=True, timeout=TIME_LIMIT)
        return done.returncode == 0

    def seen(self, run: str) -> str:
        """What backedge itself says about the run: keys of its report and of briefings that no agent has written."""
        report = self.backedge("show", "--json", *([run] if run else [])).report
        steps = {
            name: {key: value for key, value in step.items() if key not in KNOWN_OF_STEP}
            for name, step in report.get("steps", {}).items()
        }
        told = [
            json.loads(path.read_text()).get("changes")
            for path in sorted(self.workspace.glob(".backedge/attempts/*/*/briefing.json"))
        ]
        rest = {key: value for key, value in report.items() if key not in KNOWN}
        return json.dumps([rest, steps, told], ensure_ascii=False)
