"""Whether a rework made things worse, and whether it can be rolled back.

Compared is what the judges of both versions report as open: the numbers of critical, high, medium and low findings, in
this order. A judge that has judged only one of the two versions does not count: nobody knows what it would have said
about the other.
"""

from __future__ import annotations

from backedge.core import events as e
from backedge.core.feedback.loop import Loop, LoopState
from backedge.core.findings.ledger import TrackedFinding
from backedge.core.model import HUMAN, Severity
from backedge.core.scheduling.staleness import is_fresh
from backedge.core.state.persistent_map import Map
from backedge.core.state.run import Fix, RunState
from backedge.core.text import counted
from backedge.core.value import replace

Counts = tuple[int, ...]
"""The numbers of findings by severity, the gravest first."""


def state_before(state: RunState, fix: Fix) -> RunState:
    """The run as it is, with the steps that a fix can have changed as they were before it."""
    return replace(state, steps={**state.steps, **fix.steps}, findings=fix.findings)


def counts_of(state: RunState, fix: Fix) -> tuple[Counts, Counts]:
    """What the judges of both versions reported open before a fix, and after it."""
    then = state_before(state, fix)
    judges = [name for name in fix.steps if _has_judged(state, name) and _has_judged(then, name)]
    return _open(fix.findings, then, judges), _open(state.findings, state, judges)


def _has_judged(state: RunState, name: str) -> bool:
    """Whether a judge has judged the current versions."""
    return state.steps[name].verdict is not None and is_fresh(state, name)


def _open(findings: Map[int, TrackedFinding], state: RunState, judges: list[str]) -> Counts:
    found = [findings[id].finding.severity for judge in judges for id in state.steps[judge].open_findings]
    return tuple(found.count(severity) for severity in Severity)


def difference(before: Counts, after: Counts) -> str:
    """Two numbers of findings in words: "3 findings instead of 1", or by severity if there are not more."""
    if sum(after) > sum(before):
        return f"{counted(sum(after), 'finding')} instead of {sum(before)}"
    return f"{_by_severity(after)} instead of {_by_severity(before)}"


def _by_severity(counts: Counts) -> str:
    found = (f"{count} {severity}" for count, severity in zip(counts, Severity, strict=True) if count)
    return " and ".join(found) or "none"


def words_of(event: e.RolledBack) -> str:
    """What goes back to which version, and why: "code to version 1: 3 findings instead of 1"."""
    versions = ((name, event.versions.get(name)) for name in event.targets)
    back = ", ".join(f"{name} to version {number}" for name, number in versions if number is not None)
    return f"{back}: {f'{event.by} decided it' if event.by else difference(event.before, event.after)}"


def obstacle(state: RunState, id: str) -> str | None:
    """Why the last fix of a loop cannot be rolled back; None if it can."""
    fix = state.fixes.get(id)
    if fix is None:
        return "it has no fix by steps that made an earlier version"
    if fix.answers_others:
        return "the fix also addressed feedback of steps or people, which would be undone with it"
    if state.restoring is not None:
        return "the files of an earlier rollback are not restored yet"
    for old in fix.loops.values():
        if HUMAN in old.shares:
            return f"a person was asked to fix a part of {old.id}"
        if not _is_as_judges_left_it(state.loop(old.id)):
            return f"{old.id} was decided since"
    for loop in state.loops.values():
        if not loop.by_verdict and not fix.steps.keys().isdisjoint((loop.source, *loop.involved)):
            return f"{loop.id} of {loop.source} is open, and is about the version that would be given up"
    then = state_before(state, fix)
    for name in (*fix.targets, *(old.source for old in fix.loops.values())):
        if not is_fresh(then, name):
            return f"what {name} was made from has changed since"
    return None


def _is_as_judges_left_it(loop: Loop | None) -> bool:
    """Whether only verdicts have changed a loop: it is open, or its judge has passed the fix."""
    if loop is None or loop.open:
        return loop is not None
    return loop.state is LoopState.RESOLVED and loop.resolution is not None and not loop.resolution.by
