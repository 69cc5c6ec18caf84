"""Invalid workflows are refused when they are defined, with all problems."""

from __future__ import annotations

from typing import Any

import pytest

from backedge import Engine, Step, Workflow
from backedge.errors import IllegalCommand, WorkflowError
from backedge.testing import ScriptedAgent
from tests.engine.parts import flow, named, play


@pytest.mark.parametrize(
    ("steps", "problem"),
    [
        ([], "the workflow has no steps"),
        (
            [Step("a", named, needs="plam"), Step("plan", named)],
            "needs 'plam', which does not exist: did you mean 'plan'",
        ),
        ([Step("a", named, needs="a")], "needs itself"),
        ([Step("a", named, needs="b"), Step("b", named, needs="a")], "in a circle: "),
        ([Step("a", named, reviews="b"), Step("b", named, needs="a")], "in a circle: "),
        ([Step("a", named), Step("a", named)], "step 'a' is defined twice"),
        ([Step("", named)], "empty name"),
        ([Step("human", named)], "reserved name"),
        ([Step("a", named, reviews="a")], "judges itself"),
        ([Step("a", named), Step("b", named, reviews="a", tests="a")], "both reviews and tests"),
        (
            [Step("a", named), Step("b", named, reviews="a"), Step("c", named, reviews="b")],
            "which is a judge: name the step that it judges",
        ),
        ([Step("a", named, timeout=0)], "timeout 0"),
        ([Step("a", named, timeout=-1)], "timeout -1"),
        ([Step("a", named, timeout=float("nan"))], "timeout nan"),
        ([Step("a", named, timeout="5s")], "Expected `float | null`, got `str` - at `$.timeout`"),  # type: ignore[arg-type]
        ([Step("a", named, on_doubt="never")], "Invalid enum value 'never' - at `$.on_doubt`"),  # type: ignore[arg-type]
        ([Step("a", named, phase=None)], "Expected `str`, got `null` - at `$.phase`"),  # type: ignore[arg-type]
        ([Step("a", named, complete="yes")], "at `$.complete`"),  # type: ignore[arg-type]
        ([Step(5, named)], "at `$.name`"),  # type: ignore[arg-type]
        ([Step("a", "not a function")], "expected a function"),  # type: ignore[arg-type]
        ([Step("a", [])], "it has no agent"),
        ([Step("a", lambda x, y, z: None)], "takes (x, y, z): expected (briefing) or (briefing, attempt)"),
        ([Step("a", lambda: None)], "takes (): expected (briefing) or (briefing, attempt)"),
        ([Step("a", lambda x, *, model: None)], "takes (x, *, model): expected (briefing) or (briefing, attempt)"),
        ([Step("a", named, returns="Plan")], "returns is 'Plan': expected a type"),
        ([Step("a", named, returns=5)], "returns is 5: expected a type"),
        ([Step("a", named, returns={"type": "object"})], "returns is {'type': 'object'}: expected a type"),
        ([Step("a", named), Step("b", named, needs="a", accepts=5)], "step 'b': accepts is 5: expected a type"),
        ([Step("a", named), Step("b", named, needs="a", accepts={"a": {}})], "accepts of 'a' is {}: expected a type"),
        ([Step("a", named, passes_if="ai-sdlc")], "has passes_if but is not a judge"),
        ([Step("a", named), Step("b", named, reviews="a", passes_if="strict")], "passes_if 'strict'"),
        ([Step("a", named), Step("b", named, reviews="a", passes_if={"huge": 1})], "passes_if counts 'huge'"),
        ([Step("a", named), Step("b", named, reviews="a", passes_if={"high": -1})], "allows -1 high"),
        ([Step("a", named), Step("b", named, reviews="a", passes_if={})], "passes_if is empty"),
        ([Step("a", named, limits={"rounds_total": 1})], "has limits but is not a judge"),
        ([Step("a", named), Step("b", named, reviews="a", limits={"rounds": 1})], "limit 'rounds' is unknown"),
        ([Step("a", named, accepts=dict)], "accepts is one type, but it needs 0 steps"),
        (
            [Step("a", named), Step("b", named, needs="a", accepts={"c": dict})],
            "accepts names 'c', which it does not need",
        ),
        ([Step("a", named), Step("b", named, reads={"a": ["/x"]})], "reads 'a' without needing it"),
        ([Step("a", named, phase="code"), Step("b", named, phase="planning", needs="a")], "of the later phase code"),
    ],
)
def test_an_invalid_step_is_refused(steps: list[Step], problem: str) -> None:
    with pytest.raises(WorkflowError) as refusal:
        flow(*steps)
    assert problem in str(refusal.value)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"limits": {"rounds_total": -1}}, "limit 'rounds_total' is -1: expected 0 or more, or false"),
        ({"limits": {"errors_in_a_row": 0}}, "limit 'errors_in_a_row' is 0"),
        ({"limits": {"cost_usd": float("nan")}}, "limit 'cost_usd' is nan"),
        ({"limits": {"cost_usd": float("inf")}}, "limit 'cost_usd' is inf"),
        ({"limits": {"rounds_total": 2.5}}, "expected a whole number"),
        ({"limits": {"rounds_total": True}}, "expected a number"),
        ({"limits": {"rounds_total": "3"}}, "expected a number"),
        ({"limits": {"round_total": 3}}, "did you mean 'rounds_total'?"),
        ({"limits": {"diverging": 3}}, "expected true or false"),
        ({"limits": {"rounds_total": False}}, "nothing bounds this workflow"),
        ({"profile": "asap"}, "profile 'asap' is unknown: did you mean 'asp'?"),
        ({"scope": "everywhere"}, "scope is 'everywhere'"),
        ({"on_breach": "panic"}, "on_breach is 'panic'"),
        ({"phases": ["code", "code"]}, "phase 'code' is listed twice"),
        ({"new_findings": "ignore"}, "'ignore'"),
        ({"new_findings": {"huge": "rework"}}, "new_findings names 'huge'"),
        ({"routes": [{"to": "nowhere", "category": "x"}]}, "leads to 'nowhere', which is not a step or a phase"),
        ({"routes": [{"to": "r", "category": "x"}]}, "which is a judge"),
        ({"routes": [{"category": "x"}]}, "a route has `to` None"),
        ({"routes": [{"to": "a", "categories": "x"}]}, "did you mean 'category'?"),
    ],
)
def test_an_invalid_setting_is_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(WorkflowError) as refusal:
        flow(Step("a", named), Step("r", named, reviews="a"), **settings)
    assert problem in str(refusal.value)


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(WorkflowError) as refusal:
        flow(Step("a", named, needs="x"), Step("b", named, needs="y"), profile="z", limits={"tokens": -5})
    assert len(refusal.value.problems) == 4


