"""What git knows about a folder: its files, and which of them are as the index has them.

Git is only queried. Nothing here changes the index, runs a hook or uses a `GIT_*` variable, which may belong to a hook
that started us.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

_PATIENCE = 120.0
_ASK = (
    *("git", "--no-optional-locks", "--no-replace-objects", "-c", "core.quotepath=false", "-c", "core.fsmonitor=false"),
    # Settings with which git overlooks changes.
    *("-c", "core.fileMode=true", "-c", "core.trustctime=true", "-c", "core.checkStat=default"),
)
_LINK_TO_REPOSITORY = b"160000"
_CHECKED = b"H"
"""The tag of a file that git compares with the index. Files with another tag may be excluded from the comparison."""


@dataclass(frozen=True, slots=True)
class GitIndex:
    """The index of a repository, as far as it is about one folder. The same object as long as the index is the same."""

    files: dict[str, str] = field(default_factory=dict)
    """The object with a file's content, by the file's path relative to the folder; empty where git does not compare."""
    repositories: tuple[str, ...] = ()
    """Repositories within this one."""


@dataclass(frozen=True, slots=True)
class GitTree:
    """The files of a work tree that are not ignored, by their paths relative to the folder."""

    index: GitIndex
    touched: frozenset[str]
    """Files that differ from the index."""
    others: tuple[str, ...]
    """Files that are not in the index."""


class GitFolder:
    """One folder that may be part of a git repository."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._index = GitIndex()
        self._seen: tuple[int, ...] | None = None

    def tree(self) -> GitTree | None:
        """The files that git knows or would add; None if git does not follow the folder."""
        repository = repository_of(self._folder)
        if repository is None:
            return None
        stamp = _stamp(repository / "index")
        if (stamp is None or stamp != self._seen) and not self._read_index():
            return None
        self._seen = stamp
        # One process lists both the files that differ from the index and those that are not in it.
        listing = ask(self._folder, "ls-files", "-z", "-t", "-m", "-o", "--exclude-standard")
        if listing is None:
            return None
        touched, others, repositories = set(), [], list(self._index.repositories)
        for entry in listing.split(b"\0")[:-1]:
            tag, path = entry[:1], os.fsdecode(entry[2:])
            if tag != b"?":
                touched.add(path)
            elif path.endswith("/"):
                repositories.append(path.rstrip("/"))  # a repository within this one is listed as one folder
            else:
                others.append(path)
        if not self._index.files and not others and ask(self._folder, "check-ignore", "-q", ".") is not None:
            return None  # the whole folder is ignored: git would not notice any change
        for path in repositories:
            others += [f"{path}/{name}" for name in _files_of(self._folder / path)]
        return GitTree(self._index, frozenset(touched), tuple(others))

    def _read_index(self) -> bool:
        listing = ask(self._folder, "ls-files", "-z", "-s", "-v")
        if listing is None:
            return False
        files: dict[str, str] = {}
        repositories = []
        for entry in listing.split(b"\0")[:-1]:
            head, _, name = entry.partition(b"\t")
            tag, mode, blob, stage = head.split()
            path = os.fsdecode(name)
            if mode == _LINK_TO_REPOSITORY:
                repositories.append(path)
            else:
                files[path] = blob.decode() if stage == b"0" and tag == _CHECKED else ""
        self._index = GitIndex(files, tuple(repositories))
        return True


def _files_of(folder: Path) -> list[str]:
    """The files of a repository within a repository."""
    tree = GitFolder(folder).tree() if (folder / ".git").exists() else None
    return [*tree.index.files, *tree.others] if tree else []


def repository_of(folder: Path) -> Path | None:
    """Where git keeps what it knows about a folder; None if there is no `.git` in it or above it."""
    here = os.path.realpath(folder)
    while True:
        found = Path(here, ".git")
        if found.is_dir():
            return found
        if found.exists():  # of a worktree, or of a submodule: a file that says where
            try:
                return Path(here, found.read_text("utf-8", "surrogateescape").removeprefix("gitdir:").strip())
            except OSError:
                return found
        here, last = os.path.dirname(here), here
        if here == last:
            return None


def common_folder(repository: Path) -> Path:
    """Where the settings of a repository are: those of a worktree are in the repository that it belongs to."""
    try:
        return repository / (repository / "commondir").read_text("utf-8", "surrogateescape").strip()
    except OSError:
        return repository


def _stamp(path: Path) -> tuple[int, ...] | None:
    """The state of a file; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def blobs(folder: Path, ids: Iterable[str], largest: int) -> dict[str, bytes]:
    """The contents of objects, except of those that are larger."""
    wanted = list(dict.fromkeys(ids))
    query = "".join(f"{id}\n" for id in wanted).encode()
    sizes = ask(folder, "cat-file", "--batch-check=%(objectname) %(objectsize)", given=query) if wanted else None
    small = [
        id.decode()
        for id, _, size in (line.partition(b" ") for line in (sizes or b"").splitlines())
        if size.isdigit() and int(size) <= largest
    ]
    text = ask(folder, "cat-file", "--batch", given="".join(f"{id}\n" for id in small).encode()) if small else None
    found, offset = {}, 0
    while text is not None and offset < len(text):
        end = text.index(b"\n", offset)
        id, _, length = text[offset:end].split()
        found[id.decode()] = text[end + 1 : end + 1 + int(length)]
        offset = end + 2 + int(length)
    return found


def ask(folder: Path, *words: str, given: bytes = b"") -> bytes | None:
    """The output of git; None if it fails or is not installed."""
    try:
        done = subprocess.run(
            [*_ASK, *words],
            cwd=folder,
            env=_environment(),
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def _environment() -> Mapping[str, str]:
    return {key: value for key, value in os.environ.items() if not key.startswith("GIT_")} | {"LC_ALL": "C"}
