"""Steps that a person does: the step is a question in the inbox."""

from __future__ import annotations

import pytest

from backedge.core import commands as c
from backedge.core.errors import AlreadyClosed, IllegalCommand
from backedge.core.model import Question
from tests.core.play import Kind, Play, Severity, ask, failed, flow, out, passed, planned, step, texts


def test_a_step_for_a_person_waits_in_the_inbox_and_the_answer_is_its_output() -> None:
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


def test_a_person_who_judges_gives_the_verdict_as_the_option() -> None:
    work = flow(step("code"), step("review", reviews="code", agents=("human",)))
    play = Play(work, {"code": [out(1), out(2)]}).run()
    with pytest.raises(IllegalCommand, match="needs a verdict as the option, got no option"):
        play.decide("resolve", note="fine")
    with pytest.raises(IllegalCommand, match="a fail needs a note"):
        play.decide("resolve", option="Fail")
    play.decide("resolve", option="FAIL", note="no tests").run()
    assert play.finding().finding.description == "no tests"
    assert play.attempts()["code"] == 2
    play.decide("resolve", option="Pass ").run()
    assert play.outcome == "verified"


def test_a_person_is_asked_to_rework_what_a_judge_rejects() -> None:
    work = flow(step("text", agents=("human",)), step("review", reviews="text"))
    play = Play(work, {"review": [failed("too long")]}).run()
    play.decide("resolve", note="a long text").run()
    assert play.s.escalations["E-2"].step == "text"
    play.scripts.pop("review")
    play.decide("resolve", note="short").run()
    assert play.outcome == "verified"
    assert play.s.rounds == 1


def test_a_person_can_skip_their_own_step() -> None:
    play = Play(flow(step("sign", agents=("human",)), step("code", "sign"))).run()
    assert play.decide("skip").run().outcome == "accepted"


def output(play: Play, name: str) -> object:
    artifact = play.s.steps[name].artifact
    return artifact.output if artifact is not None else None


def open_about(play: Play, name: str) -> str:
    """The open question about a step."""
    return next(packet.id for packet in play.s.escalations.values() if packet.step == name)


def test_an_answer_during_a_rework_of_the_inputs_counts_for_the_version_it_was_asked_about() -> None:
    play = Play(flow(step("plan"), step("sign", "plan", agents=("human",))), {"plan": [out(1), out(2)]}).run()
    play.slots = 0
    play.person_raises("plan")
    play.decide("resolve", "E-1", note="signed plan 1")
    assert output(play, "sign") == "signed plan 1"
    play.slots = 9
    play.run().decide("resolve").run()  # the person is content with the new plan
    play.decide("resolve", open_about(play, "sign"), note="signed plan 2").run()
    assert output(play, "sign") == "signed plan 2"
    assert play.attempts()["sign"] == 2
    assert play.outcome == "done"


def test_a_question_is_withdrawn_and_asked_again_when_its_inputs_change() -> None:
    play = Play(flow(step("plan"), step("sign", "plan", agents=("human",))), {"plan": [out(1), out(2)]}).run()
    assert play.s.escalations["E-1"].about == Question("work", {"plan": 1})
    play.person_raises("plan").run()
    with pytest.raises(AlreadyClosed, match=r"E-1 was withdrawn: .* an older version of 'plan' \(1\)"):
        play.decide("resolve", "E-1", note="signed plan 1")
    assert play.attempts()["sign"] == 0
    play.decide("resolve").run()
    assert play.s.escalations[open_about(play, "sign")].about == Question("work", {"plan": 2})


def test_an_answer_given_while_the_run_is_paused_by_hand_is_kept() -> None:
    play = Play(flow(step("sign", agents=("human",)), step("code", "sign"))).run()
    play.do(c.Pause("ann"))
    play.decide("resolve", note="my work").run()
    assert output(play, "sign") == "my work"
    assert play.attempts()["code"] == 0, "nothing starts in a paused run"
    play.do(c.Resume("ann"))
    assert play.run().outcome == "done"


def test_an_answer_given_while_a_blocker_pauses_the_run_is_kept() -> None:
    urgent = ask("human", message="urgent", severity=Severity.CRITICAL)
    play = Play(flow(step("sign", agents=("human",)), step("other")), {"other": [out(1, feedback=(urgent,)), out(2)]})
    play.run()
    assert play.s.paused
    play.decide("resolve", open_about(play, "sign"), note="my work").run()
    assert output(play, "sign") == "my work"
    play.decide("resolve", note="calm down").run()
    assert play.outcome == "done"
    assert play.attempts() == {"sign": 1, "other": 2}


