"""What a judge said, checked for contradictions, and the verdict that follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from backedge.core.ledger import fingerprints, ledger_key
from backedge.core.model import Finding, Mode, Outcome, Severity, Word
from backedge.core.near import nearest
from backedge.core.state import number
from backedge.core.value import replace

if TYPE_CHECKING:
    from backedge.core.state import RunState
    from backedge.core.workflow import PassRule

GRAVE = (Severity.CRITICAL, Severity.HIGH)


_UNASKED: dict[Mode, tuple[str, ...]] = {
    "answer": ("verdict", "findings", "claims", "decision"),
    "decide": ("verdict", "findings", "claims", "answer"),
}
"""What an outcome says in vain in a mode that asks for something else; in all others an answer and a decision."""


def left_aside(mode: Mode, outcome: Outcome) -> str:
    """What of an outcome is ignored in a mode, as a warning; empty if nothing is."""
    unasked = _UNASKED.get(mode, ("answer", "decision"))
    names = [name for name in unasked if getattr(outcome, name) not in (None, ())]
    said = ", ".join("resolutions" if name == "claims" else name for name in names)
    return f"{said}: ignored, nobody asks for that in mode {mode}" if said else ""


def stated_findings(outcome: Outcome) -> tuple[Finding, ...]:
    """The findings of an outcome; a failing one that only has a summary states that as its one finding."""
    summary = outcome.summary.strip()
    if outcome.verdict != "fail" or outcome.findings or not summary:
        return outcome.findings
    again = any(claim.status == "not_fixed" for claim in outcome.claims)
    return () if again else (Finding(description=summary),)


def contradiction(state: RunState, judge: str, outcome: Outcome) -> str | None:
    """Why a judge's outcome cannot be a verdict; None if it can. The judge is asked again, as after any error."""
    step = state.graph.steps[judge]
    findings = stated_findings(outcome)
    again = [claim.finding for claim in outcome.claims if claim.status == "not_fixed"]
    of_judge = state.steps[judge]
    known = {f"F-{id}" for id in of_judge.open_findings}
    for claim in outcome.claims:
        if claim.finding not in known and not of_judge.unconfirmed.get(number(claim.finding)):
            given = ", ".join(sorted(known)) or "none"
            return f"resolutions name {claim.finding!r}, which is not among the findings to verify ({given})"
        if claim.status == "contested":
            return f"resolutions say that {claim.finding} is contested: a judge says fixed, not_fixed, withdrawn or duplicate"
    for finding in findings:
        if not finding.description.strip():
            return "a finding has no description: say what is wrong"
        for phase in finding.affected_phase:
            if phase not in state.graph.phases:
                return f"affected_phase {phase!r} is unknown: {nearest(phase, state.graph.phases)}"
    if outcome.verdict == "fail" and not findings and not again:
        return "the verdict is fail without findings: say what is wrong, at least in the summary"
    computable = step.passes_if is not None and (findings or outcome.claims or outcome.summary.strip())
    if outcome.verdict is None and not computable:
        return "no verdict: say pass, fail or needs_improvement"
    if step.passes_if is not None:
        return None
    if outcome.verdict == "pass":
        grave = [finding.description for finding in _standing(state, judge, findings) if finding.severity in GRAVE]
        grave += [name for name in again if state.findings[number(name)].finding.severity in GRAVE]
        if grave:
            return f"the verdict is pass, but {grave[0]!r} is critical or high: say fail, or lower the severity"
    return None


def verdict_of(state: RunState, judge: str, outcome: Outcome) -> Word:
    """The verdict of an outcome without contradictions: computed where the step says how, else as stated."""
    rule = state.graph.steps[judge].passes_if
    if rule is None:
        assert outcome.verdict is not None
        return outcome.verdict
    again = (claim.finding for claim in outcome.claims if claim.status == "not_fixed")
    findings = [*outcome.findings, *(state.findings[number(name)].finding for name in again)]
    if outcome.verdict == "fail" and not findings:
        return "fail"
    return computed(rule, _standing(state, judge, findings))


def _standing(state: RunState, judge: str, findings: Sequence[Finding]) -> list[Finding]:
    """The findings that nobody has accepted: what was accepted of a judge does not make its verdict fail again."""
    if not state.accepted:
        return list(findings)
    prints = fingerprints(findings)
    pairs = zip(findings, prints, strict=True)
    return [each for each, print_ in pairs if ledger_key(judge, print_) not in state.accepted]


def computed(rule: PassRule, findings: list[Finding]) -> Word:
    """The verdict that a rule computes from findings."""
    critical = sum(finding.severity is Severity.CRITICAL for finding in findings)
    high = sum(finding.severity is Severity.HIGH for finding in findings)
    blocking = sum(finding.blocking for finding in findings)
    match rule.name:
        case "ai-sdlc":
            return "fail" if blocking or critical >= 2 else "pass"
        case "asp-design":
            return "fail" if critical or high else "pass"
        case "asp-code":
            if critical or high >= 5:
                return "fail"
            return "conditional" if high else "pass"
        case _:
            counts = {level.value: sum(f.severity is level for f in findings) for level in Severity}
            counts["blocking"] = blocking
            return "fail" if any(counts[level] > most for level, most in rule.at_most) else "pass"


def with_stated_findings(outcome: Outcome) -> Outcome:
    findings = stated_findings(outcome)
    return outcome if findings is outcome.findings else replace(outcome, findings=findings)


def with_known_phases(state: RunState, outcome: Outcome) -> Outcome:
    """The outcome with phases as the workflow writes them: judges need not mind capitals."""
    if not any(finding.affected_phase for finding in outcome.findings):
        return outcome
    known = {phase.casefold(): phase for phase in state.graph.phases}
    findings = tuple(
        replace(each, affected_phase=tuple(known.get(phase.casefold(), phase) for phase in each.affected_phase))
        for each in outcome.findings
    )
    return replace(outcome, findings=findings)
