"""Reads the outcome of a judge: checks it for contradictions, and derives the verdict and what it means for the ledger."""

from __future__ import annotations

from collections.abc import Sequence

from backedge.core import events as e
from backedge.core.findings.answerable import answerable
from backedge.core.findings.disputes import is_disputed
from backedge.core.findings.identity import fingerprints, lies_in, normalised
from backedge.core.findings.ledger import TrackedFinding, ledger_key
from backedge.core.model import (
    SERIOUS,
    Change,
    Finding,
    FindingResolution,
    Mode,
    Outcome,
    Severity,
    Status,
    VerdictWord,
)
from backedge.core.state.run import Running, RunState, number
from backedge.core.suggestions import did_you_mean
from backedge.core.text import shown
from backedge.core.value import Value, replace
from backedge.core.workflow.checks import Check
from backedge.core.workflow.definition import PassRule
from backedge.core.workflow.profiles import PROFILES

_IGNORED: dict[Mode, tuple[str, ...]] = {
    "answer": ("verdict", "findings", "resolutions", "decision", "approvals"),
    "decide": ("verdict", "findings", "resolutions", "answer", "approvals"),
}
"""The fields of an outcome that a mode ignores. All other modes ignore `answer` and `decision`."""


def ignored_fields_warning(mode: Mode, outcome: Outcome) -> str:
    """A warning that names the fields of an outcome that its mode ignores; empty if there are none."""
    ignored = _IGNORED.get(mode, ("answer", "decision"))
    names = ", ".join(name for name in ignored if getattr(outcome, name) not in (None, ()))
    return f"{names}: ignored, because mode {mode} does not ask for it" if names else ""


def stated_findings(outcome: Outcome) -> tuple[Finding, ...]:
    """The findings of an outcome. If a fail has only a summary, the summary becomes its one finding."""
    summary = outcome.summary.strip()
    if outcome.verdict != "fail" or outcome.findings or not summary:
        return outcome.findings
    has_not_fixed = any(said.status == "not_fixed" for said in outcome.resolutions)
    return () if has_not_fixed else (Finding(description=summary),)


def contradiction(state: RunState, judge: str, running: Running, outcome: Outcome) -> str | None:
    """Why a judge's outcome cannot be a verdict; None if it can. The judge is asked again, as after any error."""
    step = state.graph.steps[judge]
    findings = stated_findings(outcome)
    not_fixed = [said.finding for said in outcome.resolutions if said.status == "not_fixed"]
    known = answerable(state, judge, running) if outcome.resolutions else ()
    for said in outcome.resolutions:
        if said.finding not in known:
            to_verify = ", ".join(sorted(f"F-{id}" for id in state.steps[judge].open_findings)) or "none"
            return f"resolutions name {said.finding!r}, which is not among the findings to verify ({to_verify})"
        if said.status == "contested":
            return (
                f"resolution of {said.finding} is 'contested': a judge may report only fixed, not_fixed, withdrawn or "
                "duplicate"
            )
    for finding in findings:
        if not finding.description.strip():
            return "a finding has no description: say what is wrong"
        for phase in finding.affected_phase:
            if phase not in state.graph.phases:
                return f"affected_phase {phase!r} is unknown: {did_you_mean(phase, state.graph.phases)}"
    if outcome.verdict == "fail" and not findings and not not_fixed:
        return "the verdict is fail without findings: say what is wrong, at least in the summary"
    words = outcome.summary.strip()
    computable = step.passes_if is not None and (findings or outcome.lists_findings or outcome.resolutions or words)
    if outcome.verdict is None and not computable:
        return f"no verdict: say pass, fail or needs_improvement{f'; it said: {shown(words, 300)}' if words else ''}"
    if step.passes_if is not None:
        return None
    if outcome.verdict == "pass":
        serious = [each.description for each in _not_accepted(state, judge, findings) if each.severity in SERIOUS]
        serious += [name for name in not_fixed if state.findings[number(name)].finding.severity in SERIOUS]
        if serious:
            return f"the verdict is pass, but {serious[0]!r} is critical or high: say fail, or lower the severity"
    return None


