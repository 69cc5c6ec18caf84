"""Why a story is blocked: the limit it has reached, what is wrong now, and which answers its question has."""

from __future__ import annotations

from backedge.core.findings.held_out import for_producers
from backedge.core.model import Breach
from backedge.core.state.run import ASKED, Escalation, RunState
from backedge.core.text import shortened
from backedge.core.value import Value
from backedge.stories.rules.assessor import Story as Assessed
from backedge.stories.rules.assessor import limit_reached
from backedge.stories.rules.refinement import Refinement, finding_lines

_REFINEMENTS = ("rounds_per_loop", "rounds_total")
_MAXIMUM = "Max refinement attempts"


class Block(Value, frozen=True):
    """Why a story is blocked; all empty if it is not."""

    reason: str = ""
    at: float | None = None
    diagnostic: str = ""
    error: str = ""
    findings: tuple[str, ...] = ()
    """What the last rejection found, one per line, worst first."""
    escalation: str = ""
    choices: tuple[str, ...] = ()
    """The answers to its question."""
    breach: Breach | None = None
    step: str = ""
    """The step whose limits apply."""


def block_of(story: Refinement, outcome: str) -> Block:
    """Why a story is blocked."""
    state = story.state
    if state.ended is not None and outcome in ("failed", "cancelled"):
        reason = shortened(state.ended.reason) or outcome
        return Block(reason, state.ended.at, f"the run {state.run} is {outcome}: {reason}", reason)
    if outcome == "accepted":
        return Block(diagnostic=_left(state))
    packet = next((each for each in state.escalations.values() if each.reason != ASKED), None)
    if packet is None or outcome != "waiting":
        return Block()
    limit = _limit(packet)
    loop = state.loops.get(packet.loop or "")
    findings = tuple(finding_lines(state, [loop])) if loop is not None else ()
    return Block(
        limit if packet.breach is None else _with_failure(limit, findings, story.error),
        packet.opened_at,
        f"{packet.id} in the inbox: {shortened(packet.reason)}",
        _error(state, limit),
        findings,
        packet.id,
        packet.options,
        packet.breach,
        loop.source if loop is not None and loop.source in state.steps else packet.step or "",
    )


def _limit(packet: Escalation) -> str:
    """The limit that was reached, in the words that people know; otherwise the reason of the question."""
    breach = packet.breach
    if breach is not None and breach.limit in _REFINEMENTS:
        return limit_reached(Assessed("", refinement_count=int(breach.count), max_refinements=int(breach.bound)))
    if breach is not None and breach.limit == "recoveries_total":
        count, bound = int(breach.count), int(breach.bound)
        return limit_reached(Assessed("", recoveries=count, max_recoveries=bound))
    return shortened(packet.reason)


def _with_failure(limit: str, findings: tuple[str, ...], error: str) -> str:
    """The limit, and the last failure: the worst finding, or the error of the agent."""
    found = [line for line in findings if not line.startswith("  ")]
    last = found[0] if found else error
    words = shortened(last.partition("] ")[2] or last)
    if not last or words in limit:
        return limit
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return f"{limit}: {shortened(last)}{more}"


def _error(state: RunState, limit: str) -> str:
    if not limit.startswith(_MAXIMUM):
        return ""
    breaker = "Circuit breaker" if state.workflow.limits.rounds_per_loop is not None else "No more rounds in this run"
    return f"{breaker}: maximum refinement attempts reached{limit.removeprefix(_MAXIMUM)}"


def _left(state: RunState) -> str:
    """What a person accepted or skipped, in one line."""
    left = [each for each in state.findings.values() if each.status in ("accepted", "deferred")]
    known = [for_producers(state.graph, each).finding for each in left]
    issues = "; ".join(f"[{finding.word or finding.severity}] {shortened(finding.description)}" for finding in known)
    return shortened(f"done by decision, not by its reviews: {issues or 'something was skipped'}")
