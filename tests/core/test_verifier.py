"""A judge with one agent for its verdicts and a cheaper one that verifies fixes of its findings."""

from __future__ import annotations

import pytest

from backedge.core import events as e
from backedge.core.errors import WorkflowError
from backedge.core.workflow.build import build_workflow
from tests.core.play import Play, failed, flow, grows, passed, step

REVIEW = step("review", reviews="code", agents=("strong", "cheap"), verifier=True)


def agents(play: Play, judge: str = "review") -> list[str]:
    return [event.agent for event in play.of(e.AttemptStarted) if event.step == judge]


def test_the_cheaper_agent_verifies_every_round_of_a_fix() -> None:
    play = Play(flow(step("code"), REVIEW), {"code": grows, "review": [failed("a"), failed("a"), passed()]}).run()
    assert (play.outcome, agents(play)) == ("verified", ["strong", "cheap", "cheap"])


def test_a_change_for_another_reason_gets_a_verdict_of_the_first_agent() -> None:
    test = step("test", tests="code")
    workflow = flow(step("plan"), step("code", "plan"), REVIEW, test)
    play = Play(workflow, {"code": grows, "review": [failed("a"), passed()], "test": [failed("b"), passed()]}).run()
    assert agents(play) == ["strong", "strong"], "the rework was for the findings of both judges"
    play.person_raises("code").run()
    assert agents(play)[-1] == "strong"


def test_a_change_of_what_the_judge_only_reads_gets_a_verdict_of_the_first_agent() -> None:
    review = step("review", "plan", reviews="code", agents=("strong", "cheap"), verifier=True)
    play = Play(flow(step("plan"), step("code"), review), {"code": grows, "plan": grows, "review": [failed("a")]})
    for name in ("plan", "code", "review"):
        play.finish(name)
    play.person_raises("plan")
    play.scripts["review"] = [passed()]
    play.run().decide("resolve").run()
    assert (play.outcome, agents(play)) == ("verified", ["strong", "strong"])


def test_only_a_judge_has_an_agent_to_verify() -> None:
    with pytest.raises(WorkflowError, match="has an agent to verify but is not a judge"):
        build_workflow("w", [(step("code", agents=("a", "b"), verifier=True), {})])
