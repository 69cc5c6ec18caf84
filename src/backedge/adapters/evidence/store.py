"""What a run keeps outside the workspace: how everything was when it began.

    base.json          the files and the environment of the start
    objects/           the contents of protected files and others, by their digests
    packs/             many contents in one file
    failing/           test files as they were when they failed, by judge
    before/            the files before the last attempt of each step
    changed/           the files that each attempt changed: how they were, and how it left them
    memory/            what judges remembered before each attempt
    ended/             that this attempt has ended, and why it does not count
    environment.json   the environment that judges expect, if a step moved it

Every file is written whole or not at all, so that a killed process leaves nothing half done. Only the user can read it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import msgspec

from backedge.adapters.agents.file_name import file_name
from backedge.adapters.evidence.ignore_rules import IgnoreRules
from backedge.adapters.evidence.packs import Packs
from backedge.adapters.evidence.places import journal_key
from backedge.adapters.evidence.tree import Tree
from backedge.core.ready_types import make_ready

T = TypeVar("T")
FEW = 100
"""How many contents get a file each."""
_MEMORY = ("tests", "failing")
"""The folders with what judges remember."""


class StoreDamaged(OSError):
    """A file of the run's store is missing or is not what was written."""


class Kept(msgspec.Struct, frozen=True):
    """The content of one file in the store."""

    digest: str
    """Of the content: the argument for `get`. For a link, the content is where it leads."""
    mode: int
    """As the file system has it: kind of file, and permissions."""


class Base(msgspec.Struct, frozen=True):
    """The workspace as it was when the run began."""

    tree: Tree
    protected: dict[str, Kept] = {}
    environment: dict[str, str] = {}
    rules: IgnoreRules = IgnoreRules(git=False)
    links: dict[str, str] = {}
    """Links among the files, with the names of what they lead to."""
    behind: tuple[str, ...] = ()
    """Files behind the judges: what their scripts start."""
    told: tuple[str, ...] = ()
    """Files of tests whose names do not say so, but a runner is told to run them."""


class FoundBefore(msgspec.Struct, frozen=True):
    """What a tool that does not name tests found at the start of the run."""

    file: str
    """Empty if it did not say where, as an exit code does not."""
    line: int | None
    description: str
    rule: str = ""
    """What the tool calls this kind of finding; empty if it does not say."""


class Printed(msgspec.Struct, frozen=True):
    """What a program printed about its tests."""

    tests: int | None = None
    """The tests that ran, in all summaries together; None if there is no summary."""
    last: int | None = None
    """The same in the last summary. Those before may be the output of tests that failed, or of runs that came first."""
    failures: tuple[str, ...] = ()
    """The first lines that speak of a failure."""
    certain: bool = True
    """Whether programs print one of these lines only if something failed."""
    lines: tuple[str, ...] = ()
    """All lines, without numbers."""


NOTHING_PRINTED = Printed()


class KnownTests(msgspec.Struct, frozen=True):
    """The tests that a judge has seen running."""

    files: dict[str, str] = {}
    """The file of each test, by id; empty where it is not known."""
    baseline: tuple[str, ...] = ()
    """The tests that ran at the start of the run."""
    before: int | None = None
    """How many tests there were at the start of the run, including skipped ones; None without a baseline."""
    complete: bool = False
    """Whether the baseline has all tests of the start: the tool ran, and every file of tests could be loaded."""
    failed: tuple[str, ...] = ()
    """The tests that failed at the start of the run."""
    versions: dict[str, str] = {}
    """The digest that the file of each test had when the test last ran."""
    asked: dict[str, tuple[tuple[str, str], ...]] = {}
    """Tests that no longer run, with the file and digest of each change that somebody was asked about."""
    silences: dict[str, tuple[str, ...]] = {}
    """The lines that silence a linter in files with findings, as they were when a finding was first reported there."""
    found: tuple[FoundBefore, ...] = ()
    """What a tool that does not name tests found at the start of the run, if that made it fail."""
    printed: Printed = NOTHING_PRINTED
    """What a tool with nothing but an exit code printed about its tests at the start of the run."""


class Before(msgspec.Struct, frozen=True):
    """The workspace just before an attempt: enough to undo what the attempt must not change."""

    tree: Tree
    modes: dict[str, int] = {}
    kept: dict[str, str] = {}
    """The digests of contents in the store, by name."""
    blobs: dict[str, str] = {}
    """The git objects with the contents of others. What git gives is compared with the digest before it is used."""
    left: tuple[str, ...] = ()
    """The files that earlier attempts of the step have changed and left so, although these attempts do not count."""


