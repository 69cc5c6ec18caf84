"""`merge`, `discard` and `worktrees`: what becomes of work that was done in a worktree."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click
import msgspec

from backedge.app import Engine
from backedge.cli.amounts import size_words
from backedge.cli.common import (
    asking,
    existing,
    journal_option,
    json_option,
    print_json,
    run_id,
    shown,
    where,
)
from backedge.cli.people import require_person
from backedge.core.errors import IllegalCommand, NotFound
from backedge.core.state.run import RunState
from backedge.core.text import counted, one_line
from backedge.engine.live_run import resting
from backedge.project import Project, file_of, origin_of
from backedge.project.delivery import Delivery, committed, delivery, everything, listed, merge_into, start_of
from backedge.project.git import GitRefused, answer, git, git_bytes
from backedge.project.worktrees import Worktree, checkout_of, remove, worktree_in_use
from backedge.project.worktrees import worktrees as all_of
from backedge.reading.run_status import ASKS, LIVE, MERGED, PAUSED, STOPPED, run_statuses

PATCH = "discarded.patch"
yes_option = click.option("--yes", is_flag=True, help="Do not ask, also if there is work that was not merged.")


@click.command()
@click.argument("run_name", metavar="RUN")
@click.option("--message", "-m", help="The message of the commit. Default: the task and the outcome of the run.")
@click.option(
    "--anyway",
    metavar="REASON",
    help="Merge although the run did not end well, or its files were changed since; the reason goes into the commit.",
)
@journal_option
@json_option
def merge(run_name: str, message: str | None, anyway: str | None, journal: Path | None, as_json: bool) -> None:
    """Merge what RUN, or a story, delivered in its worktree into the current branch.

    Exactly the files that were judged are committed, on top of the commit from which the run started, and that commit is
    merged. Then the worktree and its branch are removed. If anything is in the way (a conflict, your own changes in the
    same files, a run that did not end well), nothing is changed, and the message says what to do.

    \b
    Example:
      backedge merge r-0193
      backedge merge my-story
      backedge merge r-0193 --anyway "the flaky test is known"
    """
    require_person(journal)
    spot = existing(journal)
    if anyway is not None and not anyway.strip():
        raise click.UsageError("--anyway needs a reason: it goes into the commit")
    state, tree = _of_run(journal, spot, run_name)
    checkout, run = _checkout(tree), state.run
    branch = answer(checkout, "symbolic-ref", "--quiet", "--short", "HEAD")
    if not branch:
        raise IllegalCommand("HEAD is detached, so there is no branch to merge into: `git switch BRANCH` first")
    if branch == tree.branch:
        raise IllegalCommand(
            f"the current branch is {tree.branch} itself: switch to the branch that should get the work"
        )
    outcome = _outcome(state)
    if outcome not in MERGED and anyway is None:
        raise IllegalCommand(
            f"run {run} {_ended_words(state)}, so its work is not merged: {_todo(state)}, `backedge discard {run}`, "
            'or merge it with --anyway "REASON"'
        )
    source = file_of(spot, run)
    try:
        made = delivery(spot, run, source, tree, state.trees if anyway is None else {})
        commit = committed(tree, made, message or _message(state, anyway)) if made.files else made.start
        newer = int(answer(checkout, "rev-list", "--count", f"{made.start}..HEAD") or 0)
        if made.files:
            merge_into(checkout, tree)
    except GitRefused as error:
        raise IllegalCommand(f"{error}: nothing was merged") from None
    remove(checkout, tree)
    merged = answer(checkout, "rev-parse", "HEAD")
    if as_json:
        print_json(
            {"run": run, "outcome": outcome, "branch": branch, "commit": commit, "files": made.files, "head": merged}
        )
        return
    if not made.files:
        click.echo(f"run {run} changed no files: there was nothing to merge; its worktree was removed")
        return
    click.echo(f"merged {run} ({outcome}) into {branch} as {commit[:10]}: {listed(made.files)}")
    if newer:
        click.echo(
            f"  {branch} has {counted(newer, 'commit')} that the run did not see: both together were not judged, so run your "
            "tests"
        )
    click.echo(f"  removed: {_near(tree.path)} and the branch {tree.branch}")


@click.command()
@click.argument("run_name", metavar="RUN")
@yes_option
@journal_option
@json_option
def discard(run_name: str, yes: bool, journal: Path | None, as_json: bool) -> None:
    """Remove the worktree and the branch of RUN, or of a story. Work that was not merged is kept as a patch.

    \b
    Example:
      backedge discard r-0193
    """
    require_person(journal)
    spot = existing(journal)
    state, tree = _of_run(journal, spot, run_name)
    if state.ended is None:
        raise IllegalCommand(f"run {state.run} {_ended_words(state)}: end it first with `backedge cancel {state.run}`")
    kept = _removed(spot, tree, start_of(spot, state.run), yes, f"run {state.run}", keep_branch=False)
    _tell_removed(tree, kept, as_json)


@click.group(invoke_without_command=True)
@journal_option
@json_option
@click.pass_context
def worktrees(context: click.Context, journal: Path | None, as_json: bool) -> None:
    """List the worktrees of runs and stories: branch, state, size and path, or remove one.

    \b
    Example:
      backedge worktrees
      backedge worktrees remove r-0193
    """
    if context.invoked_subcommand is not None:
        return
    rows = _listed(where(journal), journal)
    if as_json:
        print_json(rows)
        return
    wide = {key: max((len(str(getattr(row, key))) for row in rows), default=0) for key in ("id", "branch", "state")}
    for row in rows:
        head = f"{row.id:{wide['id']}}  {row.branch:{wide['branch']}}  {row.state:{wide['state']}}"
        click.echo(f"{head}  {size_words(row.bytes):>8}  {counted(row.changed, 'changed file')}")
        click.echo(f"    {shown(_near(Path(row.path)))}  → {row.next}")
    if not rows:
        click.echo("no worktrees: `backedge run --worktree` starts a run in one")


@worktrees.command("remove")
@click.argument("id", metavar="ID")
@yes_option
@journal_option
@json_option
def remove_worktree(id: str, yes: bool, journal: Path | None, as_json: bool) -> None:
    """Remove the worktree of a run or of a story. What was not committed is kept as a patch.

    The branch of a story stays if it has commits of its own; that of a run goes with its worktree.

    \b
    Example:
      backedge worktrees remove my-story
    """
    require_person(journal)
    spot = where(journal)
    found = [tree for tree in all_of(spot) if id in (tree.id, tree.branch)]
    if not found:
        known = ", ".join(tree.id for tree in all_of(spot)) or "none"
        raise NotFound(f"there is no worktree {id!r} (there are: {known})")
    (tree,) = found
    _require_idle(journal, spot, tree)
    base = answer(tree.path, "merge-base", "HEAD", _head(tree)) or _head(tree)
    start = "HEAD" if tree.of_story else base
    ahead = answer(tree.path, "rev-list", "--count", tree.branch, f"^{_head(tree)}") not in ("", "0")
    kept = _removed(spot, tree, start, yes, f"the worktree {tree.id}", keep_branch=tree.of_story and ahead)
    _tell_removed(tree, kept, as_json)


class _Row(msgspec.Struct, frozen=True):
    """A worktree in the list."""

    id: str
    kind: str
    branch: str
    path: str
    state: str
    """How its run is doing; empty if it has none."""
    bytes: int
    changed: int
    """Files that differ from what is committed on its branch, and new ones."""
    next: str


def _listed(spot: Project, journal: Path | None) -> list[_Row]:
    trees = list(all_of(spot))
    if not trees:
        return []
    runs = _statuses(journal, spot)
    return [_row(spot, tree, runs) for tree in trees]


def _row(spot: Project, tree: Worktree, runs: dict[str, str]) -> _Row:
    state = runs.get(_run_of(spot, tree, runs), "")
    todo = f"backedge merge {tree.id}"
    if state not in MERGED:
        todo = f"backedge details {tree.id}" if tree.of_story else f"backedge show {tree.id}"
    kind = "story" if tree.of_story else "run"
    return _Row(tree.id, kind, tree.branch, str(tree.path), state, _size(tree.path), len(_changed(tree)), todo)


def _statuses(journal: Path | None, spot: Project) -> dict[str, str]:
    """How the runs are doing, newest first."""

    async def ask(engine: Engine) -> dict[str, str]:
        return {each.run: each.state for each in await run_statuses(engine.journal, await engine.runs(), spot)}

    return asking(journal, ask) if spot.journal.exists() else {}


def _run_of(spot: Project, tree: Worktree, runs: dict[str, str]) -> str:
    """The newest run in a worktree; empty if there is none."""
    inside = tree.path.resolve()
    return next((run for run in runs if origin_of(spot, run).is_relative_to(inside)), "")


def _of_run(journal: Path | None, spot: Project, name: str) -> tuple[RunState, Worktree]:
    """A run that no process executes, with its worktree. Raises IllegalCommand."""

    story = next((tree for tree in all_of(spot) if tree.of_story and tree.id.casefold() == name.casefold()), None)
    name = (story and _run_of(spot, story, _statuses(journal, spot))) or name

    async def ask(engine: Engine) -> tuple[RunState, str | None]:
        run = await run_id(engine.journal, name)
        return await (await engine.find(run)).state(), await engine.journal.holder(run)

    state, holder = asking(journal, ask)
    tree = worktree_in_use(spot, state.run)
    if tree is None:
        raise IllegalCommand(_without(spot, state.run))
    if holder is not None:
        raise IllegalCommand(
            f"run {state.run} is executed by {holder} now: wait until it ends, or end it with `backedge cancel {state.run}`"
        )
    return state, tree


def _without(spot: Project, run: str) -> str:
    """Why a run has no worktree."""
    commit = answer(spot.folder, "log", "--all", "-1", "--format=%h", "--fixed-strings", f"--grep=Backedge-Run: {run}")
    if commit:
        return f"run {run} has no worktree any more: it was merged as {commit}"
    return f"run {run} has no worktree: it was discarded, or it was not started with `backedge run --worktree`"


def _require_idle(journal: Path | None, spot: Project, tree: Worktree) -> None:
    """Raises IllegalCommand if something works in a worktree, or if its run can still go on there."""
    runs = _statuses(journal, spot)
    run = _run_of(spot, tree, runs)
    state = runs.get(run, "")
    if state == LIVE or (not tree.of_story and state in (STOPPED, PAUSED, ASKS)):
        raise IllegalCommand(
            f"run {run} has not ended ({state}): wait until it ends, or end it with `backedge cancel {run}`"
        )


def _checkout(tree: Worktree) -> Path:
    return checkout_of(tree.path)


def _head(tree: Worktree) -> str:
    """The commit of the main checkout."""
    return answer(_checkout(tree), "rev-parse", "HEAD")


def _outcome(state: RunState) -> str:
    return state.ended.outcome if state.ended is not None else resting(state) or "running"


def _ended_words(state: RunState) -> str:
    outcome = _outcome(state)
    return {"waiting": "waits for a person", "running": "has not ended"}.get(outcome, f"ended as {outcome}")


def _todo(state: RunState) -> str:
    if state.ended is None:
        return f"answer it (`backedge inbox`), continue it with `backedge resume {state.run}`"
    return "start a new run"


def _message(state: RunState, anyway: str | None) -> str:
    """The message of the commit: the task, the outcome and the run."""
    task = _task(state.input)
    subject = one_line(task) if task else f"{state.graph.workflow.name}: {state.run}"
    subject = subject if len(subject) <= 72 else f"{subject[:71]}…"
    body = [f"Merged although the run {_ended_words(state)} or its files were changed: {anyway}", ""] if anyway else []
    return "\n".join([subject, "", *body, f"Backedge-Run: {state.run}", f"Backedge-Outcome: {_outcome(state)}", ""])


def _task(given: object) -> str:
    """The task in the input of a run, if it is a text or has one."""
    if isinstance(given, dict):
        story = given.get("story")
        title = story.get("title") if isinstance(story, dict) else None
        texts = [title, given.get("task"), given.get("title"), *given.values()]
        given = next((text for text in texts if isinstance(text, str) and text.strip()), "")
    return given if isinstance(given, str) else ""


def _changed(tree: Worktree) -> list[str]:
    try:
        start = git(tree.path, "rev-parse", "HEAD")
        return list(everything(tree, start).files)
    except GitRefused:
        return []


def _removed(spot: Project, tree: Worktree, start: str, yes: bool, what: str, keep_branch: bool) -> Path | None:
    """Remove a worktree. Returns where the work in it is kept as a patch; None if there is none. Raises IllegalCommand if
    no person agreed to that."""
    try:
        left = everything(tree, git(tree.path, "rev-parse", start))
    except GitRefused as error:
        raise IllegalCommand(f"{error}: look at {tree.path}, and remove it with `git worktree remove`") from None
    if left.files and not yes:
        not_merged = "is not merged" if len(left.files) == 1 else "are not merged"
        question = f"{what} has {counted(len(left.files), 'changed file')} that {not_merged} ({listed(left.files)})"
        if not sys.stdin.isatty():
            raise IllegalCommand(f"{question}: give --yes to remove it; a patch is kept")
        if not click.confirm(f"{question}. Remove it? A patch is kept", err=True):
            raise IllegalCommand("nothing was removed")
    kept = _patch(spot, tree, left) if left.files else None
    remove(_checkout(tree), tree, keep_branch)
    return kept


def _patch(spot: Project, tree: Worktree, left: Delivery) -> Path:
    path = spot.state / "runs" / tree.id / PATCH
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(git_bytes(tree.path, "diff", "--binary", "--full-index", left.start, left.tree))
    return path


def _tell_removed(tree: Worktree, kept: Path | None, as_json: bool) -> None:
    if as_json:
        print_json({"removed": str(tree.path), "branch": tree.branch, "patch": str(kept) if kept is not None else None})
        return
    click.echo(f"removed {_near(tree.path)}" + ("" if tree.of_story else f" and the branch {tree.branch}"))
    if kept is not None:
        click.echo(f"  its changes are kept in {_near(kept)}: `git apply` brings them back")


def _near(path: Path) -> str:
    """A path from the current folder, if it is below it."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _size(path: Path) -> int:
    return sum(_sizes(path))


def _sizes(path: Path) -> Iterator[int]:
    for each in path.rglob("*"):
        if not each.is_symlink() and each.is_file():
            yield each.stat().st_size
