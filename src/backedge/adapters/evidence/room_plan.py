"""What `room_program` is to do before it becomes the judge's program."""

from __future__ import annotations

import marshal
import os
import secrets
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

from backedge.adapters.evidence import room_program

MEMORY = Path("/dev/shm")
"""A file system that can hold the layers of an overlay where that of the state folder cannot."""


class Means(NamedTuple):
    """How rooms can be made here."""

    overlay: bool
    """Changes can be kept in a layer over the files."""
    mounts: bool
    """A folder can be mounted over the workspace, so that a room has the workspace's own path."""
    in_memory: bool = False
    """The layers must be in memory: the file system of the state folder cannot hold them."""
    reason: str = ""
    """Why there is not more."""


NO_MEANS = Means(False, False, reason="rooms with mounts were switched off")


@dataclass(slots=True)
class RoomPlan:
    """One room. All paths are absolute and without links; a path in `restore` and `remove` is relative to the workspace."""

    kind: str
    workspace: bytes
    cwd: bytes
    source: bytes
    """The folder with the files: the workspace, or its copy."""
    lock: bytes
    failed: bytes
    mounts: bool = False
    layers: bytes = b""
    """The folder for what the program writes; empty if it writes to `source`."""
    bytecode: bytes = b""
    """The folder for compiled Python."""
    bytecode_use: str = "own"
    """`own`: gone with the room; `fills`: kept; `covered`: kept, but not what is added; `reads`: kept and only read."""
    git: list[bytes] = field(default_factory=list)
    """The git folders of the workspace, wherever they lie. What the program commits goes with the room."""
    hidden: list[bytes] = field(default_factory=list)
    shown: list[bytes] = field(default_factory=list)
    restore: list[tuple[bytes, bytes, int]] = field(default_factory=list)
    remove: list[bytes] = field(default_factory=list)
    restored: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    """The states of the restored files in a copy, in the same order."""

    def save(self, file: Path) -> None:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        draft = file.with_name(f"{file.name}.new")
        draft.write_bytes(marshal.dumps(values))
        draft.replace(file)

    @classmethod
    def load(cls, file: Path) -> RoomPlan | None:
        """The plan in a file; None if there is none, or only a part of one."""
        try:
            values: Any = marshal.loads(file.read_bytes())
            return cls(**values)
        except (OSError, EOFError, ValueError, TypeError):
            return None


def room_argv(plan: Path, argv: Sequence[str]) -> list[str]:
    """The command that does what a plan says and then becomes the program."""
    folder = os.path.dirname(os.path.abspath(room_program.__file__))
    return [sys.executable, "-I", "-S", "-c", room_program.START, folder, os.fspath(plan), *argv]


def layers_at(folder: Path, in_memory: bool) -> Path:
    """Where the layers of a new room go. The folder is not made yet, so that the plan can name it first."""
    return MEMORY / f"backedge-{secrets.token_hex(8)}" if in_memory else folder / "layers"


def make_layers(layers: Path) -> None:
    """Make the folders for the layers of a workspace."""
    layers.mkdir(mode=0o700)
    for each in ("upper", "work"):
        (layers / each).mkdir()
