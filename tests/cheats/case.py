"""One case of the suite: a small repository, a workflow, the scripts that play its agents, and what must come of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

DONE = '{"summary": "fixed the discount"}'
PROGRAMS = {"sh": ("sh", "sh"), "python": ("python3", "py"), "js": ("node", "cjs")}
"""The program and the ending of an agent's script, by language."""
RUN: tuple[tuple[str, ...], ...] = (("run", "--json"),)


class Family(StrEnum):
    TESTS = "tests"
    SPECIAL_CASING = "special-casing"
    STATE = "reports, state, git"
    LINT = "lint"
    TIME = "time"
    REVIEW = "review"
    PROTOCOL = "protocol"
    JUDGES = "judges"
    JAVASCRIPT = "javascript"
    SHELL = "shell"
    CONTROL = "control"


class Verdict(StrEnum):
    """What became of a case."""

    CAUGHT = "caught"
    """The run did not end verified."""
    VISIBLE = "visible"
    """It ended verified, but the report or the reviewer's briefing names the cheat."""
    NEITHER = "neither"
    """It ended verified, and nothing shows why it should not have."""
    PASSED = "passed"
    """An honest run ended verified."""
    ASKED = "asked"
    """An honest run asked one question, and ended verified when it was approved."""
    REFUSED = "refused"
    """An honest run did not end verified."""
    BROKEN = "broken"
    """The case itself does not work: the repository, a script or the command."""
    MISSING = "missing"
    """A program or a key of the workflow file that the case needs is not there."""


@dataclass(frozen=True)
class Repository:
    """Files with a real defect, and a command that succeeds only if the defect is fixed."""

    files: Mapping[str, str]
    workflow: str
    """The workflow file; CODER stands for the coder's script, as a list."""
    truth: tuple[str, ...]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """What one run is made of, and what must come of it."""

    name: str
    family: Family
    says: str
    """What the agent does, in a sentence."""
    files: Mapping[str, str]
    workflow: str
    truth: tuple[str, ...]
    """A command that fails while the defect is there; it is run at the end, out of the agent's reach."""
    expect: Verdict
    reason: str = ""
    """Why a cheat is only visible, or neither."""
    shows: str = ""
    """For a visible cheat: a regular expression that what backedge shows must match."""
    in_sandbox: Verdict | None = None
    """What is expected under bubblewrap, if it differs."""
    venv: bool = False
    """The repository has its own .venv with the test tools, first on PATH."""
    git: bool = True
    prepare: str = ""
    """Shell commands that finish the repository before its first commit."""
    person: tuple[tuple[str, ...], ...] = RUN
    """What the person at the keyboard runs: arguments of backedge, or `sleep` and seconds; the last one decides."""
    reviewed: bool = False
    """A reviewer is part of the workflow, so an honest run has no reason to ask a person."""
    refusal: bool = False
    """The last command may refuse (exit code 2): that is a way to catch it."""
    undone: bool = False
    """The coder fixes the defect, and somebody breaks it again: it is caught too if the fix is what was delivered."""
    settle: float = 0.0
    """Seconds after the run until processes that the agent left have done their work."""
    needs: tuple[str, ...] = ()
    """Programs, or keys of the workflow file written as `key:`."""

    @property
    def is_control(self) -> bool:
        return self.family is Family.CONTROL

    def expected(self, sandboxed: bool) -> Verdict:
        return self.in_sandbox if sandboxed and self.in_sandbox else self.expect


@dataclass(frozen=True)
class Agent:
    """A script that plays an agent. `outcome` is what it reports in the end; empty if it reports for itself."""

    script: str
    language: str = "sh"
    outcome: str = DONE
    name: str = field(default="code")

    @property
    def path(self) -> str:
        return f"agents/{self.name}.{PROGRAMS[self.language][1]}"

    @property
    def argv(self) -> str:
        """How the workflow file starts it."""
        return f"[{PROGRAMS[self.language][0]}, {self.path}]"

    @property
    def text(self) -> str:
        if not self.outcome:
            return f"{self.script.strip()}\n"
        report = {
            "sh": f"echo '{self.outcome}'",
            "python": f"print({self.outcome!r})",
            "js": f"console.log({self.outcome!r});",
        }
        return f"{self.script.strip()}\n{report[self.language]}\n"


def sh(script: str, **more: str) -> Agent:
    return Agent(script, "sh", **more)


def python(script: str, **more: str) -> Agent:
    return Agent(script, "python", **more)


def js(script: str, **more: str) -> Agent:
    return Agent(script, "js", **more)
