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
    """The folder with the stories of a project. Raises WorkflowError if it does not exist."""
    assert source.stories is not None
    folder = source.stories.folder
    if not folder.is_dir():
        raise WorkflowError(
            f"there is no folder {folder.name}/ with stories next to {source.path.name}: create it with a file such as "
            f"{folder.name}/first.md that begins with ---, `title: …` and ---; or run `backedge init --template stories`"
        )
    return folder


def has_stories(source: WorkflowFile) -> bool:
    """Whether a project has stories: the workflow file says so, or the folder contains story files."""
    spec = source.stories
    return spec is not None and (spec.declared or any(map(_begins_as_story, story_files(spec.folder))))


def _begins_as_story(path: str) -> bool:
    try:
        return read_file(path, 8).lstrip(b"\xef\xbb\xbf").startswith(b"---")
    except OSError:
        return False


def story_files(folder: Path) -> Iterator[str]:
    """The Markdown files below a folder, in order, without READMEs and hidden files."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.endswith(".md") and not name.startswith(".") and name.lower() != "readme.md":
                yield f"{parent}/{name}"


def read_file(path: str, most: int = sys.maxsize) -> bytes:
    """The first `most` bytes of a file. Raises OSError, also if it is not a regular file: a pipe might never end."""
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
