"""Orders to git about a person's repository. What is only asked to judge files goes through `adapters/evidence` instead."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from backedge.core.errors import BackedgeError

# A hook that started us may have set these for its own repository.
_NOT_OURS = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY")


class GitRefused(BackedgeError):
    """Git did not do what it was asked."""

    def __init__(self, words: tuple[str, ...], why: str) -> None:
        self.why = why
        order = next(word for word in words if word[0] != "-" and "=" not in word)
        super().__init__(f"git {order} failed: {why}")


def git(folder: Path, *words: str, env: Mapping[str, str] | None = None, given: bytes = b"") -> str:
    """What git prints, without the line break at its end. Raises GitRefused with what git says."""
    return git_bytes(folder, *words, env=env, given=given).decode("utf-8", "surrogateescape").strip("\n")


def git_bytes(folder: Path, *words: str, env: Mapping[str, str] | None = None, given: bytes = b"") -> bytes:
    """What git prints, byte for byte."""
    inherited = {key: value for key, value in os.environ.items() if key not in _NOT_OURS}
    try:
        done = subprocess.run(
            ["git", *words],
            cwd=folder,
            env={**inherited, "LC_ALL": "C", **(env or {})},
            input=given,
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        raise GitRefused(words, "git is not installed") from None
    if done.returncode:
        said = done.stderr.strip() or done.stdout.strip()
        raise GitRefused(words, said.decode("utf-8", "replace"))
    return done.stdout


def answer(folder: Path, *words: str) -> str:
    """Like `git`, but empty if git refuses."""
    try:
        return git(folder, *words)
    except GitRefused:
        return ""


def names(folder: Path, *words: str) -> list[str]:
    """Paths that git lists with -z."""
    return [os.fsdecode(each) for each in git_bytes(folder, *words).split(b"\0") if each]
