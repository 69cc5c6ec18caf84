"""Files that tools bring up to date themselves when they run: lock files of package managers, and new snapshots.

A judge that does so has judged something else than what is delivered, so it is a finding for the step that left these files
behind. With protected files as they were, an old `Cargo.toml` does not fit the new lock file: that says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from backedge.engine.protocol import Finding

_LOCK_FILES = re.compile(
    r"(?:cargo|uv|poetry|pdm|pipfile|gemfile|composer|flake|mix|pubspec|yarn|bun|deno|package|conan)\.lock"
    r"|(?:package-lock|npm-shrinkwrap)\.json|pnpm-lock\.yaml|go\.sum|bun\.lockb",
    re.IGNORECASE,
)
_SNAPSHOTS = re.compile(r".+\.(?:snap|ambr)")


def is_lock_file(name: str) -> bool:
    """Whether a package manager writes this file itself."""
    return _LOCK_FILES.fullmatch(_last(name)) is not None


def is_self_written(name: str) -> bool:
    """Whether tools bring this file up to date themselves."""
    return is_lock_file(name) or _SNAPSHOTS.fullmatch(_last(name)) is not None


def outdated(judge: str, changed: Iterable[str]) -> list[Finding]:
    """A finding for each such file that a judge had to change."""
    return [
        Finding(
            f"{name} is not up to date",
            severity="high",
            category="evidence",
            evidence=f"{judge} changed it when it ran, so what it judged is not what would be delivered",
            file=name,
            suggested_fix="run the tool that writes this file, and look at what it changed",
        )
        for name in sorted(changed)
        if is_self_written(name)
    ]


def _last(name: str) -> str:
    return name.rpartition("/")[2]
