"""Opens a file that a program left, but only a regular one: reading a pipe could block for ever."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO


class NotAFile(OSError):
    """The path is not a regular file but a folder, a pipe or a device."""


@contextmanager
def opened(path: str | os.PathLike[str], follow: bool = True) -> Iterator[BinaryIO]:
    """A regular file, opened for reading. Raises OSError if it cannot be read."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotAFile(f"{os.fspath(path)!r} is not a file")
        with open(descriptor, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(descriptor)
