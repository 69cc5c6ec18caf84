"""Thirty stories of mixed trouble, a person who edits them twice a second, and kill -9 in the middle: no edit is lost, and
every count is right."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from backedge import Engine
from backedge.core import events as e
from tests.stories.parts import PASS, Stories, rejected
from tests.stories.test_working import SMALL, until

KILLS = 2
COUNT = 30
STEPS = {name: {**step, "on_doubt": "rerun"} for name, step in SMALL.items()}


class Person(threading.Thread):
    """Opens a story, types a line and saves it, again and again."""

    def __init__(self, folder: Path, seed: int) -> None:
        super().__init__(daemon=True)
        self.folder, self.chance, self.done = folder, random.Random(seed), threading.Event()
        self.typed: dict[str, list[str]] = {}

    def run(self) -> None:
        while not self.done.wait(0.5 if self.typed else 0):
            name = self.chance.choice(sorted(each.stem for each in self.folder.glob("*.md")))
            line = f"Typed line {sum(map(len, self.typed.values()))}."
            self.typed.setdefault(name, []).append(line)
            path, draft = self.folder / f"{name}.md", self.folder / f".{name}.swp"
            before = path.read_text()
            head, mark, text = before.partition("\n---\n")
            draft.write_text(f"{head}{mark}{line}\n{text}")
            os.replace(draft, path)


def trouble(project: Stories) -> dict[str, tuple[str, int]]:
    """Thirty stories; returns the status and the refinements that each has at the end."""
    expected = {}
    for number in range(COUNT):
        id, kind = f"s{number:02}", number % 6
        more: dict[str, object] = {"priority": number % 7}
        wrong = [rejected(f"wrong {each}") for each in range(3)]
        script: dict[str, object] = {}
        if kind < 3:  # rejected so many times, then approved
            script, expected[id] = {"review": [*wrong[:kind], PASS]}, ("done", kind)
        elif kind == 3:  # never good enough
            more |= {"max_refinement_attempts": 1}
            script, expected[id] = {"review": wrong}, ("blocked", 1)
        elif kind == 4:  # its agent breaks, and its reviewer too
            script = {"implement": [{"!exit": 3}, {}], "review": [{"!exit": 1}, PASS]}
            expected[id] = ("done", 0)
        else:  # waits for another one, which is done in the end
            more |= {"dependencies": [f"S{number - 4:02}"]}
            script, expected[id] = {"review": [wrong[0], PASS]}, ("done", 1)
        project.story(id, "The text.\n", **more)
        project.script(**{id: script})  # type: ignore[arg-type]
    return expected


async def rejections_in(journal: Path) -> Counter[str]:
    """How often each story was rejected, as the journal says."""
    async with Engine(journal) as engine:
        found: Counter[str] = Counter()
        for head in await engine.runs():
            events = await (await engine.find(head.run)).events()
            found[head.run.removeprefix("s-")] = sum(
                isinstance(event, e.VerdictGiven) and event.word == "fail" for event in events
            )
        return found


@pytest.mark.slow
@pytest.mark.xdist_group("crash")
@pytest.mark.parametrize("worktree", [False, True])
def test_no_edit_is_lost_and_every_count_is_right(tmp_path: Path, worktree: bool) -> None:
    seed = int(os.environ.get("BACKEDGE_SEED", "20260115"))
    print(f"BACKEDGE_SEED={seed}")
    project = Stories(tmp_path / "p", {"worktree": worktree}, steps=STEPS)
    expected = trouble(project)
    if worktree:
        who = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
        for words in (["init", "-q"], ["add", "backedge.yaml", "agent.py", "scripts.json"], ["commit", "-qm", "one"]):
            subprocess.run(["git", *who, *words], cwd=project.folder, check=True)
    person, chance = Person(project.folder / "stories", seed), random.Random(seed)
    person.start()
    try:
        for _ in range(KILLS):
            seen = len(project.executions())
            going = project.start("run", "--auto", "--max-parallel", "6")
            until(lambda seen=seen: len(project.executions()) > seen + 8)  # type: ignore[misc]
            time.sleep(chance.random() / 2)
            going.kill()
            going.communicate(timeout=60)
        project.auto("--max-parallel", "6", expect=3)
    finally:
        person.done.set()
        person.join()
    # The last edit may have been saved over a version that backedge has written since it was opened.
    project.auto(expect=3)
    told = {id: project.says(id) for id in expected}
    reasons = {id: each.get("blocked_reason") for id, each in told.items()}
    assert {id: each["status"] for id, each in told.items()} == {id: status for id, (status, _) in expected.items()}, (
        reasons
    )
    rejections = asyncio.run(rejections_in(project.folder / ".backedge" / "journal.db"))
    for id, (status, most) in expected.items():
        # An attempt that was killed is made again as the next one, so that its reply in the script is skipped.
        assert rejections[id] - (status == "blocked") == told[id]["refinement_count"] <= most, id
        assert len(told[id].get("refinement_iterations", [])) == told[id]["refinement_count"], id
    for id, lines in person.typed.items():
        text = project.text(id)
        assert [text.count(line) for line in lines] == [1] * len(lines), id
    assert sum(map(len, person.typed.values())) > 5
    started = Counter(tuple(each[:3]) for each in project.executions())
    assert max(started.values()) == 1, "no attempt was made twice"
    assert sorted(each.name for each in (project.folder / "stories").iterdir()) == sorted(f"{id}.md" for id in expected)
