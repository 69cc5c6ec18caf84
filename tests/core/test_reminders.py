"""Feedback that was addressed and not verified yet: whatever its target is executed for next, it is reminded."""

from __future__ import annotations

from typing import Any

from backedge.core import events as e
from backedge.core.model import Claim
from backedge.core.workflow.definition import Repeat
from tests.core.play import Feedback, Kind, Outcome, Play, Reply, ask, failed, flow, grows, out, passed, step, texts


def scores(*values: int) -> list[Reply]:
    return [out({"score": value}) for value in values]


POLISH = step("polish", repeat=Repeat(("polish:/score >= 90",), 3), agents=("junior", "senior"))


class TestRepetitions:
    def test_a_repetition_after_a_rework_is_told_what_the_rework_was_for(self) -> None:
        said: dict[str, Any] = {"polish": scores(95, 10, 96), "review": [failed("too slow"), passed()]}
        play = Play(flow(POLISH, step("review", reviews="polish")), said).run()
        assert play.outcome == "verified"
        assert [(each.mode, each.round, texts(each.feedback.findings)) for each in play.briefings["polish"]] == [
            ("work", 0, []),
            ("rework", 1, ["too slow"]),
            ("work", 0, []),
        ]
        (reminder,) = play.briefings["polish"][2].history
        assert (reminder.loop, reminder.round) == ("L-1", 1)
        assert reminder.findings == ("F-1 (addressed, not verified yet): too slow",)
        assert (play.s.rounds, play.loop().round) == (1, 1), "no round of its own"

    def test_it_may_say_what_became_of_it(self) -> None:
        claimed = out({"score": 96}, claims=(Claim("F-1", "fixed", "with a cache"),))
        said: dict[str, Any] = {"polish": [*scores(95, 10), claimed], "review": [failed("too slow"), passed()]}
        play = Play(flow(POLISH, step("review", reviews="polish")), said).run()
        assert play.briefings["review"][1].verify[0].claim == "fixed with a cache"

    def test_it_stays_with_the_agent_of_its_round(self) -> None:
        said: dict[str, Any] = {"polish": scores(95, 96, 10, 97), "review": [failed("x"), failed("y"), passed()]}
        play = Play(flow(POLISH, step("review", reviews="polish")), said).run()
        assert [each.agent for each in play.of(e.AttemptStarted) if each.step == "polish"] == [
            "junior",
            "junior",
            "senior",
            "senior",
        ]


class TestCascades:
    STEPS = (step("plan", phase="planning"), step("design", "plan", phase="design"), step("review", reviews="design"))

    def test_a_new_plan_is_carried_out_with_what_could_not_be_settled(self) -> None:
        work = flow(*self.STEPS, on_breach="replan", limits={"rounds_per_loop": 1})
        said: dict[str, Any] = {"plan": grows, "design": grows, "review": [failed("one"), failed("two"), passed()]}
        play = Play(work, said).run()
        assert play.outcome == "verified"
        assert [texts(each.feedback.findings) for each in play.briefings["design"]] == [[], ["one"], ["two"]]

    def test_a_request_is_told_again_as_well(self) -> None:
        play = self.reworked_between(ask("design", message="split it"), out("design split"))
        told = play.briefings["design"][-1]
        assert not told.feedback, "a fix that waits for its verification is not delivered again"
        assert [each.message for each in told.history] == ["(addressed, not verified yet) split it"]
        play.finish("design")
        assert play.briefings["code"][-1].feedback.resolutions[0].message == "split it"

    def test_an_answer_need_not_be_given_again(self) -> None:
        play = self.reworked_between(ask("design", kind=Kind.CONTEXT_REQUEST), out(answer="42"))
        assert play.briefings["design"][-1].history == ()

    def reworked_between(self, feedback: Feedback, reply: Outcome) -> Play:
        """The design does what the code asked for, and its plan changes before the code sees that."""
        work = flow(*self.STEPS[:2], step("scope", reviews="plan"), step("code", "design", phase="code"))
        play = Play(work, {"plan": grows, "design": grows}, slots=1)
        for name in ("plan", "scope", "design"):
            play.finish(name)
        play.finish("code", out(1, feedback=(feedback,)))
        play.person_raises("plan", message="smaller")
        play.finish("design", reply)
        for name in ("plan", "scope"):
            play.finish(name)
        assert play.briefings["design"][-1].mode == "work"
        return play
