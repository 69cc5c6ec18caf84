"""Measures `backedge next` and `backedge board` with many stories.

    python tools/measure_stories.py [COUNT]     2,000 stories by default, first without runs, then each with one

Prints the fastest and the median of several calls, in seconds from start to exit, next to those of `backedge --version`.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from backedge.app import Engine
from backedge.config import load
from backedge.project import find_project
from backedge.stories.backlog import read_backlog
from backedge.stories.rules.story_view import view_of_events
from backedge.stories.story_run import start_run
from backedge.stories.update import update_story

CALLS = 7
WORKFLOW = """\
name: many
profile: ai-sdlc
stories: {}
steps:
  plan: {phase: planning, run: [echo, "{}"], writes: []}
  code: {phase: code, needs: [plan], run: [echo, "{}"], writes: []}
  review: {reviews: code, run: [echo, "{}"]}
"""


def main(count: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder, count)
        _report(folder, f"{count} stories")
        asyncio.run(_begin(folder))
        _report(folder, f"{count} stories, each with a run")


def _write(folder: Path, count: int) -> None:
    (folder / "backedge.yaml").write_text(WORKFLOW)
    (folder / "stories").mkdir()
    for number in range(count):
        head = (
            f"id: story-{number}\ntitle: Story number {number}\nstatus: ready\npriority: {number % 50}\ntags: [a, b]\n"
        )
        text = (
            f"---\n{head}owner: somebody  # who asked for it\n---\n# Story {number}\n\n" + "What is to be made.\n" * 20
        )
        (folder / "stories" / f"story-{number}.md").write_text(text)


async def _begin(folder: Path) -> None:
    source = load(folder / "backedge.yaml")
    spot = find_project(source.path)
    async with Engine(spot.journal) as engine:
        engine.allow(0)
        for entry in (await read_backlog(source, spot, engine)).entries:
            run = await start_run(engine, source, spot, entry, lambda _: {})
            update_story(spot, entry.id, entry.path, entry.name, view_of_events(await run.events()))
            await run.release()


def _report(folder: Path, what: str) -> None:
    print(what)
    for words in (["--version"], ["next"], ["board"], ["next", "--json"]):
        times = sorted(_seconds(folder, words) for _ in range(CALLS))
        print(f"  backedge {' '.join(words):12} {times[0]:.3f} s, middle {median(times):.3f} s")


def _seconds(folder: Path, words: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "backedge.cli.main", *words],
        cwd=folder,
        env={key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return time.perf_counter() - began


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
