"""Parsing what a user wrote in Python: an invalid value is an error that names the field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from backedge.core.errors import WorkflowError
from backedge.core.model import HUMAN
from backedge.core.workflow.build import build_workflow
from backedge.core.workflow.definition import Repeat, Step, Workflow
from backedge.core.workflow.parsing import mapping, shown, whole, words
from backedge.core.workflow.routes import RouteRule, parse_routes
from backedge.core.workflow.steps import parse_pass_rule, parse_plans, parse_reads, parse_repeat, parse_step
from tests.core.play import step

TEXTS = "expected text, or a list of texts"
NAMED = "expected a mapping from names to values"


@pytest.mark.parametrize("value", ["a", ["a"], ("a",), {"a"}, iter(["a"])])
def test_one_word_is_a_list_of_one(value: object) -> None:
    assert words("needs", value) == ("a",)


@pytest.mark.parametrize("value", [None, 5, [1], ["a", None], {"a": 1}, b"a", True])
def test_a_value_that_is_not_a_word_is_named(value: object) -> None:
    with pytest.raises(WorkflowError) as error:
        words("needs", value)
    assert str(error.value) == f"needs is {value!r}: {TEXTS}"


READERS: list[tuple[Callable[[Any], object], Any, str]] = [
    (lambda value: mapping("reads", value), ["/x"], f"reads is ['/x']: {NAMED}"),
    (lambda value: mapping("limits", value), {5: 5}, f"limits is {{5: 5}}: {NAMED}"),
    (lambda value: parse_reads({"a": value}), 5, f"reads of 'a' is 5: {TEXTS}"),
    (lambda value: parse_reads({"a": value}), ["/x", 5], f"reads of 'a' is ['/x', 5]: {TEXTS}"),
    (lambda value: parse_reads({"a": value}), "x", "it reads 'x' of 'a': expected a JSON pointer, such as '/x'"),
    (parse_plans, "yes", "plans is 'yes': expected true, false, or {judges: true}"),
    (parse_plans, {"judge": True}, "plans has the key 'judge': did you mean 'judges'?"),
    (parse_plans, {"judges": 1}, "judges of plans is 1: expected true or false"),
    (parse_repeat, 5, f"repeat is 5: {NAMED}"),
    (parse_repeat, {"untill": "x", "max": 3}, "repeat has the key 'untill': did you mean 'until'?"),
    (parse_repeat, {"until": "x"}, "repeat is {'until': 'x'}: expected `until` with a condition and `max` with"),
    (parse_repeat, {"until": 5, "max": 3}, f"until is 5: {TEXTS}"),
    (
        parse_pass_rule,
        5,
        "passes_if is 5: expected one of ai-sdlc, asp-design, asp-code, or how many findings of each severity may pass",
    ),
    (parse_pass_rule, {}, "passes_if is empty: expected one of ai-sdlc"),
    (parse_routes, None, "routes is None: expected a list of routes"),
    (parse_routes, 5, "routes is 5: expected a list of routes"),
    (parse_routes, "x", "routes is 'x': expected a list of routes"),
    (parse_routes, [5], "a route is 5: expected a mapping with to, category, keywords"),
    (parse_routes, [{"too": "a"}], "a route has the key 'too': did you mean 'to'?"),
    (parse_routes, [{5: "a"}], "a route has the key 5: use one of: to, category, keywords"),
    (parse_routes, [{"to": 5, "category": "x"}], "a route has `to` 5: expected the name of a step or a phase"),
    (parse_routes, [{"to": "a"}], "a route to 'a' matches nothing: give it `category` or `keywords`"),
    (parse_routes, [{"category": "a"}], "a route has `to` None: expected the name of a step or a phase"),
    (parse_routes, [{"to": "a", "keywords": []}], "a route to 'a' matches nothing: give it `category` or `keywords`"),
    (parse_routes, [{"to": "a", "keywords": ""}], "a route to 'a' looks for '' in keywords: expected a word"),
    (parse_routes, [{"to": "a", "category": "--"}], "a route to 'a' looks for '--' in category: expected a word"),
    (parse_routes, [{"to": "a", "category": 5}], f"category of the route to 'a' is 5: {TEXTS}"),
    (parse_routes, [{"to": "a", "keywords": [5]}], f"keywords of the route to 'a' is [5]: {TEXTS}"),
]


@pytest.mark.parametrize(("reader", "value", "problem"), READERS)
def test_an_invalid_value_is_refused_with_the_reason(reader: Callable[[Any], object], value: Any, problem: str) -> None:
    with pytest.raises(WorkflowError) as error:
        reader(value)
    assert problem in str(error.value)


def test_valid_values_are_read() -> None:
    assert mapping("limits", None) == {}
    assert parse_reads({"a": ("", "/x")}) == (("a", ("", "/x")),)
    assert parse_repeat({"until": "a:/x", "max": 3.0}) == Repeat(("a:/x",), 3)
    assert [parse_plans(each) for each in (True, False, {}, {"judges": False})] == [
        True,
        False,
        True,
        {"judges": False},
    ]
    assert [whole(3.0), whole(3), whole(2.5), whole("3")] == [3, 3, 2.5, "3"]
    rule = RouteRule("a", ("x",), ("y", "z"))
    assert parse_routes({"to": "a", "category": "x", "keywords": ["y", "z"]}) == (rule,)
    assert parse_routes([{"to": "a", "category": "x", "keywords": ["y", "z"]}]) == (rule,)


def test_a_step_is_parsed_from_its_keys() -> None:
    value = {"tests": "a", "needs": ["a", "b"], "reads": {"b": "/x"}, "when": "b:/x", "idempotent": True}
    assert parse_step("t", value, agents=("t",)) == Step(
        "t",
        needs=("b",),
        judges=("a",),
        tests=True,
        complete=True,
        agents=("t",),
        on_doubt="rerun",
        reads=(("b", ("/x",)),),
        when=("b:/x",),
    )
    assert parse_step("r", {"reviews": "a"}, agents=(), lists_findings=True).complete
    assert not parse_step("t", {"tests": "a", "complete": False}, agents=()).complete
    with pytest.raises(WorkflowError, match="it both reviews and tests: choose one"):
        parse_step("t", {"tests": "a", "reviews": "b"}, agents=())


def define(*steps: Step, own: Any = None, name: Any = "w", **more: Any) -> Workflow:
    value = steps or (step("a"), step("j", reviews="a"))
    return build_workflow(name, [(each, own if each.judges else {}) for each in value], **more)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"phases": [1]}, f"phases is [1]: {TEXTS}"),
    ({"phases": None}, f"phases is None: {TEXTS}"),
    ({"limits": 5}, f"limits is 5: {NAMED}"),
    ({"limits": ["x"]}, f"limits is ['x']: {NAMED}"),
    ({"own": 5}, f"step 'j': limits is 5: {NAMED}"),
    ({"limits": {"cost_usd": 10**400}}, "limit 'cost_usd' is too large: expected at most 1000000000000"),
    ({"limits": {"cost_usd": float("nan")}}, "limit 'cost_usd' is nan: expected more than 0"),
    ({"limits": {"wall_clock": float("inf")}}, "limit 'wall_clock' is inf: expected a finite number"),
    ({"profile": 5}, "profile 5 is unknown: use one of: default"),
    ({"profile": []}, "profile [] is unknown: use one of: default"),
    ({"scope": 5}, "scope is 5: use one of: upstream, any"),
    ({"on_breach": None}, "on_breach is None: use one of: manual, error, skip"),
    ({"new_findings": 5}, f"new_findings is 5: {NAMED}"),
    ({"new_findings": {"high": 5}}, "new_findings of high is 5: use one of: rework, defer, ask"),
    ({"routes": 5}, "routes is 5: expected a list of routes"),
    ({"routes": [{"to": "a", "category": "--"}]}, "a route to 'a' looks for '--' in category: expected a word"),
    ({"steps": (step("a", timeout=float("nan")),)}, "step 'a' has timeout nan: expected more than 0 seconds"),
    ({"name": 5}, "name cannot be stored as JSON: Expected `str`, got `int`"),
    ({"name": "\ud800"}, "the definition cannot be stored as JSON: 'utf-8' codec can't encode"),
    ({"name": object()}, "the definition cannot be stored as JSON: Encoding objects of type object"),
]


@pytest.mark.parametrize(("more", "problem"), BAD)
def test_an_invalid_definition_is_refused_with_one_problem(more: dict[str, Any], problem: str) -> None:
    with pytest.raises(WorkflowError) as error:
        define(*more.pop("steps", ()), **more)
    assert len(error.value.problems) == 1
    assert problem in error.value.problems[0]


def test_a_definition_survives_the_journal() -> None:
    work = define(limits={"cost_usd": 5}, phases="code", routes=[{"to": "a", "category": "x"}])
    assert msgspec.json.decode(msgspec.json.encode(work), type=Workflow) == work
    assert isinstance(work.limits.cost_usd, float)


def test_a_long_wrong_value_is_shortened() -> None:
    assert shown("x" * 100) == "'" + "x" * 79 + "…"
    assert shown(10**5000) == "a very large int"
    assert shown(HUMAN) == "'human'"
