"""The story files of a project: where they are, and how they are read."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from backedge.config import WorkflowFile
from backedge.core.errors import WorkflowError


def story_folder(source: WorkflowFile) -> Path:
    """The folder with the stories of a project. Raises WorkflowError if it has none."""
    assert source.stories is not None
    folder = source.stories.folder
    if not folder.is_dir():
        raise WorkflowError(
            f"there is no folder {folder.name}/ with stories beside {source.path.name}: make it, with a file like "
            f"{folder.name}/first.md that begins with ---, `title: …` and ---; or run `backedge init --template stories`"
        )
    return folder


def has_stories(source: WorkflowFile) -> bool:
    """Whether a project works through stories: it says so, or its folder shows it."""
    spec = source.stories
    return spec is not None and (spec.declared or any(map(_begins_as_story, story_files(spec.folder))))


def _begins_as_story(path: str) -> bool:
    try:
        return read_file(path, 8).lstrip(b"\xef\xbb\xbf").startswith(b"---")
    except OSError:
        return False


def story_files(folder: Path) -> Iterator[str]:
    """The Markdown files of a folder and those below it, in order. A README is none, nor is what is hidden."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.endswith(".md") and not name.startswith(".") and name.lower() != "readme.md":
                yield f"{parent}/{name}"


def read_file(path: str, most: int = sys.maxsize) -> bytes:
    """A file, at most so many bytes of it. Raises OSError, also if it is something else: a pipe would not end."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a file")
        data = os.read(handle, min(most, status.st_size + 1))
        while len(data) < most and (more := os.read(handle, min(most - len(data), 65536))):
            data += more
        return data
    finally:
        os.close(handle)