def verdict_of(state: RunState, judge: str, outcome: Outcome) -> VerdictWord:
    """The verdict of an outcome without contradictions: computed if the step has `passes_if`, else as the judge said. A
    stated fail is never turned into a pass."""
    rule = state.graph.steps[judge].passes_if
    if rule is None or outcome.verdict == "fail":
        assert outcome.verdict is not None
        return outcome.verdict
    not_fixed = (said.finding for said in outcome.resolutions if said.status == "not_fixed")
    findings = [*outcome.findings, *(state.findings[number(name)].finding for name in not_fixed)]
    return verdict_by_rule(rule, _not_accepted(state, judge, findings))


def overruled_warning(state: RunState, judge: str, outcome: Outcome, word: VerdictWord | None) -> str:
    """A warning that `passes_if` forbids the verdict that a judge states; empty if it does not."""
    if word != "fail" or outcome.verdict in (None, "fail"):
        return ""
    rule = state.graph.steps[judge].passes_if
    assert rule is not None
    return f"the verdict {outcome.verdict} counts as fail: passes_if ({rule.text}) does not allow what {judge!r} found"


def _not_accepted(state: RunState, judge: str, findings: Sequence[Finding]) -> list[Finding]:
    """The findings that no person has accepted. An accepted finding does not make a verdict of its judge fail again."""
    if not state.accepted:
        return list(findings)
    pairs = zip(findings, _prints(state, judge, findings), strict=True)
    return [each for each, print_ in pairs if ledger_key(judge, print_) not in state.accepted]


def verdict_by_rule(rule: PassRule, findings: list[Finding]) -> VerdictWord:
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
            return "fail" if any(counts[level] > allowed for level, allowed in rule.at_most) else "pass"


def with_stated_findings(outcome: Outcome) -> Outcome:
    findings = stated_findings(outcome)
    return outcome if findings is outcome.findings else replace(outcome, findings=findings)


def with_known_phases(state: RunState, outcome: Outcome) -> Outcome:
    """The outcome with phases spelled as in the workflow. Judges may use other capitals, and the words that the profile
    has for several phases."""
    if not any(finding.affected_phase for finding in outcome.findings):
        return outcome
    known = _words_for_several(state) | {phase.casefold(): (phase,) for phase in state.graph.phases}
    findings = tuple(replace(each, affected_phase=_spelled(each.affected_phase, known)) for each in outcome.findings)
    return replace(outcome, findings=findings)


def phases_meant(state: RunState, word: str) -> tuple[str, ...]:
    """The phases that a person names: one, or several with a word of the profile; empty if the word is unknown."""
    return (word,) if word in state.graph.phases else _words_for_several(state).get(word.casefold(), ())


def _words_for_several(state: RunState) -> dict[str, tuple[str, ...]]:
    """The words that the profile has for several phases, in lower case, and the phases of the workflow among these."""
    return {
        word: meant
        for word, several in PROFILES[state.workflow.profile].phase_words
        if (meant := tuple(phase for phase in several if phase in state.graph.phases))
    }


def _spelled(phases: tuple[str, ...], known: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each for phase in phases for each in known.get(phase.casefold(), (phase,))))


ACTIONABLE = (Status.OPEN, Status.NOT_FIXED, Status.REGRESSED)


_NOT_A_DEFECT_BEFORE = (Status.WITHDRAWN, Status.DUPLICATE, Status.DEFERRED, Status.ROLLED_BACK)
"""The statuses from which a finding that is reported again is open, as if it were new."""


REMOVED_STATUSES = (Status.FIXED, Status.WITHDRAWN, Status.DUPLICATE)


class VerdictReading(Value, frozen=True):
    """What one verdict changes in the ledger."""

    word: VerdictWord
    sightings: tuple[e.Sighting, ...]
    settled: tuple[tuple[int, Status], ...]
    ask: bool = False
    """Whether a person has to be asked about new findings that the judge could have reported earlier."""

    @property
    def actionable(self) -> tuple[int, ...]:
        return tuple(sighting.id for sighting in self.sightings if sighting.status in ACTIONABLE)


