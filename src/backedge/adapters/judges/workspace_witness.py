"""Looks at what a step does to its workspace: a producer is held to its `writes`, a reviewer may only look."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from msgspec import structs

from backedge.adapters.agents.file_name import file_name
from backedge.adapters.agents.globs import Globs
from backedge.adapters.agents.not_started import refusal
from backedge.adapters.evidence.changes import Line, Text, TreeChanges, changes_between
from backedge.adapters.evidence.names import name_of, path_of
from backedge.adapters.evidence.room import Room, open_room
from backedge.adapters.evidence.sandbox import Sandbox
from backedge.adapters.evidence.store import Before, StoreDamaged
from backedge.adapters.evidence.tree import Tree, differing
from backedge.adapters.evidence.writes import Undone, outside, restore
from backedge.adapters.judges.attempt_changes import note_changes, undo_attempts, undone_in
from backedge.adapters.judges.reviewer_files import ReviewerFiles
from backedge.adapters.judges.run_evidence import RunEvidence
from backedge.adapters.judges.under_way import EVERYTHING
from backedge.adapters.judges.workspace_evidence import WorkspaceEvidence
from backedge.core.briefing import Briefing
from backedge.core.errors import AgentError
from backedge.core.evidence.values import MOST_FILES, Evidence, ProtectedChange, RestoredFiles, RestoreRule
from backedge.core.model import SIDE_MODES
from backedge.core.value import replace

MOST_NOTES = 20
OnError = Literal["keep", "restore"]
_REFUSED_WRITE = ("Read-only file system", "read-only file system", "EROFS")
"""What programs print if the sandbox does not let them write."""


@dataclass(frozen=True)
class StepRights:
    """What a step may do to its workspace."""

    step: str
    judges: bool = False
    writes: tuple[str, ...] | None = None
    installs: bool = False
    """Whether it may change installed packages."""
    judged_by_tool: bool = False
    argv: tuple[str, ...] = ()
    """The command of a reviewer that is a program of its own."""
    on_error: OnError | None = None
    """Whether the files of a broken attempt stay; None if only those stay whose conversation goes on."""
    planned: bool = False
    """Whether a planner added the step. Then nobody who wrote the workflow file has made it the owner of tests."""

    def owns(self, name: str, others: Iterable[Sequence[str]]) -> bool:
        """Whether a change of a protected file is the step's own business: its `writes` name the file, and neither a tool
        that would run it judges the step, nor can one of the others that were at work meanwhile have made the change."""
        if self.writes is None or self.judged_by_tool or self.planned or not Globs(self.writes).match(path_of(name)):
            return False
        return not any(Globs(each).match(path_of(name)) for each in others)


class WorkspaceWitness:
    """The eyes on one step."""

    def __init__(
        self,
        evidence: WorkspaceEvidence,
        rights: StepRights,
        sandbox: Sandbox | None = None,
        hides: Sequence[Path] = (),
    ) -> None:
        self._evidence, self._rights, self._sandbox, self._hides = evidence, rights, sandbox, hides
        self._script: ReviewerFiles | None = None
        if rights.judges and rights.argv:
            self._script = ReviewerFiles(rights.argv, os.path.realpath(evidence.settings.folder))
        self._rooms: dict[Path, Room] = {}
        self._befores: dict[Path, Before] = {}
        """The workspace before the attempts of this process. What is stored serves after a crash."""

    def begin(self, run: str) -> None:
        """Keep what the step needs of the start of a run."""
        evidence = self._evidence.of(run)
        if self._script is not None:
            self._script.keep(evidence)

    def before(self, briefing: Briefing, attempt_folder: Path) -> None:
        run = self._evidence.of(briefing.run)
        tree, left = self._finished(run, briefing, attempt_folder)
        globs = self._globs(briefing)
        before = self._befores[attempt_folder] = structs.replace(run.contents.before(tree, globs), left=left)
        run.store.save_before(briefing.step, briefing.attempt, before)
        if globs:
            run.store.save_memory(briefing.step, briefing.attempt)
        self._evidence.under_way.begin(briefing.run, briefing.step, None if globs is EVERYTHING else globs)
        if self._script is not None:
            self._open_room(run, self._script, tree, attempt_folder)

    def argv(self, argv: Sequence[str], attempt_folder: Path, env: Mapping[str, str]) -> list[str]:
        settings, words = self._evidence.settings, list(argv)
        if self._sandbox is not None:
            words = self._sandbox.argv(
                argv,
                settings.folder,
                settings.state,
                attempt_folder,
                self._rights.installs,
                hides=[self._evidence.home, *self._hides],
                shows=[settings.state / "runs" / attempt_folder.parent.name],  # the scratchpad and the progress file
                env=env,
            )
        room = self._rooms.get(attempt_folder)
        confined = room is not None or words != list(argv)
        if confined and (problem := refusal(argv[0], settings.folder, env)):
            raise AgentError(problem)
        return room.argv(["env", *(f"{key}={value}" for key, value in room.env.items()), *words]) if room else words

    def _open_room(self, run: RunEvidence, script: ReviewerFiles, tree: Tree, attempt_folder: Path) -> None:
        """If the reviewer itself was changed, it works in a room in which it is as it was. All else is as it is."""
        restoration = script.restoration(run, tree)
        changed = [*map(name_of, (*restoration.restore, *restoration.remove)), *restoration.lost]
        settings = self._evidence.settings
        if not changed:
            return
        if restoration.lost or settings.room == "off":
            raise AgentError(
                f"the reviewer itself was changed in this run: {_listed(sorted(changed))}; make these files what they were, "
                "or keep the reviewer outside the workspace"
            )
        moving = self._evidence.under_way.writing and settings.room in ("auto", "overlay")
        self._rooms[attempt_folder] = open_room(
            "copy" if moving else settings.room,
            settings.folder,
            self._evidence.scratch,
            restoration.restore,
            restoration.remove,
            hides=[self._evidence.home],
            shows=[settings.state],
        )

    def _finished(self, run: RunEvidence, briefing: Briefing, attempt_folder: Path) -> tuple[Tree, tuple[str, ...]]:
        """The files before this attempt, and which of them attempts have left that do not count. If a crash kept us from seeing the end of an earlier attempt of the step, what it
        changed and must not change is undone first, as far as no other step can have changed it."""
        tree, left = run.tree(), set[str]()
        for attempt in run.store.attempts(briefing.step):
            earlier = replace(briefing, attempt=attempt)
            before = _before(run, earlier) if attempt != briefing.attempt else None
            ended = run.store.ended(briefing.step, attempt)
            if before is not None and ended is None:
                # Nobody saw which of the changes since are its own.
                self._note_changes(run, earlier, before, tree, [EVERYTHING])
                folder = attempt_folder.with_name(f"{file_name(briefing.step)}-{attempt}")
                names = self._outside(run, earlier, before, tree, self._evidence.all_others(briefing.step))
                if names and folder.is_dir():
                    restore(self._evidence.settings.folder, names, before, tree, run.store, folder)
                    tree = run.tree()
            if before is not None and ended != "":
                left.update(before.left, differing(before.tree, tree))
            run.store.forget_before(briefing.step, attempt)
        return tree, tuple(sorted(left))

    def after(self, briefing: Briefing, attempt_folder: Path) -> Evidence:
        others = self._over(briefing, attempt_folder)
        run = self._evidence.of(briefing.run)
        before = self._befores.pop(attempt_folder, None) or _before(run, briefing)
        if before is None:
            raise AgentError("it is not known how the workspace was before the attempt: something removed the record")
        tree, seen_before = run.tree(), run.store.ended(briefing.step, briefing.attempt)
        names = self._outside(run, briefing, before, tree, others)
        problem = seen_before or (self._problem(briefing, names) if names else "")
        run.store.end(briefing.step, briefing.attempt, problem)
        if problem and self._rights.on_error != "keep" and not self._only_looks(briefing):
            more = [name for name in outside(before.tree, tree, (), others) if name not in set(names)]
            problem += f"; so was the rest of what it changed: {_listed(more)}" if more else ""
            names, before = [*names, *more], run.contents.with_sources(before, more)
        undone = undone_in(self._evidence, run, names, before, tree, attempt_folder) if names else None
        if problem and not self._only_looks(briefing):
            self._note_changes(run, briefing, before, run.tree() if undone else tree, others)
            raise AgentError(f"{problem}{_kept(undone)}; change only what `writes` names, or raise feedback")
        if problem:
            seen = self._seen(run, None, run.tree() if undone else tree, others)
            return replace(seen, notes=(f"{problem}{_kept(undone)}",))
        if self._rights.installs:
            run.move_environment(tree)
        self._note_changes(run, briefing, before, tree, others)
        return self._seen(run, before, tree, others)

    def explained(self, printed: str) -> str:
        confined = self._sandbox is not None and self._sandbox.in_force != "off"
        if not confined or not any(words in printed for words in _REFUSED_WRITE):
            return ""
        packages = "" if self._rights.installs else "; `installs: true` lets it change packages"
        return f" in its sandbox, which refused a write{packages}"

    def gave_up(self, briefing: Briefing, attempt_folder: Path, goes_on: bool = False) -> str:
        others = self._over(briefing, attempt_folder)
        run = self._evidence.of(briefing.run)
        before = self._befores.pop(attempt_folder, None)
        if before is None or run.store.ended(briefing.step, briefing.attempt) is not None:
            return ""
        tree = run.tree()
        names = self._outside(run, briefing, before, tree, others)
        keeps = self._rights.on_error == "keep" or (self._rights.on_error is None and goes_on)
        if not keeps and not self._only_looks(briefing):
            names = sorted({*names, *outside(before.tree, tree, (), others)})
            before = run.contents.with_sources(before, names)
        undone = undone_in(self._evidence, run, names, before, tree, attempt_folder) if names else None
        self._note_changes(run, briefing, before, run.tree() if undone else tree, others)
        run.store.end(briefing.step, briefing.attempt, "it gave up")
        if undone is None or not undone.files:
            return _kept(undone).removeprefix("; ")
        return f"what it had changed was undone: {_listed(undone.files)}{_kept(undone)}"

    def restore(
        self, run_id: str, attempts: Sequence[tuple[str, int]], judges: Sequence[str], rule: RestoreRule
    ) -> RestoredFiles:
        found = undo_attempts(self._evidence, run_id, attempts, judges, rule)
        if rule == "unless_edited" and (found.edited or found.lost):
            return found
        run = self._evidence.of(run_id)
        return replace(found, evidence=self._seen(run, None, run.tree(), ()))

    def _note_changes(
        self, run: RunEvidence, briefing: Briefing, before: Before, tree: Tree, others: Sequence[Sequence[str]]
    ) -> None:
        if not self._only_looks(briefing):
            note_changes(run, briefing.step, briefing.attempt, before, tree, others)

    def _outside(
        self, run: RunEvidence, briefing: Briefing, before: Before, tree: Tree, others: Iterable[Sequence[str]]
    ) -> list[str]:
        """The files that the attempt changed and must not change. The notes of one that may change nothing are remembered."""
        names = outside(before.tree, tree, self._globs(briefing), others)
        if not names or self._globs(briefing):
            return names
        notes = run.notes.among(names, before.tree, tree, self._rights.writes or () if self._rights.judges else ())
        run.notes.keep(notes, tree)
        return [name for name in names if name not in set(notes)]

    def _over(self, briefing: Briefing, attempt_folder: Path) -> list[Sequence[str]]:
        """The attempt has ended. Returns what others may have changed meanwhile."""
        room = self._rooms.pop(attempt_folder, None)
        if room is not None:
            room.close()
        met = self._evidence.under_way.end(briefing.run, briefing.step)
        # After a crash nobody knows who was at work with it: it could be everybody.
        return self._evidence.all_others(briefing.step) if met is None else met

    def _problem(self, briefing: Briefing, names: Sequence[str]) -> str:
        if self._rights.judges:
            return f"{briefing.step} changed what it judges: {_listed(names)}; that was undone"
        if briefing.mode in SIDE_MODES:
            return f"{briefing.step} was asked a question and changed files: {_listed(names)}; they were restored"
        allowed = ", ".join(self._rights.writes or ()) or "nothing"
        return f"it changed files outside its `writes` ({allowed}): {_listed(names)}; they were restored"

    def _only_looks(self, briefing: Briefing) -> bool:
        return self._rights.judges or briefing.mode in SIDE_MODES

    def _globs(self, briefing: Briefing) -> Sequence[str]:
        """The files that the attempt may change."""
        if self._only_looks(briefing):
            return ()
        return EVERYTHING if self._rights.writes is None else self._rights.writes

    def _seen(self, run: RunEvidence, before: Before | None, tree: Tree, others: Sequence[Sequence[str]]) -> Evidence:
        workspace = self._evidence.settings.name
        sandbox = self._sandbox.in_force if self._sandbox is not None else "off"
        confined = sandbox if sandbox != "off" else ""
        if self._rights.judges:
            return Evidence(workspace, run.digest(tree), sandbox=confined)
        protected = run.protected_changes(tree)
        run.keep_protected(tree, list(protected))
        base = run.start.base.tree
        since_start = changes_between(base, tree, run.start.protected.kind, _stored(run), run.read)
        lines = {each.file: each.lines for each in since_start.files}
        changes = tuple(
            ProtectedChange(
                name,
                change,
                tree.files.get(name, ""),
                self._rights.owns(name, others),
                lines.get(name, ""),
            )
            for name, change in protected.items()
        )
        files = sorted({*differing(before.tree, tree), *before.left}) if before is not None else []
        return Evidence(
            workspace,
            run.digest(tree),
            files=tuple(files[:MOST_FILES]),
            sandbox=confined,
            changes=changes,
            notes=tuple(_notes(since_start)),
        )


def _before(run: RunEvidence, briefing: Briefing) -> Before | None:
    with suppress(StoreDamaged):
        return run.store.before(briefing.step, briefing.attempt)
    return None


def _stored(run: RunEvidence) -> Text:
    """The content of a protected file at the start; None for others, whose content is not kept."""

    def read(name: str) -> bytes | None:
        kept = run.start.base.protected.get(name)
        return run.store.get(kept.digest) if kept is not None else None

    return read


def _notes(changes: TreeChanges) -> Iterable[str]:
    """What a reviewer should look at, in words."""
    found = [*_lines("silences a check", changes.silenced), *_lines("look at this", changes.suspicious)]
    yield from found[:MOST_NOTES]
    if len(found) > MOST_NOTES:
        yield f"{len(found) - MOST_NOTES} more lines like these"


def _lines(what: str, lines: Sequence[Line]) -> Iterable[str]:
    return (f"{what}: {each.file}:{each.line}: {each.text}" for each in lines)


def _kept(undone: Undone | None) -> str:
    """Where the undone changes are, and what could not be restored."""
    left = f"; {_listed(undone.left)} could not be restored" if undone and undone.left else ""
    return f"{left}; the change is kept in {undone.patch}" if undone and undone.patch else left


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    return ", ".join(names[:20]) + more
