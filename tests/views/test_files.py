"""The scratchpad and progress.json on disk: current, whole, and where the briefing says."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from backedge.adapters.views import PROGRESS, SCRATCHPAD, RunViews
from backedge.adapters.views import run_views as writing
from backedge.compat.progress import VERIFIED, read_progress
from backedge.core.events import Event
from tests.core.play import Play, failed, out, passed, profiled, step

TIGHT = (step("implement", phase="code"), step("review", reviews="implement"), step("test", tests="implement"))


def played() -> Play:
    replies = [out(1, summary="first"), out(2, summary="second")]
    return Play(profiled("tight-loop", *TIGHT), {"implement": replies, "review": [failed("wrong"), passed()]}).run()


def views_in(folder: Path, complaints: list[str] | None = None) -> RunViews:
    return RunViews(lambda run: folder / run, None if complaints is None else complaints.append)


def test_the_files_are_current_when_their_paths_are_asked_for(tmp_path: Path) -> None:
    views = views_in(tmp_path)
    numbers = []
    for event in played().events:
        views.tell("r", event)
        paths = views.paths("r")
        numbers.append(read_progress(Path(paths["progress"]).read_bytes()).feedback_loop.current_iteration)
        assert Path(paths["scratchpad"]).read_text().startswith("# Feedback scratchpad\n")
    assert (numbers[0], numbers[-1], sorted(numbers)) == (1, 2, numbers)
    assert VERIFIED in (tmp_path / "r" / SCRATCHPAD).read_text()


def test_the_events_of_one_decision_are_one_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    real = writing._replace

    def counted(path: Path, text: bytes) -> None:
        written.append(path.name)
        real(path, text)

    monkeypatch.setattr(writing, "_replace", counted)
    views = views_in(tmp_path)

    async def scenario() -> None:
        for event in played().events:
            views.tell("r", event)
        assert written == []
        await asyncio.sleep(2 * writing.DELAY)

    asyncio.run(scenario())
    assert sorted(written) == sorted([SCRATCHPAD, PROGRESS])


def test_a_run_that_is_resumed_goes_on_from_its_past(tmp_path: Path) -> None:
    events = played().events
    early, late = events[:6], events[6:]
    views = views_in(tmp_path)
    views.load("r", early)
    assert (tmp_path / "r" / PROGRESS).exists()
    for event in late:
        views.tell("r", event)
    views.flush()
    whole = views_in(tmp_path / "whole")
    whole.load("r", events)
    assert (tmp_path / "r" / PROGRESS).read_bytes() == (tmp_path / "whole" / "r" / PROGRESS).read_bytes()


def test_a_run_whose_past_is_unknown_gets_no_files(tmp_path: Path) -> None:
    views = views_in(tmp_path)
    views.tell("r", played().events[3])
    views.flush()
    assert list(tmp_path.iterdir()) == []


def test_a_refresh_leaves_what_the_journal_has_in_the_end(tmp_path: Path) -> None:
    events = played().events
    stored, asked = [4, len(events), len(events)], []

    async def read(after: int) -> list[Event]:
        asked.append(after)
        return events[after : stored.pop(0)]

    asyncio.run(views_in(tmp_path).refresh("r", read))
    assert json.loads((tmp_path / "r" / PROGRESS).read_bytes())["feedback_loop"]["status"] == VERIFIED
    assert asked == [0, 4, len(events)], "no event is read twice"


def test_no_reader_ever_sees_half_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    complaints: list[str] = []
    views = views_in(tmp_path, complaints)
    views.load("r", played().events[:4])
    before = (tmp_path / "r" / PROGRESS).read_bytes()

    def full(path: Path, text: bytes) -> int:
        with path.open("wb") as file:
            file.write(text[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    for event in played().events[4:]:
        views.tell("r", event)
    views.flush()
    assert (tmp_path / "r" / PROGRESS).read_bytes() == before
    assert {path.name for path in (tmp_path / "r").iterdir()} == {PROGRESS, SCRATCHPAD}
    assert complaints == [f"{SCRATCHPAD} and {PROGRESS} of r cannot be written: No space left on device"]


def test_a_disk_that_refuses_is_complained_about_once_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "r").write_text("in the way")
    complaints: list[str] = []
    views = views_in(tmp_path, complaints)
    for event in played().events:
        views.tell("r", event)
        views.paths("r")
    assert len(complaints) == 1