def test_a_workflow_without_a_name_is_refused() -> None:
    with pytest.raises(WorkflowError, match="the workflow has no name"):
        Workflow("  ", [Step("a", named)])


def test_a_name_that_is_not_text_is_refused() -> None:
    with pytest.raises(WorkflowError, match="the name is 5: expected text"):
        Workflow(5, [Step("a", named)])  # type: ignore[arg-type]


def test_a_part_that_is_read_is_named_by_a_json_pointer() -> None:
    with pytest.raises(WorkflowError, match="reads 'units' of 'a': expected a JSON pointer, such as '/units'"):
        flow(Step("a", named), Step("b", named, needs="a", reads={"a": "units"}))
    [_, step] = flow(Step("a", named), Step("b", named, needs="a", reads={"a": "/units"})).definition.steps
    assert step.reads == (("a", ("/units",)),), "one pointer is a list of one"


def test_one_phase_is_a_list_of_one() -> None:
    assert flow(Step("a", named, phase="idea"), phases="idea").definition.phases == ("idea",)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"input": object()}, "the input is not JSON: object is not JSON"),
        ({"input": "\ud800"}, "the input is not JSON: .*surrogates"),
        ({"input": "x" * 1000}, "the input has 1,002 bytes, at most 1,000 are allowed"),
        ({"run": 5}, "the id of the run is 5: expected text"),
        ({"run": "\ud800"}, "the id of the run is .*: expected text"),
    ],
)
def test_an_invalid_start_is_refused_and_leaves_nothing(given: dict[str, Any], problem: str) -> None:
    async def scenario() -> None:
        async with Engine(max_output=1000) as engine:
            with pytest.raises(IllegalCommand, match=problem):
                await engine.start(flow(Step("a", named)), **given)
            assert not await engine.runs()

    play(scenario())


def test_the_largest_number_of_attempts_is_known_before_anything_runs() -> None:
    work = flow(Step("a", named), Step("r", named, reviews="a"))
    assert work.max_attempts == 3 * (2 + 1) * (1 + 20)
    assert flow(Step("a", named), limits={"attempts": 2}).max_attempts == 2


def test_a_scripted_agent_needs_something_to_say() -> None:
    with pytest.raises(ValueError, match="at least one reply"):
        ScriptedAgent()
