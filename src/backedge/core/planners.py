"""Who plans: where feedback goes that no single step can mend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backedge.core.model import Feedback, Kind
from backedge.core.routing import legal_targets, steps_of_phase

if TYPE_CHECKING:
    from backedge.core.graph import Graph

PLANNING = "planning"
BY_PLANNER = "planner"
"""The rule that routes what only a planner can mend."""


def finds_planner(feedback: Feedback) -> bool:
    """Whether feedback names nobody and is for a planner: steps are missing, or the design as a whole is wrong."""
    return not feedback.to and feedback.kind in (Kind.DEPENDENCY_MISSING, Kind.ARCHITECTURE_ISSUE)


def planner_for(graph: Graph, source: str) -> str | None:
    """A step that plans, else the nearest of the planning phase, else the root; None for a source that has nobody but
    itself."""
    legal = legal_targets(graph, source)
    planners = [name for name in legal if graph.steps[name].plans]
    return next(iter((*planners, *planning_steps(graph, source))), None)


def planning_steps(graph: Graph, source: str) -> tuple[str, ...]:
    """The nearest steps of the planning phase, else the root, as far as the source may send feedback to them."""
    legal = legal_targets(graph, source)
    if source in graph.steps:
        nearest = steps_of_phase(graph, source, PLANNING)
    else:
        nearest = tuple(name for name in legal if graph.phase_of[name] == PLANNING)
    return (*nearest, *((graph.root,) if graph.root in legal else ()))
