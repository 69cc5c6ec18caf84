"""A run of many rounds: `show` prints the last part, and everything with --all."""

from __future__ import annotations

import asyncio
from pathlib import Path

import backedge as be
from backedge.cli.show import LINES, OF_A_LOOP
from tests.cli.conftest import Make

ROUNDS = 60


async def play(journal: Path) -> None:
    def judge(briefing: be.Briefing) -> be.Outcome:
        return be.failed(be.Finding(f"defect {briefing.attempt}"))

    steps = [be.Step("code", lambda briefing: briefing.attempt), be.Step("review", judge, reviews="code")]
    limits = {"rounds_per_loop": ROUNDS, "rounds_total": 2 * ROUNDS}
    async with be.Engine(journal) as engine:
        await (await engine.start(be.Workflow("long", steps, limits=limits), run="long")).result()


def test_show_prints_the_last_part_of_a_long_run_and_everything_with_all(make: Make) -> None:
    project = make({"steps": {"code": {"phase": "code"}}})
    (project.folder / ".backedge").mkdir()
    asyncio.run(play(project.folder / ".backedge" / "journal.db"))

    whole = project.backedge("show", "--all").out.splitlines()
    assert sum(" ▸ code" in line for line in whole) == ROUNDS + 1
    assert any(line.startswith("    round 1 ") for line in whole)
    assert not any("earlier" in line for line in whole)

    last = project.backedge("show").out.splitlines()
    timeline = last[last.index("") + 1 : last.index("", last.index("") + 1)]
    assert timeline[0] == f"… {len(whole_timeline(whole)) - LINES} earlier lines: --all shows everything"
    assert timeline[1:] == whole_timeline(whole)[-LINES:]
    assert f"  … {ROUNDS + 1 - OF_A_LOOP} earlier findings: --all shows everything" in last
    assert any(line.startswith(f"    round {ROUNDS} ") for line in last)
    assert not any(line.startswith("    round 1 ") for line in last)
    assert last[-3:] == whole[-3:], "how the run stands and what to do is told in any case"


def whole_timeline(lines: list[str]) -> list[str]:
    first = lines.index("")
    return lines[first + 1 : lines.index("", first + 1)]
