"""Steps that a person does: the step itself is a question to the inbox."""

from __future__ import annotations

import pytest

from backedge.core.errors import IllegalCommand
from tests.core.play import Play, failed, flow, out, step


def test_a_step_of_a_person_waits_in_the_inbox_and_its_answer_is_the_output() -> None:
    play = Play(flow(step("plan"), step("sign", "plan", agents=("human",)), step("code", "sign"))).run()
    assert play.outcome == "waiting"
    packet = play.s.escalations["E-1"]
    assert (packet.step, packet.reason, packet.options) == ("sign", "asked", ("resolve", "skip", "cancel"))
    play.decide("resolve", note="go ahead").run()
    assert play.outcome == "done"
    artifact = play.s.steps["sign"].artifact
    assert artifact is not None
    assert artifact.output == "go ahead"
    assert play.attempts() == {"plan": 1, "sign": 1, "code": 1}


def test_a_judge_that_is_a_person_gives_its_verdict_as_the_option() -> None:
    work = flow(step("code"), step("review", reviews="code", agents=("human",)))
    play = Play(work, {"code": [out(1), out(2)]}).run()
    with pytest.raises(IllegalCommand, match="needs a verdict as the option, got no option"):
        play.decide("resolve", note="fine")
    with pytest.raises(IllegalCommand, match="a fail needs a note"):
        play.decide("resolve", option="fail")
    play.decide("resolve", option="fail", note="no tests").run()
    assert play.finding().finding.description == "no tests"
    assert play.attempts()["code"] == 2
    play.decide("resolve", option="pass").run()
    assert play.outcome == "verified"


def test_a_person_reworks_what_a_judge_rejects() -> None:
    work = flow(step("text", agents=("human",)), step("review", reviews="text"))
    play = Play(work, {"review": [failed("too long")]}).run()
    play.decide("resolve", note="a long text").run()
    assert play.s.escalations["E-2"].step == "text"
    play.scripts.pop("review")
    play.decide("resolve", note="short").run()
    assert play.outcome == "verified"
    assert play.s.rounds == 1


def test_a_step_that_a_person_skips_is_passed_over() -> None:
    play = Play(flow(step("sign", agents=("human",)), step("code", "sign"))).run()
    assert play.decide("skip").run().outcome == "accepted"


def test_an_answer_to_inputs_that_are_being_mended_is_asked_for_again() -> None:
    play = Play(flow(step("plan"), step("sign", "plan", agents=("human",))), {"plan": [out(1), out(2)]}).run()
    play.room = 0
    play.person_raises("plan")
    play.decide("resolve", "E-1", note="signed plan 1")
    assert play.attempts()["sign"] == 0, "what was signed is about to change"
    play.room = 9
    play.run().decide("resolve").run()  # the person is content with the new plan
    again = next(packet for packet in play.s.escalations.values() if packet.step == "sign")
    play.decide("resolve", again.id, note="signed plan 2")
    assert play.s.steps["sign"].artifact is not None
    assert play.s.steps["sign"].artifact.output == "signed plan 2"
