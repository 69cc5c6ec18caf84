"""A workflow's own kinds of feedback, from the outcome of an agent to the report."""

from __future__ import annotations

import pytest

from backedge import Briefing, Engine, Feedback, Outcome, Step
from backedge.errors import FeedbackRefused
from tests.engine.parts import flow, named, play


async def blocks_once(briefing: Briefing) -> object:
    if briefing.attempt > 1:
        return "safe"
    return Outcome(output="unsafe", feedback=[Feedback("Security_Block", "plan", "no login", suggested_fix="add one")])


def test_agents_and_people_raise_a_workflows_own_kind() -> None:
    async def scenario() -> None:
        steps = (Step("plan", named), Step("code", blocks_once, needs="plan"))
        async with Engine() as engine:
            run = await engine.start(flow(*steps, kinds={"security_block": "fix_request"}))
            told = await run.result()
            assert [(loop.kind, loop.state) for loop in told.loops] == [("security_block", "resolved")]
            await run.raise_feedback(Feedback("security_block", "plan", "still none"))
            assert (await run.report()).loops[-1].kind == "security_block"
            with pytest.raises(FeedbackRefused, match="did you mean 'security_block'"):
                await run.raise_feedback(Feedback("security_blok", "plan", "x"))

    play(scenario())
