"""Feedback that causes feedback: how deep a chain may be, and that it may not form a cycle."""

from __future__ import annotations

import pytest

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.workflow.limits import Limits, with_overrides
from tests.core.play import Finding, Play, ask, failed, flow, grows, passed, step

OFF = Limits(
    attempts=1_000,
    errors_in_a_row=None,
    rounds_total=None,
    rounds_per_loop=None,
    same_finding=None,
    no_change=None,
    oscillation=None,
    chain_depth=None,
    response_timeout=None,
)


@pytest.mark.parametrize(("bound", "depth"), [(1, 1), (2, 2), (3, 3)])
def test_chain_depth_refuses_feedback_deeper_than_its_bound(bound: int, depth: int) -> None:
    play = chain(bound)
    assert [loop.depth for loop in play.s.loops.values()][-1] == depth
    (refused,) = play.of(e.RefusedFeedback)
    assert f"chain_depth: {bound + 1} hops" in refused.reason


def test_chain_depth_3_lets_three_hops_pass_and_refuses_the_fourth() -> None:
    play = chain(3)
    assert [(loop.source, *loop.targets) for loop in play.s.loops.values()] == [("e", "d"), ("d", "c"), ("c", "b")]
    assert "e → d → c → b → a" in play.of(e.RefusedFeedback)[0].reason
    assert play.loop("L-3").caused_by == "L-2"


def test_chain_depth_can_be_switched_off() -> None:
    assert chain(None).of(e.RefusedFeedback) == []


@pytest.mark.parametrize(("own", "refused"), [(1, 1), (2, 0), (None, 0)])
def test_the_chain_depth_of_a_judge_applies_to_feedback_that_it_raises(own: int | None, refused: int) -> None:
    steps = (step("a"), step("j", reviews="a", limits=with_overrides(OFF, {"chain_depth": own or False})))
    work = flow(*steps, step("b", "j", checked=True), limits=with_overrides(OFF, {"chain_depth": 1 if own != 1 else 9}))
    play = Play(work, {"a": grows}, checks={"b": lambda play: (("j", Finding("too short")),)})
    play.finish("a")
    play.finish("j")
    play.do(c.ReportInputCheck("b", (("j", Finding("too short")),)))
    play.raises("j", ask("a"))
    assert len(play.of(e.RefusedFeedback)) == refused
    assert play.opened() == 2 - refused


def chain(bound: int | None) -> Play:
    """Five steps in a row: each rework asks the step before it for a fix."""
    names = "abcde"
    steps = [step(name, *names[:index][-1:]) for index, name in enumerate(names)]
    play = Play(flow(*steps, limits=with_overrides(OFF, {"chain_depth": bound or False})))
    for name in names[:-1]:
        play.finish(name)
    for index in range(4, 0, -1):
        play.raises(names[index], ask(names[index - 1]))
        if play.of(e.RefusedFeedback):
            break
        play.finish(names[index])
    return play


def test_a_causal_cycle_is_refused_and_names_the_path() -> None:
    play = Play(flow(step("a"), step("b"), step("c"), step("d", "a", "b", "c"), scope="any", limits=OFF)).run()
    play.person_raises("b")
    play.raises("b", ask("c"))
    play.finish("b")
    play.raises("c", ask("b"))
    (refused,) = play.of(e.RefusedFeedback)
    assert "causal cycle: b → c → b" in refused.reason


def test_a_causal_cycle_over_three_steps_names_all_of_them() -> None:
    play = Play(flow(step("a"), step("b"), step("c"), step("z", "a", "b", "c"), scope="any", limits=OFF)).run()
    play.person_raises("a")
    for source, target in ("ab", "bc", "ca"):
        play.raises(source, ask(target))
        play.finish(source)
    (refused,) = play.of(e.RefusedFeedback)
    assert "causal cycle: a → b → c → a" in refused.reason


def test_a_rework_for_a_person_may_ask_a_person() -> None:
    play = Play(flow(step("a"), limits=OFF)).run()
    play.person_raises("a")
    play.raises("a", ask("human"))
    assert play.of(e.RefusedFeedback) == []
    assert [packet.reason for packet in play.s.escalations.values()] == ["asked"]


def test_rounds_of_one_loop_are_not_a_cycle() -> None:
    work = flow(step("design"), step("review", reviews="design"), limits=OFF)
    play = Play(work, {"design": grows, "review": [failed("x"), failed("x"), failed("x"), passed()]}).run()
    assert play.loop().round == 3
    assert play.of(e.RefusedFeedback) == []
