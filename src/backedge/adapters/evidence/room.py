"""A clean room for a judge: its program sees the workspace at its own path, and what it writes reaches nothing.

    with open_room("auto", workspace, scratch) as room:
        subprocess.run(room.argv(["pytest"]), cwd=room.cwd, env={**os.environ, **room.env})
        room.changed()      # files of the workspace that the judge changed: it may only look

There are two kinds. An *overlay* shows the files themselves and keeps changes in a layer; the workspace must stand still
meanwhile. A *copy* is kept from judge to judge and brought up to date when the room opens; it also serves while other
steps work in the same folder. Where the system lets us mount, both lie over the workspace's own path, so that editable
installs and absolute paths mean the room. Where it does not, a copy is used under its own path.

Processes, the network and all other files are as outside. The state of backedge is hidden, and commits go with
the room: they reach no repository.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType

from backedge.adapters.agents.file_digests import Stamp, printable
from backedge.adapters.agents.globs import Globs
from backedge.adapters.agents.not_started import why_not
from backedge.adapters.evidence.bytecode import drop_workspace
from backedge.adapters.evidence.kept_copy import KeptCopy
from backedge.adapters.evidence.names import name_of
from backedge.adapters.evidence.room_changes import Content, LayerReader, RoomChanges, is_cache
from backedge.adapters.evidence.room_folder import RoomFolder, leftover_rooms
from backedge.adapters.evidence.room_opening import RoomKind, RoomOpening, forget_means, left_out
from backedge.adapters.evidence.room_plan import Means, RoomPlan, room_argv
from backedge.adapters.evidence.room_program import put

__all__ = ["Room", "RoomKind", "found_room", "leftover_rooms", "open_room"]


def open_room(
    kind: RoomKind,
    workspace: Path,
    scratch: Path,
    restore: Mapping[str, tuple[Path, int]] | None = None,
    remove: Sequence[str] = (),
    *,
    hides: Sequence[Path] = (),
    shows: Sequence[Path] = (),
    fingerprint: str = "",
    fills: bool = False,
    means: Means | None = None,
) -> Room:
    """Open a room over a workspace. Raises AgentError if there cannot be one of this kind.

    `scratch` is the folder for all rooms of a project, outside the workspace. `restore` gives files another content and
    mode inside, `remove` takes files away. `hides` are folders to hide, also if the workspace lies in one, and `shows`
    folders in them that stay as they are. `fingerprint` names the environment whose bytecode is used; with `fills` the
    program may add to it, which only a run on the files of the start should do. Without `means` the machine is probed."""
    opening = RoomOpening(workspace, scratch, restore or {}, remove, hides, shows, fingerprint, fills)
    return Room(*opening.opened(kind, means))


def found_room(scratch: Path, name: str) -> Room | None:
    """The room of an attempt that an earlier backedge process started; None if it is gone."""
    folder = RoomFolder.found(Path(os.path.realpath(scratch)), name)
    plan = RoomPlan.load(folder.plan_file) if folder is not None else None
    return Room(plan, folder) if plan is not None else None


class Room:
    """One room. Ask what changed only after its program has ended."""

    def __init__(self, plan: RoomPlan, folder: RoomFolder | None) -> None:
        self._plan, self._folder = plan, folder
        self.kind = plan.kind
        self.workspace = Path(os.fsdecode(plan.workspace))
        self.cwd = Path(os.fsdecode(plan.cwd))
        self._restored: dict[bytes, Content] = {path: (source, mode) for path, source, mode in plan.restore}

    @property
    def name(self) -> str:
        """What finds the room again after a crash; empty without a room."""
        return self._folder.path.name if self._folder else ""

    @property
    def env(self) -> dict[str, str]:
        """What the environment of a judge has in addition: no bytecode and no packages that an agent could have left."""
        env = {"PYTHONNOUSERSITE": "1"}
        if self._plan.bytecode:
            env["PYTHONPYCACHEPREFIX"] = os.fsdecode(self._plan.bytecode)
        if self._plan.bytecode_use in ("fills", "covered"):
            # Its cache in the workspace is hidden, and a cold one costs as much as compiling.
            env["MYPY_CACHE_DIR"] = os.path.join(env["PYTHONPYCACHEPREFIX"], "mypy")
        if self._plan.bytecode_use == "reads":
            env["PYTHONDONTWRITEBYTECODE"] = "1"
        elif self._plan.bytecode_use == "fills":
            # Somebody may have set it to keep folders clean. Then every judge would compile its libraries again.
            env["PYTHONDONTWRITEBYTECODE"] = ""
        return env

    def argv(self, argv: Sequence[str]) -> list[str]:
        """The command that runs a program in the room, with the same input, output, exit code and signals."""
        if self._folder is None:
            return list(argv)
        return room_argv(self._folder.plan_file, [self._inside(word) for word in argv])

    def problem(self, program: str) -> str:
        """Why the program could not be started; empty if it was."""
        try:
            said = self._folder.failed.read_text("utf-8", "replace") if self._folder else ""
        except FileNotFoundError:
            said = ""
        what, _, detail = said.partition(" ")
        if what == "room":
            forget_means()  # the machine is not as it was: probe again
            return f"no room could be made over {os.fspath(self.workspace)!r} ({detail}); use `room: copy`"
        if what != "program":
            return ""
        number = int(detail)
        return why_not(number, program, self.workspace) or f"cannot start {program!r}: {os.strerror(number)}"

    def changed(self) -> tuple[str, ...]:
        """Files of the workspace that the program changed, replaced or removed. Caches do not count; files that git
        ignores do."""
        return _names(self._changes.changed)

    def made(self) -> tuple[str, ...]:
        """New files, without caches."""
        return _names(self._changes.made)

    def copied(self) -> dict[str, Stamp]:
        """The state of each file of the workspace when it was copied, by name; empty for an overlay, which shows the files
        themselves."""
        if self.kind != "copy":
            return {}
        return {name_of(os.fsdecode(path)): stamp for path, stamp in self._copy.sources().items()}

    def opened(self) -> tuple[str, ...]:
        """Restored files that the program has read. Ask before `changed`, which reads them too.

        The file system notes when a file is read, except in the moment in which it was made."""
        upper = self._plan.layers + b"/upper" if self._plan.layers else os.fsencode(self._copy.files)
        return _names({path for path in self._restored if _was_read(upper + b"/" + path)})

    def written(self, name: str) -> Path | None:
        """Where a file is that the program wrote in the workspace, until the room is closed; None if it did not."""
        path = os.fsencode(name)
        if self._plan.layers:
            folder = os.fsdecode(self._plan.layers + b"/upper")
        elif self._plan.kind == "copy" and self._copy.is_touched(path):
            folder = os.fspath(self._copy.files)
        else:
            return None
        found = os.path.join(folder, name)
        # A link on the way could lead to a file that the program did not write.
        regular = os.path.realpath(found) == os.path.normpath(found) and os.path.isfile(found)
        return Path(found) if regular else None

    def keep(self, globs: Sequence[str]) -> tuple[str, ...]:
        """Copy files that the program wrote to the workspace, such as a coverage report. Returns their names."""
        if self._folder is None:
            return ()
        files = Path(os.fsdecode(self._plan.layers), "upper") if self._plan.layers else self._copy.files
        kept = []
        skipped = left_out(self._plan)
        for name in sorted(Globs(globs).files(files, lambda name: skipped(os.fsencode(name)))):
            source = self.written(name)
            parent = os.path.dirname(os.path.join(self.workspace, name))
            if source is not None and os.path.realpath(parent) == parent:
                root = os.open(self.workspace, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    put(root, os.fsencode(name), os.fsencode(source), stat.S_IMODE(source.stat().st_mode))
                finally:
                    os.close(root)
                kept.append(printable(name))
        return tuple(kept)

    def close(self) -> None:
        """Remove the room. Doing it twice does no harm."""
        if self._folder is not None:
            if self._plan.bytecode_use == "fills":
                for folder in {self.workspace, self.cwd}:
                    drop_workspace(Path(os.fsdecode(self._plan.bytecode)), folder)
            self._folder.remove()

    def __enter__(self) -> Room:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _copy(self) -> KeptCopy:
        return KeptCopy(Path(os.fsdecode(self._plan.source)).parent)

    @cached_property
    def _changes(self) -> RoomChanges:
        plan = self._plan
        if self._folder is None:
            return RoomChanges()
        if not plan.layers:
            restored = dict(zip(self._restored, zip(self._restored.values(), plan.restored, strict=True), strict=True))
            return self._copy.changes(self.workspace, restored, left_out(plan))
        reader = LayerReader(self._restored, frozenset(plan.remove), left_out(plan))
        reader.read(plan.layers + b"/upper", plan.source)
        for nested in Path(os.fsdecode(plan.layers), "nested").glob("*/path"):
            inside = nested.read_bytes()
            reader.read(os.fsencode(nested.parent / "upper"), plan.workspace + b"/" + inside, inside)
        return reader.found

    def _inside(self, word: str) -> str:
        """A word of a command, with the path of the room if it begins with that of a workspace that it does not cover."""
        if self.cwd != self.workspace:
            option, equals, value = word.rpartition("=")
            outside = os.fspath(self.workspace)
            if value == outside or value.startswith(f"{outside}/"):
                return f"{option}{equals}{os.fspath(self.cwd)}{value[len(outside) :]}"
        return word


def _was_read(path: bytes) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False  # the program removed it
    return found.st_atime_ns > found.st_mtime_ns


def _names(paths: set[bytes]) -> tuple[str, ...]:
    return tuple(sorted(printable(os.fsdecode(path)) for path in paths if not is_cache(path)))
