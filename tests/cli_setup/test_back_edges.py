"""The lines beside a list of steps."""

from __future__ import annotations

from backedge.cli.back_edges import gutter

STEPS = ["plan", "design", "review", "code", "test"]


def test_a_back_edge_goes_from_the_judge_up_to_the_step_that_caused_the_defect() -> None:
    assert gutter(STEPS, [("review", ["plan"])]) == ["╭▶", "│ ", "╰─", "  ", "  "]
    assert gutter(STEPS, [("test", ["code", "plan"])]) == ["╭▶", "│ ", "│ ", "├▶", "╰─"]


def test_two_back_edges_have_a_lane_each() -> None:
    assert gutter(STEPS, [("review", ["design"]), ("test", ["plan"])]) == ["╭──▶", "│ ╭▶", "│ ╰─", "│   ", "╰───"]
    assert gutter(STEPS, [("code", ["plan"]), ("test", ["design"])]) == ["╭──▶", "│ ╭▶", "│ │ ", "╰─┼─", "  ╰─"]


def test_an_edge_of_a_step_that_is_not_listed_is_not_drawn() -> None:
    assert gutter(STEPS, [("human", ["plan"]), ("review", ["gone"]), ("plan", ["plan"])]) == [""] * 5
