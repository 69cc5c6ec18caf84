"""Findings in files that no step may write: rework cannot fix them, so a person is asked at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from backedge.core.feedback.loop import Loop
from backedge.core.feedback.routing import file_to_change, legal_targets
from backedge.core.findings.ledger import TrackedFinding
from backedge.core.state.run import RunState
from backedge.core.text import counted
from backedge.core.workflow.definition import Step
from backedge.core.workflow.globs import matches_any

MOST_NAMED = 3
"""How many files, and how many findings of one file, to name."""


def unwritable_reason(state: RunState, judge: str, loop: Loop, ids: Iterable[int]) -> str:
    """Why rework cannot fix these findings of a judge; empty if it can, or if that is not known.

    A failing test names the file of the test, and what it tests may be elsewhere: findings of tests are left out.
    """
    graph = state.graph
    if graph.steps[judge].tests or judge in graph.engine_judges:
        return ""
    placed = [(tracked, file) for id in ids if (file := file_to_change((tracked := state.findings[id]).finding))]
    if not placed:
        return ""
    everybody = [graph.steps[name] for name in legal_targets(graph, judge)]
    found: list[tuple[TrackedFinding, str]] = []
    asked: dict[str, Step] = {}
    for tracked, file in placed:
        if any(step.writes and not step.workspace and matches_any(step.writes, file) for step in everybody):
            continue
        getting = [graph.steps[name] for name, share in loop.shares.items() if tracked.id in share.findings]
        for steps in (everybody, getting):
            if _none_may_write(steps, file):
                found.append((tracked, file))
                asked |= {step.name: step for step in steps}
                break
    if not found:
        return ""
    named: dict[str, list[str]] = {}
    for tracked, _ in found:
        named.setdefault(tracked.finding.file or "", []).append(tracked.name)
    places = ", ".join(f"{file!r} ({_few(names)})" for file, names in list(named.items())[:MOST_NAMED])
    if len(named) > MOST_NAMED:
        places += f" and {counted(len(named) - MOST_NAMED, 'more file')}"
    may = "; ".join(f"{step.name} may write {', '.join(step.writes or ()) or 'nothing'}" for step in asked.values())
    who, others = "no step may write", [step.name for step in everybody if step.name not in asked]
    if others:
        who = f"{' and '.join(asked)} may not write"
    send = f"reassign it ({', '.join(others)}), " if others else ""
    return f"{who} {places}; {may}: {send}fix it yourself and resolve, or accept it; `writes` can allow it"


def _few(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    left = len(names) - MOST_NAMED
    return ", ".join(names) if left < 2 else f"{', '.join(names[:MOST_NAMED])} and {left} more"


def _none_may_write(steps: Sequence[Step], file: str) -> bool:
    """Whether it is certain that none of the steps may write a file, and that they write files at all. In another
    workspace, the files of findings may be named from there or from here."""
    if not any(step.writes for step in steps) or any(step.writes is None or step.workspace for step in steps):
        return False
    return not any(matches_any(step.writes or (), file) for step in steps)
