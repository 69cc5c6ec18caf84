"""A sandbox for agents, made by bubblewrap: an agent can do its work, and nothing that would outlive or forge it.

The agent sees the whole machine, read-only. It can write its workspace, its home and a /tmp of its own, commit with git,
and use the network. It cannot write hooks or configuration of git, installed packages, or anything of backedge; it sees
only its own processes, and all of them end with it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from backedge.adapters.evidence import sandbox_program
from backedge.adapters.evidence.sandbox_mounts import SandboxMounts
from backedge.core.errors import AgentError

SandboxKind = Literal["auto", "bwrap", "off"]
_PATIENCE = 20.0
_ROOT_KEEPS = (
    *("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "NET_BIND_SERVICE", "NET_RAW"),
    "SETFCAP",  # a sandbox inside this one, as Codex makes it, begins with a user namespace that has a root
)
"""What root may still do inside; with more, it could undo the mounts."""


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether this machine can make a sandbox, and why not."""

    reason: str = ""

    def __bool__(self) -> bool:
        return not self.reason


class Sandbox:
    """The sandbox of a workflow's agents, as `sandbox:` says."""

    def __init__(self, kind: SandboxKind = "auto") -> None:
        self.kind = kind

    def available(self) -> Availability:
        """Whether bubblewrap works here; tried once per process."""
        return _probed()

    @property
    def in_force(self) -> Literal["bwrap", "off"]:
        """What agents really get on this machine."""
        return "bwrap" if self.kind != "off" and self.available() else "off"

    def argv(
        self,
        argv: Sequence[str],
        workspace: Path,
        state: Path,
        attempt_folder: Path,
        installs: bool = False,
        *,
        hides: Sequence[Path] = (),
        shows: Sequence[Path] = (),
        env: Mapping[str, str] | None = None,
    ) -> list[str]:
        """The command that runs an agent in the sandbox, with the same input, output, exit code and signals.

        Everything in `state` is hidden, except the attempt's folder and a workspace that lies there. `hides` are more such
        folders, for instance records in the attempt's folder; `shows` are folders that can be read and not written. With
        `installs` it may change installed packages. `env` is the agent's environment, if not ours. Raises AgentError if a
        sandbox is required and cannot be made."""
        if self.kind == "bwrap" and not self.available():
            raise AgentError(f"no sandbox: {self.available().reason}; repair that, or set `sandbox: off`")
        if self.in_force == "off":
            return list(argv)
        given = os.environ if env is None else env
        mounts = SandboxMounts(workspace, given)
        mounts.add_project(state)
        mounts.add_git()
        if not installs:
            mounts.add_environments()
        for folder in (_state_home(given), state):
            mounts.add(folder, "empty")
        for folder in shows:
            mounts.add(folder, "read")
        mounts.add(attempt_folder, "write", made_later=True)
        mounts.add(workspace, "write")
        for folder in hides:
            mounts.add(folder, "empty")
        mounts.add_ourselves(argv)
        return [
            *_program("outside"),
            *("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
            *mounts.options(),
            *_temporary(mounts, given),
            *("--unshare-pid", "--as-pid-1", "--die-with-parent", *_capabilities()),
            *("--chdir", os.fspath(mounts.workspace), "--"),
            *_program("inside"),
            *argv,
        ]


@cache
def _probed() -> Availability:
    if sys.platform != "linux":
        return Availability(f"bubblewrap needs Linux, and this is {sys.platform}")
    if shutil.which("bwrap") is None:
        return Availability("there is no program bwrap; install the package bubblewrap")
    trial = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]
    options = ["--unshare-pid", "--as-pid-1", "--die-with-parent", *_capabilities(), "--", "/bin/sh", "-c", ":"]
    try:
        done = subprocess.run(
            [*trial, *options], stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Availability(f"bwrap does not work here: {error}")
    if done.returncode == 0:
        return Availability()
    said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    return Availability(f"bwrap does not work here: {said or f'exit code {done.returncode}'}")


def _program(side: str) -> list[str]:
    folder = os.path.dirname(os.path.abspath(sandbox_program.__file__))
    return [sys.executable, "-I", "-S", "-c", sandbox_program.START, folder, side]


def _capabilities() -> list[str]:
    if os.geteuid() != 0:
        return []
    return ["--cap-drop", "ALL", *(word for name in _ROOT_KEEPS for word in ("--cap-add", f"CAP_{name}"))]


def _temporary(mounts: SandboxMounts, env: Mapping[str, str]) -> list[str]:
    """A folder for temporary files that can be written."""
    named = env.get("TMPDIR", "")
    return [] if not named or mounts.has_temporary(Path(named)) else ["--setenv", "TMPDIR", "/tmp"]


def _state_home(env: Mapping[str, str]) -> Path:
    """Where backedge keeps what is out of an agent's reach."""
    home = env.get("HOME", "")
    return Path(env.get("XDG_STATE_HOME") or os.path.join(home, ".local", "state"), "backedge")
