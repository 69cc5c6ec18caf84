"""Puts files back. Nothing is written through a link, and nothing that is in the way is lost: it is moved aside."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from backedge.adapters.evidence.contents import mode_at
from backedge.adapters.evidence.names import path_of


@dataclass(frozen=True, slots=True)
class OldContent:
    """Where an old content comes from."""

    mode: int
    content: bytes | None
    """None: too large to hold; the file at `path` has it."""
    path: str = ""


class Undoing:
    """One restore of files in a workspace."""

    def __init__(self, top: str, aside: Path) -> None:
        self._top = top
        self.aside = aside
        self.too_large: set[str] = set()
        """Names whose present content is not in the patch: they are moved aside instead of removed."""
        self._opened: dict[str, int] = {}
        self._moved = 0

    def undo(self, sources: Mapping[str, OldContent | None]) -> None:
        """Make each file what its source says; without a source, remove it."""
        try:
            drafts = self._move_back(sources)
            for name in sorted(sources, reverse=True):
                self._clear(name)
            for name, source in sources.items():
                if source is not None:
                    self._create(path_of(name), source, drafts.get(name))
            for name, source in sources.items():
                if source is None:
                    self._drop_empty_folders(path_of(name))
            with suppress(OSError):
                self.aside.rmdir()  # if nothing stayed in it
        finally:
            for path, mode in self._opened.items():
                with suppress(OSError):
                    os.chmod(path, mode)

    def _move_back(self, sources: Mapping[str, OldContent | None]) -> dict[str, str]:
        """Save large files that have an old content, before they are cleared away."""
        drafts = {}
        for name, source in sources.items():
            if source is not None and source.content is None:
                self._make_aside()
                draft = os.fspath(self._free_place("content"))
                shutil.copyfile(source.path, draft, follow_symlinks=False)
                drafts[name] = draft
        return drafts

    def _clear(self, name: str) -> None:
        """Take away what is at a place now."""
        path = path_of(name)
        if not self._reach(path, make=False):
            return
        whole = f"{self._top}/{path}"
        mode = mode_at(whole)
        if mode is None:
            return
        if stat.S_ISDIR(mode):
            with suppress(OSError):
                os.rmdir(whole)
        elif name in self.too_large and stat.S_ISREG(mode):
            self._move_aside(whole)
        else:
            os.unlink(whole)

    def _create(self, path: str, source: OldContent, draft: str | None) -> None:
        self._reach(path, make=True)
        whole = f"{self._top}/{path}"
        if os.path.lexists(whole):
            self._move_aside(whole)  # a folder that is not empty
        made = f"{os.path.dirname(whole)}/.backedge-undo-{os.getpid()}"
        with suppress(FileNotFoundError):
            os.unlink(made)
        if draft is not None:
            shutil.move(draft, made)
        elif stat.S_ISLNK(source.mode):
            os.symlink(source.content or b"", os.fsencode(made))
        else:
            # The first open must not be readable by others than the file was.
            descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(descriptor, "wb") as file:
                file.write(source.content or b"")
        if not stat.S_ISLNK(source.mode):
            os.chmod(made, stat.S_IMODE(source.mode))
        os.replace(made, whole)

    def _reach(self, path: str, make: bool) -> bool:
        """Whether every part of the way to a path is a folder that we may change. With `make`, it is after that."""
        if path.startswith("/") or ".." in path.split("/"):
            raise ValueError(f"{path!r} leads out of the workspace: a tree has no such file")
        here = self._top
        self._open_up(here)
        for part in path.split("/")[:-1]:
            here = f"{here}/{part}"
            mode = mode_at(here)
            if mode is None or not stat.S_ISDIR(mode):
                if not make:
                    return False
                if mode is not None:
                    self._move_aside(here)
                os.mkdir(here)
            self._open_up(here)
        return True

    def _open_up(self, folder: str) -> None:
        """Give ourselves access to a folder. One that was only read-only is made so again."""
        mode = stat.S_IMODE(os.lstat(folder).st_mode)
        if mode & 0o700 != 0o700:
            os.chmod(folder, mode | 0o700)
            if mode & 0o500 == 0o500:
                self._opened[folder] = mode

    def _move_aside(self, path: str) -> None:
        self._make_aside()
        shutil.move(path, self._free_place(os.path.basename(path)))

    def _make_aside(self) -> None:
        self.aside.mkdir(parents=True, exist_ok=True, mode=0o700)

    def _free_place(self, name: str) -> Path:
        self._moved += 1
        return self.aside / f"{self._moved}-{name[:50]}"

    def _drop_empty_folders(self, path: str) -> None:
        """Remove the folders that a new file leaves empty, as git does."""
        while path := path.rpartition("/")[0]:
            try:
                os.rmdir(f"{self._top}/{path}")
            except OSError:
                return
