"""Termination is arithmetic: E x (S + J) x (1 + R) attempts end every run."""

from __future__ import annotations

from typing import Any

import pytest

from backedge.core.errors import WorkflowError
from backedge.core.workflow.bound import bound_of, max_attempts
from backedge.core.workflow.limits import Limits
from backedge.core.workflow.validate import valid_graph
from tests.core.play import Play, Reply, failed, flow, grows, step

STEPS = (step("plan"), step("design", "plan"), step("review", reviews="design"))


def bound(**limits: Any) -> int | None:
    return max_attempts(flow(*STEPS, limits=limits))


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, 3 * (3 + 1) * (1 + 20)),
        ({"errors_in_a_row": 1}, (3 + 1) * (1 + 20)),
        ({"rounds_total": 0}, 3 * (3 + 1)),
        ({"rounds_total": None, "rounds_per_step": 2}, 3 * (3 + 1) * (1 + 3 * 2)),
        # The legal pairs: design → plan, review → plan and review → design.
        ({"rounds_total": None, "rounds_per_pair": 2}, 3 * (3 + 1) * (1 + 3 * 2)),
        ({"rounds_total": 5, "rounds_per_step": 1}, 3 * (3 + 1) * (1 + 5)),
        ({"attempts": 20}, 20),
        ({"attempts": 500}, 252),
        ({"attempts": 20, "rounds_total": None}, 20),
        ({"attempts": 20, "errors_in_a_row": None}, 20),
        ({"rounds_total": None}, None),
        ({"errors_in_a_row": None}, None),
    ],
)
def test_the_bound_follows_from_the_limits(limits: dict[str, Any], expected: int | None) -> None:
    assert bound(**limits) == expected


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (Limits(errors_in_a_row=5), 5 * 4 * 21),
        (Limits(errors_in_a_row=None), None),
        (Limits(rounds_total=40), 3 * 4 * 41),
        (Limits(rounds_total=2), 3 * 4 * 21),
        (Limits(rounds_total=None), None),
    ],
)
def test_a_judge_with_looser_limits_raises_the_bound(own: Limits, expected: int | None) -> None:
    work = flow(*STEPS[:2], step("review", reviews="design", limits=own))
    assert max_attempts(work) == expected


def test_a_check_of_inputs_may_send_feedback_to_judges() -> None:
    limits = {"rounds_total": None, "rounds_per_pair": 1, "errors_in_a_row": 1}
    plain = flow(*STEPS, step("code", "review"), limits=limits)
    checked = flow(*STEPS, step("code", "review", checked=True), limits=limits)
    assert (max_attempts(plain), max_attempts(checked)) == (5 * (1 + 6), 5 * (1 + 7))


def test_a_workflow_without_a_bound_is_refused() -> None:
    with pytest.raises(WorkflowError, match="nothing bounds this workflow"):
        valid_graph(flow(*STEPS, limits={"rounds_total": None}))


def test_the_worst_possible_agents_stay_within_the_bound() -> None:
    """Every attempt breaks as often as it may, and every review finds something new."""

    def stubborn(play: Play, name: str) -> Reply:
        state = play.s.steps[name]
        if state.errors < 2:
            return Exception("broken")
        return failed(f"{play.now}") if name == "review" else grows(play, name)

    limits = {"rounds_per_loop": None, "rounds_total": 4}
    play = Play(flow(*STEPS, limits=limits), dict.fromkeys(("plan", "design", "review"), stubborn)).run()
    assert play.breach() == "rounds_total"
    assert play.attempts() == {"plan": 3, "design": 15, "review": 15}
    expected = max_attempts(play.workflow)
    assert expected is not None and play.s.attempts <= expected


@pytest.mark.parametrize(
    ("limits", "rounds_by"),
    [
        ({"rounds_total": 3}, "rounds_total"),
        ({"rounds_total": None, "rounds_per_step": 2}, "rounds_per_step"),
        ({"rounds_total": None, "rounds_per_step": None, "rounds_per_pair": 2}, "rounds_per_pair"),
    ],
)
def test_the_bound_names_the_limit_that_it_follows_from(limits: dict[str, Any], rounds_by: str) -> None:
    product = bound_of(flow(*STEPS, limits={**limits, "attempts": 1}))
    assert product is not None
    assert product.rounds_by == rounds_by
    assert product.attempts == product.tries * (product.executions + product.judges) * (1 + product.rounds)
