"""Advances a run by one step, with an engine that starts nothing unless it is allowed to."""

from __future__ import annotations

import asyncio
import time

from backedge.app import Engine, Run
from backedge.core.scheduling.pending import CheckInputs, next_wake, pending
from backedge.core.scheduling.scheduler import Start
from backedge.core.state.run import RunState
from backedge.engine.live_run import resting


async def advance(engine: Engine, run: Run) -> None:
    """Let a run make its next attempt, or let all judges run that can judge now."""
    while True:
        state = await run.state()
        under_way = sum(step.running is not None for step in state.steps.values())
        starts = [each.step for each in pending(state, time.time()) if isinstance(each, Start | CheckInputs)]
        if starts or under_way:
            judges = [step for step in starts if state.graph.is_judge(step)]
            count = len(judges) if starts and starts[0] in judges else min(1, len(starts))
            count = 0 if under_way else count
            engine.allow(count)
            await finished(engine, run, state.attempts + count)
            return
        await finished(engine, run, state.attempts)
        if (await run.state()).seq == state.seq and not await _retry_due(run):
            return


async def finished(engine: Engine, run: Run, started: int) -> None:
    """Wait until this many attempts have started and none is running, or until the run is at rest."""
    while True:
        state = await run.state()
        under_way = [step.running for step in state.steps.values() if step.running is not None]
        if (state.attempts >= started and not under_way) or resting(state) is not None:
            engine.allow(0)
            return
        if under_way and all(each.awaits for each in under_way):
            engine.allow(1)  # an attempt that waits for another one includes it
        await changed(run, state)


async def changed(run: Run, state: RunState) -> None:
    """Wait until anything happens, or a retry is due."""
    wake = next_wake(state, time.time())
    try:
        async with asyncio.timeout(None if wake is None else max(0.01, wake - time.time())):
            await run.changed(state.seq)
    except TimeoutError:
        return


async def _retry_due(run: Run) -> bool:
    """Wait until the next retry is due; False if there is none."""
    state = await run.state()
    wake = next_wake(state, time.time())
    if wake is None or state.escalations or state.ended is not None:
        return False
    await asyncio.sleep(max(0.01, wake - time.time()))
    return True
