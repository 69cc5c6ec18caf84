"""A run whose attempts all wait, and that only a person can continue, has the outcome `waiting`."""

from __future__ import annotations

from typing import Any

from backedge.core import commands as c
from backedge.core.model import Kind
from tests.core.play import Limits, Play, ask, flow, grows, out, step

PLAN_CODE = (step("plan"), step("code", "plan"))


def coding(*steps: Any, plan: Any = grows, **more: Any) -> Play:
    """The code is being written."""
    play = Play(flow(*(steps or PLAN_CODE), **more), {"plan": plan, "code": grows})
    while play.s.steps["code"].running is None:
        if play.s.escalations:
            play.decide("resolve", note="the plan")
        else:
            play.finish(next(name for name, each in play.s.steps.items() if each.running is not None))
    return play


def waiting(play: Play, kind: Kind = Kind.FIX_REQUEST) -> Play:
    """The code waits for what it asked of the plan."""
    play.raises("code", ask("plan", kind=kind))
    play.do(c.BeginWait(f"L-{play.opened()}", "code", 1))
    return play


def test_a_budget_is_used_up() -> None:
    play = waiting(coding(limits={"attempts": 2}))
    assert (play.outcome, play.breach()) == ("waiting", "attempts")
    play.decide("continue")
    assert play.outcome == "running"


def test_the_target_is_a_person() -> None:
    for kind in (Kind.FIX_REQUEST, Kind.CONTEXT_REQUEST):
        play = waiting(coding(step("plan", agents=("human",)), step("code", "plan")), kind)
        assert play.outcome == "waiting"
        play.decide("resolve", note="here")
        assert play.outcome == "running"
        play.finish("code")
        assert play.outcome == "done"


def test_the_run_is_paused_by_hand() -> None:
    play = coding()
    play.do(c.Pause("ann"))
    assert play.outcome == "running", "running attempts finish"
    waiting(play)
    assert play.outcome == "waiting"
    play.do(c.Resume("ann"))
    assert play.outcome == "running"


def test_a_step_between_target_and_waiting_step_keeps_failing() -> None:
    play = coding(step("plan"), step("mid", "plan"), step("code", "mid"), limits={"errors_in_a_row": 1})
    waiting(play)
    play.finish("plan")
    play.finish("mid", RuntimeError("no"))
    assert (play.outcome, play.breach()) == ("waiting", "errors_in_a_row")
    play.decide("continue")
    assert play.outcome == "running"


def test_attempts_that_a_loop_waits_for_count_as_running() -> None:
    play = waiting(coding())
    assert play.outcome == "running"


def test_a_deadlock_of_two_questions_is_broken_and_one_attempt_continues_with_the_answer() -> None:
    play = Play(flow(step("x"), step("y"), scope="any"), {"x": grows, "y": grows})
    play.raises("x", ask("y", kind=Kind.CONTEXT_REQUEST))
    play.raises("y", ask("x", kind=Kind.CONTEXT_REQUEST))
    play.do(c.BeginWait("L-1", "x", 1))
    play.do(c.BeginWait("L-2", "y", 1))
    assert "wait for each other" in play.s.escalations["E-1"].reason
    play.finish("x")
    running = play.s.steps["x"].running
    assert running is not None
    assert running.mode == "answer", "the escalation of its own question does not keep it from answering"
    play.finish("x", out(answer="from x"))
    assert play.loop("L-2").answers == {"x": "from x"}
    play.finish("y")
    assert play.outcome == "waiting"
    play.decide("resolve", note="never mind").run()
    assert play.outcome == "done"


def test_an_escalated_loop_of_another_step_does_not_hold_back_an_answer() -> None:
    strict = step("other", "plan", limits=Limits(rounds_per_loop=0))
    play = Play(flow(step("plan"), step("code", "plan"), strict), {"plan": grows, "code": grows, "other": grows})
    play.finish("plan")
    play.raises("other", ask("plan"))
    assert play.breach() == "rounds_per_loop"
    waiting(play, Kind.CONTEXT_REQUEST)
    play.finish("plan", out(answer="sqlite"))
    running = play.s.steps["code"].running
    assert running is not None
    assert running.awaits == ()
    assert play.loop("L-2").result_delivered
