"""What an agent may see and write in its sandbox, as a table of folders.

Every folder in the table becomes a mount, outer ones first, so that an inner one is an exception to the outer one. A mount
cannot be renamed or removed from inside. Therefore the folders between a writable folder and an exception in it are mounts
as well: an agent could otherwise move the parent of a protected folder and put another in its place.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from backedge.adapters.agents.workspace import STATE_FOLDER
from backedge.adapters.evidence.environment import standard_libraries
from backedge.adapters.evidence.git_folders import GitFolders, git_folders

Access = Literal["write", "read", "empty"]
PROTECTED_IN_GIT = ("hooks", "info")
_PRIVATE = (Path("/tmp"), Path("/var/tmp"))
_MODULE_CACHES = (".cache", ".vite", ".vite-temp")
"""Where JavaScript tools write inside node_modules."""
_DAEMONS = (
    *("/run/docker.sock", "/run/containerd/containerd.sock", "/run/podman/podman.sock", "/run/crio/crio.sock"),
    *("/run/systemd/private", "/run/dbus/system_bus_socket"),
)
"""Sockets of programs that would start a process outside the sandbox for the agent."""


class SandboxMounts:
    """The table for one attempt."""

    def __init__(self, workspace: Path, env: Mapping[str, str]) -> None:
        self.workspace = _real(workspace)
        self._env = env
        self._table: dict[Path, Access] = {}
        for folder in _PRIVATE:
            self.add(folder, "empty")
        home = env.get("HOME", "")
        if home and _real(Path(home)) != Path("/"):
            self.add(Path(home), "write")
        runtime = env.get("XDG_RUNTIME_DIR", "")
        if runtime:
            self.add(Path(runtime), "empty")
        self.add(self.workspace, "write")

    def add(self, path: Path, access: Access, *, made_later: bool = False) -> None:
        """Add a file or folder, if it exists, or if it is made before the sandbox starts."""
        real = _real(path)
        if made_later or real.exists():
            self._table[real] = access

    def add_git(self) -> None:
        """The repository can be written, for commits, but not what makes git start programs or overlook files."""
        git = git_folders(self.workspace)
        if git is None:
            return
        for folder in git.outermost:
            self.add(folder, "write")
        if git.entry.is_file():
            self.add(git.entry, "read")
        for folder in (git.common, git.own, *_modules(git)):
            for name in PROTECTED_IN_GIT if folder != git.own or git.own == git.common else ():
                with suppress(OSError):
                    (folder / name).mkdir(exist_ok=True)  # else the agent could make it
                self.add(folder / name, "read")
            self.add(folder / "config", "read")
            self.add(folder / "config.worktree", "read")

    def add_project(self, state: Path) -> None:
        """The folder around the state of backedge can be read, also in a private /tmp: it has the scripts of the agents. It
        cannot be written, also in the home folder: the workflow file of other stories is there."""
        project = _real(state).parent
        around = self.workspace.is_relative_to(project) and self.workspace != project
        if state.name == STATE_FOLDER and around and project not in self._table:
            self._readable(project)

    def add_environments(self) -> None:
        """Installed packages can be read."""
        with suppress(OSError):
            for folder in self.workspace.iterdir():
                if (folder / "pyvenv.cfg").is_file():
                    self._add_environment(folder)
        if "VIRTUAL_ENV" in self._env:
            self._add_environment(Path(self._env["VIRTUAL_ENV"]))
        modules = self.workspace / "node_modules"
        if modules.is_dir() and not modules.is_symlink():
            self.add(modules, "read")
            for name in _MODULE_CACHES:
                with suppress(OSError):
                    (modules / name).mkdir(exist_ok=True)  # nothing can be mounted on what is not there
                self.add(modules / name, "empty")

    def _add_environment(self, folder: Path) -> None:
        """A Python environment, with the interpreter that it uses: that may lie in the home folder."""
        self.add(folder, "read")
        interpreter = os.path.realpath(folder / "bin" / "python")
        for path in (interpreter, *standard_libraries(interpreter)):
            if os.path.exists(path):
                self._readable(Path(path))

    def add_ourselves(self, argv: Sequence[str]) -> None:
        """backedge, its interpreter, the agent's program and what is on the PATH can be read, wherever they are."""
        package = Path(__file__).parents[2]
        for folder in (Path(sys.prefix), Path(sys.base_prefix), package):
            if not _real(folder).is_relative_to(self.workspace):
                self._readable(folder)
        path = self._env.get("PATH", "")
        found = shutil.which(argv[0], path=path)
        programs = {os.path.dirname(each) for each in (found, os.path.realpath(found))} if found else set()
        for name in sorted({*programs, *path.split(os.pathsep)}):
            if os.path.isabs(name) and self._above(_real(Path(name))) == "empty":
                self._readable(self._installation(_real(Path(name))))
        agent = self._env.get("SSH_AUTH_SOCK", "")
        if agent and self._above(_real(Path(agent))) == "empty":
            self._readable(Path(agent))

    def options(self) -> list[str]:
        """The table as options of bubblewrap."""
        self._pin()
        options: list[str] = []
        for path, access in sorted(self._table.items(), key=lambda each: len(each[0].parts)):
            name = os.fspath(path)
            match access:
                case "write":
                    options += ["--bind", name, name]
                case "read":
                    options += ["--ro-bind", name, name]
                case "empty":
                    options += ["--tmpfs", name] if path.is_dir() else ["--ro-bind", "/dev/null", name]
        for daemon in _DAEMONS:
            if _is_socket(daemon):
                options += ["--ro-bind", "/dev/null", os.path.realpath(daemon)]
        return options

    def has_temporary(self, path: Path) -> bool:
        """Whether a folder for temporary files is there and can be written."""
        return _real(path) in _PRIVATE or self._above(_real(path)) == "write"

    def _readable(self, path: Path) -> None:
        if self._above(_real(path)) in ("write", "empty"):
            self.add(path, "read")

    def _installation(self, folder: Path) -> Path:
        """The folder that a program of a hidden folder needs as well: its other packages, or its libraries."""
        parts = folder.parts
        if "node_modules" in parts:
            wanted = Path(*parts[: parts.index("node_modules") + 1])
        else:
            wanted = folder.parent if folder.name == "bin" else folder
        return folder if wanted in self._table else wanted

    def _above(self, path: Path) -> Access | None:
        """How the nearest folder in the table can be used that is, or holds, this path."""
        return next((self._table[each] for each in (path, *path.parents) if each in self._table), None)

    def _pin(self) -> None:
        for path in list(self._table):
            between: list[Path] = []
            for folder in path.parents:
                if folder in self._table:
                    if self._table[folder] == "write":
                        self._table.update(dict.fromkeys(between, "write"))
                    break
                between.append(folder)


def _modules(git: GitFolders) -> list[Path]:
    """The git folders of submodules."""
    return [head.parent for depth in ("*", "*/*") for head in git.common.glob(f"modules/{depth}/HEAD")]


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(path).st_mode)
    except OSError:
        return False


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
