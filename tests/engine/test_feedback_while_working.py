"""Feedback that an attempt raises while it runs: awaited, answered, refused, and kept when the process dies."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import Any

import pytest

from backedge import (
    Attempt,
    Briefing,
    Engine,
    Feedback,
    MemoryJournal,
    Option,
    Outcome,
    Report,
    Resolution,
    Run,
    Step,
    Workflow,
    passed,
)
from backedge.core import events as e
from backedge.errors import FeedbackRefused
from backedge.testing import Crashed, CrashingJournal, FakeClock, ScriptedAgent
from tests.engine.parts import flow, named, only, play, turns_until, until

ASK = Feedback("missing_requirement", "plan", "what about refunds?", suggested_fix="add them")
QUESTION = Feedback("context_request", "plan", "which currency?", requested_info="ISO code")


class Asks:
    """An agent that raises feedback in its first executions, waits for it and stores the results."""

    def __init__(self, feedback: Feedback, timeout: float | None = None, times: int = 1) -> None:
        self.feedback, self.timeout, self.times = feedback, timeout, times
        self.resolutions: list[Resolution] = []
        self.inputs: list[Any] = []
        self.briefings: list[Briefing] = []
        self.waiting = asyncio.Event()

    async def __call__(self, briefing: Briefing, attempt: Attempt) -> Any:
        self.briefings.append(briefing)
        if briefing.attempt > self.times:
            return "made later"
        loop = await attempt.raise_feedback(self.feedback)
        self.waiting.set()
        self.resolutions.append(await attempt.wait_for(loop, self.timeout))
        self.inputs.append(attempt.inputs)
        return f"made with {self.resolutions[-1].state}"


async def finished(workflow: Workflow, **engine: Any) -> tuple[Report, list[e.Event]]:
    async with Engine(**engine) as running:
        run = await running.start(workflow)
        return await run.result(), await run.events()


# Waiting


def test_after_waiting_for_a_rework_an_attempt_has_the_new_input() -> None:
    plan, code = ScriptedAgent("plan 1", "plan 2"), Asks(ASK)
    report, events = play(finished(flow(Step("plan", plan), Step("code", code, needs="plan"))))
    assert report.outcome == "done"
    assert code.resolutions[0].state == "resolved"
    assert code.briefings[0].inputs == {"plan": "plan 1"}
    assert code.inputs == [{"plan": "plan 2"}], "it goes on with what there is now"
    assert [(step, report.steps[step].attempts) for step in ("plan", "code")] == [("plan", 2), ("code", 1)]
    assert plan.briefings[1].mode == "rework"
    [request] = plan.briefings[1].feedback.requests
    assert (request.kind, request.source, request.message) == ("missing_requirement", "code", "what about refunds?")
    assert [loop.state for loop in report.loops] == ["resolved"]
    assert len(only(e.ResultDelivered, events)) == 1


def test_the_steps_between_run_again_before_the_waiting_attempt_continues() -> None:
    plan, design, code = ScriptedAgent("p1", "p2"), ScriptedAgent("d1", "d2"), Asks(ASK)
    report, _ = play(
        finished(flow(Step("plan", plan), Step("design", design, needs="plan"), Step("code", code, needs="design")))
    )
    assert report.outcome == "done"
    assert code.inputs == [{"design": "d2"}]
    assert {name: step.attempts for name, step in report.steps.items()} == {"plan": 2, "design": 2, "code": 1}


def test_a4_13_a_context_request_is_answered_without_redoing_the_target() -> None:
    plan = ScriptedAgent({"units": ["shop"]}, "EUR")
    code = Asks(QUESTION)
    report, events = play(finished(flow(Step("plan", plan), Step("code", code, needs="plan"))))
    assert report.outcome == "done"
    assert code.resolutions[0].answers == {"plan": "EUR"}
    assert plan.briefings[1].mode == "answer"
    assert plan.briefings[1].feedback.requests[0].requested_info == "ISO code"
    assert report.steps["plan"].output == {"units": ["shop"]}, "its artifact stays"
    assert report.steps["plan"].version == 1
    assert report.steps["code"].attempts == 1, "nothing downstream is stale"
    assert [event.answer for event in only(e.AnswerGiven, events)] == ["EUR"]


def test_an_empty_answer_is_an_error_of_the_target() -> None:
    plan = ScriptedAgent("plan", None, "EUR")
    report, events = play(
        finished(flow(Step("plan", plan), Step("code", Asks(QUESTION), needs="plan")), clock=FakeClock(auto=True))
    )
    assert report.outcome == "done"
    assert "no answer" in only(e.AttemptFailed, events)[0].error


def test_an_answer_through_the_inbox_continues_the_waiting_attempt_at_once() -> None:
    code = Asks(
        Feedback(
            "fix_request",
            "human",
            "push or polling?",
            options=[Option("push", effort="high"), Option("polling", effort="low")],
        )
    )

    async def scenario() -> None:
        async with Engine() as engine:
            run = await engine.start(flow(Step("code", code)))
            await code.waiting.wait()
            report = await run.report()
            assert report.steps["code"].state == "running"
            [packet] = report.escalations
            assert (packet.reason, packet.decided) == ("asked", None)
            await run.decide(packet.id, "resolve", option="polling", note="cheaper", by="maria")
            assert await turns_until(lambda: code.resolutions) <= 5, "no polling"
            report = await run.result()
            assert report.outcome == "done"
            assert report.steps["code"].attempts == 1

    play(scenario())
    [told] = code.resolutions
    assert (told.state, told.option, told.text, told.by) == ("resolved", "polling", "cheaper", "maria")


def test_waiting_ends_with_escalated_when_the_loop_hits_a_limit() -> None:
    code = Asks(ASK, times=99)
    clock = FakeClock(auto=True)
    report, _ = play(
        finished(flow(Step("plan", named), Step("code", code, needs="plan"), limits={"rounds_total": 0}), clock=clock)
    )
    assert code.resolutions[0].state == "escalated"
    assert "rounds_total" in code.resolutions[0].text
    assert report.loops[0].state == "escalating", "it is not refused"
    assert report.outcome == "waiting"


def test_waiting_ends_with_escalated_when_the_target_keeps_failing() -> None:
    plan = ScriptedAgent("plan", OSError("x"))
    code = Asks(ASK)
    report, _ = play(finished(flow(Step("plan", plan), Step("code", code, needs="plan")), clock=FakeClock(auto=True)))
    assert code.resolutions[0].state == "escalated"
    assert report.outcome == "waiting"
    assert [packet.step for packet in report.escalations] == ["plan"]


def test_a_person_who_does_not_respond_in_time_is_escalated_exactly_once() -> None:
    clock, code = FakeClock(), Asks(Feedback("fix_request", "human", "?"))

    async def scenario() -> list[e.Event]:
        async with Engine(clock=clock) as engine:
            run = await engine.start(flow(Step("code", code), limits={"response_timeout": 600}))
            await code.waiting.wait()
            await asyncio.sleep(0.01)
            clock.advance(599.9)
            await asyncio.sleep(0.01)
            assert not code.resolutions
            clock.advance(0.1)
            await until(lambda: code.resolutions)
            clock.advance(6000)
            await run.result()
            return await run.events()

    events = play(scenario())
    assert code.resolutions[0].state == "timeout"
    assert len(only(e.LoopOverdue, events)) == 1


def test_a_wait_can_time_out_and_the_attempt_continues() -> None:
    gate = asyncio.Event()

    async def plan(briefing: Briefing) -> str:
        if briefing.mode == "rework":
            await gate.wait()
        return f"plan {briefing.attempt}"

    code = Asks(ASK, timeout=0.03)

    async def scenario() -> Report:
        async with Engine() as engine:
            run = await engine.start(flow(Step("plan", plan), Step("code", code, needs="plan")))
            await until(lambda: code.resolutions)
            gate.set()
            return await run.result()

    report = play(scenario())
    assert code.resolutions[0].state == "timeout"
    assert report.outcome == "done"
    assert report.steps["code"].attempts == 2, "what it made without waiting is verified by doing it again"


def test_an_attempt_that_stopped_waiting_counts_as_made_from_its_old_inputs() -> None:
    """It stopped waiting, and the fix came before it had finished: its output is based on the old plan."""
    fixed = asyncio.Event()
    seen: list[Any] = []

    async def plan(briefing: Briefing) -> str:
        if briefing.mode == "rework":
            await asyncio.sleep(0.05)
            asyncio.get_running_loop().call_later(0.02, fixed.set)
        return f"plan {briefing.attempt}"

    async def code(briefing: Briefing, attempt: Attempt) -> str:
        seen.append(briefing.inputs["plan"])
        if briefing.attempt == 1:
            loop = await attempt.raise_feedback(ASK)
            assert (await attempt.wait_for(loop, timeout=0.01)).state == "timeout"
            await fixed.wait()
        return f"code from {briefing.inputs['plan']}"

    report, _ = play(finished(flow(Step("plan", plan), Step("code", code, needs="plan"))))
    assert report.outcome == "done"
    assert report.steps["code"].output == "code from plan 2"


def test_an_attempt_can_wait_only_for_feedback_of_its_own_step() -> None:
    async def nosy(briefing: Briefing, attempt: Attempt) -> str:
        await attempt.wait_for("L-1")
        return "x"

    report, events = play(finished(flow(Step("a", nosy), limits={"errors_in_a_row": 1})))
    assert "did not raise 'L-1'" in only(e.AttemptFailed, events)[0].error
    assert report.outcome == "waiting"


# Without waiting


def test_feedback_without_waiting_makes_the_output_provisional_until_the_step_reruns() -> None:
    plan = ScriptedAgent("plan 1", "plan 2")
    provisional: list[str] = []

    async def code(briefing: Briefing, attempt: Attempt) -> str:
        if briefing.attempt == 1:
            await attempt.raise_feedback(ASK)
            return "provisional"
        [told] = briefing.feedback.resolutions
        provisional.append(f"{told.kind} {told.state}")
        return f"code from {briefing.inputs['plan']}"

    last = ScriptedAgent("done")
    report, events = play(
        finished(flow(Step("plan", plan), Step("code", code, needs="plan"), Step("last", last, needs="code")))
    )
    assert report.outcome == "done"
    assert provisional == ["missing_requirement fixed"]
    assert report.steps["code"].output == "code from plan 2"
    assert report.steps["code"].attempts == 2
    assert len(last.briefings) == 1, "nobody works from what is provisional"
    assert last.briefings[0].inputs == {"code": "code from plan 2"}
    assert not only(e.WaitBegan, events)


def test_feedback_in_the_outcome_also_makes_the_output_provisional() -> None:
    def code(briefing: Briefing) -> Outcome:
        return Outcome(output=briefing.inputs["plan"], feedback=[ASK] if briefing.attempt == 1 else [])

    report, _ = play(finished(flow(Step("plan", ScriptedAgent("p1", "p2")), Step("code", code, needs="plan"))))
    assert report.outcome == "done"
    assert report.steps["code"].output == "p2"
    assert [loop.rounds for loop in report.loops] == [1]


def test_raising_the_same_again_is_the_next_round() -> None:
    def code(briefing: Briefing) -> Outcome:
        return Outcome(output=briefing.inputs["plan"], feedback=[ASK] if briefing.attempt < 4 else [])

    report, _ = play(
        finished(flow(Step("plan", lambda briefing: f"p{briefing.attempt}"), Step("code", code, needs="plan")))
    )
    assert report.outcome == "done"
    assert [(loop.state, loop.rounds) for loop in report.loops] == [("resolved", 3)]


# Refused


@pytest.mark.parametrize(
    ("feedback", "reason"),
    [
        (Feedback("fix_request", "nobody", "x"), "nobody"),
        (Feedback("fix_request", "code", "x"), "itself|self"),
        (Feedback("fix_request", "review", "x"), "judge"),
        (Feedback("fix_request", "later", "x"), "later"),
        (Feedback("fix_request", (), "x"), "target|to"),
        (Feedback("fix_request", "plan", ""), "message"),
        (Feedback("wish", "plan", "x"), "kind 'wish' is unknown"),
        (Feedback("fix_request", "plan", "x", severity="banana"), "severity 'banana' is unknown"),
        (Feedback("fix_request", "plan", "x", blocking="yes"), "blocking"),  # type: ignore[arg-type]
        (Feedback("fix_request", "plan", "x", requirement_id=5), "requirement_id"),  # type: ignore[arg-type]
        (Feedback("fix_request", "plan", "x", artifacts="spec.md"), "artifacts"),
        (Feedback("fix_request", "plan", "x", details=object()), "object"),
        (Feedback("fix_request", "plan", "x", details={"load": float("nan")}), "details has nan at /load"),
        (Feedback("fix_request", "plan", "x", details={1: 2}), "a key of an object is not text"),
        (Feedback("fix_request", "plan", "\ud800"), "surrogates"),
        (Feedback(5, "plan", "x"), "kind"),  # type: ignore[arg-type]
    ],
)
def test_refused_feedback_raises_and_a_person_is_told(feedback: Feedback, reason: str) -> None:
    caught: list[str] = []
    lengths: list[int] = []

    async def scenario() -> tuple[Report, list[e.Event]]:
        async with Engine() as engine:
            holder: list[Run] = []

            async def code(briefing: Briefing, attempt: Attempt) -> str:
                await until(lambda: holder)
                lengths.append(len(await holder[0].events()))
                try:
                    await attempt.raise_feedback(feedback)
                except FeedbackRefused as error:
                    caught.append(str(error))
                lengths.append(len(await holder[0].events()))
                return "made"

            holder.append(
                await engine.start(
                    flow(
                        Step("plan", named, phase="planning"),
                        Step("code", code, needs="plan", phase="code"),
                        Step("review", lambda briefing: passed(), reviews="code"),
                        Step("later", named, needs="code", phase="test"),
                    )
                )
            )
            return await holder[0].result(), await holder[0].events()

    report, events = play(scenario())
    # Nothing is held up, but the run ends only when a person has seen it.
    assert (report.outcome, {step.state for step in report.steps.values()}) == ("waiting", {"done"})
    assert len(caught) == 1
    assert re.search(reason, caught[0])
    assert lengths[1] - lengths[0] == 2
    assert [packet.options for packet in report.escalations] == [("continue", "cancel")]
    assert len(only(e.RefusedFeedback, events)) == 1
    assert not only(e.LoopOpened, events)
    assert [refusal.reason for refusal in report.refused] == caught


def test_invalid_feedback_is_an_error_of_the_agent() -> None:
    async def code(briefing: Briefing, attempt: Attempt) -> None:
        await attempt.raise_feedback({"kind": "fix_request"})

    _, events = play(finished(flow(Step("code", code), limits={"errors_in_a_row": 1})))
    assert only(e.AttemptFailed, events)[0].error == "TypeError: feedback is a dict: expected backedge.Feedback"


def test_an_attempt_that_is_over_cannot_raise_feedback() -> None:
    kept: list[Attempt] = []

    async def code(briefing: Briefing, attempt: Attempt) -> str:
        kept.append(attempt)
        return "made"

    async def scenario() -> None:
        async with Engine() as engine:
            run = await engine.start(flow(Step("plan", named), Step("code", code, needs="plan")))
            await run.result()
            before = len(await run.events())
            with pytest.raises(Exception, match="is not running"):
                await kept[0].raise_feedback(ASK)
            with pytest.raises(Exception, match="is not running"):
                await kept[0].wait_for("L-1")
            assert len(await run.events()) == before

    play(scenario())


# A process that dies while an attempt waits

WAITING: dict[str, tuple[Feedback, Callable[[Briefing], Any]]] = {
    "rework": (ASK, lambda briefing: f"plan {briefing.attempt}"),
    "answer": (QUESTION, lambda briefing: "EUR" if briefing.mode == "answer" else "plan"),
}


@pytest.mark.parametrize("kind", WAITING)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_rerun_gets_the_recorded_resolution_instead_of_asking_again(kind: str, when: Any) -> None:
    feedback, reply = WAITING[kind]

    async def scenario(dies_at: int) -> bool:
        """One crash; False if the run came to its end before it."""
        told: list[Resolution] = []
        plans: list[str] = []

        def plan(briefing: Briefing) -> Any:
            plans.append(briefing.mode)
            return reply(briefing)

        async def code(briefing: Briefing, attempt: Attempt) -> str:
            told.append(await attempt.wait_for(await attempt.raise_feedback(feedback)))
            return f"made, {told[-1].state}"

        work = flow(
            Step("plan", plan, idempotent=True),
            Step("code", code, needs="plan", idempotent=True),
        )
        journal = MemoryJournal()
        crashing = CrashingJournal(journal, dies_at, when)
        engine = Engine(crashing)
        try:
            await engine.__aenter__()
            run = await engine.start(work, run="r")
            await run.result()
        except (Crashed, RuntimeError):
            pass
        if not crashing.crashed:
            await engine.close()
            return False
        async with Engine(journal) as engine:
            if not await engine.runs():
                return True
            run = await engine.resume("r", work)
            report = await run.result()
            events = await run.events()
        assert report.outcome == "done"
        assert report.steps["code"].output == "made, resolved"
        assert len(only(e.LoopOpened, events)) == 1, "it asked once"
        assert [loop.state for loop in report.loops] == ["resolved"]
        assert len(only(e.AnswerGiven, events)) == (kind == "answer")
        return True

    async def everywhere() -> int:
        crashes = 0
        while await scenario(crashes + 1):
            crashes += 1
        return crashes

    assert play(everywhere()) >= 5


def test_a_waiting_attempt_lends_its_slot_to_the_step_that_it_waits_for() -> None:
    async def code(briefing: Briefing, attempt: Attempt) -> str:
        if briefing.attempt == 1:
            await attempt.wait_for(await attempt.raise_feedback(ASK))
        return "code"

    async def scenario() -> Report:
        async with Engine(max_parallel=1) as engine:
            work = flow(Step("plan", lambda b: f"plan {b.attempt}"), Step("code", code, needs="plan"))
            return await asyncio.wait_for((await engine.start(work)).result(), 10)

    assert play(scenario()).outcome == "done"
