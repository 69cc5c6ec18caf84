"""How rooms can be made on this machine: found out by making one without a program in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from backedge.adapters.evidence.kept_copy import remove_tree
from backedge.adapters.evidence.room_folder import RoomFolder
from backedge.adapters.evidence.room_plan import Means, RoomPlan, layers_at, make_layers, room_argv

_PATIENCE = 20.0


def find_means(source: Path, workspace: Path, scratch: Path) -> Means:
    """Try what this machine allows for a room over a workspace with the files of `source`."""
    if sys.platform != "linux":
        return Means(False, False, reason=f"{sys.platform} has no mount namespaces")
    folder = RoomFolder.make(scratch)
    try:
        reason = _tried(folder, source, workspace, layers_at(folder.path, in_memory=False))
        if not reason:
            return Means(True, True)
        if reason.startswith("no namespaces"):
            return Means(False, False, reason=reason)
        if not _tried(folder, source, workspace, layers_at(folder.path, in_memory=True)):
            return Means(True, True, in_memory=True, reason=reason)
        return Means(False, not _tried(folder, folder.path, workspace, None), reason=reason)
    finally:
        folder.remove()


def _tried(folder: RoomFolder, source: Path, workspace: Path, layers: Path | None) -> str:
    """Make such a room without a program in it; the reason if that fails."""
    lock, failed = os.fsencode(folder.lock_file), os.fsencode(folder.failed)
    inside = os.fsencode(workspace)
    plan = RoomPlan("", inside, inside, os.fsencode(source), lock, failed, mounts=True)
    plan.layers = os.fsencode(layers) if layers else b""
    try:
        plan.save(folder.plan_file)
        if layers is not None:
            make_layers(layers)
        done = subprocess.run(
            room_argv(folder.plan_file, ()),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"the trial failed: {error}"
    finally:
        if layers is not None:
            remove_tree(layers)
    if done.returncode == 0:
        return ""
    said = folder.failed.read_text("utf-8", "replace").removeprefix("room ") if folder.failed.exists() else ""
    return said or done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2] or f"exit code {done.returncode}"
