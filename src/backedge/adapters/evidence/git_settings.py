"""The settings of a git repository that change what git does: hooks, filters, ignore rules, replaced objects."""

from __future__ import annotations

import os
import re
from hashlib import sha256
from pathlib import Path

from backedge.adapters.agents.regular_file import opened

LARGEST = 4 * 1024 * 1024
_HARMLESS = (
    *("branch", "remote", "user", "author", "committer", "commit", "pull", "push", "fetch", "init", "advice", "color"),
    *("gc", "maintenance", "rerere", "tag", "log", "status", "safe"),
)
"""Sections that people and agents write in ordinary work: branches, remotes, names."""
_SECTION = re.compile(rf'\s*\[(?:{"|".join(_HARMLESS)})(?:\s+"[^"\\\]\[]*")?\]\s*', re.IGNORECASE)
_SETTING = re.compile(r"\s*[a-z][a-z0-9-]*\s*(?:=[^\\\[\]\"]*)?", re.IGNORECASE)


def git_settings(repository: Path) -> dict[str, str]:
    """One digest for each kind of setting, by names such as `.git/config`. What is absent has no digest."""
    found = {
        ".git/config": _digest([b"config\n", obeyed(_text(repository / "config"))]),
        ".git/info/exclude": _digest([_text(repository / "info" / "exclude")]),
        ".git/info/attributes": _digest([_text(repository / "info" / "attributes")]),
        ".git/info/grafts": _digest([_text(repository / "info" / "grafts")]),
        ".git/objects/info/alternates": _digest([_text(repository / "objects" / "info" / "alternates")]),
        ".git/hooks": _digest(_below(repository / "hooks")),
        ".git/refs/replace": _digest([*_below(repository / "refs" / "replace"), *_packed(repository)]),
    }
    return {name: digest for name, digest in found.items() if digest}


def obeyed(config: bytes) -> bytes:
    """The lines of git's configuration that matter: without sections that only say who works here and on which branch.

    Only plain lines are left out. A line that git could read in more than one way stays, and shows.
    """
    lines: list[str] = []
    harmless = False
    for line in config.decode("utf-8", "surrogateescape").split("\n"):
        continues = bool(lines) and not harmless and lines[-1].endswith("\\")
        if _SECTION.fullmatch(line) and not continues:
            harmless = True
        elif line.strip() and not (harmless and _SETTING.fullmatch(line)):
            harmless = False
            lines.append(line)
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def _below(folder: Path) -> list[bytes]:
    """Names, permissions and contents of the files in a folder."""
    parts = []
    for path in sorted(folder.rglob("*")):
        if not path.is_dir() and not path.name.endswith(".sample"):
            runs = b"x" if os.access(path, os.X_OK) else b"f"
            parts += [os.fsencode(path.relative_to(folder)), runs, _text(path)]
    return parts


def _packed(repository: Path) -> list[bytes]:
    return [line for line in _text(repository / "packed-refs").splitlines() if b" refs/replace/" in line]


def _digest(parts: list[bytes]) -> str:
    """A digest of some texts; empty if there is no text."""
    return sha256(b"\0".join(parts)).hexdigest() if any(parts) else ""


def _text(path: Path) -> bytes:
    try:
        with opened(path) as file:
            return file.read(LARGEST)
    except OSError:
        return b""
