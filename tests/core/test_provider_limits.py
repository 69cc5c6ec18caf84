"""A limit of a provider is not an error: the step waits until it resets, and the attempt is made again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.errors import IllegalCommand, ProviderLimit
from backedge.core.evidence.values import Evidence
from backedge.core.scheduling.pending import WakeAt
from backedge.core.scheduling.provider_wait import waits_for_provider
from backedge.core.state.evolve import replay
from backedge.core.text import duration
from tests.core.play import Play, Reply, Usage, ask, failed, flow, grows, out, passed, seen, step

BUSY = ProviderLimit("529 overloaded")


def resets_in(seconds: float) -> ProviderLimit:
    return ProviderLimit("usage limit reached", seconds)


def limited(*replies: Reply, **limits: object) -> Play:
    play = Play(flow(step("a"), limits=limits), {"a": [*replies, out("made")]})
    play.finish("a")
    return play


def waits(play: Play) -> list[float]:
    return [event.retry_at - event.at for event in play.of(e.AttemptLimited)]


def test_a_step_waits_until_the_limit_resets_and_is_then_executed_again() -> None:
    play = limited(resets_in(7200))
    (event,) = play.of(e.AttemptLimited)
    assert (event.message, event.stated, event.retry_at) == ("usage limit reached", True, play.now + 7200)
    assert (play.outcome, play.wakes()) == ("running", [WakeAt(play.now + 7200)])
    play.now += 7199
    assert play.do(c.Proceed()) == ()
    assert waits_for_provider(play.s.steps["a"], play.now)
    play.now += 1
    play.do(c.Proceed())
    assert not waits_for_provider(play.s.steps["a"], play.now)
    assert play.run().outcome == "done"
    assert play.attempts() == {"a": 2}


def test_without_a_stated_time_it_waits_1_2_4_and_at_most_15_minutes() -> None:
    play = limited(*[BUSY] * 7).run()
    assert waits(play) == [60, 120, 240, 480, 900, 900, 900]
    assert not any(event.stated for event in play.of(e.AttemptLimited))


def test_a_provider_that_refuses_again_after_the_time_it_stated_is_asked_less_often() -> None:
    assert waits(limited(*[resets_in(0.5)] * 4, resets_in(600)).run()) == [0.5, 60, 120, 240, 600]
    assert waits(limited(resets_in(-5))) == [0]


def test_it_is_neither_an_error_nor_a_round_nor_an_attempt_of_the_budget() -> None:
    play = limited(*[BUSY] * 9, errors_in_a_row=1, attempts=1).run()
    assert play.outcome == "done"
    assert (play.s.steps["a"].errors, play.s.attempts, play.s.limited_attempts) == (0, 10, 9)


def test_the_agent_is_not_told_that_it_made_an_error() -> None:
    play = limited(OSError("broke"), BUSY).run()
    assert [each.last_error for each in play.briefings["a"]] == ["", "broke", "broke"]


def test_errors_are_still_counted_across_limits() -> None:
    play = limited(OSError("x"), BUSY, OSError("x"), BUSY, OSError("x"), errors_in_a_row=3).run()
    assert (play.outcome, play.breach()) == ("waiting", "errors_in_a_row")


def test_work_and_errors_end_the_row() -> None:
    play = limited(BUSY, BUSY, OSError("x"), BUSY).run()
    assert waits(play) == [60, 120, 60]
    assert play.s.steps["a"].limits_in_a_row == 0


def test_waiting_is_not_time_at_work() -> None:
    assert limited(resets_in(50_000)).run().s.seconds_at_work(0) == 2


def test_what_was_used_is_counted() -> None:
    play = Play(flow(step("a")))
    play.do(c.LimitAttempt("a", 1, "busy", usage=Usage(0.5, 10, 2), seconds=3, log="l", session="s"))
    assert play.s.usage == Usage(0.5, 10, 2)
    assert play.s.steps["a"].session == "s"


def test_what_backedge_saw_of_the_attempt_is_recorded() -> None:
    play = limited(seen(BUSY, ended=("sleep",)))
    assert [event.evidence for event in play.of(e.EvidenceRecorded)] == [Evidence(ended=("sleep",))]


def test_a_wait_that_is_too_long_is_a_question_and_continue_tries_at_once() -> None:
    play = limited(resets_in(300_000), BUSY)
    (packet,) = play.s.escalations.values()
    assert (play.breach(), packet.step, packet.options) == ("provider_wait", "a", ("continue", "skip", "cancel"))
    assert packet.reason == (
        "the provider of 'a' has reached a limit for 3 d 11 h, and provider_wait allows 1 d in a row: continue tries "
        "again at once; it said: usage limit reached"
    )
    assert play.outcome == "waiting"
    play.decide("continue")
    assert play.s.steps["a"].running is not None
    assert waits(play.run()) == [300_000, 60]
    assert play.outcome == "done"
    assert play.s.steps["a"].errors_granted == 0


def test_switched_off_it_waits_as_long_as_it_takes_and_0_asks_at_once() -> None:
    assert limited(resets_in(10_000_000), provider_wait=None).run().outcome == "done"
    assert limited(resets_in(0), provider_wait=0).breach() == "provider_wait"


def test_feedback_is_delivered_again_and_its_round_is_counted_once() -> None:
    work = flow(step("code"), step("review", reviews="code"))
    answers: Iterator[Reply] = iter([out("1"), BUSY, out("2")])
    play = Play(work, {"code": lambda *_: next(answers), "review": [failed("x"), passed()]}).run()
    assert (play.outcome, play.loop().round, play.s.rounds) == ("verified", 1, 1)
    assert [len(each.feedback.findings) for each in play.briefings["code"]] == [0, 1, 1]


def test_another_branch_goes_on_meanwhile() -> None:
    play = Play(flow(step("a"), step("b"), step("c", "b")), {"a": [resets_in(600), out()]})
    play.finish("a")
    play.finish("b")
    play.finish("c")
    assert play.attempts() == {"a": 1, "b": 1, "c": 1}


def test_a_rework_waits_for_a_judge_that_waits_for_its_provider() -> None:
    judges = (step("r1", reviews="code"), step("r2", reviews="code"))
    play = Play(flow(step("code"), *judges), {"code": grows, "r1": [failed("x"), passed()], "r2": [BUSY, passed()]})
    for name in ("code", "r1", "r2"):
        play.finish(name)
    assert play.attempts()["code"] == 1
    assert play.run().outcome == "verified"


def test_paused_it_does_not_start_when_the_limit_resets_and_it_can_be_cancelled() -> None:
    play = limited(resets_in(600))
    play.do(c.Pause("ann"))
    play.now += 601
    assert play.do(c.Proceed()) == ()
    play.do(c.Resume("ann"))
    assert play.s.steps["a"].running is not None
    other = limited(resets_in(600))
    other.do(c.Cancel("ann"))
    assert other.outcome == "cancelled"


def test_a_run_that_was_cancelled_meanwhile_records_it_and_asks_nobody() -> None:
    play = Play(flow(step("a")))
    play.do(c.Cancel("ann"))
    play.do(c.LimitAttempt("a", 1, "busy", 1e9))
    assert (play.outcome, play.s.escalations) == ("cancelled", {})


def test_it_survives_a_replay() -> None:
    play = limited(resets_in(7200))
    state = replay(play.events)
    assert state == play.s
    assert state is not None
    assert state.steps["a"].retry_at == play.now + 7200


def test_only_a_running_attempt_can_reach_a_limit() -> None:
    play = limited(BUSY)
    with pytest.raises(IllegalCommand, match="attempt 1 of step 'a' is not running"):
        play.do(c.LimitAttempt("a", 1, "busy"))


def test_results_of_feedback_that_it_raised_are_not_lost() -> None:
    play = Play(flow(step("plan"), step("a", "plan")), {"a": [BUSY, out()]})
    play.finish("plan")
    play.raises("a", ask("plan")).finish("a")
    assert play.run().outcome == "done"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (90, "90 s"), (119.6, "2 min"), (3599, "59 min"), (3600, "1 h"), (16_200, "4 h 30 min"),
     (86_400, "1 d"), (183_600, "2 d 3 h")],
)  # fmt: skip
def test_durations_in_words(seconds: float, words: str) -> None:
    assert duration(seconds) == words
