"""What a person can do to any open loop: resolve it, escalate it, withdraw it."""

from __future__ import annotations

import pytest

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.errors import AlreadyClosed, IllegalCommand, NotFound
from backedge.core.feedback.loop import LoopState
from backedge.core.model import HUMAN, Kind, Option, Status
from backedge.core.state.evolve import replay
from tests.core.play import Play, ask, failed, flow, grows, passed, step

JUDGED = (step("code", phase="code"), step("review", reviews="code"))


def reviewed() -> Play:
    """The code is being reworked for L-1."""
    play = Play(flow(*JUDGED), {"code": grows, "review": [failed("no log-in"), passed()]})
    play.finish("code")
    play.finish("review")
    assert play.loop().state is LoopState.RESOLVING
    return play


def played(play: Play) -> tuple[str, dict[str, int]]:
    assert replay(play.events) == play.s
    return play.run().outcome, play.attempts()


def test_a_loop_that_is_not_escalated_can_be_resolved() -> None:
    play = reviewed()
    play.do(c.ResolveLoop("L-1", "ann", "log-in is elsewhere"))
    loop = play.loop()
    assert loop.resolution is not None
    assert (loop.state, loop.resolution.by, loop.resolution.text) == (LoopState.RESOLVED, "ann", "log-in is elsewhere")
    assert play.of(e.EscalationOpened)[0].reason == "ann resolves it"
    assert played(play)[0] == "verified"


def test_an_escalated_loop_is_resolved_through_its_escalation() -> None:
    play = Play(flow(*JUDGED, limits={"rounds_per_loop": 0}), {"review": [failed("x"), passed()]}).run()
    play.do(c.ResolveLoop("L-1", note="fine"))
    assert len(play.of(e.EscalationOpened)) == 1
    assert played(play)[0] == "verified"


def test_a_question_to_a_person_is_answered_by_resolving_its_loop() -> None:
    play = Play(flow(step("code")), {"code": grows})
    play.raises("code", ask(HUMAN, kind=Kind.CONTEXT_REQUEST, message="which port?"))
    play.do(c.ResolveLoop("L-1", note="80"))
    assert (len(play.of(e.EscalationOpened)), played(play)[0]) == (1, "done")


def test_an_option_can_be_chosen_for_the_targets() -> None:
    work = flow(step("plan", phase="planning"), step("code", "plan", phase="code"))
    play = Play(work, {"plan": grows, "code": grows})
    play.finish("plan")
    options = (Option("polling", rework=("plan",)), Option("queue"))
    play.raises("code", ask("plan", kind=Kind.CONSTRAINT_VIOLATION, options=options))
    with pytest.raises(IllegalCommand, match="was not offered"):
        play.do(c.ResolveLoop("L-1", option="poling"))
    play.do(c.ResolveLoop("L-1", option="polling"))
    choice = play.loop().choice
    assert choice is not None and (choice.option, choice.by) == ("polling", "a person")
    assert played(play) == ("done", {"plan": 3, "code": 2})


def test_the_answer_to_a_test_that_is_not_escalated_is_advice() -> None:
    play = Play(flow(step("code"), step("test", tests="code")), {"code": grows, "test": [failed("t"), passed()]})
    play.finish("code")
    play.finish("test")
    play.do(c.ResolveLoop("L-1", note="use UTC"))
    assert (play.loop().advice, play.loop().state) == ("use UTC", LoopState.RESOLVING)
    assert played(play)[0] == "verified"


def broken() -> Play:
    """L-1 waits for a step whose agent keeps breaking."""
    work = flow(step("plan", phase="planning"), step("code", "plan", phase="code"), limits={"errors_in_a_row": 1})
    play = Play(work, {"plan": grows, "code": grows})
    play.finish("plan")
    play.raises("code", ask("plan"))
    play.finish("code")
    play.finish("plan", RuntimeError("broken"))
    assert play.loop().state is LoopState.ESCALATING
    return play


def test_a_loop_whose_fix_failed_can_be_resolved_too() -> None:
    play = broken()
    play.do(c.ResolveLoop("L-1", note="no need"))
    assert (play.loop().state, list(play.s.escalations)) == (LoopState.RESOLVED, ["E-1"])
    assert played(play.decide("continue"))[0] == "done"


def test_a_loop_whose_fix_failed_can_be_escalated_and_then_continued() -> None:
    play = broken()
    play.do(c.EscalateLoop("L-1"))
    assert play.s.escalations["E-2"].reason == "escalated by a person"
    play.decide("continue", "E-2")
    assert played(play.decide("continue", "E-1"))[0] == "done"


def test_a_loop_can_be_escalated_before_any_limit_is_reached() -> None:
    play = reviewed()
    play.do(c.EscalateLoop("L-1", "ann", "they talk past each other"))
    assert play.breach() == "escalated by ann: they talk past each other"
    assert play.loop().state is LoopState.ESCALATING
    with pytest.raises(AlreadyClosed, match="L-1 is escalated already: decide E-1"):
        play.do(c.EscalateLoop("L-1"))
    play.finish("code")
    assert played(play.decide("continue")) == ("verified", {"code": 2, "review": 2})


def test_an_asked_question_can_be_escalated() -> None:
    play = Play(flow(step("code")), {"code": grows})
    play.raises("code", ask(HUMAN, kind=Kind.CONTEXT_REQUEST))
    play.do(c.EscalateLoop("L-1"))
    assert len(play.s.escalations) == 2


def test_a_withdrawn_loop_withdraws_its_findings_and_the_judge_runs_once_more() -> None:
    play = reviewed()
    play.do(c.WithdrawLoop("L-1", "ann", "no longer wanted"))
    loop = play.loop()
    assert loop.resolution is not None
    assert (loop.state, loop.resolution.text) == (LoopState.CANCELLED, "withdrawn: no longer wanted")
    assert play.finding().status is Status.WITHDRAWN
    assert played(play) == ("verified", {"code": 2, "review": 2})


def test_feedback_of_a_person_is_withdrawn_without_running_anything_again() -> None:
    play = Play(flow(step("code")), {"code": grows})
    play.person_raises("code")
    play.do(c.WithdrawLoop("L-1"))
    assert played(play) == ("done", {"code": 1})


def test_only_open_loops_are_decided() -> None:
    play = reviewed()
    with pytest.raises(NotFound, match="open loops: L-1"):
        play.do(c.WithdrawLoop("L-2"))
    play.do(c.WithdrawLoop("L-1", "ann"))
    with pytest.raises(AlreadyClosed, match="L-1 is cancelled by ann: there is nothing left to decide"):
        play.do(c.ResolveLoop("L-1", note="x"))
    with pytest.raises(NotFound, match="no loops are open"):
        play.do(c.EscalateLoop("L-2"))
