"""Opposite demands on one place go to a person instead of back and forth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.findings.ledger import UNSETTLED
from backedge.core.model import HUMAN, Claim, Outcome, Status
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


def test_a_finding_that_the_fix_of_another_brings_back_is_put_to_a_person() -> None:
    play = ping_pong()
    assert play.outcome == "waiting"
    (packet,) = play.s.escalations.values()
    assert packet.reason == (
        "contested: F-1 of review wants 'take the lock before reading', "
        "F-2 of security wants 'no lock on the hot path', both at api.py:12"
    )
    assert packet.breach is None
    assert [play.finding(id).status for id in (1, 2)] == [Status.CONTESTED, Status.CONTESTED]
    # The first attempt, and one rework for each demand: none for the third turn.
    assert play.attempts()["code"] == 3
    assert replay(play.events) == play.s


def test_the_suggested_fix_is_what_a_demand_is_called_by() -> None:
    wanted = Finding("racy", file="api.py", line=12, suggested_fix="take  a\nlock " + "x" * 200)
    play = two_judges([failed(wanted), passed(), failed(wanted)], [passed(), failed(NO_LOCK), passed()])
    assert "F-1 of review wants 'take a lock xxx" in next(iter(play.s.escalations.values())).reason
    assert "…'" in next(iter(play.s.escalations.values())).reason


def one_judge_of_two_minds() -> Play:
    replies = [failed(LOCK), failed(NO_LOCK), failed(LOCK), passed()]
    workflow = flow(step("code", phase="code"), step("review", reviews="code", complete=True))
    return Play(workflow, {"code": grows, "review": replies}).run()


def test_one_judge_that_wants_two_opposite_things_is_put_to_a_person_too() -> None:
    play = one_judge_of_two_minds()
    assert "contested: F-1 of review" in next(iter(play.s.escalations.values())).reason
    assert play.finding(2).status is Status.CONTESTED


@pytest.mark.parametrize("choice", ["resolve", "continue", "revise", "accept", "skip"])
def test_a_decision_about_a_judge_of_two_minds_leaves_neither_finding_open(choice: str) -> None:
    play = one_judge_of_two_minds()
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
def test_findings_at_different_places_do_not_stand_against_each_other(other: Finding) -> None:
    play = two_judges([failed(LOCK), passed(), failed(LOCK), passed()], [passed(), failed(other), passed()])
    assert play.outcome == "verified"
    assert not play.of(e.FindingsContested)


def test_a_finding_that_comes_back_after_the_fix_of_something_else_is_only_a_regression() -> None:
    """The other demand at its place was met before it was seen to be fixed."""
    far = Finding("a typo", file="readme.md", line=1)
    play = two_judges(
        [failed(LOCK), passed(), passed(), failed(LOCK), passed()],
        [failed(NO_LOCK), passed(), failed(far), passed()],
        limits={"rounds_per_loop": 9},
    )
    assert not play.of(e.FindingsContested)
    assert play.outcome == "verified"


def test_two_judges_that_pull_in_two_directions_in_ever_other_words() -> None:
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


def test_a_new_finding_outside_of_what_the_fix_changed_is_no_dispute() -> None:
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


def test_going_on_reworks_for_the_finding_and_settles_both() -> None:
    play = ping_pong().decide("continue", note="the lock stays").run()
    assert play.outcome == "verified"
    assert [play.finding(id).status for id in (1, 2)] == [Status.FIXED, Status.FIXED]
    assert play.attempts()["code"] == 4


def test_accepting_leaves_the_fix_of_the_other_as_it_is() -> None:
    play = ping_pong().decide("accept").run()
    assert play.outcome == "accepted"
    assert [play.finding(id).status for id in (1, 2)] == [Status.ACCEPTED, Status.FIXED]


def test_a_decision_in_words_reaches_the_judge() -> None:
    play = ping_pong().decide("resolve", note="no lock, the reader copes").run()
    assert play.outcome == "verified"
    assert play.finding(2).status is Status.FIXED


def test_going_on_is_not_asked_about_again_before_its_rounds_are_used_up() -> None:
    play = two_judges(
        [failed(LOCK), passed(), failed(LOCK), passed(), failed(LOCK), passed()],
        [passed(), failed(NO_LOCK), passed(), failed(NO_LOCK), passed()],
        limits={"rounds_total": 30},
    )
    play.decide("continue").run()
    # Its loop was resolved in between: this one is another, with nothing granted.
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


def test_the_other_judge_does_not_start_a_rework_for_what_a_person_is_asked_about() -> None:
    """Security sees its own finding again while the dispute lies in the inbox."""
    play = two_judges([failed(LOCK), passed(), failed(LOCK)], [passed(), failed(NO_LOCK), failed(NO_LOCK)])
    assert play.attempts()["code"] == 3
    assert play.finding(2).status is Status.CONTESTED
    play.decide("accept").run()
    assert play.outcome == "accepted"
    assert play.finding(2).status is Status.DEFERRED


def test_a_finding_can_be_settled_when_its_judge_is_gone() -> None:
    run = ping_pong().s
    without = replace(run, steps={name: each for name, each in run.steps.items() if name != "security"})
    after = evolve(without, e.FindingsSettled(run.last_at, (2,), Status.FIXED))
    assert after.findings[2].status is Status.FIXED


def test_a_second_dispute_in_a_loop_settles_what_the_first_left() -> None:
    """Security is passed over, so nobody answers for its demand, and the review changes its mind once more."""
    queue = Finding("a queue instead", file="api.py", line=12)
    limits = {"rounds_total": 40, "rounds_per_loop": 9, "same_finding": 9}
    judges = (step(name, reviews="code", complete=True) for name in ("review", "security"))
    said: dict[str, Any] = {
        "code": grows,
        "review": [failed(LOCK), passed(), failed(LOCK), failed(queue), failed(LOCK), passed()],
        "security": [passed(), failed(NO_LOCK)],
    }
    play = Play(flow(step("code", phase="code"), *judges, limits=limits), said)
    for name in ("code", "review", "security", "code", "review", "security"):
        play.finish(name)
    play.do(c.RaiseFeedback("security", ask(HUMAN)))
    play.decide("skip").run()
    play.decide("continue", rounds=1).run()
    assert [each.findings for each in play.of(e.FindingsContested)] == [(1, 2), (1, 3)]
    assert play.finding(2).status is Status.DEFERRED
    play.decide("accept").run()
    assert not [each for each in play.s.findings.values() if each.status in UNSETTLED]


# What the step that reworks contests


def contested_by_code(*insists: object) -> Play:
    claim = Claim("F-1", "contested", "the reader\n is single-threaded")
    scripts = {"code": [out("v1"), out("v2", claims=(claim,)), out("v3", claims=(claim,))], "review": list(insists)}
    steps = (step("code", phase="code"), step("review", reviews="code"))
    return Play(flow(*steps), scripts).run()  # type: ignore[arg-type]


def test_what_is_contested_and_insisted_on_twice_goes_to_a_person() -> None:
    play = contested_by_code(failed(LOCK))
    (packet,) = play.s.escalations.values()
    assert packet.reason == (
        "contested: F-1 of review wants 'take the lock before reading', and code contests that: "
        "'the reader is single-threaded'; review insisted 2 times"
    )
    assert play.finding().status is Status.CONTESTED
    assert play.attempts() == {"code": 3, "review": 3}


def test_a_judge_that_gives_in_ends_the_dispute() -> None:
    withdrawn = passed(claims=(Claim("F-1", "withdrawn"),))
    play = contested_by_code(failed(LOCK), failed(LOCK), withdrawn)
    assert play.outcome == "verified"
    assert play.finding().status is Status.WITHDRAWN


# Whatever judges and people do

SAYINGS = (passed(), failed(LOCK), failed(NO_LOCK), failed(LOCK, NO_LOCK))


@effort(100)
@given(
    st.lists(st.sampled_from(SAYINGS), min_size=1, max_size=6),
    st.lists(st.sampled_from(SAYINGS), min_size=1, max_size=6),
    st.lists(st.sampled_from(("continue", "resolve", "accept", "skip")), min_size=1, max_size=4),
    st.booleans(),
)
def test_every_dispute_comes_to_an_end_and_leaves_nothing_open(
    review: list[Outcome], security: list[Outcome], decisions: list[str], complete: bool
) -> None:
    play = two_judges([*review, passed()], [*security, passed()], complete, limits={"rounds_total": 40})
    for place in range(40):
        if play.s.ended is not None:
            break
        play.decide(decisions[place % len(decisions)] if place < 20 else "accept", note="so").run()
    assert play.s.ended is not None
    assert not [each for each in play.s.findings.values() if each.status in UNSETTLED]
    assert replay(play.events) == play.s