def test_a_question_is_withdrawn_when_the_step_has_nothing_to_do() -> None:
    work = flow(step("plan"), step("sign", "plan", agents=("human",), when=("plan:/ui == true",)))
    play = Play(work, {"plan": [out({"ui": True}), out({"ui": False})]}).run()
    play.person_raises("plan").run().decide("resolve").run()
    assert play.outcome == "done"
    assert play.attempts()["sign"] == 0
    with pytest.raises(AlreadyClosed, match="E-1 was withdrawn: 'sign' has nothing to do"):
        play.decide("resolve", "E-1", note="signed")


def test_a_question_is_withdrawn_when_more_is_asked_of_the_step() -> None:
    work = flow(step("text", agents=("human",)), step("review", reviews="text"))
    play = Play(work, {"review": [failed("too long")]}).run()
    play.decide("resolve", note="a long text").run()
    assert play.s.escalations["E-2"].about == Question("rework", {}, ("L-1",), (1,))
    play.person_raises("text")
    with pytest.raises(AlreadyClosed, match="E-2 was withdrawn: the work for 'text' has changed"):
        play.decide("resolve", "E-2", note="short")
    assert play.s.escalations["E-3"].about == Question("rework", {}, ("L-1", "L-2"), (1,))


def test_a_rework_waits_for_the_person_who_was_asked_to_judge_the_same_version() -> None:
    work = flow(step("code"), step("review", reviews="code"), step("sign", reviews="code", agents=("human",)))
    play = Play(work, {"code": [out(1), out(2)], "review": [failed("bad"), passed()]}).run()
    assert (play.outcome, play.attempts()["code"]) == ("waiting", 1)
    play.decide("resolve", option="fail", note="ugly").run()
    assert texts(play.briefings["code"][1].feedback.findings) == ["bad", "ugly"]
    assert play.outcome == "waiting"
    play.decide("resolve", option="pass").run()
    assert play.outcome == "verified"
    verdict = play.s.steps["sign"].verdict
    assert verdict is not None
    assert verdict.versions == {"code": 2}


def test_a_rework_does_not_wait_for_a_judge_that_a_person_skipped() -> None:
    work = flow(step("code"), step("review", reviews="code"), step("sign", reviews="code", agents=("human",)))
    play = Play(work, {"code": [out(1), out(2)], "review": [failed("bad"), passed()]}).run()
    assert play.decide("skip").run().outcome == "accepted"
    assert play.attempts()["code"] == 2


def test_a_run_ends_if_people_both_work_and_judge() -> None:
    work = flow(
        step("text", agents=("human",)), step("review", reviews="text"), step("sign", reviews="text", agents=("human",))
    )
    play = Play(work, {"review": [failed("bad"), passed()]}).run()
    for number in range(6):
        if play.outcome != "waiting":
            break
        for packet in list(play.s.escalations.values()):
            answer = {"option": "pass"} if packet.step == "sign" else {"note": f"version {number}"}
            play.decide("resolve", packet.id, **answer).run()
    assert play.outcome == "verified"
    assert play.attempts() == {"text": 2, "review": 2, "sign": 2}


def test_an_approval_is_valid_for_the_versions_that_it_was_asked_about() -> None:
    play = Play(flow(step("plan"), step("ship", "plan", approval="human")), {"plan": [out(1), out(2)]}).run()
    play.person_raises("plan").run()
    with pytest.raises(AlreadyClosed, match="E-1 was withdrawn: the question was about an older version"):
        play.decide("approve", "E-1")
    play.decide("resolve").run().decide("approve").run()
    assert play.outcome == "done"


def test_the_changed_input_is_named() -> None:
    work = flow(step("plan"), step("design"), step("sign", "plan", "design", agents=("human",)))
    play = Play(work, {"design": [out(1), out(2)]}).run()
    play.person_raises("design").run()
    with pytest.raises(AlreadyClosed, match="an older version of 'design'"):
        play.decide("resolve", "E-1", note="signed")


def test_a_person_is_not_asked_for_a_rework_whose_loop_is_closed() -> None:
    plan = step("plan", plans=True, plans_judges=True)
    work = flow(plan, step("text", "plan", agents=("human",)), step("review", reviews="text"))
    play = Play(work, {"plan": [out("p"), planned("p", remove=["review"])], "review": [failed("too long")]}).run()
    play.decide("resolve", note="a long text").run()
    play.person_raises("plan", kind=Kind.ARCHITECTURE_ISSUE).run()
    with pytest.raises(AlreadyClosed, match="E-2 was withdrawn: 'text' has nothing to do now"):
        play.decide("resolve", "E-2", note="short")
