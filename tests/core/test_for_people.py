"""Human feedback is verified by judges, so it is part of their briefings."""

from __future__ import annotations

from backedge.core.model import Kind, Severity
from backedge.core.wording import feedback_text
from tests.core.play import Play, ask, failed, flow, grows, out, passed, step

CODE = (step("code"), step("review", reviews="code"), step("ship", "code"))


def messages(play: Play, name: str, attempt: int) -> list[str]:
    return [each.message for each in play.briefings[name][attempt - 1].feedback.requests]


def test_the_judges_briefing_has_the_feedback_of_the_person() -> None:
    play = Play(flow(*CODE), {"code": grows}).run()
    play.person_raises("code", message="blank page").run()
    briefing = play.briefings["review"][1]
    assert (briefing.mode, briefing.round, messages(play, "review", 2)) == ("verify", 1, ["blank page"])
    assert "Check whether this was done, and fail it if not: fix_request from human (high, L-1)" in feedback_text(
        briefing
    )
    assert not play.briefings["review"][0].feedback


def test_the_feedback_is_in_every_briefing_until_the_judge_passes() -> None:
    play = Play(flow(*CODE), {"code": grows, "review": [passed(), failed("still blank"), passed()]}).run()
    play.person_raises("code", message="blank page").run()
    assert [messages(play, "review", attempt) for attempt in (2, 3)] == [["blank page"]] * 2
    play.person_raises("code", message="too slow").run()
    assert messages(play, "review", 4) == ["too slow"]


def test_each_judge_gets_the_feedback_to_its_subject_before_the_other_target_is_done() -> None:
    steps = (step("plan"), step("pr", reviews="plan"), *CODE[1:], step("code", "plan"), step("other", reviews="ship"))
    play = Play(flow(*steps), {"plan": grows, "code": grows, "ship": grows}).run()
    play.person_raises("plan", "code", message="too slow").run()
    assert messages(play, "pr", 2) == messages(play, "review", 2) == ["too slow"]
    assert messages(play, "other", 2) == []


def test_a_question_by_a_person_is_not_given_to_judges() -> None:
    play = Play(flow(*CODE), {"code": [out(1), out(answer="yes"), out(2)]}).run()
    play.person_raises("code", kind=Kind.CONTEXT_REQUEST, message="why?").run()
    assert play.attempts()["review"] == 1


def test_requests_are_ordered_by_severity_then_age() -> None:
    play = Play(flow(step("plan"), step("code", "plan")), {"plan": grows})
    play.finish("plan")
    play.raises("code", ask("plan", message="a", severity=Severity.LOW))
    play.raises("code", ask("plan", message="b", kind=Kind.MISSING_REQUIREMENT))
    play.raises("code", ask("plan", message="c", kind=Kind.ARCHITECTURE_ISSUE, severity=Severity.CRITICAL))
    play.raises("code", ask("plan", message="d", kind=Kind.TEST_FAILURE))
    play.run()
    assert messages(play, "plan", 2) == ["c", "b", "d", "a"]
