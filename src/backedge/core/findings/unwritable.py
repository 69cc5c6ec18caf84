"""Findings in files that no step may write: rework cannot fix them, so a person is asked at once."""

from __future__ import annotations

from collections.abc import Iterable

from backedge.core.feedback.routing import file_to_change, legal_targets
from backedge.core.state.run import RunState
from backedge.core.workflow.globs import matches_any


def unwritable_reason(state: RunState, judge: str, ids: Iterable[int]) -> str:
    """Why rework cannot fix these findings of a judge; empty if it can, or if that is not known.

    A failing test names the file of the test, and what it tests may be elsewhere: findings of tests are left out.
    """
    graph = state.graph
    if graph.steps[judge].tests or judge in graph.engine_judges:
        return ""
    placed = [(tracked, file) for id in ids if (file := file_to_change((tracked := state.findings[id]).finding))]
    if not placed:
        return ""
    targets = [graph.steps[name] for name in legal_targets(graph, judge)]
    # In another workspace, the files of findings may be named from there or from here.
    if not any(step.writes for step in targets) or any(step.writes is None or step.workspace for step in targets):
        return ""
    found = [tracked for tracked, file in placed if not any(matches_any(step.writes or (), file) for step in targets)]
    if not found:
        return ""
    places = ", ".join(f"{each.name} in {each.finding.file!r}" for each in found)
    may = "; ".join(f"{step.name} may write {', '.join(step.writes) if step.writes else 'nothing'}" for step in targets)
    return f"no step may write the file of {places} ({may}): fix it yourself and resolve, or accept it; `writes` can allow it"
