"""What backedge needs on this machine, and what it finds: each with what to do about it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from backedge.adapters.evidence.places import state_home
from backedge.adapters.evidence.room_means import find_means
from backedge.adapters.evidence.sandbox import Sandbox

Health = Literal["good", "missing", "broken"]
"""`missing` is something that you may want and can do without; `broken` stops work."""

_PATIENCE = 20.0
_VERSION = re.compile(r"\d+\.\d+[\w.+-]*")
_OLDEST_GIT = (2, 25)
_OLDEST_NODE = 20
_NODE_OF_CLIS = 22
"""With an older Node, npm silently installs old versions of agent CLIs."""
_LITTLE = 1_000_000_000
"""So many bytes of free disk space are little."""
_TOOLS = {
    "pytest": ("--version", "pip install pytest"),
    "node": ("--version", "install Node.js 20 or newer, for node --test, vitest, jest and the agent CLIs"),
    "go": ("version", "install Go, for go test"),
    "cargo": ("--version", "install Rust, for cargo test"),
}
"""Programs that run tests whose reports backedge reads."""
_LOGINS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "claude": (
        (
            *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
            *("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"),
        ),
        (".claude/.credentials.json",),
        "start `claude` once and log in, or set ANTHROPIC_API_KEY",
    ),
    "codex": (
        ("CODEX_API_KEY", "OPENAI_API_KEY"),
        (".codex/auth.json",),
        "run `codex login`, or set CODEX_API_KEY",
    ),
    "gemini": (
        ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"),
        (".gemini/oauth_creds.json",),
        "start `gemini` once and log in, or set GEMINI_API_KEY",
    ),
    "opencode": (
        ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"),
        (".local/share/opencode/auth.json",),
        "run `opencode auth login`",
    ),
}
"""Where each agent CLI finds its login: variables, files in the home folder, and how to log in."""


class Checked(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    name: str
    health: Health
    found: str
    todo: str = ""


def machine(folder: Path) -> Iterator[Checked]:
    """What this machine offers for a workspace."""
    yield _git()
    available = Sandbox().available()
    yield (
        Checked("sandbox", "good", "bubblewrap works: agents can be kept in a sandbox")
        if available
        else Checked("sandbox", "missing", available.reason, _sandbox_todo(available.reason))
    )
    yield _rooms(folder)
    for name, (option, install) in _TOOLS.items():
        yield _tool(name, option, install)
    yield _disk(folder)


def login(cli: str, env: Mapping[str, str]) -> Checked:
    """Whether an agent CLI seems to be logged in. It is not asked: that would use a model."""
    variables, files, todo = _LOGINS[cli]
    for name in variables:
        if env.get(name):
            return Checked(f"{cli} login", "good", f"{name} is set")
    home = Path(env.get("HOME") or Path.home())
    for name in files:
        if (home / name).is_file():
            return Checked(f"{cli} login", "good", f"~/{name}")
    where = " (macOS may keep it in its keychain)" if sys.platform == "darwin" else ""
    return Checked(f"{cli} login", "missing", f"no login was found{where}", todo)


def _git() -> Checked:
    said = _said("git", "--version")
    if said is None:
        todo = "install the package git; without it there are no worktrees for stories, and no diffs"
        return Checked("git", "missing", "it is not installed", todo)
    numbers = tuple(int(each) for each in re.findall(r"\d+", said)[:2])
    if numbers < _OLDEST_GIT:
        wanted = ".".join(map(str, _OLDEST_GIT))
        return Checked("git", "broken", f"{_version(said)} is too old", f"install git {wanted} or newer")
    return Checked("git", "good", _version(said))


def _sandbox_todo(reason: str) -> str:
    if "no program" in reason:
        return "install the package bubblewrap; without it, agents can reach what judges use"
    if "Linux" in reason:
        return "nothing: judges compare and restore files instead, see docs/what-verified-promises.md"
    return "allow user namespaces, for instance `sysctl kernel.unprivileged_userns_clone=1` or an AppArmor profile for bwrap"


def _rooms(folder: Path) -> Checked:
    home = state_home()
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(prefix="doctor-", dir=home) as scratch:
            means = find_means(folder, folder, Path(scratch))
    except OSError as error:
        todo = "make it writable, or set XDG_STATE_HOME to a folder that is; judges keep their evidence there"
        return Checked("rooms for judges", "broken", f"cannot write {home}: {error.strerror}", todo)
    if means.overlay:
        return Checked(
            "rooms for judges", "good", "an overlay over the workspace: tests see the files at their own paths"
        )
    kind = "a copy at the workspace's own path" if means.mounts else "a copy at another path"
    todo = "allow user namespaces and overlay mounts; a copy works too, and takes longer"
    return Checked("rooms for judges", "missing", f"{kind} ({means.reason})", todo)


def _tool(name: str, option: str, install: str) -> Checked:
    said = _said(name, option)
    if said is None:
        return Checked(name, "missing", "it is not on the PATH", f"if your judges need it: {install}")
    return _node(_version(said), install) if name == "node" else Checked(name, "good", _version(said))


def _node(version: str, install: str) -> Checked:
    major = int(version.split(".")[0]) if version[:1].isdigit() else 0
    if major < _OLDEST_NODE:
        return Checked("node", "missing", f"{version} is too old", install)
    todo = f"for new versions of the agent CLIs, install Node.js {_NODE_OF_CLIS}" if major < _NODE_OF_CLIS else ""
    return Checked("node", "good", version, todo)


def _disk(folder: Path) -> Checked:
    free = shutil.disk_usage(folder).free
    words = f"{free / 1e9:.1f} GB free"
    if free < _LITTLE:
        return Checked("disk", "broken", words, "free some space: `backedge prune` removes files of old runs")
    return Checked("disk", "good", words)


def _said(program: str, option: str) -> str | None:
    """What a program prints about itself; None if it cannot be started or fails."""
    path = shutil.which(program)
    if path is None:
        return None
    try:
        done = subprocess.run(
            [path, option],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PATIENCE,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


def _version(said: str) -> str:
    found = _VERSION.search(said)
    return found[0] if found else said.strip()[:40]
