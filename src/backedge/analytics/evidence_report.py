"""What was in force when a run was judged: rooms, sandboxes, baselines, and who answered for changed tests."""

from __future__ import annotations

from backedge.analytics.shape import Shape
from backedge.core.evidence.values import ProtectedFile
from backedge.core.findings.ledger import TrackedFinding
from backedge.core.model import HUMAN
from backedge.core.state.run import RunState


class JudgeEvidence(Shape, frozen=True):
    """What was in force when a judge last judged."""

    room: str
    sandbox: str
    baseline: bool
    held: bool
    environment: str
    tree: str
    tool: bool = False
    """Whether it is a tool, whose report backedge reads itself."""


class EvidenceReport(Shape, frozen=True):
    """What was in force for all judges of the run: the weakest of them counts."""

    room: str
    """overlay or copy; none if a judge ran in the workspace itself."""
    sandbox: str
    """What confined the agents; none if nothing did, for at least one of them."""
    baseline: bool
    """Whether every tool judge was run on the files of the start of the run."""
    held: str
    """Whether judges also ran with the protected files as they were: yes, no, or not needed. No if nothing is protected."""
    environment: str
    """Whether the programs and libraries of the judges stayed the same: same, changed, or unknown."""
    judges: dict[str, JudgeEvidence] = {}
    unwatched: tuple[str, ...] = ()
    """Producers whose files nobody compared: only what they returned is known."""


class ProtectedReport(Shape, frozen=True):
    """The change of a protected file."""

    id: str
    file: str
    change: str
    step: str
    lines: str
    question: str
    approved: str
    rejected: str
    tests: tuple[str, ...] = ()
    """The tests that the question is about."""


def evidence_report(state: RunState) -> EvidenceReport | None:
    """What was in force when the judges last judged."""
    judges = {
        name: _judge_evidence(state, name)
        for name in state.graph.steps
        if name in state.graph.judges and state.steps[name].verdict is not None
    }
    if not judges:
        return None
    tools = [each for name, each in judges.items() if state.graph.steps[name].tool]
    agents = [name for name in state.graph.steps if state.steps[name].attempts and _is_agent(state, name)]
    rooms, boxes = (
        {state.steps[name].evidence.room for name in judges if state.graph.steps[name].tool},
        {state.steps[name].evidence.sandbox for name in agents},
    )
    environments = {each.environment for each in tools}
    # A change that somebody has approved, or that its owner made, is part of the reference.
    in_question = any(not each.approved for each in state.protected.values())
    unguarded = any(not state.steps[name].evidence.protects for name in judges)
    return EvidenceReport(
        room="none" if not tools or "" in rooms else "copy" if "copy" in rooms else "overlay",
        sandbox="none" if not boxes or "" in boxes else ", ".join(sorted(boxes)),
        baseline=bool(tools) and all(each.baseline for each in tools),
        held="yes" if any(each.held for each in tools) else "no" if in_question or unguarded else "not needed",
        environment="changed" if "changed" in environments else "same" if environments == {"same"} else "unknown",
        judges=judges,
        unwatched=tuple(
            name for name in agents if name not in state.graph.judges and not state.steps[name].evidence.tree
        ),
    )


def _is_agent(state: RunState, name: str) -> bool:
    """Whether a program or function does the step. Tools judge in rooms, and people need no sandbox."""
    step = state.graph.steps[name]
    return name not in state.graph.engine_judges and not step.tool and step.agents != (HUMAN,)


def failed_before(state: RunState, tracked: TrackedFinding) -> bool:
    """Whether a finding was there before anything was changed."""
    baseline = state.baselines.get(tracked.found_by)
    return baseline is not None and (tracked.finding.test or tracked.finding.description) in baseline.failing


def _judge_evidence(state: RunState, name: str) -> JudgeEvidence:
    seen = state.steps[name].evidence
    return JudgeEvidence(
        seen.room or "none",
        seen.sandbox or "none",
        name in state.baselines,
        seen.held,
        seen.environment or "unknown",
        seen.tree,
        state.graph.steps[name].tool,
    )


def protected_report(changed: ProtectedFile) -> ProtectedReport:
    return ProtectedReport(
        changed.name,
        changed.file,
        changed.change,
        changed.step,
        changed.lines,
        changed.question,
        changed.approved,
        changed.rejected,
        changed.tests,
    )
