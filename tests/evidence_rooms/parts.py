"""A small workspace, the kinds of rooms that this machine can make, and a run of a shell script in one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from backedge.adapters.evidence.room import Room, RoomKind, open_room
from backedge.adapters.evidence.room_means import find_means
from backedge.adapters.evidence.room_plan import NO_MEANS, Means

FILES = {
    "a.txt": "a\n",
    "b.txt": "b\n",
    "src/one.py": "one = 1\n",
    "src/two.py": "two = 2\n",
    "src/deep/three.py": "three = 3\n",
    "tests/test_one.py": "assert True\n",
}


@dataclass(frozen=True)
class KindOfRoom:
    """One way in which a room is made."""

    kind: RoomKind
    means: Means | None
    own_path: bool = True
    """The room lies over the workspace's own path."""

    def open(
        self,
        workspace: Path,
        restore: Mapping[str, tuple[Path, int]] | None = None,
        remove: Sequence[str] = (),
        hides: Sequence[Path] = (),
        shows: Sequence[Path] = (),
        fingerprint: str = "",
        fills: bool = False,
    ) -> Room:
        scratch = scratch_of(workspace)
        return open_room(
            self.kind,
            workspace,
            scratch,
            restore,
            remove,
            hides=hides,
            shows=shows,
            fingerprint=fingerprint,
            fills=fills,
            means=self.means,
        )


KINDS = {
    "overlay": KindOfRoom("overlay", None),
    "copy": KindOfRoom("copy", None),
    "bound-copy": KindOfRoom("copy", Means(overlay=False, mounts=True)),
    "plain-copy": KindOfRoom("copy", NO_MEANS, own_path=False),
}


def scratch_of(workspace: Path) -> Path:
    return workspace.resolve().parent / "scratch"


def kinds(tmp_path: Path, name: str) -> KindOfRoom:
    """A kind of room, if this machine can make it."""
    found = KINDS[name]
    able = find_means(tmp_path, tmp_path, tmp_path / "probe")
    if (found.kind == "overlay" or found.means is None) and not able.overlay:
        pytest.skip(f"no overlay here: {able.reason}")
    if found.own_path and not able.mounts:
        pytest.skip(f"no mounts here: {able.reason}")
    return found


def fill(workspace: Path) -> Path:
    for name, text in FILES.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(text)
    return workspace


def git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main", *words]
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")} | {"HOME": str(folder)}
    return subprocess.run(command, cwd=folder, env=env, check=True, capture_output=True, text=True).stdout


def run_in(room: Room, *argv: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program in a room to its end."""
    given = {**os.environ, **room.env, **(env or {})}
    return subprocess.run(
        room.argv(argv), cwd=room.cwd, env=given, capture_output=True, text=True, timeout=60, check=False
    )


def shell_in(room: Room, script: str) -> str:
    """What a script prints in a room; it must succeed."""
    done = run_in(room, "sh", "-c", f"set -e\n{script}")
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr, room.problem("sh"))
    return done.stdout


def contents(folder: Path) -> dict[str, str]:
    """Every file below a folder with its content, but not of git."""
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git" not in path.parts
    }


Opener = Callable[..., Room]
