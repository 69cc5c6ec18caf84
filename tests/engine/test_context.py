"""The context bus: a run as one tree, read by path, followed by pattern, with your own values. The A0 cases use it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from backedge import Briefing, Engine, Feedback, Option, Outcome, Run, Step, Workflow
from backedge.analytics.loop_stats import loop_stats
from backedge.errors import IllegalCommand, NotFound
from tests.engine.parts import named, play

CONSTRAINT = Feedback(
    "fix_request",
    ["architect", "pm"],
    "no WebSockets here",
    details={"requirement_id": "REQ-123"},
    options=[],
)


def team(*feedback: Feedback, **more: Any) -> Workflow:
    """A developer that raises feedback in its first attempt and accepts the result."""

    async def develop(briefing: Briefing) -> Outcome:
        return Outcome("done", feedback=list(feedback) if briefing.attempt == 1 else [])

    steps = [Step("architect", named), Step("pm", named), Step("developer", develop, needs=["architect", "pm"])]
    return Workflow("team", steps, **more)


async def with_run(workflow: Workflow, scenario: Callable[[Run], Awaitable[Any]], journal: Any = None) -> Any:
    async with Engine(journal) as engine:
        run = await engine.start(workflow, run="r")
        await run.result()
        return await scenario(run)


def on(scenario: Callable[[Run], Awaitable[Any]], *feedback: Feedback, **more: Any) -> Any:
    return play(with_run(team(*feedback, **more), scenario))


def test_a_tree_without_feedback_has_empty_inboxes_and_no_loops() -> None:
    tree = on(lambda run: run.context.get())
    assert tree["agent_contexts"]["architect"] == {
        "status": "done",
        "output": {"made by": "architect"},
        "feedback_received": [],
    }
    assert (tree["feedback_loops"], tree["values"]) == ({}, {})
    assert tree["workflow_state"] == {"outcome": "done", "paused": False, "pause_reason": "", "paused_by": []}


def test_a0_01_and_04_each_target_has_one_complete_notice() -> None:
    async def look(run: Run) -> tuple[Any, Any]:
        bus = run.context
        return await bus.get("agent_contexts.architect.feedback_received"), await bus.get("agent_contexts.pm")

    (notice,), pm = on(look, CONSTRAINT)
    assert (notice["loop_id"], notice["from_agent"], notice["message"]) == ("L-1", "developer", "no WebSockets here")
    assert (notice["type"], notice["severity"], notice["details"]) == (
        "fix_request",
        "high",
        {"requirement_id": "REQ-123"},
    )
    assert len(pm["feedback_received"]) == 1


def test_a0_02_refused_feedback_is_in_no_inbox() -> None:
    tree = on(lambda run: run.context.get(), Feedback("fix_request", [], "whom?"), Feedback("fix_request", "pm", ""))
    assert tree["feedback_loops"] == {} and tree["agent_contexts"]["pm"]["feedback_received"] == []


def test_a0_03_a_single_target_may_be_a_plain_word() -> None:
    tree = on(lambda run: run.context.get(), Feedback("fix_request", "pm", "which?"))
    assert tree["feedback_loops"]["L-1"]["targets"] == ("pm",)
    assert len(tree["agent_contexts"]["pm"]["feedback_received"]) == 1
    assert tree["agent_contexts"]["architect"]["feedback_received"] == []


def test_a0_05_without_a_severity_it_is_high() -> None:
    tree = on(lambda run: run.context.get(), Feedback("fix_request", "pm", "which?"))
    assert tree["feedback_loops"]["L-1"]["severity"] == "high"
    assert tree["agent_contexts"]["pm"]["feedback_received"][0]["severity"] == "high"


def test_a0_06_a_blocking_loop_pauses_with_a_reason() -> None:
    stop = Feedback("constraint_violation", "human", "which hosting?", blocking=True, options=[Option("polling")])

    async def look(run: Run) -> Any:
        return await run.context.get("workflow_state")

    told = on(look, stop)
    assert (told["paused"], told["paused_by"]) == (True, ["L-1"])
    assert told["pause_reason"] == "L-1 constraint_violation of developer"


def test_a_manual_pause_names_the_person() -> None:
    async def look(run: Run) -> Any:
        await run.raise_feedback(Feedback("context_request", "human", "shall we?"), source="developer")
        await run.pause(by="ann")
        return await run.context.get("workflow_state.pause_reason")

    assert on(look) == "paused by ann"


def test_a0_08_and_12_a_resolved_loop_marks_its_notices() -> None:
    async def look(run: Run) -> tuple[Any, Any]:
        bus = run.context
        return await bus.get("feedback_loops.L-1.state"), await bus.get(
            "agent_contexts.pm.feedback_received.0.resolved"
        )

    assert on(look, CONSTRAINT) == ("resolved", True)


def test_a0_11_a_manual_resolution_of_an_escalated_loop_keeps_reason_and_count() -> None:
    async def look(run: Run) -> tuple[Any, Any]:
        before = await run.context.get("feedback_loops.L-1")
        await run.decide("E-1", "resolve", note="done by hand", by="ann")
        await run.result()
        return before, await run.context.get("feedback_loops.L-1")

    before, after = on(look, CONSTRAINT, limits={"rounds_per_loop": 0})
    assert (before["state"], before["breach"]["limit"]) == ("escalating", "rounds_per_loop")
    assert (after["state"], after["breach"], after["rounds"]) == ("resolved", before["breach"], before["rounds"])
    assert (after["resolution"]["by"], after["resolution"]["text"]) == ("ann", "done by hand")


def test_a0_14_an_acknowledgement_marks_only_the_notice_of_its_target() -> None:
    async def look(run: Run) -> tuple[Any, Any, Any]:
        await run.raise_feedback(Feedback("context_request", "human", "shall we?"), source="developer")
        await run.pause()
        loop = await run.raise_feedback(Feedback("fix_request", ["pm", "architect"], "which?"))
        await run.acknowledge(loop, "pm", message="on it", action="a redesign", eta="2h")
        with pytest.raises(IllegalCommand, match="'developer' is not a target of L-2"):
            await run.acknowledge(loop, "developer")
        bus = run.context
        return (
            await bus.get("feedback_loops.L-2.state"),
            await bus.get("agent_contexts.pm.feedback_received.0.acknowledged"),
            await bus.get("agent_contexts.architect.feedback_received.0.acknowledged"),
        )

    assert on(look) == ("resolving", True, False)


def test_a0_14_the_answer_of_a_target_is_stored_with_its_notice_and_the_loop() -> None:
    said = {"message": "on it", "action": "look it up", "eta": "2h"}

    async def look(run: Run) -> tuple[Any, Any]:
        await run.acknowledge("L-1", "human", **said)
        bus = run.context
        return await bus.get("agent_contexts.human.feedback_received.0"), await bus.get("feedback_loops.L-1")

    notice, loop = on(look, Feedback("context_request", "human", "shall we?"))
    assert (notice["acknowledged"], notice["response"], notice["resolution"]) == (True, said, None)
    assert (loop["state"], loop["responses"]) == ("resolving", {"human": said})


def test_a0_08_notices_are_marked_resolved_with_the_resolution() -> None:
    async def look(run: Run) -> tuple[Any, Any]:
        await run.decide("E-1", "resolve", note="yes", by="ann")
        await run.result()
        notice = await run.context.get("agent_contexts.human.feedback_received.0")
        return notice, (await run.context.read("human"), await run.context.read("human"))

    notice, (first, second) = on(look, Feedback("context_request", "human", "shall we?"))
    assert (notice["resolved"], notice["resolution"]["text"], notice["resolution"]["by"]) == (True, "yes", "ann")
    assert (first, second) == ([notice], [])


@pytest.mark.parametrize(("bound", "state"), [(1, "escalating"), (3, "resolved")])
def test_a0_15_a_rejected_fix_is_reworked_or_escalates(bound: int, state: str) -> None:
    async def develop(briefing: Briefing) -> Outcome:
        return Outcome("done", feedback=[CONSTRAINT] if briefing.attempt < 3 else [])

    steps = [Step("architect", named), Step("pm", named), Step("developer", develop, needs=["architect", "pm"])]
    work = Workflow("team", steps, limits={"rounds_per_loop": bound})
    loop = play(with_run(work, lambda run: run.context.get("feedback_loops.L-1")))
    assert (loop["state"], loop["rounds"]) == (state, min(bound, 2))


def test_a0_16_the_loops_of_the_bus_are_those_that_statistics_count() -> None:
    low, asked = Feedback("fix_request", "pm", "a", severity="low"), Feedback("context_request", "human", "b")

    async def look(run: Run) -> tuple[Any, Any]:
        return await run.context.get("feedback_loops"), loop_stats([await run.state()])

    loops, counts = on(look, CONSTRAINT, low, asked)
    assert (counts.total, counts.active, counts.resolved, counts.escalations) == (3, 3, 0, 1)
    assert counts.by_kind == {"context_request": 1, "fix_request": 2}
    assert sorted(loop["severity"] for loop in loops.values()) == ["high", "high", "low"]
    assert counts.by_severity == {"high": 2, "low": 1}


def test_reading_clears_the_inbox_once_and_keeps_the_audit() -> None:
    async def look(run: Run) -> tuple[Any, ...]:
        first, second = await run.context.read("pm"), await run.context.read("pm")
        return (
            len(first),
            second,
            len(await run.context.get("agent_contexts.architect.feedback_received")),
            len(await run.notices("pm")),
        )

    assert on(look, CONSTRAINT) == (1, [], 1, 1)


def test_values_checkpoint_and_restore() -> None:
    async def look(run: Run) -> tuple[Any, ...]:
        bus = run.context
        await bus.set("review.depth", 2, by="ann")
        await bus.checkpoint("before")
        await bus.set("values.review.depth", 3)
        changed = await bus.get("values.review.depth")
        await bus.restore("before")
        return changed, await bus.get("values.review")

    assert on(look) == (3, {"depth": 2})


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("agent_context.pm", "did you mean 'agent_contexts'"),
        ("agent_contexts.architec.status", "did you mean 'architect'"),
        ("values.x", "it is empty"),
        ("agent_contexts.pm.status.x", 'the path ends at "done"'),
        ("agent_contexts.pm.feedback_received.3", "no value at '3'"),
    ],
)
def test_a_missing_path_is_an_error_that_lists_what_exists(path: str, said: str) -> None:
    with pytest.raises(NotFound, match=said):
        on(lambda run: run.context.get(path))


def test_values_that_cannot_be_stored_are_refused() -> None:
    with pytest.raises(IllegalCommand, match="is not JSON"):
        on(lambda run: run.context.set("x", object()))
    with pytest.raises(IllegalCommand, match="at most 65,536"):
        on(lambda run: run.context.set("x", "x" * 70_000))


def test_a_wildcard_in_the_middle_of_a_path_follows_every_step() -> None:
    seen: list[tuple[str, Any, Any]] = []

    async def scenario() -> None:
        async with Engine() as engine:
            gate = asyncio.Event()

            async def wait(briefing: Briefing) -> str:
                await gate.wait()
                return briefing.step

            steps = [Step("first.part", wait), Step("second", named, needs="first.part")]
            run = await engine.start(Workflow("w", steps), run="r")
            end = await run.context.subscribe(
                "agent_contexts.*.status", lambda new, old, path: seen.append((path, old, new))
            )
            gate.set()
            await run.result()
            await run.context.set("x", 1)
            end()
            end()
            await run.context.set("x", 2)

    play(scenario())
    assert seen == [
        ("agent_contexts.first.part.status", "running", "done"),
        ("agent_contexts.second.status", "waiting", "running"),
        ("agent_contexts.second.status", "running", "done"),
    ]


def test_a_subscriber_gets_new_loops_and_values(tmp_path: Path) -> None:
    seen: list[tuple[Any, Any, str]] = []

    async def scenario() -> None:
        async with Engine(tmp_path / "journal.db") as engine:
            run = await engine.start(team(), run="r")
            await run.result()
            both = [
                await run.context.subscribe("feedback_loops.*.state", lambda *said: seen.append(said)),
                await run.context.subscribe("values.x", lambda *said: seen.append(said)),
            ]
            await run.context.set("x", 1)
            await run.raise_feedback(Feedback("context_request", "human", "shall we?"), source="developer")
            await asyncio.sleep(0.3)
            for end in both:
                end()

    play(scenario())
    assert (1, None, "values.x") in seen
    assert ("notifying", None, "feedback_loops.L-1.state") in seen


def test_a0_17_the_tree_is_the_same_after_a_reload(tmp_path: Path) -> None:
    journal = tmp_path / "journal.db"

    async def look(run: Run) -> Any:
        await run.context.set("note", {"a": 1})
        return await run.context.get()

    async def again() -> Any:
        async with Engine(journal) as engine:
            return await (await engine.find("r")).context.get()

    assert play(with_run(team(CONSTRAINT), look, journal)) == play(again())


def test_the_outcome_of_a_run_that_nobody_helps_is_running_and_then_done() -> None:
    """Between two events of one decision, nothing runs for a moment: that is not waiting for a person."""
    seen: list[Any] = []

    async def ask(briefing: Briefing) -> Outcome:
        return Outcome("done", feedback=[CONSTRAINT] if briefing.attempt == 1 else [])

    steps = [Step("architect", named), Step("pm", named), Step("developer", ask, needs=["architect", "pm"])]

    async def go() -> None:
        async with Engine() as engine:
            engine.allow(0)
            run = await engine.start(Workflow("team", steps))
            await run.context.subscribe("workflow_state.outcome", lambda new, old, path: seen.append((old, new)))
            engine.allow(None)
            await run.result()
            await asyncio.sleep(0.1)

    play(go())
    assert seen == [("running", "done")]
