"""From the definition to limits and defaults: profiles by name, overrides by key, all problems reported."""

from __future__ import annotations

from typing import Any

import pytest

from backedge.core.errors import WorkflowError
from backedge.core.model import Severity
from backedge.core.workflow.build import build_workflow
from backedge.core.workflow.definition import PassRule, Step, Workflow
from backedge.core.workflow.limits import Limits, limit_problems, with_overrides
from backedge.core.workflow.profiles import PROFILES
from backedge.core.workflow.routes import RouteRule
from backedge.core.workflow.steps import agent_names, parse_pass_rule
from tests.core.play import step

STEPS = (
    step("plan", phase="planning"),
    step("design", "plan", phase="design"),
    step("design_review", reviews="design"),
    step("code", "design", phase="code"),
    step("code_review", reviews="code"),
    step("test", tests="code"),
)


def define(*steps: Step, own: dict[str, dict[str, object]] | None = None, **more: Any) -> Workflow:
    return build_workflow("w", [(each, (own or {}).get(each.name, {})) for each in steps or STEPS], **more)


def problems(**more: Any) -> tuple[str, ...]:
    with pytest.raises(WorkflowError) as error:
        define(**more)
    return error.value.problems


# profile: rounds_per_loop, rounds_per_step, rounds_per_pair
NUMBERS: dict[str, tuple[int | None, int | None, int | None]] = {
    "default": (5, None, None),
    "bmad": (1, None, None),
    "ai-sdlc": (3, None, None),
    "tight-loop": (None, 4, None),
    "asp": (None, 2, None),
    "reactree": (None, None, 2),
}


@pytest.mark.parametrize("name", PROFILES)
def test_each_profile_has_its_limits(name: str) -> None:
    limits = define(profile=name).limits
    assert (limits.rounds_per_loop, limits.rounds_per_step, limits.rounds_per_pair) == NUMBERS[name]


@pytest.mark.parametrize("name", PROFILES)
def test_all_other_limits_of_a_profile_are_the_defaults_but_for_the_rounds_of_the_run_and_the_same_finding(
    name: str,
) -> None:
    usual = Limits() if name == "default" else Limits(rounds_total=10, same_finding=3)
    usual = with_overrides(usual, {"recoveries_total": 10 if name == "ai-sdlc" else None})
    numbers = dict(zip(("rounds_per_loop", "rounds_per_step", "rounds_per_pair"), NUMBERS[name], strict=True))
    assert define(profile=name).limits == with_overrides(usual, dict(numbers))


def test_the_default_limits() -> None:
    assert Limits() == Limits(
        cost_usd=None,
        tokens=None,
        attempts=None,
        wall_clock=None,
        errors_in_a_row=3,
        rounds_total=20,
        recoveries_total=None,
        rounds_per_loop=5,
        rounds_per_pair=None,
        rounds_per_step=None,
        same_finding=6,
        failures_in_a_row=None,
        no_change=2,
        oscillation=2,
        diverging=False,
        chain_depth=3,
        response_timeout=600.0,
    )


@pytest.mark.parametrize(("name", "scope"), [("bmad", "any"), ("default", "upstream"), ("reactree", "upstream")])
def test_the_scope_of_a_profile(name: str, scope: str) -> None:
    assert define(profile=name).scope == scope
    assert define(profile=name, scope="upstream").scope == "upstream"


def rules(work: Workflow) -> dict[str, str]:
    return {each.name: each.passes_if.name for each in work.steps if each.passes_if is not None}


def test_the_pass_rules_of_a_profile_are_those_of_its_reviews() -> None:
    assert rules(define(profile="default")) == {}
    assert rules(define(profile="ai-sdlc")) == {"design_review": "ai-sdlc", "code_review": "ai-sdlc"}
    assert rules(define(profile="asp")) == {"design_review": "asp-design", "code_review": "asp-code"}


