"""Held-out judges: what a step that reworks may know of their findings.

A judge with `hidden: true` judges with files that the producers never see, so that nobody can write code for exactly these
tests. Its findings would give them away. People see all of it; agents that produce learn only that something is wrong.
"""

from __future__ import annotations

from backedge.core.findings.ledger import TrackedFinding
from backedge.core.model import Finding
from backedge.core.value import replace
from backedge.core.workflow.graph import Graph

HELD_OUT = "a held-out check failed"


def is_hidden(graph: Graph, judge: str) -> bool:
    """Whether the findings of a judge are kept from producers."""
    return judge in graph.steps and graph.steps[judge].hidden


def cut_finding(finding: Finding) -> Finding:
    """A finding without anything that describes the check: its severity and its category are left."""
    return Finding(HELD_OUT, finding.severity, blocking=finding.blocking, category=finding.category)


def for_producers(graph: Graph, tracked: TrackedFinding) -> TrackedFinding:
    """A finding as the steps that rework it get it."""
    if not is_hidden(graph, tracked.found_by):
        return tracked
    # Findings of one category look the same, so that they are told as one, with their number.
    alike = f"{HELD_OUT}: {tracked.found_by}: {tracked.finding.category}"
    return replace(tracked, finding=cut_finding(tracked.finding), fingerprint=alike, gap="", note="")