def read_verdict(
    state: RunState,
    judge: str,
    findings: tuple[Finding, ...],
    resolutions: tuple[FindingResolution, ...],
    word: VerdictWord,
    changed: list[Change],
    later: bool,
) -> VerdictReading:
    """The status that a verdict gives each finding. `later` means that the loop of the judge is already open: then new
    findings that the judge could have reported earlier follow the policy of the workflow."""
    sightings: dict[int, e.Sighting] = {}
    ask = False
    new: dict[str, int] = {}
    fails = word == "fail"
    for finding, print_ in zip(findings, _prints(state, judge, findings), strict=True):
        key = ledger_key(judge, print_)
        id = state.finding_by_key.get(key)
        tracked = state.findings[id] if id is not None else None
        unknown = tracked is None or tracked.status is Status.ROLLED_BACK
        authored = unknown and later and lies_in(finding, changed)
        moved = tracked is not None and _has_moved(state, judge, tracked, finding)
        if key in state.accepted and not moved:
            status = Status.ACCEPTED
        elif not fails:
            status = Status.DEFERRED
        else:
            late = later and not authored and (unknown or (tracked is not None and tracked.status is Status.DEFERRED))
            policy = state.workflow.policy_for(finding.severity) if late else "rework"
            ask = ask or (policy == "ask" and unknown)
            status = Status.DEFERRED if policy == "defer" else _seen_again(state, tracked)
        if id is None:
            # One report may contain the same defect twice.
            id = new.setdefault(print_, len(state.findings) + len(new) + 1)
        text = finding if tracked is None or tracked.finding != finding else None
        sightings.setdefault(id, e.Sighting(id, status, text, print_ if tracked is None else "", authored, moved))
    reported = {number(said.finding): said.status for said in resolutions}
    for id, answer in reported.items():
        if answer == "not_fixed" and id not in sightings:
            sightings[id] = e.Sighting(id, _seen_again(state, state.findings[id]) if fails else Status.DEFERRED)
    if fails and not any(sighting.status in ACTIONABLE for sighting in sightings.values()):
        word = "needs_improvement"
    complete = state.graph.steps[judge].complete or word != "fail"
    settled = []
    before = state.steps[judge]
    unmentioned = before.unmentioned if word != "fail" else tuple(id for id in reported if before.unconfirmed.get(id))
    for id in (*before.open_findings, *unmentioned):
        if id not in sightings:
            default = Status.FIXED if complete else Status.UNCONFIRMED
            status = Status(reported[id]) if id in reported else default
            # In a dispute, the fix of this finding is exactly what the other finding objects to.
            settled.append((id, Status.CONTESTED if status is Status.FIXED and is_disputed(state, id) else status))
    return VerdictReading(word, tuple(sightings.values()), tuple(settled), ask and word == "fail")


def _prints(state: RunState, judge: str, findings: Sequence[Finding]) -> list[str]:
    """The identities of the findings of a judge. A gate that misses its threshold is one defect per request, and a check
    whose positions differ is one defect, whatever was measured: the values are not part of its identity."""
    engine_judge = state.graph.engine_judges.get(judge)
    if engine_judge is None:
        return fingerprints(findings)
    requests = ["" if isinstance(engine_judge, Check) else each.suggested_fix or "" for each in findings]
    named = (replace(each, description=f"{judge}: {ask}") for each, ask in zip(findings, requests, strict=True))
    return fingerprints(named)


def _has_moved(state: RunState, judge: str, tracked: TrackedFinding, finding: Finding) -> bool:
    """Whether a gate or check measured other values than those known, or than those that a person has accepted."""
    if judge not in state.graph.engine_judges:
        return False
    return normalised(tracked.finding.description) != normalised(finding.description) or (
        tracked.key in state.accepted and tracked.status is not Status.ACCEPTED
    )


def _seen_again(state: RunState, tracked: TrackedFinding | None) -> Status:
    if tracked is None or tracked.status in _NOT_A_DEFECT_BEFORE:
        return Status.OPEN
    if tracked.status is Status.CONTESTED and is_disputed(state, tracked.id):
        return Status.CONTESTED
    return Status.REGRESSED if tracked.status is Status.FIXED else Status.NOT_FIXED


def changes_since(state: RunState, judge: str) -> list[Change]:
    """Where the artifacts that a judge judges differ from the versions that it judged last."""
    verdict = state.steps[judge].verdict
    if verdict is None:
        return []
    found: list[Change] = []
    for name, version in verdict.versions.items():
        step = state.steps.get(name)
        if step is None or step.artifact is None:
            continue  # a planner has removed the judged step
        artifact = step.artifact
        found += [change for made, changed in artifact.changes if made > version for change in changed]
    return found
