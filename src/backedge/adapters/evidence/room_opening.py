"""Opening a room: which kind it can be on this machine, and everything that its program has to do first."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal

from backedge.adapters.agents.file_digests import stamp_of
from backedge.adapters.evidence.bytecode import kept_bytecode
from backedge.adapters.evidence.git_copy import add_git
from backedge.adapters.evidence.git_folders import git_folders
from backedge.adapters.evidence.kept_copy import KeptCopy
from backedge.adapters.evidence.room_folder import RoomFolder
from backedge.adapters.evidence.room_means import find_means
from backedge.adapters.evidence.room_plan import Means, RoomPlan, layers_at, make_layers
from backedge.adapters.evidence.room_program import MountFailed, put, take_away
from backedge.core.errors import AgentError

RoomKind = Literal["auto", "overlay", "copy", "off"]
STATE_FOLDER = ".backedge"
_BYTECODE = b"/__pycache__"


class RoomOpening:
    """One room that is being opened; `open_room` explains the arguments."""

    def __init__(
        self,
        workspace: Path,
        scratch: Path,
        restore: Mapping[str, tuple[Path, int]],
        remove: Sequence[str],
        hides: Sequence[Path],
        shows: Sequence[Path],
        fingerprint: str,
        fills: bool,
    ) -> None:
        self._workspace, self._scratch = _real(workspace), _real(scratch)
        self._restore = [(os.fsencode(name), os.fsencode(_real(path)), mode) for name, (path, mode) in restore.items()]
        self._remove = [os.fsencode(name) for name in remove]
        self._hides = [self._workspace / STATE_FOLDER, self._scratch, *hides]
        self._shows, self._fingerprint, self._fills = shows, fingerprint, fills

    def opened(self, kind: RoomKind, means: Means | None) -> tuple[RoomPlan, RoomFolder | None]:
        if not self._workspace.is_dir():
            raise AgentError(
                f"no room for the workspace {os.fspath(self._workspace)!r}: it is not a folder; make it, or correct `workspace`"
            )
        for path in (*(path for path, _, _ in self._restore), *self._remove):
            if path.startswith(b"/") or not {b"", b".", b".."}.isdisjoint(path.split(b"/")):
                raise AgentError(f"{os.fsdecode(path)!r} is not a path inside the workspace: name a file in it")
        if kind == "off":
            return self._not_covered(), None
        folder = RoomFolder.make(self._scratch)
        try:
            return (self._copy(folder, means) if kind == "copy" else self._overlay(folder, kind, means)), folder
        except (OSError, MountFailed) as error:
            folder.remove()
            raise AgentError(f"no room for the workspace {os.fspath(self._workspace)!r}: {error}") from error
        except BaseException:
            folder.remove()
            raise

    def _not_covered(self) -> RoomPlan:
        if self._restore or self._remove:
            raise AgentError("`room: off` cannot judge with the tests as they were: set `room: auto`")
        here = os.fsencode(self._workspace)
        return RoomPlan("off", here, here, here, b"", b"")

    def _overlay(self, folder: RoomFolder, kind: RoomKind, means: Means | None) -> RoomPlan:
        found = means or probed(self._workspace, self._workspace, self._scratch)
        if found.overlay:
            return self._planned("overlay", folder, self._workspace, found)
        if kind == "auto":
            return self._copy(folder, means)
        raise AgentError(
            f"no overlay over the workspace {os.fspath(self._workspace)!r}: {found.reason}; use `room: auto`, or `room: copy`"
        )

    def _copy(self, folder: RoomFolder, means: Means | None) -> RoomPlan:
        copy = folder.copy_of(self._scratch, self._workspace)
        skipped = _inside(self._hides, self._workspace) | {b".git", _BYTECODE[1:]}
        copy.sync(self._workspace, lambda path: path in skipped or path.endswith(_BYTECODE))
        found = means or probed(copy.files, self._workspace, self._scratch)
        return self._planned("copy", folder, copy.files, found, copy)

    def _planned(
        self, kind: str, folder: RoomFolder, source: Path, means: Means, copy: KeptCopy | None = None
    ) -> RoomPlan:
        layers = layers_at(folder.path, means.in_memory) if means.overlay else None
        cwd = self._workspace if means.mounts else source
        lock, failed = os.fsencode(folder.lock_file), os.fsencode(folder.failed)
        plan = RoomPlan(kind, os.fsencode(self._workspace), os.fsencode(cwd), os.fsencode(source), lock, failed)
        plan.restore, plan.remove, plan.mounts = self._restore, self._remove, means.mounts
        plan.layers = os.fsencode(layers) if layers else b""
        self._add_bytecode(plan, folder, means)
        git = git_folders(self._workspace)
        if copy is not None and git is not None and git.entry.parent == self._workspace:
            add_git(git, copy.files / ".git", linked=means.mounts)
        if means.mounts:
            folders = git.outermost if git else ()
            plan.git = [os.fsencode(each) for each in folders if not self._workspace.is_relative_to(each)]
            plan.hidden = [os.fsencode(each) for each in _outside_in(self._hides) if each != self._workspace]
            plan.shown = [os.fsencode(each) for each in _outside_in(self._shows)]
        # The plan names the layers before they exist: then the next process finds them after a crash.
        plan.save(folder.plan_file)
        if layers is not None:
            make_layers(layers)
        elif copy is not None:
            self._restore_in(copy, plan)
            plan.save(folder.plan_file)
        return plan

    def _add_bytecode(self, plan: RoomPlan, folder: RoomFolder, means: Means) -> None:
        if not self._fingerprint:
            plan.bytecode = os.fsencode(folder.path / "bytecode")
            return
        plan.bytecode = os.fsencode(kept_bytecode(self._scratch, self._fingerprint))
        plan.bytecode_use = "fills" if self._fills else "covered" if means.mounts else "reads"

    def _restore_in(self, copy: KeptCopy, plan: RoomPlan) -> None:
        """In a copy the files are restored at once: it is ours alone."""
        copy.forget({*(path for path, _, _ in plan.restore), *plan.remove})
        root = os.open(copy.files, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for path in plan.remove:
                take_away(root, path)
            for path, source, mode in plan.restore:
                put(root, path, source, mode)
        finally:
            os.close(root)
        files = os.fsencode(copy.files)
        plan.restored = [stamp_of(os.lstat(files + b"/" + path)) for path, _, _ in plan.restore]


def left_out(plan: RoomPlan) -> Callable[[bytes], bool]:
    """Says of a file in the room whether it is not part of the work: of git, of backedge, or compiled Python."""
    head = len(plan.workspace) + 1
    skipped = frozenset(
        {b".git", _BYTECODE[1:], *(each[head:] for each in plan.hidden if each.startswith(plan.workspace + b"/"))}
    )
    return lambda path: path in skipped or path.endswith(_BYTECODE)


@lru_cache(maxsize=256)
def probed(source: Path, workspace: Path, scratch: Path) -> Means:
    """How rooms over a workspace can be made here; tried once per process."""
    return find_means(source, workspace, scratch)


def forget_means() -> None:
    probed.cache_clear()


def _inside(folders: Sequence[Path], workspace: Path) -> frozenset[bytes]:
    real = [_real(each) for each in folders]
    return frozenset(os.fsencode(each.relative_to(workspace)) for each in real if each.is_relative_to(workspace))


def _outside_in(folders: Sequence[Path]) -> list[Path]:
    """The folders that exist, outer ones first."""
    return sorted({real for each in folders if (real := _real(each)).is_dir()}, key=lambda path: len(path.parts))


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
