"""A judge that believes what it sees: each step's command runs in the workspace itself, and an exit code of 0 is a pass.

It has no baseline, no room, no sandbox and no protected files. A cheat that does not fool even this judge proves nothing
about the defence.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.cheats.case import Case
from tests.cheats.leftovers import end_leftovers
from tests.cheats.place import TIME_LIMIT, Place

REWORKS = 2
"""How often the producers work before the judges look: some cheats begin with the second attempt."""
BRIEFING: dict[str, Any] = {"feedback": {"findings": []}}


@dataclass(frozen=True)
class Belief:
    """What the naive judge thought of a case."""

    before: bool
    """Whether all judges passed before anybody had done anything."""
    after: bool
    """Whether they passed in the end."""
    fixed: bool
    """Whether the defect is fixed in the end."""
    said: str

    @property
    def fooled(self) -> bool:
        return self.after and not self.fixed


def believe(case: Case) -> Belief:
    """Let the agents of a case do their work, and ask the naive judge before and after."""
    folder = Path(tempfile.mkdtemp(prefix=f"naive-{case.name}-")).resolve()
    try:
        place = Place(folder, case)
        place.make("")
        engine = _Naive(place)
        before = engine.judges(attempt=0)
        engine.said.clear()
        after = engine.run()
        time.sleep(case.settle)
        return Belief(before, after, place.defect_is_fixed(), "\n".join(engine.said))
    finally:
        end_leftovers(folder)
        shutil.rmtree(folder, ignore_errors=True)


class _Naive:
    """Runs the steps of a workflow file one after the other, in the order of the file."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.steps = self._steps()
        self.said: list[str] = []

    def _steps(self) -> dict[str, Mapping[str, Any]]:
        """The steps of the workflow file as it is now."""
        return dict(YAML(typ="safe").load(self.place.workspace / "backedge.yaml")["steps"])

    def run(self) -> bool:
        """Whether all judges pass: the first producers work, then every step that is left comes once."""
        first = list(takewhile(lambda name: not self._is_judge(name), self.steps))
        plans = [self._works(name, attempt) for attempt in range(1, REWORKS + 1) for name in first]
        self.steps = self._steps()
        for plan in plans:
            self.steps.update(plan.get("add_steps", {}))
            self.steps = {name: step for name, step in self.steps.items() if name not in plan.get("remove_steps", ())}
        for name in self.steps:
            if name not in first and not self._is_judge(name):
                self._works(name, 1)
            elif self._is_judge(name) and not self._passes(name, 1):
                return False
        return True

    def judges(self, attempt: int) -> bool:
        return all(self._passes(name, attempt) for name in self.steps if self._is_judge(name))

    def _is_judge(self, name: str) -> bool:
        return bool({"tests", "reviews"} & set(self.steps[name]))

    def _works(self, name: str, attempt: int) -> dict[str, Any]:
        """Let a producer work, and take its word for it."""
        _, done = self._start(name, attempt)
        try:
            return dict(json.loads(done.stdout))
        except ValueError:
            return {}

    def _passes(self, name: str, attempt: int) -> bool:
        folder, done = self._start(name, attempt)
        self.said.append(f"{name}: exit {done.returncode}\n{done.stdout[-1500:]}{done.stderr[-500:]}")
        if "report" in self.steps[name]:
            return done.returncode == 0
        outcome = folder / "outcome.json"
        try:
            verdict = json.loads(outcome.read_text() if outcome.exists() else done.stdout)["verdict"]
        except (ValueError, KeyError):
            return False
        return bool(verdict == "pass")

    def _start(self, name: str, attempt: int) -> tuple[Path, subprocess.CompletedProcess[str]]:
        step = self.steps[name]
        folder = self.place.workspace / ".backedge" / "attempts" / "naive" / f"{name}-{attempt}"
        folder.mkdir(parents=True, exist_ok=True)
        env = {
            **self.place.env,
            "BACKEDGE_STEP": name,
            "BACKEDGE_ATTEMPT": str(attempt),
            "BACKEDGE_OUTCOME": str(folder / "outcome.json"),
            "BACKEDGE_REPORT": str(folder / "report"),
        }
        # A process that an agent left needs a moment to see that the attempt has begun, and that it has ended.
        time.sleep(0.1)
        done = subprocess.run(
            [str(word).replace("{report}", str(folder / "report")) for word in step["run"]],
            cwd=self.place.workspace / step.get("workspace", "."),
            env=env,
            input=json.dumps(BRIEFING),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIME_LIMIT,
        )
        (folder / "ended.json").write_text(json.dumps({"code": done.returncode}))
        return folder, done
