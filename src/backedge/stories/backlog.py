"""The backlog: all stories of a project. Reading thousands of them is fast."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from backedge.app import Engine
from backedge.config import WorkflowFile, find, load
from backedge.core.errors import NotFound
from backedge.core.suggestions import did_you_mean
from backedge.core.value import replace as replace_value
from backedge.project import Project
from backedge.stories.entry import GENERATION, RUN, Entry, phases_without_steps, story_id
from backedge.stories.files import has_stories, read_file, story_files, story_folder
from backedge.stories.limits import limits_changed
from backedge.stories.record import VERSION, StoryRecord, record_of, record_path
from backedge.stories.rules.assessor import Action, assess
from backedge.stories.rules.dependencies import Dependent, holds
from backedge.stories.rules.front_matter import MAX_BYTES
from backedge.stories.rules.front_matter_reader import StoryFileError
from backedge.stories.rules.story_view import StoryView, view_of_events
from backedge.stories.rules.summary import StorySummary, read_summary


@dataclass(frozen=True, repr=False)
class Backlog:
    """The stories of a project as they are now."""

    entries: tuple[Entry, ...]

    def only(self, story: str | None = None, epic: str | None = None, label: str | None = None) -> Backlog:
        """The same with one story, or with those of an epic or with a label, in any case. Raises NotFound."""
        if story is not None:
            return Backlog((self.find(story),))
        kept = self.entries
        if epic is not None:
            kept = _those(kept, "epic", epic, lambda summary: (summary.epic,) if summary.epic else ())
        if label is not None:
            kept = _those(kept, "label", label, lambda summary: summary.labels)
        return Backlog(kept)

    def __repr__(self) -> str:
        # In debug mode asyncio prints the results of tasks: thousands of stories would take long.
        return f"<Backlog of {len(self.entries)}>"

    def actions(self) -> tuple[Action, ...]:
        """The next actions, most urgent first."""
        return assess(entry.story for entry in self.entries)

    def find(self, name: str) -> Entry:
        """A story by its id, its slug or its file, in any case. Raises NotFound."""
        stem = Path(name).stem if name.endswith(".md") else name
        found = [entry for entry in self.entries if name in (entry.id, entry.name)] or [
            entry for entry in self.entries if stem.casefold() in (entry.slug.casefold(), entry.id.casefold())
        ]
        if not found and os.path.exists(name):
            found = [entry for entry in self.entries if os.path.samefile(entry.path, name)]
        if len(found) == 1:
            return found[0]
        if found:
            raise NotFound(f"{name!r} matches {len(found)} stories: {', '.join(entry.name for entry in found)}")
        known = [entry.id for entry in self.entries]
        hint = did_you_mean(name, known) if len(known) < 20 else "`backedge board` shows them"
        raise NotFound(
            f"there is no story {name!r}: {hint}" if known else f"unknown story {name!r}: there are no stories yet"
        )


def _those(
    entries: Sequence[Entry], what: str, name: str, named: Callable[[StorySummary], tuple[str, ...]]
) -> tuple[Entry, ...]:
    words = [(entry, named(entry.summary) if entry.summary else ()) for entry in entries]
    found = tuple(entry for entry, own in words if name.casefold() in map(str.casefold, own))
    if not found:
        known = sorted({word for _, own in words for word in own})
        raise NotFound(
            f"no story has the {what} {name!r}: "
            + (
                did_you_mean(name, known)
                if known
                else f"write `{what}{'s' if what == 'label' else ''}: …` in its front matter"
            )
        )
    return found


async def read_backlog(source: WorkflowFile, project: Project, engine: Engine | None) -> Backlog:
    """Read the stories of a project; `engine` has its journal, None if there is none yet."""
    folder = story_folder(source)
    heads = await engine.runs() if engine else ()
    runs, seqs = _newest_runs([head.run for head in heads]), {head.run: head.seq for head in heads}
    done_before = phases_without_steps(source.definition)
    assert source.stories is not None
    skips = source.stories.on_breach == "skip"
    above = len(os.path.join(source.folder, ""))
    below = str(folder).startswith(os.path.join(source.folder, ""))
    found: list[Entry] = []
    writable: dict[str, bool] = {}
    for path in story_files(folder):
        name = path[above:] if below else path
        summary, trouble = _summary(path, name)
        parent = os.path.dirname(name)
        if parent not in writable:
            writable[parent] = os.access(os.path.dirname(path), os.W_OK)
        if summary and not writable[parent]:
            trouble = f"{name} cannot be written: make the folder {parent} writable"
        run = runs.get(summary.id.casefold(), "") if summary else ""
        record = record_of(project, story_id(run)) if run else None
        view = await _view(record, engine, run, seqs[run]) if summary and run and engine else None
        entry = Entry(path, name, summary, trouble, run, view, False, done_before)
        if view is not None:
            raised, remark = limits_changed(source, entry, record)
            skipped = skips and view.status == "blocked" and raised is None
            entry = replace(entry, raised=raised, remark=remark, skipped=skipped)
        found.append(entry)
    return Backlog(tuple(_held(list(_unambiguous(found)))))


def _held(entries: Sequence[Entry]) -> Iterator[Entry]:
    """The stories, with what holds those that depend on others."""
    if not any(entry.summary and entry.summary.dependencies for entry in entries):
        yield from entries
        return
    # The id of a file that cannot be read is most likely its name.
    found = holds(
        Dependent(entry.unheld, entry.summary.dependencies, entry.skipped)
        if entry.summary
        else Dependent(replace_value(entry.unheld, id=entry.slug), ())
        for entry in entries
    )
    for entry in entries:
        hold = found.get(entry.id)
        yield entry if hold is None else replace(entry, hold=hold, skipped=entry.skipped or hold.skipped)


def _summary(path: str, name: str) -> tuple[StorySummary | None, str]:
    """The summary of a story file, or the reason why it cannot be read."""
    try:
        return read_summary(read_file(path, MAX_BYTES + 1), name, os.path.basename(path).removesuffix(".md")), ""
    except StoryFileError as error:
        return None, str(error)
    except OSError as error:
        return None, f"{name} cannot be read: {error.strerror}: make it readable"


def _unambiguous(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Two stories with the same id would share a run, so neither is worked on until one of the ids is changed."""
    names: dict[str, list[str]] = {}
    for entry in entries:
        if entry.summary:
            names.setdefault(entry.summary.id.casefold(), []).append(entry.name)
    for entry in entries:
        others = [name for name in names[entry.summary.id.casefold()] if name != entry.name] if entry.summary else []
        if others:
            trouble = f"{entry.name}:1:1: id {entry.id!r} is also the id of {', '.join(others)}: change one of them"
            yield replace(entry, trouble=trouble, view=None, run="")
        else:
            yield entry


