"""Where backedge itself prints. `backedge run > run.log` in a workspace writes a file there, which is not an agent's work."""

from __future__ import annotations

import os
import stat
from functools import cache

_PRINTED = (1, 2)
"""The descriptors of stdout and stderr."""


@cache
def own_output() -> tuple[str, ...]:
    """The paths of the files that stdout and stderr of this process go to; none for a terminal or a pipe."""
    found = (_file_of(number) for number in _PRINTED)
    return tuple(dict.fromkeys(path for path in found if path))


def _file_of(number: int) -> str:
    try:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            return ""
        path = os.readlink(f"/proc/self/fd/{number}")
        return path if os.path.samestat(os.stat(path), os.fstat(number)) else ""
    except OSError:
        return ""  # closed, deleted, or a system without /proc
