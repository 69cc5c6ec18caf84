"""Temporary files that a killed process left beside story files: removed, unless one has an edit of a person.

A story is written to a draft, which is then exchanged with the file. A process that is killed before that leaves its own
draft. A process that is killed after that leaves what was in the file before: usually the version it had read, but if
an editor saved the file at the last moment, that version. The name of the draft tells which.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

_DRAFT = re.compile(r"\.(?P<name>.+\.md)\.(?P<pid>[0-9]+)(?:\.(?P<old>[0-9a-f]{8})\.(?P<new>[0-9a-f]{8}))?\.new")


def draft_name(name: str, old: bytes, new: bytes) -> str:
    """The name of the draft that replaces the old version of a file with a new one."""
    return f".{name}.{os.getpid()}.{_digest(old)}.{_digest(new)}.new"


def clear_left_over(folder: Path) -> list[str]:
    """Remove the drafts of dead processes from a folder and those below. Returns the names of the files in which an edit
    was restored."""
    restored = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in names:
            found = _DRAFT.fullmatch(name) if name.endswith(".new") else None
            if found is None or _lives(int(found["pid"])):
                continue
            draft, path = Path(parent, name), Path(parent, found["name"])
            with suppress(OSError):  # another process may have removed it
                if _has_edit(draft, path, found["old"], found["new"]):
                    draft.replace(path)
                    restored.append(found["name"])
                else:
                    draft.unlink()
    return restored


def _has_edit(draft: Path, path: Path, old: str | None, new: str | None) -> bool:
    """Whether a draft has what somebody saved just before it was exchanged with the file. If the file was saved again
    since then, that version stands."""
    return _digest(draft.read_bytes()) not in (old, new) and path.is_file() and _digest(path.read_bytes()) == new


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:8]


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
