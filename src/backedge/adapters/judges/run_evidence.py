"""The evidence of one run in one workspace: how it began, what changed since, and what counts as the reference."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from backedge.adapters.agents.file_digests import Stamp, stamp_of
from backedge.adapters.agents.globs import Globs
from backedge.adapters.evidence import environment
from backedge.adapters.evidence.before import KeptContents
from backedge.adapters.evidence.contents import content_at, mode_at
from backedge.adapters.evidence.folder_looks import FolderLooks
from backedge.adapters.evidence.names import path_of
from backedge.adapters.evidence.room import RoomKind
from backedge.adapters.evidence.start import Judging, RunStart, begin
from backedge.adapters.evidence.store import RunStore, StoreDamaged
from backedge.adapters.evidence.tree import Tree
from backedge.adapters.judges.notes import Notes
from backedge.adapters.judges.reference import ReferenceFiles, change_of, text_of
from backedge.adapters.judges.runs import Difference
from backedge.core.errors import AgentError
from backedge.core.evidence.values import FileChange

RECORD = "the record of the start"
"""How people are told about what was recorded when the run began."""
LOST_RECORD = (
    "it is not the one that was made when the run began, so that nothing shows how the tests were then: it was changed or "
    "deleted, or the run comes from another machine; compare the tests yourself"
)
_MODES = {"f": 0o100644, "x": 0o100755, "l": 0o120777}


@dataclass(frozen=True)
class EvidenceSettings:
    """What a workflow file says about the evidence of one workspace."""

    folder: Path
    """The workspace."""
    project: Path
    """The folder of the workflow file."""
    state: Path
    """The state folder of the project."""
    journal: str
    judging: Judging = field(default_factory=Judging)
    room: RoomKind = "auto"
    keeps: tuple[str, ...] = ()
    """Globs of files that judges leave in the workspace. They are not part of what is judged."""
    producers: Mapping[str, Sequence[str] | None] = field(default_factory=dict)
    """The `writes` of the steps that work here."""
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    @property
    def name(self) -> str:
        """The workspace, from the folder of the workflow file; empty for that folder itself."""
        try:
            inside = os.path.relpath(self.folder.resolve(), self.project.resolve())
        except ValueError:  # pragma: no cover - another drive, on Windows
            return os.fspath(self.folder)
        return "" if inside == "." else inside


@dataclass(frozen=True)
class Restoration:
    """How to make protected files what they were."""

    restore: Mapping[str, tuple[Path, int]] = field(default_factory=dict)
    """The contents of files, with their modes."""
    remove: Sequence[str] = ()
    lost: Sequence[str] = ()
    """Files whose content was not kept, because it was too large."""


class RunEvidence:
    """The evidence of one run."""

    def __init__(self, settings: EvidenceSettings, store: RunStore, looks: FolderLooks) -> None:
        self._settings, self.store = settings, store
        self.start: RunStart = begin(settings.folder, settings.state, store, settings.judging, settings.env, looks)
        self.start.protected.add_tests(store.reported)
        self.contents = KeptContents(settings.folder, store)
        self.notes = Notes(store, self.start.protected)
        self._keeps = Globs(settings.keeps)

    def tree(self) -> Tree:
        """The files as they are. Raises AgentError if there is no workspace any more."""
        folder = self._settings.folder
        if not folder.is_dir():
            raise AgentError(f"the workspace {str(folder)!r} is not a folder; make it, or correct `workspace`")
        return self.start.tree()

    def states(self, tree: Tree) -> dict[str, Stamp | None]:
        """What the last look at each file of a tree, and a look at their folders now, say about their states. That tells a file that was
        changed and changed back from one that was not; the name of a folder ends with a slash. Files that judges leave
        behind do not count."""
        states = self.start.states(tree)
        if self._settings.keeps:
            return {name: state for name, state in states.items() if not self._keeps.match(path_of(name))}
        top = os.path.realpath(self._settings.folder)
        return states | {f"{name}/": _state_at(f"{top}/{path_of(name)}") for name in tree.folders}

    def digest(self, tree: Tree) -> str:
        """The digest of what is judged."""
        return self.judged(tree).digest

    def judged(self, tree: Tree) -> Tree:
        """What is judged: all files but those that judges leave behind."""
        tree = self.notes.without(tree)
        if not self._settings.keeps:
            return tree
        base, kind = self.start.base.tree.files, self.start.protected.kind
        kept = {
            name
            for name, found in tree.files.items()
            if self._keeps.match(path_of(name)) and (kind(name) is None or base.get(name) == found)
        }
        return Tree({name: found for name, found in tree.files.items() if name not in kept})

    def protected_changes(self, tree: Tree) -> dict[str, FileChange]:
        """The protected files that differ from the start of the run, but for data that judges left there."""
        base = self.start.base.tree.files
        names = {name for name, _ in base.items() ^ tree.files.items()}
        return {
            name: change_of(base.get(name), tree.files.get(name))
            for name in sorted(names)
            if self.start.protected.kind(name) is not None and not self.notes.has(name, tree.files.get(name))
        }

    def keep_protected(self, tree: Tree, names: Iterable[str]) -> None:
        """Keep the contents of protected files: a version that is approved must be found again when it changes later."""
        for name in names:
            content = self.read(name) if name in tree.files else None
            if content is not None:
                self.store.put(content)

    def keep_tests(self, names: Sequence[str]) -> None:
        """Protect files of the start that are tests, although their names do not say so."""
        self.start.protected.add_tests(names)
        self.keep_protected(self.start.base.tree, names)
        self.store.save_reported(sorted({*self.store.reported, *names}))

    def keep_left(self, names: Iterable[str]) -> None:
        """Remember files as a judge left them: what somebody else writes there later is not its measurement."""
        found = {name: self.store.put(content) for name in names if (content := self.read(name)) is not None}
        if found:
            self.store.save_left({**self.store.left, **found})

    def read(self, name: str) -> bytes | None:
        """The content of a file of the workspace."""
        return content_at(f"{os.path.realpath(self._settings.folder)}/{path_of(name)}")

    def reference(self, judge: str, approved: Mapping[str, str]) -> ReferenceFiles:
        failing = {name: text_of(kept) for name, kept in self.store.failing(judge).items()}
        return ReferenceFiles(self.start.protected, self.start.base.tree.files, approved, failing)

    def restoration(self, differences: Mapping[str, Difference], reference: ReferenceFiles) -> Restoration:
        """How to make a workspace *held*."""
        return self.restored({name: reference.wanted(name) for name in differences})

    def restored(self, wanted: Mapping[str, str | None]) -> Restoration:
        """How to make files what the tree had for them. Raises AgentError if what was kept was changed from outside."""
        kept, restore, remove, lost = self.start.base.protected, {}, [], []
        for name, found in wanted.items():
            if found is None:
                remove.append(path_of(name))
                continue
            digest = found[2:]
            if not self.store.object(digest).exists():
                lost.append(name)
                continue
            try:
                self.store.get(digest)
            except StoreDamaged as error:
                raise AgentError(str(error)) from error
            mode = kept[name].mode if name in kept and kept[name].digest == digest else _MODES.get(found[0], 0o100644)
            restore[path_of(name)] = self.store.object(digest), mode
        return Restoration(restore, remove, lost)

    def note_failing(self, judge: str, files: Iterable[str]) -> None:
        """Keep files of tests as they are while they fail, and forget those that do not fail any more."""
        top, failing = os.path.realpath(self._settings.folder), set(files)
        for name in self.store.failing(judge).keys() - failing:
            self.store.forget_failing(judge, name)
        for name in sorted(failing):
            content, mode = self.read(name), mode_at(f"{top}/{path_of(name)}")
            if content is not None and mode is not None:
                self.store.note_failing(judge, name, content, mode)

    def environment_changes(
        self, tree: Tree, approved: Mapping[str, str], start: str = ""
    ) -> dict[str, tuple[str, str]]:
        """The parts of the judges' environment that are not as at the start: their new fingerprint, and what they are.

        `start` is the digest of the record of the start as the journal has it. If the record is another one, nothing says
        any more how the files were when the run began."""
        expected, now = self._expected_environment, self.start.environment(tree, self._settings.env)
        found = {name: (now.get(name, ""), _why(name, expected, now)) for name in environment.changed(expected, now)}
        if start and start != self.start.digest:
            found[RECORD] = self.start.digest, LOST_RECORD
        return {name: each for name, each in found.items() if approved.get(name) != each[0]}

    @property
    def _expected_environment(self) -> Mapping[str, str]:
        moved = self.store.moved_environment
        return self.start.base.environment if moved is None else moved

    def move_environment(self, tree: Tree) -> None:
        """A step that may install has ended: what it left is what judges run with from now on."""
        self.store.fingerprint = self.start.environment(tree, self._settings.env)

    def fingerprint(self) -> str:
        """The environment that judges expect in one digest, for caches."""
        text = "".join(f"{name}\0{digest}\0" for name, digest in sorted(self._expected_environment.items()))
        return sha256(text.encode()).hexdigest()


def _state_at(folder: str) -> Stamp | None:
    try:
        return stamp_of(os.lstat(folder))
    except OSError:
        return None


def _why(name: str, expected: Mapping[str, str], now: Mapping[str, str]) -> str:
    if name not in now:
        return "it is gone"
    return (
        "its files are not those of the start"
        if name in expected
        else "when the run began, it was not there, or nothing ran with it"
    )
