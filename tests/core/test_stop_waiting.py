"""An attempt that waits in mid-work may give up: it goes on with what it had."""

from __future__ import annotations

from backedge.core import commands as c
from backedge.core import events as e
from tests.core.play import Feedback, Kind, Play, flow, out, step


def waiting() -> Play:
    play = Play(flow(step("plan"), step("code", "plan")), {"plan": [out(1), out(2)]})
    play.finish("plan")
    play.do(c.RaiseFeedback("code", Feedback(Kind.FIX_REQUEST, ("plan",), "no units"), 1))
    play.do(c.BeginWait("L-1", "code", 1))
    return play


def test_who_gives_up_waiting_made_its_output_from_the_old_input_and_runs_again() -> None:
    play = waiting()
    assert [type(event) for event in play.do(c.EndWait("L-1", "code", 1))] == [e.WaitEnded]
    play.finish("plan")
    play.finish("code")
    assert play.run().outcome == "done"
    assert play.attempts() == {"plan": 2, "code": 2}


def test_who_does_not_wait_has_nothing_to_give_up() -> None:
    play = waiting()
    play.do(c.EndWait("L-1", "code", 1))
    assert play.do(c.EndWait("L-1", "code", 1)) == ()
