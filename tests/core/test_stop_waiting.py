"""An attempt that waits for feedback may stop waiting and continue with its old inputs."""

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


def test_an_attempt_that_stops_waiting_used_the_old_input_and_its_step_reruns() -> None:
    play = waiting()
    assert [type(event) for event in play.do(c.EndWait("L-1", "code", 1))] == [e.WaitEnded]
    play.finish("plan")
    play.finish("code")
    assert play.run().outcome == "done"
    assert play.attempts() == {"plan": 2, "code": 2}


def test_an_attempt_that_does_not_wait_cannot_stop_waiting() -> None:
    play = waiting()
    play.do(c.EndWait("L-1", "code", 1))
    assert play.do(c.EndWait("L-1", "code", 1)) == ()
