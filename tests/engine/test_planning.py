"""Steps that join a run in Python: with functions, with registered agents, and after a resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from backedge import Briefing, Engine, Feedback, Outcome, Report, Step, Workflow, passed
from backedge.core import events as e
from backedge.errors import WorkflowError
from tests.engine.parts import named, only, play


async def coder(briefing: Briefing) -> str:
    return f"{briefing.step} by the coder"


async def strict(briefing: Briefing) -> Outcome:
    return passed(summary=briefing.step)


def planner(*outcomes: Any) -> Any:
    """A planner that returns one outcome after the other, and repeats the last one."""

    async def plan(briefing: Briefing) -> Outcome:
        said: Outcome = outcomes[min(briefing.attempt, len(outcomes)) - 1]
        return said

    return plan


def adds(output: Any = "p", **steps: Any) -> Outcome:
    return Outcome(output, add_steps=steps)


def flow(plan: Any, *steps: Step, **more: Any) -> Workflow:
    more.setdefault("agents", {"coder": coder, "strict": strict})
    return Workflow("flow", [Step("plan", plan, phase="planning", plans=True), *steps], **more)


async def ran(workflow: Workflow, journal: Any = None) -> tuple[Report, list[e.Event]]:
    async with Engine(journal) as engine:
        run = await engine.start(workflow, run="r")
        return await run.result(), await run.events()


def error_of(plan: Outcome, **more: Any) -> str:
    workflow = flow(planner(plan), Step("code", named, needs="plan"), limits={"errors_in_a_row": 1}, **more)
    report, events = play(ran(workflow))
    assert report.outcome == "waiting" and not only(e.StepsChanged, events)
    return only(e.AttemptFailed, events)[0].error


def test_a_mapping_names_a_registered_agent() -> None:
    plan = adds(
        model={"agent": "coder", "needs": "plan", "phase": "code"}, check={"agent": "strict", "reviews": "model"}
    )
    report, events = play(ran(flow(planner(plan))))
    assert (report.outcome, report.steps["model"].output) == ("verified", "model by the coder")
    (change,) = only(e.StepsChanged, events)
    assert change.specs["model"] == {"agent": "coder", "needs": "plan", "phase": "code"}
    assert [(each.by, each.added) for each in report.plans] == [("plan", ("model", "check"))]


def test_an_added_step_brings_its_function_and_is_recorded_by_name() -> None:
    plan = adds(
        model=Step("model", named, needs=["plan"]),
        copy=Step("copy", [coder, strict, planner], needs="model", timeout=9),
    )
    report, events = play(ran(flow(planner(plan))))
    assert report.steps["model"].output == {"made by": "model"}
    assert only(e.StepsChanged, events)[0].specs == {
        "model": {"agent": ["model"], "needs": ["plan"]},
        "copy": {"agent": ["coder", "strict", "copy#3"], "needs": "model", "timeout": 9},
    }


def test_a_person_may_do_an_added_step() -> None:
    report, _ = play(ran(flow(planner(adds(sign=Step("sign", "human", needs="plan"))))))
    assert (report.outcome, report.escalations[0].step) == ("waiting", "sign")


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (adds(model={"agent": "codr"}), "agent 'codr' is not registered: did you mean 'coder'?"),
        (adds(model={"agent": "coder", "nedds": "plan"}), "unknown key 'nedds': did you mean 'needs'?"),
        (adds(model={}), "it has no agent"),
        (adds(model=7), "model is 7: expected a mapping"),
        (adds(model=Step("other", named)), "its name is 'other'"),
        (adds(model=Step("model", named, returns=int)), "it declares types, which a run cannot record"),
        (adds(model={"agent": "coder", "needs": 7}), "needs is 7: expected text, or a list of texts"),
        (adds(model={"agent": "coder", "needs": "nowhere"}), "step 'model' needs 'nowhere', which does not exist"),
        (adds(check={"agent": "strict", "reviews": "plan", "limits": {"rounds": 1}}), "limit 'rounds' is unknown"),
        (adds(model={"agent": "coder", "phase": object()}), "unsupported"),
        (Outcome(remove_steps=["cod"]), "did you mean 'code'?"),
        (Outcome(remove_steps=[7]), "the outcome is not understood"),  # type: ignore[list-item]
    ],
)
def test_steps_that_cannot_be_added_are_an_error_of_the_planner(plan: Outcome, said: str) -> None:
    assert said in error_of(plan)


def test_only_a_planner_can_add_steps() -> None:
    step = Step("code", planner(adds(model={"agent": "coder"})))
    _, events = play(ran(Workflow("flow", [step], limits={"errors_in_a_row": 1})))
    assert "only a step with `plans: true` may" in only(e.AttemptFailed, events)[0].error


def test_a_resumed_process_finds_the_agents_of_added_steps_again(tmp_path: Path) -> None:
    journal = tmp_path / "journal.db"

    def workflow(**more: Any) -> Workflow:
        plan = adds(
            first={"agent": "coder"},
            sign={"agent": "human", "needs": "first"},
            last={"agent": "coder", "needs": "sign"},
        )
        return flow(planner(plan), **more)

    async def resumed(again: Workflow) -> Report:
        async with Engine(journal) as engine:
            run = await engine.resume("r", again)
            await run.decide("E-1", "resolve", note="yes")
            return await run.result()

    report, _ = play(ran(workflow(), journal))
    assert report.outcome == "waiting"
    with pytest.raises(WorkflowError, match="agent 'coder' is not registered"):
        play(resumed(workflow(agents={})))
    done = play(resumed(workflow()))
    assert (done.outcome, done.steps["last"].output) == ("done", "last by the coder")


def test_a_replaced_step_is_done_by_its_new_agent() -> None:
    again = adds("q", code={"agent": "coder", "needs": "plan"})

    async def scenario() -> Report:
        async with Engine() as engine:
            run = await engine.start(flow(planner(Outcome("p"), again), Step("code", named, needs="plan")))
            assert (await run.result()).steps["code"].output == {"made by": "code"}
            await run.raise_feedback(Feedback("architecture_issue", "plan", "another coder"))
            await run.result()
            await run.decide("E-1", "resolve", note="yes")
            return await run.result()

    report = play(scenario())
    assert (report.steps["code"].output, report.steps["code"].attempts) == ("code by the coder", 2)


def test_the_bound_and_the_most_steps_are_those_of_the_definition() -> None:
    assert flow(planner(Outcome()), max_steps=4).max_attempts == 3 * (4 + 4) * 21
    assert "max_steps: 4 more would make 6 steps" in error_of(
        adds(**{f"s{number}": {"agent": "coder"} for number in range(4)}), max_steps=5
    )


def test_new_steps_can_read_and_refer_to_earlier_outputs() -> None:
    """Outputs of the planner itself, and of a step that ran in parallel."""

    async def look(briefing: Briefing) -> dict[str, Any]:
        return {"ui": True, "size": 3, "large": "x" * 9_000}

    when = ["plan:/ui == true", "look:/ui == true"]
    plan = Outcome(
        {"ui": True},
        add_steps={
            "ui": {"agent": "coder", "needs": ["plan", "look"], "when": when, "reads": {"look": ["/size"]}},
            "text": {"agent": "coder", "needs": ["plan", "look"], "when": "look:/ui == false"},
        },
    )
    late = Step("replan", planner(plan), needs=["plan", "look"], phase="planning", plans=True)
    workflow = flow(planner(Outcome({"ui": True})), Step("look", look, phase="planning"), late)
    report, events = play(ran(workflow))
    assert (report.outcome, report.steps["ui"].state, report.steps["text"].state) == ("done", "done", "skipped")
    (change,) = only(e.StepsChanged, events)
    assert change.noted["look"].values == {"/ui": True} and set(change.noted["look"].parts) == {"/size"}


def test_a_condition_on_a_value_that_is_too_large_is_an_error_of_the_planner() -> None:
    async def much(briefing: Briefing) -> str:
        return "x" * 100_000

    plan = adds(ui={"agent": "coder", "needs": ["much"], "when": "much == 3"})
    late = Step("replan", planner(plan), needs=["much"], phase="planning", plans=True)
    workflow = flow(planner(Outcome()), Step("much", much, phase="planning"), late, limits={"errors_in_a_row": 1})
    _, events = play(ran(workflow))
    assert "refer to a smaller part" in only(e.AttemptFailed, events)[0].error