def test_a_review_that_has_a_rule_keeps_it() -> None:
    own = step("review", reviews="design", passes_if=PassRule("asp-code"))
    work = define(*STEPS[:2], own, profile="ai-sdlc")
    assert rules(work) == {"review": "asp-code"}


def test_a_test_judge_of_asp_has_one_round() -> None:
    work = define(profile="asp", limits={"rounds_total": 20})
    (test,) = [each for each in work.steps if each.tests]
    assert test.limits == Limits(rounds_per_loop=1, rounds_per_step=2, rounds_total=20, same_finding=3)
    assert all(each.limits is None for each in work.steps if not each.tests)


def test_ai_sdlc_brings_its_routes_after_those_of_the_user() -> None:
    work = define(profile="ai-sdlc", routes=[{"to": "design", "category": "ux"}])
    assert work.routes == (RouteRule("design", category=("ux",)), *PROFILES["ai-sdlc"].routes)
    assert work.nearest_phase


def test_tight_loop_judges_in_the_order_of_the_file() -> None:
    assert define(profile="tight-loop").judges_in_order
    assert not define().judges_in_order


def test_limits_override_a_profile_key_by_key() -> None:
    work = define(profile="bmad", limits={"rounds_per_loop": 2, "same_finding": False})
    assert work.limits == Limits(rounds_per_loop=2, same_finding=None, rounds_total=10)


def test_a_judge_may_have_limits_of_its_own_over_those_of_the_workflow() -> None:
    work = define(limits={"no_change": 5}, own={"test": {"rounds_per_loop": 1}})
    (test,) = [each for each in work.steps if each.tests]
    assert test.limits == Limits(no_change=5, rounds_per_loop=1)


@pytest.mark.parametrize("limit", ["cost_usd", "tokens", "attempts", "wall_clock", "rounds_total", "recoveries_total"])
@pytest.mark.parametrize("bound", [5, False])
def test_a_limit_of_the_run_cannot_be_set_for_a_step(limit: str, bound: object) -> None:
    (found,) = problems(own={"test": {limit: bound}})
    assert (
        found
        == f"step 'test' has limits of its own with {limit!r}, which limits the whole run: set it in the limits of the workflow"
    )


def test_the_policy_for_new_findings_is_one_word_or_by_severity() -> None:
    assert define(new_findings="ask").policy_for(Severity.LOW) == "ask"
    some = define(new_findings={"low": "rework"})
    assert [some.policy_for(each) for each in Severity] == ["rework", "rework", "defer", "rework"]
    assert [define().policy_for(each) for each in Severity] == ["rework", "rework", "defer", "defer"]


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"profile": "asap"}, "profile 'asap' is unknown: did you mean 'asp'?"),
        ({"scope": "all"}, "scope is 'all'"),
        ({"on_breach": "errors"}, "on_breach is 'errors': did you mean 'error'?"),
        ({"on_protected": "refuses"}, "on_protected is 'refuses': did you mean 'refuse'?"),
        ({"limits": {"rounds_total": -1}}, "limit 'rounds_total' is -1"),
        ({"own": {"test": {"no_change": -1}}}, "step 'test': limit 'no_change' is -1"),
        ({"own": {"plan": {"no_change": 1}}}, "step 'plan' has limits but is not a judge"),
        ({"new_findings": "later"}, "is 'later'"),
        ({"new_findings": {"hi": "ask"}}, "new_findings names 'hi'"),
        ({"new_findings": {"high": "asks"}}, "new_findings of high is 'asks': did you mean 'ask'?"),
    ],
)
def test_a_problem_is_named(more: dict[str, Any], problem: str) -> None:
    assert any(problem in each for each in problems(**more))


def test_all_problems_are_named_at_once() -> None:
    found = problems(profile="asap", scope="all", on_breach="x", limits={"tokens": -1}, phases=["a", "a"])
    assert len(found) == 5


