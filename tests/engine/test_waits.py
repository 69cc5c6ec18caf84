"""Several waits in one attempt, cancelled waits, and the attempt object of a plain function."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

import pytest

from backedge import Attempt, Briefing, Engine, Feedback, Finding, Report, Resolution, Step, Workflow, failed, passed
from backedge.core import events as e
from backedge.testing import ScriptedAgent
from tests.engine.parts import flow, only, play, until

ASK = Feedback("missing_requirement", "plan", "what about refunds?", suggested_fix="add them")
CURRENCY = Feedback("context_request", "plan", "which currency?", requested_info="ISO code")
COUNTRY = Feedback("context_request", "plan", "which country?", requested_info="ISO code")
PERSON = Feedback("fix_request", "human", "push or polling?")


def plan(briefing: Briefing) -> str:
    if briefing.mode == "answer":
        return "; ".join(request.message for request in briefing.feedback.requests)
    return f"plan {briefing.attempt}"


async def finished(workflow: Workflow, **engine: Any) -> tuple[Report, list[e.Event]]:
    async with Engine(**engine) as running:
        run = await running.start(workflow)
        return await run.result(), await run.events()


async def asked(attempt: Attempt, feedback: Feedback, timeout: float | None = None) -> Resolution:
    return await attempt.wait_for(await attempt.raise_feedback(feedback), timeout)


# Several at once


@pytest.mark.parametrize("slots", [1, 2, 256])
def test_two_questions_at_once_are_both_answered(slots: int) -> None:
    told: list[Resolution] = []

    async def code(briefing: Briefing, attempt: Attempt) -> str:
        told.extend(await asyncio.gather(asked(attempt, CURRENCY), asked(attempt, COUNTRY)))
        return "made"

    report, events = play(
        finished(flow(Step("plan", plan), Step("code", code, needs="plan")), max_parallel=slots), patience=5
    )
    assert report.outcome == "done"
    assert ["currency" in told[0].answers["plan"], "country" in told[1].answers["plan"]] == [True, True]
    assert report.steps["code"].attempts == 1
    assert {event.loop for event in only(e.WaitBegan, events)} == {"L-1", "L-2"}


def test_a_question_and_a_rework_at_once() -> None:
    seen: list[Any] = []

    async def code(briefing: Briefing, attempt: Attempt) -> str:
        one, two = await asyncio.gather(asked(attempt, ASK), asked(attempt, CURRENCY))
        seen.append((one.state, two.state, attempt.inputs["plan"]))
        return f"from {attempt.inputs['plan']}"

    report, _ = play(finished(flow(Step("plan", plan), Step("code", code, needs="plan"))), patience=5)
    assert report.outcome == "done"
    [(one, two, _)] = seen
    assert (one, two) == ("resolved", "resolved")
    assert report.steps["code"].attempts == 1


def test_the_first_answer_does_not_wait_for_the_other() -> None:
    order: list[str] = []

    async def code(briefing: Briefing, attempt: Attempt) -> str:
        async def ask(name: str, feedback: Feedback) -> None:
            await asked(attempt, feedback)
            order.append(name)

        await asyncio.gather(ask("person", PERSON), ask("plan", CURRENCY))
        return "made"

    async def scenario() -> Report:
        async with Engine() as engine:
            run = await engine.start(flow(Step("plan", plan), Step("code", code, needs="plan")))
            await until(lambda: order)
            [packet] = (await run.report()).escalations
            await run.decide(packet.id, "resolve", note="push")
            return await run.result()

    assert play(scenario(), patience=5).outcome == "done"
    assert order == ["plan", "person"]


def test_two_waits_for_the_same_answer_both_get_it_and_one_may_give_up() -> None:
    states: list[str] = []
    gate = asyncio.Event()

    async def slow(briefing: Briefing) -> str:
        if briefing.mode == "answer":
            await gate.wait()
        return plan(briefing)

    async def code(briefing: Briefing, attempt: Attempt) -> str:
        loop = await attempt.raise_feedback(CURRENCY)
        patient = asyncio.create_task(attempt.wait_for(loop))
        states.append((await attempt.wait_for(loop, timeout=0.02)).state)
        gate.set()
        states.append((await patient).state)
        return "made"

    report, _ = play(finished(flow(Step("plan", slow), Step("code", code, needs="plan"))), patience=5)
    assert report.outcome == "done"
    assert states == ["timeout", "resolved"]


def test_the_slot_of_an_attempt_is_lent_once_however_often_it_waits() -> None:
    most = 0
    running = 0

    async def work(briefing: Briefing) -> str:
        nonlocal most, running
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.005)
        running -= 1
        return plan(briefing)

    async def code(briefing: Briefing, attempt: Attempt) -> str:
        await asyncio.gather(*(asked(attempt, each) for each in (CURRENCY, COUNTRY, ASK)))
        return await work(briefing)

    async def scenario() -> None:
        async with Engine(max_parallel=1) as engine:
            work_flow = flow(
                Step("plan", work), Step("code", code, needs="plan"), *(Step(f"x{n}", work) for n in range(6))
            )
            run = await engine.start(work_flow)
            assert (await run.result()).outcome == "done"
            assert engine._inner.slots.taken == 0

    play(scenario(), patience=10)
    assert most <= 2, "only an attempt that goes on after a wait may be one too many"


# Giving up


@pytest.mark.parametrize("way", ["wait_for", "cancel"])
def test_a_cancelled_wait_is_recorded_and_the_attempt_counts_as_working(way: str) -> None:
    async def code(briefing: Briefing, attempt: Attempt) -> str:
        if briefing.attempt > 1:
            return f"from {briefing.inputs['plan']}"
        waiting = attempt.wait_for(await attempt.raise_feedback(ASK))
        if way == "wait_for":
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(waiting, 0.02)
        else:
            task = asyncio.create_task(waiting)
            await asyncio.sleep(0.02)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
        gate.set()
        return f"from {briefing.inputs['plan']}"

    async def slow(briefing: Briefing) -> str:
        if briefing.mode == "rework":
            await gate.wait()
        return plan(briefing)

    gate = asyncio.Event()
    report, events = play(finished(flow(Step("plan", slow), Step("code", code, needs="plan"))), patience=5)
    assert [event.loop for event in only(e.WaitEnded, events)] == ["L-1"]
    assert report.outcome == "done"
    assert report.steps["code"].output == "from plan 2", "what it made without the answer is made again"


# What can be an agent


class Maker:
    """An object that can be called."""

    async def __call__(self, briefing: Briefing, attempt: Attempt) -> str:
        return f"{briefing.step} by an object, {type(attempt).__name__}"


class PlainMaker:
    def __call__(self, briefing: Briefing) -> str:
        return f"{briefing.step} by a plain object"


async def prefixed(prefix: str, briefing: Briefing) -> str:
    return f"{prefix} {briefing.step}"


def plain_prefixed(prefix: str, briefing: Briefing, *, suffix: str = "") -> str:
    return f"{prefix} {briefing.step}{suffix}"


AGENTS = [
    (functools.partial(prefixed, "made"), "made a"),
    (functools.partial(plain_prefixed, "made", suffix="!"), "made a!"),
    (functools.partial(functools.partial(prefixed), "made"), "made a"),
    (Maker(), "a by an object, LiveAttempt"),
    (PlainMaker(), "a by a plain object"),
    (functools.partial(Maker()), "a by an object, LiveAttempt"),
    (lambda briefing: prefixed("awaited", briefing), "awaited a"),
]


@pytest.mark.parametrize(("agent", "output"), AGENTS, ids=lambda each: each if isinstance(each, str) else "")
def test_every_callable_can_be_an_agent(agent: Any, output: str) -> None:
    report, _ = play(finished(flow(Step("a", agent))), patience=5)
    assert report.steps["a"].output == output


@pytest.mark.parametrize(
    ("label", "said"), [("Planning", "planning"), ("planning", "PLANNING"), ("Plan A", " plan a ")]
)
def test_the_case_of_a_phase_does_not_matter(label: str, said: str) -> None:
    review = ScriptedAgent(failed(Finding("no login", affected_phase=said)), passed())
    report, events = play(
        finished(
            flow(
                Step("a", plan, phase=label),
                Step("b", plan, needs="a", phase="Zzz"),
                Step("review", review, reviews="b"),
                phases=[label, "Zzz"],
            )
        ),
        patience=5,
    )
    assert report.outcome == "verified"
    assert report.steps["a"].attempts == 2, "it went to the phase that the judge means"
    assert not only(e.AttemptFailed, events)


# Plain functions


def test_a_plain_function_sees_the_newer_inputs_after_a_wait() -> None:
    seen: list[Any] = []

    def code(briefing: Briefing, attempt: Any) -> str:
        seen.append(attempt.inputs["plan"])
        attempt.wait_for(attempt.raise_feedback(ASK))
        seen.append(attempt.inputs["plan"])
        return f"from {attempt.inputs['plan']}"

    report, _ = play(finished(flow(Step("plan", plan), Step("code", code, needs="plan"))), patience=5)
    assert seen == ["plan 1", "plan 2"]
    assert (report.steps["code"].output, report.steps["code"].attempts) == ("from plan 2", 1)


def test_both_kinds_of_attempt_have_the_same_surface() -> None:
    from backedge.adapters.agents.function import Blocking
    from backedge.engine.attempts.live_attempt import LiveAttempt

    def surface(kind: type) -> set[str]:
        return {name for name in dir(kind) if not name.startswith("_")}

    assert surface(Blocking) == surface(LiveAttempt) == surface(Attempt)
    assert surface(Attempt) == {"inputs", "raise_feedback", "spend", "wait_for"}


@pytest.mark.parametrize("call", ["raise_feedback", "wait_for"])
def test_blocking_calls_on_the_event_loop_are_an_error_and_not_a_deadlock(call: str) -> None:
    async def inside(briefing: Briefing, attempt: Any) -> str:
        if call == "raise_feedback":
            attempt.raise_feedback(ASK)
        else:
            attempt.wait_for("L-1")
        return "made"

    def outside(briefing: Briefing, attempt: Any) -> Any:
        return inside(briefing, attempt)

    _, events = play(
        finished(flow(Step("plan", plan), Step("a", outside, needs="plan"), limits={"errors_in_a_row": 1})), patience=5
    )
    [failure] = only(e.AttemptFailed, events)
    assert f"{call} was called on the thread of the event loop" in failure.error
    assert "async def" in failure.error
