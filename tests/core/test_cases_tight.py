"""The cases of the tight loop, implementation → review → test, that need no files: A2."""

from __future__ import annotations

from backedge.core import events as e
from backedge.core.model import Breach, Kind, Status
from backedge.core.state.evolve import replay
from backedge.core.wording import feedback_text
from tests.core.play import Play, Reply, Script, failed, grows, out, passed, profiled, step, texts

TIGHT = (step("implement", phase="code"), step("review", reviews="implement"), step("test", tests="implement"))


def tight(reviews: list[Reply], tests: list[Reply] | None = None) -> Play:
    scripts: dict[str, Script | list[Reply]] = {"implement": grows, "review": reviews, "test": tests or [passed()]}
    return Play(profiled("tight-loop", *TIGHT), scripts).run()


def test_a2_01_all_pass_at_once() -> None:
    play = tight([passed()])
    assert (play.outcome, play.attempts()) == ("verified", {"implement": 1, "review": 1, "test": 1})


def test_a2_02_a_failing_review_skips_the_tests_and_goes_into_the_next_iteration() -> None:
    play = tight([failed("x"), passed()])
    assert play.attempts() == {"implement": 2, "review": 2, "test": 1}
    assert texts(play.briefings["implement"][1].feedback.findings) == ["x"]


def test_a2_03_failing_tests_cause_one_more_iteration() -> None:
    play = tight([passed()], [failed("t"), passed()])
    assert (play.outcome, play.attempts()) == ("verified", {"implement": 2, "review": 2, "test": 2})
    assert (play.loop().kind, play.loop().round, play.finding().status) == (Kind.TEST_FAILURE, 1, Status.FIXED)


def test_a2_04_an_iteration_gets_only_the_issues_of_the_previous_one() -> None:
    play = tight([failed("r1"), passed()], [failed("t2"), passed()])
    briefings = play.briefings["implement"]
    assert [texts(each.feedback.findings) for each in briefings] == [[], ["r1"], ["t2"]]
    assert briefings[2].feedback.findings[0].found_by == "test"
    assert feedback_text(briefings[0]) == ""


def test_a2_07_the_same_test_failure_three_times_escalates() -> None:
    play = tight([passed()], [failed("t.py:1: x"), failed("t.py:2: x"), failed("t.py:3: x")])
    assert play.loop().breach == Breach("same_finding", 3, 3)


def test_a2_a_repeated_issue_is_reported_before_the_end_of_the_iterations() -> None:
    play = tight([failed(each) for each in ("a", "b", "x", "x", "x")])
    assert play.loop().breach == Breach("same_finding", 3, 3)


def stopped() -> Play:
    return tight([failed(f"{n}") for n in range(9)])


def test_a2_the_fifth_cycle_is_the_last_and_continue_adds_three() -> None:
    play = stopped()
    assert (play.attempts()["implement"], play.breach()) == (5, "rounds_per_step")
    play.decide("continue").run()
    assert (play.attempts()["implement"], play.breach()) == (8, "rounds_per_step")


def test_a2_10_accepting_the_current_state_is_not_verified() -> None:
    play = stopped().decide("accept").run()
    assert play.outcome == "accepted"
    assert all(each.status is Status.ACCEPTED for each in play.s.findings.values())


def test_a2_11_history_changes_nothing_and_cancelling_keeps_the_work() -> None:
    play = stopped()
    before = play.s
    assert len(play.loop().past_rounds) == 4
    assert play.s is before
    play.decide("cancel")
    artifact = play.s.steps["implement"].artifact
    assert play.outcome == "cancelled" and artifact is not None and artifact.output == "implement 5"


def test_a2_12_no_verdict_is_never_a_pass() -> None:
    play = tight([out("looks fine"), passed()])
    assert play.of(e.AttemptFailed)[0].error.startswith("no verdict")
    assert play.outcome == "verified"


def test_a2_14_after_a_restart_all_counters_continue() -> None:
    play = stopped()
    again = replay(play.events)
    assert again == play.s
    assert again.loops["L-1"].round == 4


def test_a2_15_another_agent_does_not_reset_the_counters_revise_does_and_is_logged() -> None:
    steps = (step("implement", phase="code", agents=("junior", "senior")), *TIGHT[1:])
    play = Play(
        profiled("tight-loop", *steps), {"implement": grows, "review": [failed(f"{n}") for n in range(20)]}
    ).run()
    assert {each.agent for each in play.briefings["implement"]} == {"junior", "senior"}
    assert play.attempts()["implement"] == 5
    play.decide("revise", note="start over").run()
    assert play.attempts()["implement"] == 9
    assert play.of(e.EscalationDecided)[0].choice == "revise"
