"""What a run in a worktree delivers: one commit with exactly the files that were judged, and its way into a branch."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from backedge.adapters.agents.attempt_folder import write_whole
from backedge.adapters.agents.file_digests import FileDigests
from backedge.adapters.agents.file_name import file_name
from backedge.adapters.evidence.names import name_of, path_of
from backedge.adapters.evidence.places import journal_key, state_home
from backedge.adapters.evidence.tree import differing
from backedge.config import WorkflowFile
from backedge.core.errors import IllegalCommand
from backedge.core.text import counted
from backedge.project.borrowed import is_borrowed
from backedge.project.evidence import FileEvidence
from backedge.project.git import GitRefused, answer, git, names
from backedge.project.location import Project
from backedge.project.worktrees import Worktree, checkout_of

MOST_NAMED = 5


@dataclass(frozen=True)
class Delivery:
    """The files of a run as git has them now."""

    start: str
    """The commit from which the run started."""
    tree: str
    """The git tree of that commit with everything that the run changed."""
    files: tuple[str, ...]
    """What the run changed, by path from the top of the repository."""


def record_start(project: Project, run: str, commit: str) -> None:
    """Remember the commit from which a run starts, where no agent can change it."""
    _start_file(project, run).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_whole(_start_file(project, run), commit.encode())


def delivery(project: Project, run: str, source: WorkflowFile, tree: Worktree, judged: Mapping[str, str]) -> Delivery:
    """What a run delivers. `judged` has the digests of its workspaces as they were judged.

    Raises IllegalCommand if the files are not those any more, or if git would store other contents."""
    start = start_of(project, run)
    top = tree.path.resolve()
    if answer(top, "rev-parse", "--path-format=absolute", "--git-common-dir") != answer(
        checkout_of(tree.path), "rev-parse", "--path-format=absolute", "--git-common-dir"
    ):
        raise IllegalCommand(f"{tree.path} is no longer a worktree of this repository: look at its file .git")
    evidence, wanted = FileEvidence(source, project), dict[str, str | None]()
    for workspace in sorted({each.workspace for each in source.steps.values()} | {source.folder}):
        seen = evidence.of(workspace).of(run)
        now = seen.judged(seen.tree())
        name = evidence.of(workspace).settings.name
        if name in judged and now.digest != judged[name]:
            raise IllegalCommand(
                f"the files in {workspace} are not those that were judged: something changed them after the run ended. "
                f"Look at them (`git -C {tree.path} status`) and undo that, or start a new run; to merge them as they are, "
                "give --anyway with the reason"
            )
        inside = os.path.relpath(workspace.resolve(), top)
        for each in differing(seen.judged(seen.start.base.tree), now):
            wanted[os.path.normpath(f"{inside}/{path_of(each)}")] = now.files.get(each)
    if tree.of_story:  # an earlier run of the story may have left work there, which was judged with it
        return everything(tree, start, checked=True)
    return Delivery(start, _stored(top, start, wanted), tuple(sorted(wanted)))


def start_of(project: Project, run: str) -> str:
    """The commit from which a run started. Raises IllegalCommand if that is no longer known."""
    try:
        return _start_file(project, run).read_text()
    except FileNotFoundError:
        raise IllegalCommand(
            f"what run {run} kept about its start is gone: commit and merge its worktree by hand with git, then remove it "
            "with `backedge worktrees remove`"
        ) from None


def everything(tree: Worktree, start: str, checked: bool = False) -> Delivery:
    """All files of a worktree that git does not ignore, judged or not. `checked` if git has to keep them as they are."""
    top, main = tree.path.resolve(), checkout_of(tree.path).resolve()
    changed = names(top, "diff", "--name-only", "--no-renames", "-z", start)
    others = names(top, "ls-files", "-o", "-z", "--exclude-standard")
    borrowed = {path for path in others if is_borrowed(main, top, path)}
    digests = FileDigests()
    wanted = {path: digests.of(os.fspath(top / path)) for path in {*changed, *others} - borrowed}
    return Delivery(start, _stored(top, start, wanted, checked), tuple(sorted(wanted)))


def committed(tree: Worktree, made: Delivery, message: str) -> str:
    """Commit on the branch of the worktree, on top of where the run started. Commits that agents made are joined into it.
    The commit that is already there is used if it is the same."""
    top, branch = tree.path.resolve(), f"refs/heads/{tree.branch}"
    known = answer(top, "log", "-1", "--format=%T %P", branch)
    if known == f"{made.tree} {made.start}":
        return git(top, "rev-parse", branch)
    commit = git(top, "commit-tree", made.tree, "-p", made.start, "-F", "-", given=message.encode("utf-8", "replace"))
    git(top, "update-ref", branch, commit)
    return commit


def merge_into(checkout: Path, tree: Worktree) -> None:
    """Merge the branch of a worktree into the branch of a checkout. Raises IllegalCommand; then the checkout is as before."""
    try:
        git(checkout, "merge", "--no-edit", tree.branch)
    except GitRefused as error:
        both = _unmerged(checkout)
        if answer(checkout, "rev-parse", "--verify", "--quiet", "MERGE_HEAD"):
            git(checkout, "merge", "--abort")
        if both:
            raise IllegalCommand(
                f"conflicts in {listed(both)}, so nothing was merged. The work is committed on the branch {tree.branch}: run "
                f"`git merge {tree.branch}`, resolve the conflicts and commit; then `backedge merge {tree.id}` removes the "
                "worktree"
            ) from None
        raise IllegalCommand(
            f"git could not merge, and nothing was changed: {' '.join(error.why.split())} The work is committed on the branch "
            f"{tree.branch}: commit or stash what is in the way, then try again"
        ) from None


def listed(files: Sequence[str]) -> str:
    """The first of some files, by name."""
    more = f" and {counted(len(files) - MOST_NAMED, 'more file')}" if len(files) > MOST_NAMED else ""
    return ", ".join(map(name_of, files[:MOST_NAMED])) + more


def _unmerged(checkout: Path) -> list[str]:
    return sorted(set(names(checkout, "diff", "--name-only", "--diff-filter=U", "-z")))


def _stored(top: Path, start: str, wanted: Mapping[str, str | None], checked: bool = True) -> str:
    """The git tree of a commit with these files as they are now. `wanted` has their digests, None for removed ones."""
    with tempfile.TemporaryDirectory(prefix="backedge-") as scratch:
        env = {"GIT_INDEX_FILE": f"{scratch}/index"}
        git(top, "read-tree", start, env=env)
        gone = [path for path, digest in wanted.items() if digest is None]
        there = [path for path, digest in wanted.items() if digest is not None]
        git(top, "update-index", "--force-remove", "-z", "--stdin", env=env, given=_lines(gone))
        add = (
            "-c",
            "core.fileMode=true",
            "-c",
            "core.symlinks=true",
            "update-index",
            "--add",
            "--replace",
            "-z",
            "--stdin",
        )
        git(top, *add, env=env, given=_lines(there))
        tree = git(top, "write-tree", env=env)
        if checked:
            _require_same(top, Path(scratch, "files"), env, {path: wanted[path] for path in there})
        return tree


def _require_same(top: Path, scratch: Path, env: Mapping[str, str], wanted: Mapping[str, str | None]) -> None:
    """Raises IllegalCommand if git would give back other contents than it was given."""
    scratch.mkdir()
    out = ("-c", "core.fileMode=true", "checkout-index", "--force", f"--prefix={scratch}/", "-z", "--stdin")
    git(top, *out, env=env, given=_lines(list(wanted)))
    digests = FileDigests()
    other = [path for path, digest in wanted.items() if digests.of(os.fspath(scratch / path)) != digest]
    if other:
        raise IllegalCommand(
            f"git stores {listed(other)} differently from what was judged, because of a filter or its settings for line ends: "
            "correct .gitattributes or `core.autocrlf`, and start a new run"
        )


def _lines(paths: Sequence[str]) -> bytes:
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


def _start_file(project: Project, run: str) -> Path:
    return state_home() / journal_key(project.journal) / "commits" / file_name(run)
