"""Conditions, repetitions and groups with functions as agents."""

from __future__ import annotations

from typing import Any

import pytest

from backedge import Engine, Report, Step
from backedge.core import events as e
from backedge.core.state.evolve import replay
from backedge.engine.codec import LONGEST_VALUE
from backedge.errors import WorkflowError
from tests.engine.parts import flow, named, only, play


async def result(*steps: Step, **more: Any) -> tuple[Report, list[e.Event]]:
    async with Engine() as engine:
        run = await engine.start(flow(*steps, **more))
        report = await run.result()
        events = await run.events()
        assert replay(events) == await run.state()
        return report, events


def plan(**output: Any) -> Step:
    return Step("plan", lambda briefing: output)


@pytest.mark.parametrize(("wanted", "state"), [(True, "done"), (False, "skipped")])
def test_a_condition_decides_whether_a_step_runs(wanted: bool, state: str) -> None:
    seen: list[Any] = []
    steps = (
        plan(ui=wanted),
        Step("ui", named, needs="plan", when="plan:/ui == true"),
        Step("ship", lambda briefing: seen.append(sorted(briefing.inputs)), needs=["plan", "ui"]),
    )
    report, _ = play(result(*steps))
    assert (report.outcome, report.steps["ui"].state) == ("done", state)
    assert seen == [["plan", "ui"] if wanted else ["plan"]]


def test_a_step_is_repeated_with_its_last_output() -> None:
    def polished(briefing: Any) -> dict[str, int]:
        return {"score": (briefing.previous or {"score": 60})["score"] + 10}

    report, _ = play(result(Step("polish", polished, repeat={"until": "polish:/score >= 90", "max": 4})))
    assert (report.outcome, report.steps["polish"].attempts) == ("done", 3)


def test_a_step_that_needs_a_group_gets_the_outputs_of_all_its_members() -> None:
    seen: list[Any] = []
    steps = (
        plan(),
        Step("ux", named, needs="plan", group="design"),
        Step("arch", named, needs="plan", group="design"),
        Step("code", lambda briefing: seen.append(sorted(briefing.inputs)), needs="design", accepts={"ux": dict}),
    )
    assert play(result(*steps))[0].outcome == "done"
    assert seen == [["arch", "ux"]]


def test_a_value_that_a_condition_refers_to_may_not_be_huge() -> None:
    steps = (plan(text="x" * LONGEST_VALUE), Step("b", named, needs="plan", when="plan:/text"))
    report, events = play(result(*steps, limits={"errors_in_a_row": 1}))
    assert report.outcome == "waiting"
    assert "the value at /text has 65,538 bytes" in only(e.AttemptFailed, events)[0].error


@pytest.mark.parametrize(
    ("repeat", "why"),
    [
        ({"untill": "a:/x", "max": 2}, "repeat has the key 'untill': did you mean 'until'?"),
        ({"until": "a:/x"}, "expected `until` with a condition and `max`"),
        ({"until": "a:/x", "max": "2"}, "Expected `int`, got `str`"),
        ({"until": "a:/x", "max": 0}, "max 0: expected 1 or more"),
    ],
)
def test_an_invalid_repetition_is_refused(repeat: Any, why: str) -> None:
    with pytest.raises(WorkflowError) as error:
        flow(Step("a", named, repeat=repeat))
    assert why in str(error.value)
