"""Opening a file that a program left: only if it is one, so that a pipe in its place does not keep us waiting."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO


class NotAFile(OSError):
    """Something else has that name: a folder, a pipe, a device."""


@contextmanager
def opened(path: str | os.PathLike[str], follow: bool = True) -> Iterator[BinaryIO]:
    """A regular file, to be read. A link is followed only if asked. Raises OSError if it cannot be read."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise NotAFile(f"{os.fspath(path)!r} is not a file")
        with open(descriptor, "rb", closefd=False) as file:
            yield file
    finally:
        os.close(descriptor)
