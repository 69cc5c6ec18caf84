"""A run of 200 steps and 5,000 events: a hundred steps in phases, each with a judge that fails it several times."""

from __future__ import annotations

import random
from collections.abc import Sequence

from backedge import Briefing, Engine, MemoryJournal, Outcome, Step, Usage, Workflow, failed, passed
from backedge.core.events import Event

PHASES = ("research", "planning", "design", "code", "test", "release")
PAIRS = 100
FAILS = 7


async def _make(briefing: Briefing) -> Outcome:
    usage = Usage(cost_usd=0.01, tokens_in=100, tokens_out=10)
    return Outcome(output=f"{briefing.step} {briefing.attempt}", summary="Done as asked.", usage=usage)


async def _judge(briefing: Briefing) -> Outcome:
    if briefing.attempt <= FAILS:
        return failed(f"defect {briefing.attempt} of {briefing.step}", summary="Not yet.")
    return passed(summary="Good.")


def large_workflow() -> Workflow:
    chance = random.Random(7)
    steps = []
    for index in range(PAIRS):
        phase = PHASES[index * len(PHASES) // PAIRS]
        # A step needs some of those before it, so that there are long edges.
        earlier = [f"s{other}" for other in range(max(0, index - 12), index - 3)]
        needs = tuple(chance.sample(earlier, min(2, len(earlier))))
        steps += [
            Step(f"s{index}", _make, phase=phase, needs=needs),
            Step(f"r{index}", _judge, reviews=f"s{index}"),
        ]
    limits = {"rounds_per_loop": 20, "rounds_total": 5000, "same_finding": 50}
    return Workflow("large", steps, phases=PHASES, limits=limits, max_steps=500)


async def large_events() -> Sequence[Event]:
    """The events of the run."""
    async with Engine(MemoryJournal()) as engine:
        run = await engine.start(large_workflow(), run="r-large")
        await run.at_rest()
        return await run.events()
