"""`on_breach`: what happens to a breach without asking a person."""

from __future__ import annotations

from typing import Any

from backedge.core import events as e
from backedge.core.model import HUMAN
from tests.core.play import Play, Reply, ask, failed, flow, grows, out, passed, step

WORK = (
    step("plan", phase="planning"),
    step("design", "plan", phase="design"),
    step("review", reviews="design"),
    step("code", "design", phase="code"),
)


def stuck(*replies: Reply, **more: Any) -> Play:
    """A review whose loop was stopped after its first round."""
    limits = more.pop("limits", {"rounds_per_loop": 1})
    reviews = list(replies) or [failed("x"), failed("y"), passed()]
    return Play(flow(*WORK, limits=limits, **more), {"plan": grows, "design": grows, "review": reviews}).run()


class TestPolicies:
    def test_error_fails_the_run(self) -> None:
        play = stuck(on_breach="error")
        assert play.outcome == "failed"
        assert play.of(e.RunEnded)[0].reason == "limit rounds_per_loop (1/1)"
        assert play.s.escalations == {}

    def test_skip_skips_the_source(self) -> None:
        play = stuck(on_breach="skip")
        assert (play.outcome, play.attempts()["code"]) == ("accepted", 1)

    def test_skip_skips_a_failing_step(self) -> None:
        play = Play(flow(step("a"), step("b", "a"), on_breach="skip"), {"a": [Exception("x")]}).run()
        assert (play.outcome, play.attempts()) == ("accepted", {"a": 3, "b": 1})

    def test_a_used_up_budget_cannot_be_skipped(self) -> None:
        play = Play(flow(step("a"), step("b", "a"), limits={"attempts": 1}, on_breach="skip")).run()
        assert (play.outcome, play.breach()) == ("waiting", "attempts")

    def test_a_question_is_not_a_breach(self) -> None:
        play = Play(flow(step("a"), on_breach="error")).raises("a", ask(HUMAN))
        play.finish("a")
        assert play.outcome == "waiting"

    def test_error_ends_the_run_at_once_even_if_other_agents_are_running(self) -> None:
        work = flow(step("a"), step("b"), on_breach="error", limits={"errors_in_a_row": 1})
        play = Play(work)
        play.finish("a", Exception("x"))
        assert play.outcome == "failed"
        play.finish("b")
        assert play.of(e.AttemptDropped)[0].reason == "interrupted"


class TestReplan:
    """`on_breach: replan` asks the planner once per run."""

    def test_what_a_loop_could_not_resolve_goes_to_the_planner(self) -> None:
        play = stuck(failed("x"), failed("y"), passed(), on_breach="replan")
        assert play.outcome == "verified"
        assert [(loop.id, loop.state, loop.routed_by, loop.caused_by) for loop in play.s.closed_loops.values()] == [
            ("L-1", "resolved", "subject", None),
            ("L-2", "resolved", "replan", "L-1"),
        ]
        request = play.briefings["plan"][1].feedback.requests[0]
        assert (request.kind, request.source) == ("architecture_issue", "review")
        assert (
            request.message == "L-1 (review_rejection of review) could not be resolved, limit rounds_per_loop (1/1): y"
        )
        # The cascade follows: a new plan, a new design, a new verdict.
        assert play.attempts() == {"plan": 2, "design": 3, "review": 3, "code": 1}

    def test_the_second_time_a_person_is_asked(self) -> None:
        play = stuck(failed("x"), failed("y"), failed("z"), passed(), on_breach="replan")
        assert (play.outcome, play.breach()) == ("waiting", "rounds_per_loop")
        assert play.s.rounds == 2
        assert play.decide("accept").run().outcome == "accepted"

    def test_the_nearest_planning_step_is_the_planner(self) -> None:
        work = (step("first"), step("plan", "first", phase="planning"), *WORK[1:])
        limits = {"rounds_per_loop": 1}
        replies = [failed("x"), failed("y"), passed()]
        play = Play(flow(*work, limits=limits, on_breach="replan"), {"review": replies}).run()
        assert play.attempts()["plan"] == 2

    def test_without_a_planning_step_the_root_is_the_planner(self) -> None:
        steps = (step("a"), step("b", "a"), step("review", reviews="b"))
        reviews = [failed("x"), failed("y"), passed()]
        work = flow(*steps, limits={"rounds_per_loop": 1}, on_breach="replan")
        play = Play(work, {"a": grows, "b": grows, "review": reviews}).run()
        assert (play.attempts(), play.outcome) == ({"a": 2, "b": 3, "review": 3}, "verified")

    def test_a_raised_loop_is_still_verified_by_its_source(self) -> None:
        raised = iter([True, True])

        def code(play: Play, name: str) -> Reply:
            return out(play.now, feedback=(ask("design", message="no login"),) if next(raised, False) else ())

        work = flow(*WORK, limits={"rounds_per_loop": 1}, on_breach="replan")
        play = Play(work, {"plan": grows, "design": grows, "code": code}).run()
        assert (play.outcome, [loop.state for loop in play.s.closed_loops.values()]) == (
            "verified",
            ["resolved", "resolved"],
        )
        assert play.briefings["plan"][1].feedback.requests[0].message.endswith("no login")

    def test_a_run_without_rounds_left_is_not_replanned(self) -> None:
        play = stuck(limits={"rounds_total": 1}, on_breach="replan")
        assert (play.outcome, play.breach(), play.opened()) == ("waiting", "rounds_total", 1)

    def test_without_a_loop_a_person_is_asked(self) -> None:
        play = Play(flow(step("a"), step("b", "a"), on_breach="replan"), {"a": [Exception("x")]}).run()
        assert (play.outcome, play.breach()) == ("waiting", "errors_in_a_row")

    def test_a_planner_is_not_sent_its_own_loop(self) -> None:
        work = flow(step("a"), step("b", "a"), limits={"rounds_per_loop": 0}, on_breach="replan", scope="any")
        play = Play(work).raises("a", ask("b")).run()
        assert (play.outcome, play.breach()) == ("waiting", "rounds_per_loop")

    def test_human_feedback_goes_to_a_person_and_not_to_the_planner(self) -> None:
        play = Play(flow(*WORK, limits={"rounds_per_loop": 0}, on_breach="replan")).run()
        play.person_raises("design").run()
        assert (play.outcome, play.breach()) == ("waiting", "rounds_per_loop")
