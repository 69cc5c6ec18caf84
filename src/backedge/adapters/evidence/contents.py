"""The content of a file as it is on the disk: bytes, or where a link leads."""

from __future__ import annotations

import os
import stat
from hashlib import sha1, sha256

from backedge.adapters.agents.regular_file import opened
from backedge.adapters.evidence.patch import Version

LARGEST = 32 * 1024 * 1024
"""Bytes of the largest content that is read at once."""


def content_at(path: str) -> bytes | None:
    """The content of a file or link; None for anything else, and for what is too large or cannot be read."""
    try:
        if stat.S_ISLNK(os.lstat(path).st_mode):
            return os.fsencode(os.readlink(path))
        with opened(path, follow=False) as file:
            content = file.read(LARGEST + 1)
    except OSError:
        return None
    return content if len(content) <= LARGEST else None


def mode_at(path: str) -> int | None:
    """Kind and permissions of a file; None if there is none."""
    try:
        return os.lstat(path).st_mode
    except OSError:
        return None


def hash_of(content: bytes) -> str:
    """The hash that a tree has for this content, without the kind of file."""
    return sha256(content).hexdigest()


def blob_of(content: bytes) -> str:
    """The git object with this content, in repositories that use SHA-1."""
    return sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def version_of(content: bytes, mode: int) -> Version:
    """A content with the mode that git would give it."""
    if stat.S_ISLNK(mode):
        return Version(content, "120000")
    return Version(content, "100755" if mode & stat.S_IXUSR else "100644")