@pytest.mark.parametrize(
    ("steps", "names"),
    [
        (["a"], ["a", "a#2", "a#3"]),
        (["a", "a#2"], ["a", "a#2#", "a#3", "a#2", "a#2#2", "a#2#3"]),
        (["a#2", "a"], ["a#2", "a#2#2", "a#2#3", "a", "a#2#", "a#3"]),
        (["a", "a#"], ["a", "a#2", "a#3", "a#", "a##2", "a##3"]),
        (["a", "a#2", "a#2#"], ["a", "a#2##", "a#3", "a#2", "a#2#2", "a#2#3", "a#2#", "a#2##2", "a#2##3"]),
    ],
)
def test_no_two_agents_of_any_steps_have_the_same_name(steps: list[str], names: list[str]) -> None:
    found: list[str] = []
    for name in steps:
        found += agent_names(name, 3, {*steps, *found})
    assert found == names
    assert len(set(found)) == len(found)


def test_a_pass_rule_is_a_name_or_counts() -> None:
    assert parse_pass_rule(None) is None
    assert parse_pass_rule("asp-code") == PassRule("asp-code")
    assert parse_pass_rule({"high": 2, "blocking": 0}) == PassRule(at_most=(("high", 2), ("blocking", 0)))
    with pytest.raises(WorkflowError, match="passes_if is empty"):
        parse_pass_rule({})


class TestLimitsAsAUserWritesThem:
    """Limits are overridden key by key, `false` switches one off, and all problems are reported."""

    def test_overrides_do_not_change_other_limits(self) -> None:
        limits = with_overrides(Limits(), {"rounds_per_loop": 7, "same_finding": False, "diverging": False})
        assert limits == Limits(rounds_per_loop=7, same_finding=None, diverging=False)

    @pytest.mark.parametrize(
        ("overrides", "problem"),
        [
            ({"rounds_pre_loop": 1}, "did you mean 'rounds_per_loop'"),
            ({"zzz": 1}, "use one of: cost_usd"),
            ({"rounds_total": -1}, "expected 0 or more"),
            ({"errors_in_a_row": 0}, "expected more than 0"),
            ({"same_finding": 0}, "expected more than 0"),
            ({"attempts": 0}, "expected more than 0, or false to switch it off"),
            ({"cost_usd": 0}, "expected more than 0, or false to switch it off"),
            ({"cost_usd": 0.0}, "expected more than 0, or false to switch it off"),
            ({"tokens": 0}, "expected more than 0, or false to switch it off"),
            ({"wall_clock": 0}, "expected more than 0, or false to switch it off"),
            ({"cost_usd": 10**400}, "limit 'cost_usd' is too large: expected at most 1000000000000, or false"),
            ({"tokens": 10**5000}, "limit 'tokens' is too large: expected at most 1000000000000, or false"),
            ({"wall_clock": 2e12}, "limit 'wall_clock' is too large"),
            ({"cost_usd": float("nan")}, "expected more than 0"),
            ({"cost_usd": float("inf")}, "expected a finite number"),
            ({"rounds_total": 1.5}, "expected a whole number"),
            ({"rounds_total": "3"}, "expected a number"),
            ({"rounds_total": True}, "expected a number"),
            ({"diverging": 3}, "expected true or false"),
        ],
    )
    def test_a_problem_is_named(self, overrides: dict[str, object], problem: str) -> None:
        (found,) = limit_problems(overrides)
        assert problem in found

    def test_all_problems_are_named_at_once(self) -> None:
        assert len(limit_problems({"tokens": -1, "nothing": 1, "rounds_total": "x", "cost_usd": 2.5})) == 3

    def test_valid_limits_have_no_problems(self) -> None:
        fine: dict[str, object] = {"cost_usd": 0.5, "rounds_total": 0, "same_finding": None, "diverging": True}
        fine["tokens"] = 1_000_000_000_000
        assert limit_problems(fine) == []
