"""What killed processes leave, and what the next command and `prune` do about it."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from backedge.adapters.agents.attempt_folder import AttemptFolder
from backedge.adapters.agents.process import Process
from backedge.adapters.evidence.places import journal_key
from backedge.adapters.evidence.room import open_room
from backedge.adapters.judges.orphans import OWNER, end_orphans
from backedge.project.location import Project
from backedge.project.pruning import evidence_files, remove_evidence, sweep_evidence
from tests.judges.shop import RUN, Shop

KILLED = "import os, sys\nfrom pathlib import Path\nfrom tests.judges.shop import Shop\n"


def killed(script: str, folder: Path) -> None:
    """Run Python code in a process that kills itself at its end."""
    code = f"{KILLED}folder = Path({str(folder)!r})\n{script}\nos.kill(os.getpid(), 9)\n"
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, check=False)
    assert done.returncode == -9, done.stderr.decode()


OPENS = """
from backedge.adapters.judges.judge_program import JudgeProgram, Part
shop = Shop(folder)
shop.evidence.of("r-1")
room, reports = JudgeProgram(shop.evidence, shop.command)._opened(Part("r-1", 1, "delivered"))
"""


def test_the_next_process_removes_rooms_and_reports_of_a_killed_one(tmp_path: Path) -> None:
    killed(OPENS, tmp_path)
    shop = Shop(tmp_path)
    assert (len(shop.rooms), len(shop.reports)) == (1, 2)
    shop.evidence.of(RUN)
    assert not shop.rooms
    assert not shop.reports


def test_a_report_folder_whose_process_was_killed_before_it_had_a_room_is_removed(tmp_path: Path) -> None:
    killed("Shop(folder).evidence.reports.make()", tmp_path)
    shop = Shop(tmp_path)
    assert len(shop.reports) == 1
    ours = shop.evidence.reports.make()
    shop.evidence.of(RUN)
    assert shop.reports == [ours.path], "only the folder of a living process stays"


def test_rooms_of_the_same_run_stay_for_its_attempts_to_be_adopted(tmp_path: Path) -> None:
    note = "note = shop.project / '.backedge/attempts/r-1/test-1/delivered/room'\nnote.parent.mkdir(parents=True)\n"
    killed(f"{OPENS}{note}note.write_text(room.name)", tmp_path)
    shop = Shop(tmp_path)
    shop.evidence.of(RUN)
    assert (len(shop.rooms), len(shop.reports)) == (1, 2)
    other = Shop(tmp_path)
    other.evidence.of("r-2")
    assert not other.rooms


def test_rooms_in_use_stay(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    with open_room("copy", shop.folder, shop.evidence.scratch):
        Shop(tmp_path).evidence.of(RUN)
        assert len(shop.rooms) == 1


def test_the_program_of_a_baseline_that_nobody_waits_for_is_ended(tmp_path: Path) -> None:
    starts = """
from backedge.adapters.agents.execution import Program, _begun
from backedge.adapters.judges.judge_program import JudgeProgram, Part
shop = Shop(folder, ("sleep", "60"))
program, part = JudgeProgram(shop.evidence, shop.command), Part("r-1", 0, "delivered")
room, reports = program._opened(part)
_begun(program._folder(part), program._program(part, reports.path, room))
"""
    killed(starts, tmp_path)
    state = tmp_path / "shop" / ".backedge"
    process = Process.found(AttemptFolder(state, "r-1", "test", 0, part="delivered"))
    assert process is not None
    assert process.lives
    asyncio.run(end_orphans(state))
    assert not process.lives


def test_a_baseline_of_a_living_process_is_left_alone(tmp_path: Path) -> None:
    shop = Shop(tmp_path, ("sleep", "60"))

    async def beside() -> bool:
        baseline = asyncio.ensure_future(shop.begun())
        folder = AttemptFolder(shop.evidence.settings.state, RUN, "test", 0, part="delivered")
        async with asyncio.timeout(20):
            while folder.running is None:  # noqa: ASYNC110 - nothing announces it
                await asyncio.sleep(0.01)
        await end_orphans(shop.evidence.settings.state)
        process = Process.found(folder)
        lives = process is not None and process.lives
        baseline.cancel()
        await asyncio.gather(baseline, return_exceptions=True)
        return lives

    assert asyncio.run(beside())


def test_rubbish_in_a_note_ends_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "attempts" / RUN / "test-0" / "delivered"
    folder.mkdir(parents=True)
    for text in ("", "{}", '{"process": [1, "x"], "run": "../..", "step": "x", "part": "y"}'):
        (folder / OWNER).write_text(text)
        asyncio.run(end_orphans(tmp_path))


def test_pruning_removes_the_store_of_a_run_with_all_its_workspaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    shop = Shop(tmp_path)
    Shop(tmp_path, workspace=tmp_path / "elsewhere").evidence.of(RUN)
    shop.evidence.of(RUN)
    shop.evidence.of("r-2")
    shop.evidence.of("r-3")
    project = Project(shop.project, shop.project / ".backedge" / "journal.db")
    stores = tmp_path / "home" / "backedge" / journal_key(project.journal) / "runs"
    files = {path.relative_to(stores / RUN).parts[0] for path in evidence_files(project, RUN)}
    assert files == {"base.json", "objects", "workspaces"}
    remove_evidence(project, RUN)
    old = time.time() - 7200
    os.utime(stores / "r-3", (old, old))
    sweep_evidence(project, {"r-4"})
    assert sorted(each.name for each in stores.iterdir()) == ["r-2"], "r-3 never started; r-2 may just be starting"
