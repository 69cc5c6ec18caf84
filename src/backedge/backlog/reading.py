"""All stories of a project, read at once: quick for thousands of them."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from backedge.adapters.stories import Glance, StoryFileError, glance
from backedge.adapters.stories.front_matter import MAX_BYTES
from backedge.analytics.refinement import Refinement, refinement
from backedge.analytics.story_view import StoryView, view_of
from backedge.app import Engine
from backedge.backlog.entry import GENERATION, RUN, Entry, Written, phases_without_steps
from backedge.config import WorkflowFile, find, load
from backedge.core.assessor import Action, assess
from backedge.core.errors import NotFound, WorkflowError
from backedge.core.events import Event
from backedge.core.suggestions import did_you_mean
from backedge.project import Project

RECORDS = "stories"
"""The folder, beside the journal, with what we wrote last to each story."""


@dataclass(frozen=True, repr=False)
class Backlog:
    """The stories of a project as they are now."""

    entries: tuple[Entry, ...]

    def __repr__(self) -> str:
        # The result of a task is shown by its event loop: thousands of stories would take their time.
        return f"<Backlog of {len(self.entries)}>"

    def actions(self) -> tuple[Action, ...]:
        """What is to be done, the most urgent first."""
        return assess(entry.story for entry in self.entries)

    def find(self, name: str) -> Entry:
        """A story by its id, its slug or its file. Raises NotFound."""
        stem = Path(name).stem if name.endswith(".md") else name
        found = [entry for entry in self.entries if name in (entry.id, entry.name)] or [
            entry for entry in self.entries if stem in (entry.slug, entry.id)
        ]
        if not found and os.path.exists(name):
            found = [entry for entry in self.entries if os.path.samefile(entry.path, name)]
        if len(found) == 1:
            return found[0]
        if found:
            raise NotFound(f"{name!r} is the name of {len(found)} stories: {', '.join(entry.name for entry in found)}")
        known = [entry.id for entry in self.entries]
        hint = did_you_mean(name, known) if len(known) < 20 else "`backedge board` shows them"
        raise NotFound(f"there is no story {name!r}: {hint}" if known else f"there is no story {name!r}, nor any other")


def story_folder(source: WorkflowFile) -> Path:
    """The folder with the stories of a project. Raises WorkflowError if it has none."""
    assert source.stories is not None
    folder = source.stories.folder
    if not folder.is_dir():
        raise WorkflowError(
            f"there is no folder {folder.name}/ with stories beside {source.path.name}: make it, with a file like "
            f"{folder.name}/first.md that begins with ---, `title: …` and ---; or run `backedge init --template stories`"
        )
    return folder


def has_stories(source: WorkflowFile) -> bool:
    """Whether a project works through stories: it says so, or its folder shows it."""
    spec = source.stories
    return spec is not None and (spec.declared or any(map(_begins_as_story, story_files(spec.folder))))


def _begins_as_story(path: str) -> bool:
    try:
        return _read(path, 8).lstrip(b"\xef\xbb\xbf").startswith(b"---")
    except OSError:
        return False


def story_files(folder: Path) -> Iterator[str]:
    """The Markdown files of a folder and those below it, in order. A README is none, nor is what is hidden."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if name.endswith(".md") and not name.startswith(".") and name.lower() != "readme.md":
                yield f"{parent}/{name}"


def _read(path: str, most: int = sys.maxsize) -> bytes:
    """A file, at most so many bytes of it. Raises OSError, also if it is something else: a pipe would not end."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is not a file")
        data = os.read(handle, min(most, status.st_size + 1))
        while len(data) < most and (more := os.read(handle, min(most - len(data), 65536))):
            data += more
        return data
    finally:
        os.close(handle)


async def backlog_of(source: WorkflowFile, spot: Project, engine: Engine | None) -> Backlog:
    """The stories of a project; `engine` has its journal, None if there is none yet."""
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
        told, trouble = _seen(path, name)
        parent = os.path.dirname(name)
        if parent not in writable:
            writable[parent] = os.access(os.path.dirname(path), os.W_OK)
        if told and not writable[parent]:
            trouble = f"{name} cannot be written: make the folder {parent} writable"
        run = runs.get(told.id, "") if told else ""
        view = await _view(spot, engine, told.id, run, seqs[run]) if told and run and engine else None
        skipped = skips and view is not None and view.status == "blocked"
        found.append(Entry(path, name, told, trouble, run, view, skipped, done_before))
    return Backlog(tuple(_unambiguous(found)))


def _seen(path: str, name: str) -> tuple[Glance | None, str]:
    """What a story says of itself, or why that cannot be known."""
    try:
        return glance(_read(path, MAX_BYTES + 1), name, os.path.basename(path).removesuffix(".md")), ""
    except StoryFileError as error:
        return None, str(error)
    except OSError as error:
        return None, f"{name} cannot be read: {error.strerror}: make it readable"


def _unambiguous(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Two stories with one id would share a run: neither is worked on until that is mended."""
    names: dict[str, list[str]] = {}
    for entry in entries:
        if entry.glance:
            names.setdefault(entry.glance.id, []).append(entry.name)
    for entry in entries:
        others = [name for name in names[entry.glance.id] if name != entry.name] if entry.glance else []
        if others:
            trouble = f"{entry.name}:1:1: id {entry.id!r} is also that of {', '.join(others)}: give one another id"
            yield replace(entry, trouble=trouble, view=None, run="")
        else:
            yield entry


def _newest_runs(runs: Sequence[str]) -> dict[str, str]:
    """The newest run of each story, by its id."""
    found: dict[str, tuple[int, str]] = {}
    for run in runs:
        if run.startswith(RUN):
            id, _, number = run.removeprefix(RUN).partition(GENERATION)
            each = (int(number) if number.isdecimal() else 1, run)
            found[id] = max(found.get(id, each), each)
    return {id: run for id, (_, run) in found.items()}


async def _view(spot: Project, engine: Engine, id: str, run: str, seq: int) -> StoryView | None:
    record = record_of(spot, id)
    if record is not None and (record.view.run, record.view.seq) == (run, seq):
        return record.view
    return view_of_events(await (await engine.find(run)).events())


def view_of_events(events: Sequence[Event]) -> StoryView:
    told: Refinement | None = None
    for event in events:
        told = refinement(told, event)
    assert told is not None
    return view_of(told)


def record_path(spot: Project, id: str) -> Path:
    return spot.state / RECORDS / f"{id}.json"


def is_story(spot: Project, run: str) -> bool:
    """Whether a run works on a story."""
    return run.startswith(RUN) and record_path(spot, run.removeprefix(RUN).partition(GENERATION)[0]).is_file()


async def story_of(spot: Project, run: str) -> tuple[WorkflowFile, Entry] | None:
    """The story that a run works on, and the workflow file as it is now; None for a run without one.

    Raises BackedgeError and OSError if the story cannot be had."""
    if not run.startswith(RUN):
        return None
    source = load(find(spot.folder))
    if not has_stories(source):
        return None
    id = run.removeprefix(RUN).partition(GENERATION)[0]
    return source, (await backlog_of(source, spot, None)).find(id)


_decoder = msgspec.json.Decoder(Written)


def record_of(spot: Project, id: str) -> Written | None:
    """What we wrote last to a story; None if there is nothing, or nothing that this version understands."""
    try:
        return _decoder.decode(_read(f"{spot.state}/{RECORDS}/{id}.json"))
    except (OSError, msgspec.DecodeError):
        return None
