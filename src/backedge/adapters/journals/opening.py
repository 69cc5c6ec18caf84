"""Opens the journal that a path or a URL names.

backedge.db                    a SQLite file
sqlite:///backedge.db          the same, as a URL; the path is relative to the current folder
sqlite:////var/lib/backedge.db an absolute path has a fourth slash
memory:                        in memory, gone with the process
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote

from backedge.adapters.journals.memory import MemoryJournal
from backedge.core.errors import JournalUnavailable
from backedge.ports import JournalWithClaims

MEMORY = "memory:"
_SQLITE = "sqlite:///"


def open_journal(location: str | os.PathLike[str]) -> JournalWithClaims:
    """The journal at a path or URL. Raises JournalUnavailable if the URL does not name a supported journal."""
    if location == MEMORY:
        return MemoryJournal()
    from backedge.adapters.journals.sqlite import SqliteJournal

    return SqliteJournal(sqlite_path(location))


def sqlite_path(location: str | os.PathLike[str]) -> Path:
    """The SQLite file that a path or URL means. Raises JournalUnavailable if the URL names something else."""
    if not isinstance(location, str):
        return Path(location)
    url = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):(?=//|$)", location)
    if url is None:
        return Path(location)
    if location.startswith(_SQLITE) and len(location) > len(_SQLITE):
        return Path(unquote(location.removeprefix(_SQLITE)))
    scheme = url[1].lower()
    if scheme in ("postgres", "postgresql"):
        raise JournalUnavailable(f"a journal at {scheme}://… is not supported yet: use a path or sqlite:///PATH")
    if scheme == "sqlite":
        raise JournalUnavailable(
            f"{location!r} names no file: expected sqlite:///PATH, or sqlite:////PATH from the root"
        )
    if scheme == "memory":
        raise JournalUnavailable(
            f"{location!r} is not a file: a journal in memory ends with its process; use it from Python, or give a path"
        )
    raise JournalUnavailable(f"a journal at {scheme}: is unknown: expected a path, sqlite:///PATH or {MEMORY}")
