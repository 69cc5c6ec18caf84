"""Turns errors of SQLite into errors of the journal, which say what to do."""

from __future__ import annotations

import apsw

from backedge.core.errors import JournalDamaged, JournalError, JournalUnavailable

BUSY_TIMEOUT = 5.0
"""Seconds to wait for another process that is writing."""

StorageError = (apsw.Error, UnicodeDecodeError)
"""Everything that reading or writing a journal file may raise; text that is not UTF-8 is damage too."""

_DAMAGE = (
    apsw.NotADBError,
    apsw.CorruptError,
    apsw.FormatError,
    apsw.MismatchError,
    # The statements are fixed: if one does not fit the tables, or the counts of the tables contradict each other,
    # another program changed the file.
    apsw.SQLError,
    apsw.ConstraintError,
    UnicodeDecodeError,
)


def translated(error: apsw.Error | UnicodeDecodeError, path: str) -> JournalError:
    """The journal's error for one of SQLite's; the caller raises it from the original."""
    if isinstance(error, _DAMAGE):
        return JournalDamaged(
            f"{path} is not a valid journal: got {error}; expected a database that backedge wrote: "
            "restore a backup, or choose another file"
        )
    match error:
        case _ if isinstance(error, apsw.FullError) or _finds_no_room(error):
            reason = "the disk is full: nothing was stored; free some space and try again"
        case apsw.BusyError() | apsw.LockedError():
            reason = (
                f"another process has locked it for more than {BUSY_TIMEOUT:g} s: nothing was stored; "
                "end that process, or try again"
            )
        case apsw.ReadOnlyError() | apsw.PermissionsError() | apsw.AuthError():
            reason = "it is read-only, and a journal must be writable: change the rights of the file and its folder"
        case apsw.CantOpenError():
            reason = "it cannot be opened: expected a file in a folder that can be written; check path and rights"
        case apsw.ConnectionClosedError():
            reason = "this journal is closed: open the file again"
        case apsw.TooBigError():
            reason = "a value is larger than a journal can hold (1 GB): nothing was stored; store less at once"
        case _:
            reason = "got a disk error, expected a working local disk: nothing was stored; check the disk and try again"
    return JournalUnavailable(f"{path}: {reason} (got: {error or type(error).__name__})")


def _finds_no_room(error: Exception) -> bool:
    """Whether there was not even space for the memory that processes share."""
    return getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE
