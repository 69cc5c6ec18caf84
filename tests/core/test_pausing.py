"""What pauses a run, what may start while it is paused, and when it continues."""

from __future__ import annotations

from typing import Any

import pytest

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.errors import AlreadyClosed
from backedge.core.model import HUMAN, Finding, Severity
from backedge.core.scheduling.pending import AskPerson, pending
from tests.core.play import Play, ask, failed, flow, grows, passed, step

# Two branches: a → b → c, and x → y.
BRANCHES = (step("a"), step("b", "a"), step("c", "b"), step("x"), step("y", "x"), step("z", "y"))


def running(play: Play) -> list[str]:
    return [name for name, each in play.s.steps.items() if each.running is not None]


def paused(play: Play) -> bool:
    return play.s.paused


def in_the_middle(**more: Any) -> Play:
    play = Play(flow(*BRANCHES, **more), dict.fromkeys("abcxyz", grows))
    play.finish("a")
    play.finish("x")
    return play


@pytest.mark.parametrize(
    ("severity", "blocking", "pauses"),
    [
        (Severity.CRITICAL, False, True),
        (Severity.HIGH, True, True),
        (Severity.LOW, True, True),
        (Severity.HIGH, False, False),
        (Severity.MEDIUM, False, False),
        (Severity.LOW, False, False),
    ],
)
def test_blocking_or_critical_feedback_pauses_the_run(severity: Severity, blocking: bool, pauses: bool) -> None:
    play = in_the_middle().raises("b", ask("a", severity=severity, blocking=blocking))
    assert paused(play) is pauses
    play.finish("y")
    assert running(play) == (["b"] if pauses else ["b", "z"])


def test_a_critical_verdict_pauses_the_run_too() -> None:
    work = flow(step("a"), step("r", reviews="a"), step("x"), step("y", "x"))
    play = Play(work, {"a": grows, "r": [failed(Finding("x", Severity.CRITICAL)), passed()]})
    play.finish("a")
    play.finish("r")
    assert paused(play)
    play.finish("x")
    assert running(play) == ["a"]
    play.finish("a")
    play.finish("r")
    assert not paused(play) and running(play) == ["y"]


def test_running_attempts_finish() -> None:
    play = in_the_middle().raises("b", ask("a", blocking=True))
    assert running(play) == ["b", "y"]
    play.finish("y")
    artifact = play.s.steps["y"].artifact
    assert artifact is not None


def test_while_paused_only_steps_that_an_open_loop_waits_for_start() -> None:
    work = flow(step("a"), step("r", reviews="a"), step("b", "a"), step("x", "a"))
    play = Play(work, {"a": grows, "b": grows}).run()
    play.person_raises("a", blocking=True)
    assert running(play) == ["a"]
    play.finish("a")
    assert running(play) == ["r"]
    play.finish("r")
    assert running(play) == ["b", "x"]


def test_while_paused_the_needs_of_a_target_may_start_too() -> None:
    work = flow(step("a"), step("b", "a"), step("x"))
    play = Play(work, slots=0)
    play.person_raises("b", blocking=True)
    play.slots = 9
    play.do(c.Proceed())
    assert running(play) == ["a"]
    play.finish("a")
    assert running(play) == ["b"]


def test_two_blockers_need_two_resolutions() -> None:
    play = in_the_middle().raises("b", ask(HUMAN, message="1", blocking=True))
    play.raises("y", ask(HUMAN, message="2", blocking=True))
    play.finish("b")
    play.finish("y")
    play.decide("resolve", note="one")
    assert paused(play)
    assert running(play) == []
    play.decide("resolve", note="two")
    assert not paused(play)
    assert running(play) == ["b", "y"]


def test_other_feedback_holds_only_dependent_steps() -> None:
    play = in_the_middle().raises("b", ask(HUMAN))
    play.finish("b")
    play.run()
    assert play.attempts() == {"a": 1, "b": 1, "c": 0, "x": 1, "y": 1, "z": 1}


def test_an_escalation_holds_its_source_and_everything_downstream() -> None:
    play = in_the_middle(limits={"rounds_total": 0}).raises("b", ask("a"))
    play.finish("b")
    play.run()
    assert play.attempts() == {"a": 1, "b": 1, "c": 0, "x": 1, "y": 1, "z": 1}
    assert (play.outcome, play.s.paused) == ("waiting", False)


def test_an_escalated_blocker_pauses_the_whole_run() -> None:
    play = in_the_middle(limits={"rounds_total": 0}).raises("b", ask("a", blocking=True))
    play.finish("b")
    play.finish("y")
    assert running(play) == []
    assert paused(play)


def test_a_failing_step_holds_only_the_steps_downstream() -> None:
    play = Play(flow(*BRANCHES), {"b": [Exception("x")]}).run()
    assert play.attempts() == {"a": 1, "b": 3, "c": 0, "x": 1, "y": 1, "z": 1}


def test_a_used_up_budget_holds_everything() -> None:
    play = Play(flow(*BRANCHES, limits={"attempts": 3})).run()
    assert (play.s.attempts, play.outcome) == (3, "waiting")


class TestByHand:
    def test_pausing_starts_nothing_and_lets_running_attempts_finish(self) -> None:
        play = in_the_middle()
        play.do(c.Pause("ann"))
        play.finish("b")
        play.finish("y")
        assert (running(play), play.s.paused, play.outcome) == ([], True, "waiting")
        assert play.s.paused_by == "ann"
        assert pending(play.s, play.now) == ()

    def test_resuming_continues_the_run(self) -> None:
        play = in_the_middle()
        play.do(c.Pause())
        play.finish("b")
        play.do(c.Resume("bob"))
        assert running(play) == ["c", "y"]
        assert play.of(e.RunResumed)[0].by == "bob"

    def test_pausing_or_resuming_twice_changes_nothing(self) -> None:
        play = in_the_middle()
        assert len(play.do(c.Pause())) == 1
        assert play.do(c.Pause()) == ()
        play.do(c.Resume())
        assert play.do(c.Resume()) == ()

    def test_feedback_raised_while_paused_is_recorded_and_waits(self) -> None:
        play = in_the_middle()
        play.do(c.Pause())
        play.raises("b", ask("a", HUMAN))
        play.finish("b")
        assert (play.opened(), play.attempts()["a"]) == (1, 1)
        assert AskPerson("E-1") in pending(play.s, play.now)

    def test_a_run_that_has_ended_cannot_be_paused(self) -> None:
        play = Play(flow(step("a"))).run()
        with pytest.raises(AlreadyClosed, match="has ended: done"):
            play.do(c.Pause())
