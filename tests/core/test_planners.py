"""Which step is the planner."""

from __future__ import annotations

from backedge.core.feedback.routing import planner_for, planning_steps
from backedge.core.model import HUMAN
from backedge.core.workflow.validate import valid_graph
from tests.core.play import flow, step

WORK = (
    step("ask", phase="research"),
    step("plan", "ask", phase="planning"),
    step("code", "plan", phase="code"),
    step("review", reviews="code"),
)


def test_the_planner_is_the_nearest_step_of_the_planning_phase_else_the_root() -> None:
    graph = valid_graph(flow(*WORK))
    assert planner_for(graph, "review") == "plan"
    assert planner_for(graph, HUMAN) == "plan"
    assert planner_for(graph, "plan") == "ask"
    assert planner_for(graph, "ask") is None
    assert planning_steps(graph, "code") == ("plan", "ask")
    assert planner_for(valid_graph(flow(step("a"), step("b", "a"))), "b") == "a"
