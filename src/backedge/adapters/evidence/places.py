"""Where backedge keeps what agents must not reach: outside every workspace, in the user's state folder."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

_FOREIGN = re.compile(r"[^A-Za-z0-9._-]+")


def state_home(env: Mapping[str, str] | None = None) -> Path:
    """The folder for the state of all projects of this user."""
    given = (os.environ if env is None else env).get("XDG_STATE_HOME", "")
    # The specification says to ignore a relative path: it would depend on where a command is started.
    return (Path(given) if os.path.isabs(given) else Path.home() / ".local" / "state") / "backedge"


def journal_key(journal: str | os.PathLike[str]) -> str:
    """A journal as one part of a path: its project's name for people, and a hash of where it is.

    A journal that is a file has one key, however its path is written.
    """
    text = os.fspath(journal)
    whole = text if "://" in text else os.path.realpath(text)
    folders = [part for part in whole.split("/")[:-1] if part and part != ".backedge"]
    name = _FOREIGN.sub("_", folders[-1] if folders else "").strip("._")[:40] or "journal"
    return f"{name}-{sha256(os.fsencode(whole)).hexdigest()[:16]}"


def rooms_of_attempts(state: Path, run: str) -> set[str]:
    """The names of the rooms in which judges of a run began, by the name of its folder; of all runs with `*`."""
    notes = (state / "attempts").glob(f"{run}/*/*/room")
    return {note.read_text("utf-8", "replace") for note in notes if note.is_file() and note.stat().st_size < 100}