class ChangedFile(msgspec.Struct, frozen=True):
    """A file that an attempt changed, with kinds and hashes as in a tree."""

    before: str | None
    """None if the attempt made it."""
    after: str | None
    """None if the attempt removed it."""
    mode: int = 0
    """Kind of file and permissions before; 0 if they are not known."""
    blob: str = ""
    """The git object with its content before. The store may have that too, by its hash."""
    shared: bool = False
    """Whether another attempt that was under way meanwhile may have changed it."""


make_ready(Base, Kept, KnownTests, Before, ChangedFile)


class RunStore:
    """The store of one run."""

    def __init__(self, project_state: Path, journal: str | os.PathLike[str], run: str, workspace: str = "") -> None:
        """`workspace` is empty for that of the workflow file itself. The stores of a run's other workspaces lie inside."""
        self.path = project_state / journal_key(journal) / "runs" / file_name(run)
        if workspace:
            self.path = self.path / "workspaces" / file_name(workspace)
        self.packs = Packs(self.path / "packs")
        self.packs.look()

    @property
    def base(self) -> Base | None:
        """The start of the run; None if it was not recorded."""
        return self._read("base.json", Base)

    def save_base(self, base: Base) -> None:
        """Record the start, once: what is there already stays, since nothing later is the start."""
        if self.base is None:
            self._write("base.json", msgspec.json.encode(base))

    @property
    def base_digest(self) -> str:
        """The digest of the record of the start, as it is on the disk."""
        return sha256((self.path / "base.json").read_bytes()).hexdigest()

    @property
    def began(self) -> int:
        """When the start was recorded, in nanoseconds."""
        return (self.path / "base.json").stat().st_mtime_ns

    @property
    def fingerprint(self) -> dict[str, str]:
        """The environment that judges expect: that of the start, or of the last step that may install."""
        moved = self.moved_environment
        base = self.base if moved is None else None
        return moved if moved is not None else dict(base.environment) if base else {}

    @fingerprint.setter
    def fingerprint(self, environment: dict[str, str]) -> None:
        self._write("environment.json", msgspec.json.encode(environment))

    @property
    def moved_environment(self) -> dict[str, str] | None:
        """The environment that the last step left that may install; None if it is still that of the start."""
        return self._read("environment.json", dict[str, str])

    def put(self, content: bytes) -> str:
        """Keep a content, and give its digest."""
        digest = sha256(content).hexdigest()
        name = f"objects/{digest[:2]}/{digest}"
        if not (self.path / name).exists():
            self._write(name, content)
        return digest

    def put_all(self, contents: Sequence[bytes]) -> None:
        """Keep many contents at once."""
        if len(contents) <= FEW:
            for content in contents:
                self.put(content)
            return
        name, pack, index = Packs.packed(contents)
        self._write(f"packs/{name}", pack)
        self._write(f"packs/{name}.json", index)
        self.packs.look()

    def has(self, digest: str) -> bool:
        """Whether a content was kept."""
        return digest in self.packs or self.object(digest).exists()

    def get(self, digest: str) -> bytes:
        """A content that was kept. Raises StoreDamaged if it is not there, or was changed."""
        path = self.object(digest)
        try:
            content = self.packs.get(digest) if not path.exists() else None
            content = path.read_bytes() if content is None else content
        except OSError as error:
            raise StoreDamaged(f"{path} cannot be read ({error}): start a new run") from error
        if sha256(content).hexdigest() != digest:
            raise StoreDamaged(f"{path} was changed from outside: start a new run")
        return content

    def object(self, digest: str) -> Path:
        """Where a content is kept."""
        return self.path / "objects" / digest[:2] / digest

    def failing(self, judge: str) -> dict[str, Kept]:
        """The test files of a judge's open findings, as they were when they failed."""
        folder = f"failing/{file_name(judge)}"
        names = sorted(each.name for each in (self.path / folder).glob("*") if not each.name.startswith("."))
        found = (self._read(f"{folder}/{name}", tuple[str, Kept]) for name in names)
        return dict(each for each in found if each is not None)

    def note_failing(self, judge: str, file: str, content: bytes, mode: int = 0o100644) -> None:
        """Keep a test file as it is while it fails. The first version stays: later ones may be weaker."""
        name = _failing(judge, file)
        if not (self.path / name).exists():
            self._write(name, msgspec.json.encode((file, Kept(self.put(content), mode))))

    def forget_failing(self, judge: str, file: str) -> None:
        """The findings of a test file are closed: it is no longer held."""
        (self.path / _failing(judge, file)).unlink(missing_ok=True)

    def tests(self, judge: str) -> KnownTests:
        """The tests that a judge has seen running in this run."""
        return self._read(f"tests/{file_name(judge)}.json", KnownTests) or KnownTests()

    def save_tests(self, judge: str, tests: KnownTests) -> None:
        self._write(f"tests/{file_name(judge)}.json", msgspec.json.encode(tests))

    @property
    def reported(self) -> list[str]:
        """The files of tests that only the reports of the start show."""
        return self._read("reported.json", list[str]) or []

    def save_reported(self, names: list[str]) -> None:
        self._write("reported.json", msgspec.json.encode(names))

    @property
    def notes(self) -> dict[str, str]:
        """The files that steps left behind that only look, each with its digest."""
        return self._read("notes.json", dict[str, str]) or {}

    def save_notes(self, notes: dict[str, str]) -> None:
        self._write("notes.json", msgspec.json.encode(notes))

    @property
    def left(self) -> dict[str, str]:
        """The files that gates read and judges left, each with the digest of its content as it was then."""
        return self._read("left.json", dict[str, str]) or {}

    def save_left(self, left: dict[str, str]) -> None:
        self._write("left.json", msgspec.json.encode(left))

    def before(self, step: str, attempt: int) -> Before | None:
        """The workspace before an attempt."""
        return self._read(_attempt(step, attempt), Before)

    def save_before(self, step: str, attempt: int, before: Before) -> None:
        self._write(_attempt(step, attempt), msgspec.json.encode(before))

    def changed(self, step: str, attempt: int) -> dict[str, ChangedFile]:
        """The files that an attempt changed, by name."""
        return self._read(_attempt(step, attempt, "changed"), dict[str, ChangedFile]) or {}

    def save_changed(self, step: str, attempt: int, changed: dict[str, ChangedFile]) -> None:
        if changed:
            self._write(_attempt(step, attempt, "changed"), msgspec.json.encode(changed))

    def save_memory(self, step: str, attempt: int) -> None:
        """Keep what judges remember. Nothing is copied: every file is written whole, so that links to it stay as they are."""
        target = self._memory(step, attempt)
        _make_private(target)
        for what in _MEMORY:
            for file in (each for each in (self.path / what).rglob("*") if each.is_file()):
                link = target / file.relative_to(self.path)
                _make_private(link.parent)
                with suppress(FileExistsError):
                    os.link(file, link)

    def restore_memory(self, step: str, attempt: int, judges: Collection[str]) -> None:
        """Let these judges remember what they did before an attempt. May be called again after a crash."""
        kept = self._memory(step, attempt)
        if not kept.is_dir():
            return
        for judge in map(file_name, judges):
            for what in (Path("tests", f"{judge}.json"), Path("failing", judge)):
                now, before = self.path / what, kept / what
                shutil.rmtree(now, ignore_errors=True) if now.is_dir() else now.unlink(missing_ok=True)
                for file in [before] if before.is_file() else sorted(before.glob("*")):
                    self._write(os.fspath(file.relative_to(kept)), file.read_bytes())

    def _memory(self, step: str, attempt: int) -> Path:
        return self.path / "memory" / f"{file_name(step)}-{attempt}"

    def end(self, step: str, attempt: int, problem: str) -> None:
        """Record that an attempt has ended, and why it does not count, before anything is undone because of it."""
        self._write(_attempt(step, attempt, "ended"), msgspec.json.encode(problem))

    def ended(self, step: str, attempt: int) -> str | None:
        """Why an attempt that has ended does not count, empty if it does; None if nobody saw its end yet."""
        return self._read(_attempt(step, attempt, "ended"), str)

    def attempts(self, step: str) -> list[int]:
        """The attempts of a step before which the workspace was recorded."""
        names = (each.stem.rpartition("-") for each in (self.path / "before").glob("*.json"))
        return sorted(int(attempt) for name, _, attempt in names if name == file_name(step) and attempt.isdigit())

    def forget_before(self, step: str, attempt: int) -> None:
        for what in ("before", "ended"):
            (self.path / _attempt(step, attempt, what)).unlink(missing_ok=True)

    def remove(self) -> None:
        """Give the space back, with that of the run's other workspaces. The run cannot be judged any more."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _write(self, name: str, content: bytes) -> None:
        path = self.path / name
        _make_private(path.parent)
        descriptor, draft = tempfile.mkstemp(prefix=".", dir=path.parent)
        try:
            with open(descriptor, "wb") as file:
                file.write(content)
            os.replace(draft, path)
        except BaseException:
            os.unlink(draft)
            raise

    def _read(self, name: str, kind: type[T]) -> T | None:
        path = self.path / name
        try:
            return msgspec.json.decode(path.read_bytes(), type=kind)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            raise StoreDamaged(f"{path} cannot be read ({error}): something else wrote it; start a new run") from error


def _failing(judge: str, file: str) -> str:
    return f"failing/{file_name(judge)}/{sha256(file.encode()).hexdigest()}"


def _attempt(step: str, attempt: int, what: str = "before") -> str:
    return f"{what}/{file_name(step)}-{attempt}.json"


def _make_private(folder: Path) -> None:
    """Make folders that only the user can enter. Those that exist keep their permissions, except our own."""
    missing = []
    while not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)
