"""Runs a judge on broken files, see `canary`."""

from __future__ import annotations

import asyncio
import dataclasses

from backedge.adapters.evidence.names import path_of
from backedge.adapters.evidence.tree import Tree
from backedge.adapters.judges.canary import MOST_FILES, Trial, broken, candidates
from backedge.adapters.judges.judge_program import JudgeProgram, NoRoom, Part
from backedge.adapters.judges.run_evidence import RunEvidence
from backedge.core.errors import AgentError

CANARY = "canary"
"""The beginning of the names of these runs."""


async def tried(program: JudgeProgram, run: RunEvidence, plain: Part, tree: Tree, recovering: bool) -> list[Trial]:
    """Run the judge with broken files, one at a time."""
    kinds = {name: run.start.protected.kind(name) for name in tree.files}
    found: list[Trial] = []
    for name in candidates(run.start.base.tree, tree, kinds):
        content = await asyncio.to_thread(run.read, name)
        canary = broken(name, content) if content is not None else None
        if canary is None:
            continue
        mode = 0o755 if tree.files[name][0] == "x" else 0o644
        place = await asyncio.to_thread(lambda text: run.store.object(run.store.put(text)), canary)
        part = dataclasses.replace(
            plain, name=f"{CANARY}-{len(found) + 1}", restore={path_of(name): (place, mode)}, allow_empty=True
        )
        found.append(await _tried(program, name, part, recovering))
        if len(found) == MOST_FILES:
            break
    return found


async def _tried(program: JudgeProgram, name: str, part: Part, recovering: bool) -> Trial:
    try:
        result = await (program.recover(part) if recovering else program.run(part))
    except NoRoom:
        raise
    except AgentError:
        return Trial(name, passed=False, opened=True)  # it broke, so it noticed
    assert result is not None  # with files restored there is always a room
    return Trial(name, result.reading.outcome.verdict == "pass", name in result.opened)
