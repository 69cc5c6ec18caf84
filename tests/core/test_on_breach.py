"""on_breach: what happens without asking."""

from __future__ import annotations

from typing import Any

from backedge.core import events as e
from backedge.core.model import HUMAN
from tests.core.play import Play, Reply, ask, failed, flow, grows, passed, step

WORK = (
    step("plan", phase="planning"),
    step("design", "plan", phase="design"),
    step("review", reviews="design"),
    step("code", "design", phase="code"),
)


def stuck(*replies: Reply, **more: Any) -> Play:
    """A review whose loop was stopped after its first round."""
    limits = more.pop("limits", {"rounds_per_loop": 1})
    said = list(replies) or [failed("x"), failed("y"), passed()]
    return Play(flow(*WORK, limits=limits, **more), {"plan": grows, "design": grows, "review": said}).run()


class TestPolicies:
    """on_breach: what happens without asking."""

    def test_error_fails_the_run(self) -> None:
        play = stuck(on_breach="error")
        assert play.outcome == "failed"
        assert play.of(e.RunEnded)[0].reason == "limit rounds_per_loop (1/1)"
        assert play.s.escalations == {}

    def test_skip_passes_over_the_source(self) -> None:
        play = stuck(on_breach="skip")
        assert (play.outcome, play.attempts()["code"]) == ("accepted", 1)

    def test_skip_passes_over_a_step_that_breaks(self) -> None:
        play = Play(flow(step("a"), step("b", "a"), on_breach="skip"), {"a": [Exception("x")]}).run()
        assert (play.outcome, play.attempts()) == ("accepted", {"a": 3, "b": 1})

    def test_a_used_up_budget_cannot_be_skipped(self) -> None:
        play = Play(flow(step("a"), step("b", "a"), limits={"attempts": 1}, on_breach="skip")).run()
        assert (play.outcome, play.breach()) == ("waiting", "attempts")

    def test_a_question_is_not_a_breach(self) -> None:
        play = Play(flow(step("a"), on_breach="error")).raises("a", ask(HUMAN))
        play.finish("a")
        assert play.outcome == "waiting"

    def test_an_error_while_the_agents_of_others_run_ends_the_run_at_once(self) -> None:
        work = flow(step("a"), step("b"), on_breach="error", limits={"errors_in_a_row": 1})
        play = Play(work)
        play.finish("a", Exception("x"))
        assert play.outcome == "failed"
        play.finish("b")
        assert play.of(e.AttemptDropped)[0].reason == "interrupted"
