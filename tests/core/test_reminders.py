"""A step is reminded of feedback that it addressed and that is not verified yet, whatever it is executed for."""

from __future__ import annotations

from typing import Any

from backedge.core import events as e
from backedge.core.model import FindingResolution
from backedge.core.wording import feedback_text
from backedge.core.workflow.definition import Repeat
from tests.core.play import Feedback, Kind, Outcome, Play, Reply, ask, failed, flow, grows, out, passed, step, texts


def scores(*values: int) -> list[Reply]:
    return [out({"score": value}) for value in values]


POLISH = step("polish", repeat=Repeat(("polish:/score >= 90",), 3), agents=("junior", "senior"))


class TestRepetitions:
    def test_a_repetition_after_a_rework_is_reminded_of_the_findings(self) -> None:
        scripts: dict[str, Any] = {"polish": scores(95, 10, 96), "review": [failed("too slow"), passed()]}
        play = Play(flow(POLISH, step("review", reviews="polish")), scripts).run()
        assert play.outcome == "verified"
        assert [(each.mode, each.round, texts(each.feedback.findings)) for each in play.briefings["polish"]] == [
            ("work", 0, []),
            ("rework", 1, ["too slow"]),
            ("work", 0, []),
        ]
        (reminder,) = play.briefings["polish"][2].history
        assert (reminder.loop, reminder.round) == ("L-1", 1)
        assert reminder.findings == ("F-1 (addressed, not verified yet): too slow",)
        told = feedback_text(play.briefings["polish"][2])
        assert "### Addressed by your earlier attempts and not verified yet: " in told and "[high] too slow" in told
        assert (play.s.rounds, play.loop().round) == (1, 1), "no round of its own"

    def test_a_repetition_may_report_resolutions(self) -> None:
        claimed = out({"score": 96}, resolutions=(FindingResolution("F-1", "fixed", "with a cache"),))
        scripts: dict[str, Any] = {"polish": [*scores(95, 10), claimed], "review": [failed("too slow"), passed()]}
        play = Play(flow(POLISH, step("review", reviews="polish")), scripts).run()
        assert play.briefings["review"][1].verify[0].claim == "fixed: with a cache"

    def test_a_repetition_uses_the_agent_of_the_round(self) -> None:
        scripts: dict[str, Any] = {"polish": scores(95, 96, 10, 97), "review": [failed("x"), failed("y"), passed()]}
        play = Play(flow(POLISH, step("review", reviews="polish")), scripts).run()
        assert [each.agent for each in play.of(e.AttemptStarted) if each.step == "polish"] == [
            "junior",
            "junior",
            "senior",
            "senior",
        ]


class TestCascades:
    STEPS = (step("plan", phase="planning"), step("design", "plan", phase="design"), step("review", reviews="design"))

    def test_a_replanned_step_still_gets_the_unresolved_findings(self) -> None:
        work = flow(*self.STEPS, on_breach="replan", limits={"rounds_per_loop": 1})
        scripts: dict[str, Any] = {"plan": grows, "design": grows, "review": [failed("one"), failed("two"), passed()]}
        play = Play(work, scripts).run()
        assert play.outcome == "verified"
        assert [texts(each.feedback.findings) for each in play.briefings["design"]] == [[], ["one"], ["two"]]

    def test_the_step_is_reminded_of_a_request_too(self) -> None:
        play = self.reworked_between(ask("design", message="split it"), out("design split"))
        briefing = play.briefings["design"][-1]
        assert not briefing.feedback, "a fix that waits for its verification is not delivered again"
        assert [each.message for each in briefing.history] == ["(addressed, not verified yet) split it"]
        assert "Done by your earlier attempts and not verified yet: " in feedback_text(briefing)
        play.finish("design")
        assert play.briefings["code"][-1].feedback.resolutions[0].message == "split it"

    def test_the_step_is_not_reminded_of_an_answered_question(self) -> None:
        play = self.reworked_between(ask("design", kind=Kind.CONTEXT_REQUEST), out(answer="42"))
        assert play.briefings["design"][-1].history == ()

    def reworked_between(self, feedback: Feedback, reply: Outcome) -> Play:
        """The design does what the code asked for, and the plan changes before the code verifies it."""
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