def _newest_runs(runs: Sequence[str]) -> dict[str, str]:
    """The newest run of each story, by its id in lower case."""
    found: dict[str, tuple[int, str]] = {}
    for run in runs:
        if run.startswith(RUN):
            number = run.partition(GENERATION)[2]
            each, id = (int(number) if number.isdecimal() else 1, run), story_id(run).casefold()
            found[id] = max(found.get(id, each), each)
    return {id: run for id, (_, run) in found.items()}


async def _view(record: StoryRecord | None, engine: Engine, run: str, seq: int) -> StoryView | None:
    if record is not None and (record.view.run, record.view.seq, record.version) == (run, seq, VERSION):
        return record.view
    return view_of_events(await (await engine.find(run)).events())


def is_story_run(project: Project, run: str) -> bool:
    """Whether a run works on a story."""
    return run.startswith(RUN) and record_path(project, story_id(run)).is_file()


async def runs_without_story(project: Project, runs: Sequence[str]) -> frozenset[str]:
    """Those of some runs of stories whose story does not exist any more. Raises BackedgeError and OSError if the stories
    cannot be read."""
    source = load(find(project.folder))
    entries = (await read_backlog(source, project, None)).entries if has_stories(source) else ()
    if any(entry.summary is None for entry in entries):
        return frozenset()  # it may be one of those that cannot be read
    known = {entry.summary.id.casefold() for entry in entries if entry.summary}
    return frozenset(run for run in runs if story_id(run).casefold() not in known)


async def story_of(project: Project, run: str) -> tuple[WorkflowFile, Entry] | None:
    """The story of a run, and the current workflow file; None for a run without a story.

    Raises BackedgeError and OSError if the story cannot be read."""
    if not run.startswith(RUN):
        return None
    source = load(find(project.folder))
    if not has_stories(source):
        return None
    entry = (await read_backlog(source, project, None)).find(story_id(run))
    return source, replace(entry, run=run)
