"""Input checks: what does not fit `accepts` goes to its producer and costs no attempt."""

from __future__ import annotations

from typing import Any

import pytest

from backedge.core import commands as c
from backedge.core import events as e
from backedge.core.errors import IllegalCommand
from backedge.core.feedback.loop import LoopState
from backedge.core.model import Finding, Kind, Severity, Status
from backedge.core.scheduling.pending import CheckInputs, pending
from tests.core.play import Play, ask, failed, flow, grows, passed, step, texts


class TestChecksOfInputs:
    WORK = flow(step("a"), step("b", "a", checked=True))
    INPUT_ERROR = (("a", Finding("no name", severity=Severity.HIGH)),)

    def played(self, *answers: Any, **more: Any) -> Play:
        results = iter(answers)
        return Play(self.WORK, {"a": grows}, checks={"b": lambda play: next(results, ())}, **more)

    def test_a_step_starts_if_its_inputs_fit(self) -> None:
        play = self.played(())
        play.finish("a")
        assert CheckInputs("b") in pending(play.s, play.now)
        assert play.run().attempts() == {"a": 1, "b": 1}
        assert play.of(e.VerdictGiven) == []

    def test_an_input_error_is_a_validation_failure_for_the_producer(self) -> None:
        play = self.played(self.INPUT_ERROR, ()).run()
        assert (play.outcome, play.attempts()) == ("done", {"a": 2, "b": 1})
        assert (play.loop().kind, play.loop().state) == (Kind.VALIDATION_FAILURE, LoopState.RESOLVED)
        assert texts(play.briefings["a"][1].feedback.findings) == ["no name"]
        assert play.finding().status is Status.FIXED

    def test_an_input_error_that_remains_is_the_next_round(self) -> None:
        other = (("a", Finding("no age")), ("a", Finding("no age")))
        play = self.played(self.INPUT_ERROR, other, ()).run()
        assert (play.opened(), play.loop().round) == (1, 2)
        assert play.of(e.VerdictGiven)[1].settled == ((1, Status.FIXED),)

    def test_an_accepted_input_error_starts_no_loop(self) -> None:
        work = flow(step("a"), step("b", "a", checked=True), limits={"rounds_per_loop": 0})
        play = Play(work, checks={"b": lambda play: self.INPUT_ERROR}).run()
        play.decide("accept").run()
        assert (play.outcome, play.attempts()["b"]) == ("accepted", 1)

    def test_an_input_error_resolved_by_hand_is_fixed_when_the_inputs_fit(self) -> None:
        work = flow(step("a"), step("b", "a", checked=True), limits={"rounds_per_loop": 0})
        results = iter([self.INPUT_ERROR, ()])
        play = Play(work, checks={"b": lambda play: next(results)}).run()
        play.decide("resolve", note="patched").run()
        assert (play.outcome, play.finding().status) == ("done", Status.FIXED)

    def test_an_input_check_does_not_settle_the_other_findings_of_a_judge(self) -> None:
        work = flow(step("a"), step("j", reviews="a", checked=True))
        results = iter([(), self.INPUT_ERROR, ()])
        play = Play(work, {"a": grows, "j": [failed("wrong"), passed()]}, checks={"j": lambda play: next(results)})
        play.run()
        assert play.of(e.VerdictGiven)[1].settled == ()
        assert play.of(e.VerdictGiven)[2].settled == ((2, Status.FIXED),)
        assert play.outcome == "verified"

    def test_a_step_whose_check_closed_its_loop_waits_while_another_loop_pauses_the_run(self) -> None:
        work = flow(step("a"), step("b", "a", checked=True), step("x"))
        results = iter([self.INPUT_ERROR, ()])
        play = Play(work, {"a": grows, "x": grows})
        play.finish("a")
        play.do(c.ReportInputCheck("b", next(results)))
        play.raises("x", ask("human", blocking=True))
        play.finish("a")
        play.do(c.ReportInputCheck("b", next(results)))
        assert (play.loop().state, play.attempts()["b"]) == (LoopState.RESOLVED, 0)
        play.finish("x")
        play.decide("resolve", note="go on").run()
        assert play.outcome == "done"

    JUDGED = (step("a"), step("j", reviews="a", checked=True))

    def judged(self, verdicts: list[Any], checks: list[Any], **limits: Any) -> Play:
        """A judge whose inputs are checked; the last answer of each is repeated."""
        results = iter(checks)
        work = flow(*self.JUDGED, limits=limits)
        return Play(work, {"a": grows, "j": verdicts}, checks={"j": lambda play: next(results, checks[-1])}).run()

    def test_a_rejected_input_is_not_a_failing_verdict_of_the_judge(self) -> None:
        play = self.judged([failed("wrong"), passed()], [self.INPUT_ERROR, (), ()], failures_in_a_row=2)
        assert play.outcome == "verified"
        assert (play.s.steps["j"].verdicts, play.s.steps["j"].failures) == (2, 0)

    def test_a_rejected_input_between_two_verdicts_does_not_break_the_streak_of_a_finding(self) -> None:
        play = self.judged([failed("wrong")], [(), self.INPUT_ERROR, ()], same_finding=2, rounds_per_loop=9)
        assert (play.breach(), play.finding(1).streak, play.loop("L-1").round) == ("same_finding", 2, 1)

    def test_a_fitting_input_between_two_failing_verdicts_does_not_end_their_streak(self) -> None:
        play = self.judged([failed("x"), failed("y"), passed()], [(), self.INPUT_ERROR, ()], failures_in_a_row=2)
        assert (play.breach(), play.calls["j"]) == ("failures_in_a_row", 2)

    @pytest.mark.parametrize(
        ("limits", "rounds"),
        [
            ({"same_finding": 2, "rounds_per_loop": None}, 1),
            ({"same_finding": 3, "rounds_per_loop": None}, 2),
            ({"rounds_per_loop": 2, "same_finding": None}, 2),
            ({"rounds_total": 4, "same_finding": None, "rounds_per_loop": None}, 4),
        ],
    )
    def test_an_input_that_is_rejected_again_and_again_is_bounded(self, limits: dict[str, Any], rounds: int) -> None:
        play = self.judged([passed()], [self.INPUT_ERROR], failures_in_a_row=1, **limits)
        assert (play.breach(), play.loop().round) == (next(iter(limits)), rounds)

    def test_an_input_that_stays_the_same_is_bounded(self) -> None:
        work = flow(*self.JUDGED, limits={"no_change": 2, "same_finding": None, "rounds_per_loop": None})
        play = Play(work, checks={"j": lambda play: self.INPUT_ERROR}).run()
        assert (play.breach(), play.attempts()) == ("no_change", {"a": 3, "j": 0})

    def test_another_input_error_in_between_ends_the_streak(self) -> None:
        other = (("a", Finding("no age")),)
        play = self.judged(
            [passed()], [self.INPUT_ERROR, other, self.INPUT_ERROR, ()], same_finding=2, rounds_per_loop=9
        )
        assert (play.outcome, play.finding(1).streak) == ("verified", 1)

    def test_revise_restarts_the_streak_of_an_input_error(self) -> None:
        play = self.judged([passed()], [self.INPUT_ERROR], same_finding=2, rounds_per_loop=None)
        play.decide("revise", note="name it").run()
        assert (play.breach(), play.loop().round) == ("same_finding", 3)

    @pytest.mark.parametrize(
        ("command", "why"),
        [
            (c.ReportInputCheck("a"), "is not waiting for an input check: report one only when the engine requests it"),
            (c.ReportInputCheck("b", (("b", Finding("x")),)), "does not need 'b'"),
        ],
    )
    def test_an_input_check_has_to_answer_a_pending_one(self, command: c.ReportInputCheck, why: str) -> None:
        play = self.played()
        play.finish("a")
        with pytest.raises(IllegalCommand, match=why):
            play.do(command)
