"""Contradicting demands at one location are escalated instead of being reworked back and forth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.findings.ledger import UNSETTLED
from backedge.core.model import HUMAN, FindingResolution, Outcome, Status
from backedge.core.state.evolve import evolve, replay
from backedge.core.value import replace
from tests.core.play import Finding, Play, ask, failed, flow, grows, out, passed, step
from tests.core.strategies import effort

LOCK = Finding("take the lock before reading", file="api.py", line=12)
NO_LOCK = Finding("no lock on the hot path", file="api.py", line=12)


def two_judges(review: Sequence[object], security: Sequence[object], complete: bool = False, **more: object) -> Play:
    judges = (step(name, reviews="code", complete=complete) for name in ("review", "security"))
    steps = (step("code", phase="code"), *judges)
    scripts = {"code": grows, "review": review, "security": security}
    return Play(flow(*steps, **more), scripts).run()  # type: ignore[arg-type]


def ping_pong() -> Play:
    """A lock is put in for the review, taken out for security, and missed again by the review."""
    return two_judges([failed(LOCK), passed(), failed(LOCK), passed()], [passed(), failed(NO_LOCK), passed()])


def test_a_finding_that_returns_with_the_fix_of_another_is_escalated() -> None:
    play = ping_pong()
    assert play.outcome == "waiting"
    (packet,) = play.s.escalations.values()
    assert packet.reason == (
        "contested: F-1 of review wants 'take the lock before reading', "
        "F-2 of security wants 'no lock on the hot path', both at api.py:12"
    )
    assert packet.breach is None
    assert [play.finding(id).status for id in (1, 2)] == [Status.CONTESTED, Status.CONTESTED]
    # The first attempt, and one rework for each demand, but none for the third.
    assert play.attempts()["code"] == 3
    assert replay(play.events) == play.s


def test_a_dispute_quotes_the_suggested_fix() -> None:
    wanted = Finding("racy", file="api.py", line=12, suggested_fix="take  a\nlock " + "x" * 200)
    play = two_judges([failed(wanted), passed(), failed(wanted)], [passed(), failed(NO_LOCK), passed()])
    assert "F-1 of review wants 'take a lock xxx" in next(iter(play.s.escalations.values())).reason
    assert "…'" in next(iter(play.s.escalations.values())).reason


def judge_that_contradicts_itself() -> Play:
    replies = [failed(LOCK), failed(NO_LOCK), failed(LOCK), passed()]
    workflow = flow(step("code", phase="code"), step("review", reviews="code", complete=True))
    return Play(workflow, {"code": grows, "review": replies}).run()


def test_a_judge_that_contradicts_itself_is_escalated_too() -> None:
    play = judge_that_contradicts_itself()
    assert "contested: F-1 of review" in next(iter(play.s.escalations.values())).reason
    assert play.finding(2).status is Status.CONTESTED


@pytest.mark.parametrize("choice", ["resolve", "continue", "revise", "accept", "skip"])
def test_deciding_about_a_judge_that_contradicts_itself_settles_both_findings(choice: str) -> None:
    play = judge_that_contradicts_itself()
    play.decide(choice, note="no lock")
    assert play.run().outcome in ("verified", "accepted")
    assert not [id for id in (1, 2) if play.finding(id).status in UNSETTLED]


@pytest.mark.parametrize(
    "other",
    [
        Finding("no lock on the hot path", file="api.py", line=13),
        Finding("no lock on the hot path", file="other.py", line=12),
        Finding("no lock on the hot path", file="api.py"),
        Finding("no lock on the hot path"),
    ],
)
def test_findings_at_different_locations_are_no_dispute(other: Finding) -> None:
    play = two_judges([failed(LOCK), passed(), failed(LOCK), passed()], [passed(), failed(other), passed()])
    assert play.outcome == "verified"
    assert not play.of(e.FindingsContested)


def test_a_finding_that_comes_back_after_the_fix_of_something_else_is_only_a_regression() -> None:
    """The other demand at its location was met before the judge reported this one fixed."""
    far = Finding("a typo", file="readme.md", line=1)
    play = two_judges(
        [failed(LOCK), passed(), passed(), failed(LOCK), passed()],
        [failed(NO_LOCK), passed(), failed(far), passed()],
        limits={"rounds_per_loop": 9},
    )
    assert not play.of(e.FindingsContested)
    assert play.outcome == "verified"


def test_two_judges_that_contradict_each_other_in_new_words_are_escalated() -> None:
    again = Finding("the read is not guarded any more", line=12, file="api.py")
    steps = (step("code", phase="code"), step("review", reviews="code"), step("security", reviews="code"))
    scripts = {
        "code": text_of_a_file,
        "review": [failed(LOCK), passed(), failed(again)],
        "security": [passed(), failed(NO_LOCK), passed()],
    }
    play = Play(flow(*steps), scripts).run()  # type: ignore[arg-type]
    (packet,) = play.s.escalations.values()
    assert packet.reason.startswith("contested: F-3 of review wants 'the read is not guarded any more', F-2 of sec")


def text_of_a_file(play: Play, name: str) -> object:
    return out({"api.py": "\n".join(["same"] * 11 + [f"line {play.s.steps[name].attempts}", "same"])})


def test_a_new_finding_outside_the_fix_is_no_dispute() -> None:
    again = Finding("the read is not guarded any more", line=3, file="api.py")
    steps = (step("code", phase="code"), step("review", reviews="code"), step("security", reviews="code"))
    scripts = {
        "code": text_of_a_file,
        "review": [failed(LOCK), passed(), failed(again), passed()],
        "security": [passed(), failed(NO_LOCK), passed()],
    }
    play = Play(flow(*steps), scripts).run()  # type: ignore[arg-type]
    assert play.outcome == "verified"


# Decisions


def test_continue_reworks_the_finding_and_settles_both() -> None:
    play = ping_pong().decide("continue", note="the lock stays").run()
    assert play.outcome == "verified"
    assert [play.finding(id).status for id in (1, 2)] == [Status.FIXED, Status.FIXED]
    assert play.attempts()["code"] == 4


def test_accept_keeps_the_fix_of_the_other_finding() -> None:
    play = ping_pong().decide("accept").run()
    assert play.outcome == "accepted"
    assert [play.finding(id).status for id in (1, 2)] == [Status.ACCEPTED, Status.FIXED]


def test_a_decision_in_words_reaches_the_judge() -> None:
    play = ping_pong().decide("resolve", note="no lock, the reader copes").run()
    assert play.outcome == "verified"
    assert play.finding(2).status is Status.FIXED


def test_after_continue_no_question_comes_before_the_granted_rounds_are_used_up() -> None:
    play = two_judges(
        [failed(LOCK), passed(), failed(LOCK), passed(), failed(LOCK), passed()],
        [passed(), failed(NO_LOCK), passed(), failed(NO_LOCK), passed()],
        limits={"rounds_total": 30},
    )
    play.decide("continue").run()
    # Its loop was resolved in between. This is a new loop without granted rounds.
    assert len(play.of(e.FindingsContested)) == 2


def test_granted_rounds_are_not_interrupted_by_the_same_dispute() -> None:
    replies = [failed(LOCK), failed(NO_LOCK), failed(LOCK), failed(NO_LOCK), failed(LOCK), passed()]
    play = Play(
        flow(step("code", phase="code"), step("review", reviews="code", complete=True), limits={"rounds_per_loop": 9}),
        {"code": grows, "review": replies},
    ).run()
    play.decide("continue", rounds=3).run()
    assert play.outcome == "verified"
    assert len(play.of(e.FindingsContested)) == 1


def test_the_other_judge_starts_no_rework_for_a_finding_in_dispute() -> None:
    """Security reports its own finding again while a person has to decide the dispute."""
    play = two_judges([failed(LOCK), passed(), failed(LOCK)], [passed(), failed(NO_LOCK), failed(NO_LOCK)])
    assert play.attempts()["code"] == 3
    assert play.finding(2).status is Status.CONTESTED
    play.decide("accept").run()
    assert play.outcome == "accepted"
    assert play.finding(2).status is Status.DEFERRED


def test_a_finding_can_be_settled_after_its_judge_was_removed() -> None:
    run = ping_pong().s
    without = replace(run, steps={name: each for name, each in run.steps.items() if name != "security"})
    after = evolve(without, e.FindingsSettled(run.last_at, (2,), Status.FIXED))
    assert after.findings[2].status is Status.FIXED


def test_a_second_dispute_in_a_loop_settles_the_findings_of_the_first() -> None:
    """Security is skipped, so no judge reports on its demand, and the review changes its mind once more."""
    queue = Finding("a queue instead", file="api.py", line=12)
    limits = {"rounds_total": 40, "rounds_per_loop": 9, "same_finding": 9}
    judges = (step(name, reviews="code", complete=True) for name in ("review", "security"))
    replies: dict[str, Any] = {
        "code": grows,
        "review": [failed(LOCK), passed(), failed(LOCK), failed(queue), failed(LOCK), passed()],
        "security": [passed(), failed(NO_LOCK)],
    }
    play = Play(flow(step("code", phase="code"), *judges, limits=limits), replies)
    for name in ("code", "review", "security", "code", "review", "security"):
        play.finish(name)
    play.do(c.RaiseFeedback("security", ask(HUMAN)))
    play.decide("skip").run()
    play.decide("continue", rounds=1).run()
    assert [each.findings for each in play.of(e.FindingsContested)] == [(1, 2), (1, 3)]
    assert play.finding(2).status is Status.DEFERRED
    play.decide("accept").run()
    assert not [each for each in play.s.findings.values() if each.status in UNSETTLED]


# Findings that the reworking step contests


def contested_by_code(*insists: object) -> Play:
    claim = FindingResolution("F-1", "contested", "the reader\n is single-threaded")
    scripts = {
        "code": [out("v1"), out("v2", resolutions=(claim,)), out("v3", resolutions=(claim,))],
        "review": list(insists),
    }
    steps = (step("code", phase="code"), step("review", reviews="code"))
    return Play(flow(*steps), scripts).run()  # type: ignore[arg-type]


def test_a_finding_contested_and_insisted_on_twice_is_escalated() -> None:
    play = contested_by_code(failed(LOCK))
    (packet,) = play.s.escalations.values()
    assert packet.reason == (
        "contested: F-1 of review wants 'take the lock before reading', and code contests that: "
        "'the reader is single-threaded'; review insisted 2 times"
    )
    assert play.finding().status is Status.CONTESTED
    assert play.attempts() == {"code": 3, "review": 3}


def test_a_judge_that_gives_in_ends_the_dispute() -> None:
    withdrawn = passed(resolutions=(FindingResolution("F-1", "withdrawn"),))
    play = contested_by_code(failed(LOCK), failed(LOCK), withdrawn)
    assert play.outcome == "verified"
    assert play.finding().status is Status.WITHDRAWN


# Random judges and people

SAYINGS = (passed(), failed(LOCK), failed(NO_LOCK), failed(LOCK, NO_LOCK))


@effort(100)
@given(
    st.lists(st.sampled_from(SAYINGS), min_size=1, max_size=6),
    st.lists(st.sampled_from(SAYINGS), min_size=1, max_size=6),
    st.lists(st.sampled_from(("continue", "resolve", "accept", "skip")), min_size=1, max_size=4),
    st.booleans(),
)
def test_every_dispute_ends_and_leaves_nothing_open(
    review: list[Outcome], security: list[Outcome], decisions: list[str], complete: bool
) -> None:
    play = two_judges([*review, passed()], [*security, passed()], complete, limits={"rounds_total": 40})
    for index in range(40):
        if play.s.ended is not None:
            break
        play.decide(decisions[index % len(decisions)] if index < 20 else "accept", note="so").run()
    assert play.s.ended is not None
    assert not [each for each in play.s.findings.values() if each.status in UNSETTLED]
    assert replay(play.events) == play.s
