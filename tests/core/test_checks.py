"""A step that `accepts`: a misfit goes to its producer, and costs no attempt."""

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
    """A step that `accepts`: a misfit goes to the producer, and costs no attempt."""

    WORK = flow(step("a"), step("b", "a", checked=True))
    MISFIT = (("a", Finding("no name", severity=Severity.HIGH)),)

    def played(self, *answers: Any, **more: Any) -> Play:
        said = iter(answers)
        return Play(self.WORK, {"a": grows}, checks={"b": lambda play: next(said, ())}, **more)

    def test_inputs_that_fit_let_it_start(self) -> None:
        play = self.played(())
        play.finish("a")
        assert CheckInputs("b") in pending(play.s, play.now)
        assert play.run().attempts() == {"a": 1, "b": 1}
        assert play.of(e.VerdictGiven) == []

    def test_a_misfit_is_a_validation_failure_for_the_producer(self) -> None:
        play = self.played(self.MISFIT, ()).run()
        assert (play.outcome, play.attempts()) == ("done", {"a": 2, "b": 1})
        assert (play.loop().kind, play.loop().state) == (Kind.VALIDATION_FAILURE, LoopState.RESOLVED)
        assert texts(play.briefings["a"][1].feedback.findings) == ["no name"]
        assert play.finding().status is Status.FIXED

    def test_a_misfit_that_stays_is_the_next_round(self) -> None:
        other = (("a", Finding("no age")), ("a", Finding("no age")))
        play = self.played(self.MISFIT, other, ()).run()
        assert (play.opened(), play.loop().round) == (1, 2)
        assert play.of(e.VerdictGiven)[1].settled == ((1, Status.FIXED),)

    def test_a_misfit_that_was_accepted_starts_nothing(self) -> None:
        work = flow(step("a"), step("b", "a", checked=True), limits={"rounds_per_loop": 0})
        play = Play(work, checks={"b": lambda play: self.MISFIT}).run()
        play.decide("accept").run()
        assert (play.outcome, play.attempts()["b"]) == ("accepted", 1)

    def test_a_misfit_that_was_fixed_by_hand_is_fixed_when_the_inputs_fit(self) -> None:
        work = flow(step("a"), step("b", "a", checked=True), limits={"rounds_per_loop": 0})
        said = iter([self.MISFIT, ()])
        play = Play(work, checks={"b": lambda play: next(said)}).run()
        play.decide("resolve", note="patched").run()
        assert (play.outcome, play.finding().status) == ("done", Status.FIXED)

    def test_the_other_findings_of_a_judge_are_not_settled_by_a_check(self) -> None:
        work = flow(step("a"), step("j", reviews="a", checked=True))
        said = iter([(), self.MISFIT, ()])
        play = Play(work, {"a": grows, "j": [failed("wrong"), passed()]}, checks={"j": lambda play: next(said)})
        play.run()
        assert play.of(e.VerdictGiven)[1].settled == ()
        assert play.of(e.VerdictGiven)[2].settled == ((2, Status.FIXED),)
        assert play.outcome == "verified"

    def test_a_step_that_went_on_only_for_its_check_waits_while_another_loop_pauses_the_run(self) -> None:
        work = flow(step("a"), step("b", "a", checked=True), step("x"))
        said = iter([self.MISFIT, ()])
        play = Play(work, {"a": grows, "x": grows})
        play.finish("a")
        play.do(c.ReportInputCheck("b", next(said)))
        play.raises("x", ask("human", blocking=True))
        play.finish("a")
        play.do(c.ReportInputCheck("b", next(said)))
        assert (play.loop().state, play.attempts()["b"]) == (LoopState.RESOLVED, 0)
        play.finish("x")
        play.decide("resolve", note="go on").run()
        assert play.outcome == "done"

    JUDGED = (step("a"), step("j", reviews="a", checked=True))

    def judged(self, verdicts: list[Any], checks: list[Any], **limits: Any) -> Play:
        """A judge whose inputs are checked; the last answer of each is repeated."""
        said = iter(checks)
        work = flow(*self.JUDGED, limits=limits)
        return Play(work, {"a": grows, "j": verdicts}, checks={"j": lambda play: next(said, checks[-1])}).run()

    def test_a_rejected_input_is_no_failing_verdict_of_the_judge(self) -> None:
        play = self.judged([failed("wrong"), passed()], [self.MISFIT, (), ()], failures_in_a_row=2)
        assert play.outcome == "verified"
        assert (play.s.steps["j"].verdicts, play.s.steps["j"].failures) == (2, 0)

    def test_a_rejected_input_between_two_verdicts_does_not_break_the_row_of_a_finding(self) -> None:
        play = self.judged([failed("wrong")], [(), self.MISFIT, ()], same_finding=2, rounds_per_loop=9)
        assert (play.breach(), play.finding(1).streak, play.loop("L-1").round) == ("same_finding", 2, 1)

    def test_an_input_that_fits_between_two_failing_verdicts_does_not_end_their_row(self) -> None:
        play = self.judged([failed("x"), failed("y"), passed()], [(), self.MISFIT, ()], failures_in_a_row=2)
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
        play = self.judged([passed()], [self.MISFIT], failures_in_a_row=1, **limits)
        assert (play.breach(), play.loop().round) == (next(iter(limits)), rounds)

    def test_an_input_that_stays_the_same_is_bounded(self) -> None:
        work = flow(*self.JUDGED, limits={"no_change": 2, "same_finding": None, "rounds_per_loop": None})
        play = Play(work, checks={"j": lambda play: self.MISFIT}).run()
        assert (play.breach(), play.attempts()) == ("no_change", {"a": 3, "j": 0})

    def test_another_misfit_in_between_ends_the_row(self) -> None:
        other = (("a", Finding("no age")),)
        play = self.judged([passed()], [self.MISFIT, other, self.MISFIT, ()], same_finding=2, rounds_per_loop=9)
        assert (play.outcome, play.finding(1).streak) == ("verified", 1)

    def test_revise_starts_the_row_of_a_misfit_again(self) -> None:
        play = self.judged([passed()], [self.MISFIT], same_finding=2, rounds_per_loop=None)
        play.decide("revise", note="name it").run()
        assert (play.breach(), play.loop().round) == ("same_finding", 3)

    @pytest.mark.parametrize(
        ("command", "why"),
        [
            (c.ReportInputCheck("a"), "is not waiting for an input check"),
            (c.ReportInputCheck("b", (("b", Finding("x")),)), "does not need 'b'"),
        ],
    )
    def test_a_check_answers_what_is_pending(self, command: c.ReportInputCheck, why: str) -> None:
        play = self.played()
        play.finish("a")
        with pytest.raises(IllegalCommand, match=why):
            play.do(command)
