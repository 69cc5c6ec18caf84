"""The facts without which a figure means nothing."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import apsw

from bench import peers

OURS = ("backedge", "apsw", "msgspec", "pydantic")


def facts() -> dict[str, Any]:
    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "load_at_start": os.getloadavg()[0],
        "python": platform.python_version(),
        "sqlite": {"ours and floor (apsw)": apsw.sqlite_lib_version(), "peers (sqlite3)": _peers_sqlite()},
        "packages": {name: _version(name) for name in OURS},
        "peers": peers.versions(),
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _peers_sqlite() -> str:
    """The peers' interpreter was made from ours, but may be asked as long as it is there."""
    if not peers.python().exists():
        return sqlite3.sqlite_version
    ask = [str(peers.python()), "-c", "import sqlite3; print(sqlite3.sqlite_version)"]
    return subprocess.run(ask, capture_output=True, text=True, check=True).stdout.strip()
