"""What git knows of a folder: its files, and what they were when the index was written. Git is only asked: nothing here
changes the index, runs a hook or follows a setting of somebody else's environment."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

_PATIENCE = 120.0
_BARE = ("git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.quotepath=false")
_LINK_TO_REPOSITORY = b"160000"


@dataclass(slots=True)
class GitTree:
    """The files of a work tree that are not ignored, by their paths relative to the folder."""

    files: list[str] = field(default_factory=list)
    blobs: dict[str, str] = field(default_factory=dict)
    """The object that holds a file's content, for files that are as the index has them."""


def git_tree(folder: Path) -> GitTree | None:
    """The files that git knows or would add; None where git knows nothing of the folder."""
    staged = _git(folder, "ls-files", "-s", "-z")
    others = _git(folder, "ls-files", "-z", "--others", "--exclude-standard")
    touched = _git(folder, "diff-files", "--name-only", "--relative", "-z")
    if staged is None or others is None or touched is None:
        return None
    if not staged and not others and _git(folder, "check-ignore", "-q", ".") is not None:
        return None  # the folder as a whole is ignored: git would notice nothing
    tree, nested = GitTree(), []
    dirty = set(_names(touched))
    for entry in staged.split(b"\0")[:-1]:
        head, _, name = entry.partition(b"\t")
        mode, blob, stage = head.split()
        path = os.fsdecode(name)
        if mode == _LINK_TO_REPOSITORY:
            nested.append(path)
            continue
        if stage in (b"0", b"1"):
            tree.files.append(path)
        if stage == b"0" and path not in dirty:
            tree.blobs[path] = blob.decode()
    for path in _names(others):
        # A repository within the repository is listed as one folder.
        nested.append(path.rstrip("/")) if path.endswith("/") else tree.files.append(path)
    for path in nested:
        inner = git_tree(folder / path) if (folder / path / ".git").exists() else None
        tree.files += [f"{path}/{name}" for name in inner.files] if inner else []
    tree.files = sorted(set(tree.files))
    return tree


def blobs(folder: Path, ids: Iterable[str], largest: int) -> dict[str, bytes]:
    """The contents of objects, those that are larger aside."""
    wanted = list(dict.fromkeys(ids))
    asked = "".join(f"{id}\n" for id in wanted).encode()
    sizes = _git(folder, "cat-file", "--batch-check=%(objectname) %(objectsize)", given=asked) if wanted else None
    small = [
        id.decode()
        for id, _, size in (line.partition(b" ") for line in (sizes or b"").splitlines())
        if size.isdigit() and int(size) <= largest
    ]
    text = _git(folder, "cat-file", "--batch", given="".join(f"{id}\n" for id in small).encode()) if small else None
    found, place = {}, 0
    while text is not None and place < len(text):
        end = text.index(b"\n", place)
        id, _, length = text[place:end].split()
        found[id.decode()] = text[end + 1 : end + 1 + int(length)]
        place = end + 2 + int(length)
    return found


def _names(listing: bytes) -> list[str]:
    return [os.fsdecode(name) for name in listing.split(b"\0")[:-1]]


def _git(folder: Path, *words: str, given: bytes = b"") -> bytes | None:
    """What git answers; None if it refuses, or is not there."""
    # Inside a hook git points to its own index and folder; this one is asked about ours.
    env = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")} | {"LC_ALL": "C"}
    try:
        done = subprocess.run(
            [*_BARE, *words], cwd=folder, env=env, input=given, capture_output=True, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
