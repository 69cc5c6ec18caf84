"""Asks git about a folder through an empty repository of our own, which exists only for the question.

The repository of the workspace is within the reach of agents: its index can hide files, and its settings can name
programs that git would run. Here git gets only its knowledge of ignore rules from us, and no settings of anybody.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

PATIENCE = 120.0
"""Seconds after which an answer of git no longer counts."""
_CONFIG = b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = false\n\tquotepath = false\n"


class GitFailed(OSError):
    """Git is not installed, or did not answer."""


class GitQuestion:
    """One git process that is under way."""

    def __init__(self, process: subprocess.Popen[bytes], output: IO[bytes], words: tuple[str, ...]) -> None:
        self._process, self._output, self._words = process, output, words

    def answer(self, accepted: tuple[int, ...] = (0,)) -> list[str]:
        """The paths that git printed. Raises GitFailed if it ended otherwise."""
        with self._output:
            try:
                code = self._process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.stop()
                code = -1
            if code not in accepted:
                raise GitFailed(
                    f"git {self._words[0]} ended with {code} instead of {accepted[0]}: check that git works here"
                )
            self._output.seek(0)
            text = self._output.read()
        return os.fsdecode(text).split("\0")[:-1]

    def stop(self) -> None:
        """End the process, if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._output.close()


class PrivateGit:
    """Git with an empty repository; use it inside `private_git()`."""

    def __init__(self, repository: Path) -> None:
        self._repository = repository
        self._files = 0
        self.questions: list[GitQuestion] = []

    def write(self, text: bytes) -> Path:
        """A new file in the repository, for git to read."""
        path = self._new()
        path.write_bytes(text)
        return path

    def empty_folder(self) -> str:
        """A work tree without files, for questions that are only about names."""
        path = self._new()
        path.mkdir()
        return os.fspath(path)

    def _new(self) -> Path:
        self._files += 1
        return self._repository / f"file-{self._files}"

    def ask(self, top: str, folder: str, *words: str, given: Iterable[str] = ()) -> GitQuestion:
        """Start git in a folder of the work tree `top`. The caller can do other work meanwhile."""
        repository = os.fspath(self._repository)
        places = {"GIT_DIR": repository, "GIT_OBJECT_DIRECTORY": repository, "GIT_WORK_TREE": top}
        output = tempfile.TemporaryFile()  # noqa: SIM115 - the question closes it
        with tempfile.TemporaryFile() as source:
            source.write(b"".join(os.fsencode(path) + b"\0" for path in given))
            source.seek(0)
            try:
                process = subprocess.Popen(
                    ["git", "--no-optional-locks", "--no-replace-objects", *words],
                    cwd=folder,
                    env={**_environment(), **places},
                    stdin=source,
                    stdout=output,
                    stderr=subprocess.DEVNULL,
                )
            except OSError as error:
                output.close()
                raise GitFailed(f"git cannot be started ({error}): install git, or put it on the PATH again") from error
        question = GitQuestion(process, output, words)
        self.questions.append(question)
        return question


@contextmanager
def private_git(exclude: bytes = b"") -> Iterator[PrivateGit]:
    """Git with an empty repository whose `info/exclude` is given."""
    with tempfile.TemporaryDirectory(prefix="backedge-git-") as made:
        repository = Path(made)
        (repository / "refs").symlink_to(".")  # git only looks whether it is there
        (repository / "HEAD").write_bytes(b"ref: refs/heads/none\n")
        (repository / "config").write_bytes(_CONFIG)
        if exclude:
            (repository / "info").mkdir()
            (repository / "info" / "exclude").write_bytes(exclude)
        git = PrivateGit(repository)
        try:
            yield git
        finally:
            for question in git.questions:
                question.stop()


def _environment() -> Mapping[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return {**kept, "LC_ALL": "C", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
