"""Changed tests and changed configuration of judges: who answers for them, and what the answer does.

A producer may change protected files; honest work does. Each change is shown to the reviewers, whose pass approves it. If
a tool judge finds that something ran at the start of the run and no longer does, or passes only with the new version of a
test, the change is in question: it counts only if a reviewer or a person approves it. If the change hides a failure that
was there at the start, the reviewer has to approve it by its id.
"""

from __future__ import annotations

from collections.abc import Iterable

from backedge.core import events as e
from backedge.core.evidence.values import Evidence, ProtectedFile, file_key
from backedge.core.model import Finding, Outcome, Severity, VerdictWord
from backedge.core.state.run import Running, RunState, number
from backedge.core.transaction import Transaction
from backedge.core.value import replace

CATEGORY = "evidence"
"""The category of findings about protected files."""
MOST_NAMED = 5
"""How many changes a question to a person names."""


def changes_to_review(state: RunState, judge: str) -> tuple[int, ...]:
    """The changes that a reviewer is told about when it starts: those of steps before it that nobody approved. What a
    person has rejected is not for reviewers."""
    if judge not in state.graph.judges or state.graph.steps[judge].tool or not state.protected:
        return ()
    before = state.graph.prerequisites[judge]
    return tuple(each.id for each in _reviewable(state) if each.step in before)


def _reviewable(state: RunState) -> Iterable[ProtectedFile]:
    return (each for each in state.protected.values() if not each.approved and not each.by_person)


def approval_problem(running: Running, outcome: Outcome) -> str | None:
    """Why the approvals of an outcome cannot be read; None if they can."""
    told = {f"P-{id}" for id in running.told}
    for approval in outcome.approvals:
        if approval.change not in told:
            known = ", ".join(sorted(told)) or "none"
            return f"approvals name {approval.change!r}, which is not among the changes to review ({known})"
    rejected = [each.change for each in outcome.approvals if each.status == "rejected"]
    if rejected and outcome.verdict in ("pass", "needs_improvement"):
        return f"the verdict is {outcome.verdict}, but {rejected[0]} is rejected: say fail, or approve the change"
    return None


def with_rejections(state: RunState, outcome: Outcome, seen: tuple[Finding, ...]) -> Outcome:
    """The outcome of a judge as a fail, with a finding for each change that it rejects and those that backedge has `seen`;
    the outcome itself if there are none."""
    rejected = {number(each.change): each for each in outcome.approvals if each.status == "rejected"}
    own = tuple(_rejection(each, rejected[each.id].note) for each in state.protected.values() if each.id in rejected)
    if not own and not seen:
        return outcome
    return replace(outcome, verdict="fail", findings=(*outcome.findings, *own, *seen))


def _rejection(changed: ProtectedFile, note: str) -> Finding:
    why = note or changed.question
    return _finding(changed, f"the change of {changed.file} is rejected" + (f": {why}" if why else ""))


def _finding(changed: ProtectedFile, description: str) -> Finding:
    return Finding(
        description=description,
        severity=Severity.HIGH,
        category=CATEGORY,
        evidence="\n".join(changed.tests),
        file=changed.file,
        blames=changed.step,
        suggested_fix=f"restore {changed.file} as it was, and fix the code instead",
    )


def answer_as_reviewer(tx: Transaction, judge: str, running: Running, outcome: Outcome, word: VerdictWord) -> None:
    """Record what a reviewer's verdict says about the changes it was told about. A verdict other than fail approves all of
    them but those that hide a failure of the start, unless it answers them one by one. With `on_protected: ask`, only
    people approve."""
    changes = [each for each in _reviewable(tx.state) if each.id in running.told]
    told, red = tuple(each.id for each in changes), {each.id for each in changes if each.red}
    answers = {number(each.change): each.status for each in outcome.approvals}
    approved: tuple[int, ...] = ()
    if may_approve(tx.state, judge) and (answers or word != "fail"):
        approved = tuple(id for id in told if (answers.get(id) == "approved" if answers else id not in red))
    rejected = tuple(id for id in told if answers.get(id) == "rejected")
    if approved:
        tx.add(e.ProtectedAnswered(tx.now, approved, "approved", judge, by_id=bool(answers)))
    if rejected:
        tx.add(e.ProtectedAnswered(tx.now, rejected, "rejected", judge))


def may_approve(state: RunState, judge: str) -> bool:
    """Whether a reviewer may approve changes. One that a planner added may not, in a workflow that leaves the judges to the
    file: an agent must not choose who answers for tests."""
    is_planned = judge in state.specs and not any(step.plans_judges for step in state.workflow.steps)
    return state.workflow.on_protected == "review" and not is_planned


def findings_of(state: RunState, judge: str, evidence: Evidence) -> tuple[Finding, ...]:
    """What a judge has to report about protected files without asking: nobody may approve the change, or it was rejected
    and is still there."""
    if judge not in state.graph.judges:
        return ()
    refuse = state.workflow.on_protected == "refuse"
    found: dict[str, Finding] = {}
    for question in evidence.questions:
        key = file_key(evidence.workspace, question.file)
        before = state.protected.get(key)
        if before is None or before.digest != question.digest:
            step = before.step if before else ""
            before = ProtectedFile(0, question.file, "changed", question.digest, step, 0, evidence.workspace)
        if before.rejected or (refuse and not before.approved):
            changed = replace(before, questions={judge: question})
            found[key] = _finding(changed, f"{question.file}: {question.reason}")
    for key, each in state.protected.items():
        if each.by_person and each.attempt and judge in each.questions and key not in found:
            found[key] = _finding(each, f"{each.file}: {each.questions[judge].reason}")
    return tuple(found.values())


def unanswered_changes(state: RunState) -> tuple[ProtectedFile, ...]:
    """The changes that a person has to answer for at the end: those in question, and those that were rejected and are
    still there, unless a person has accepted something anyway."""
    return tuple(
        each
        for each in state.protected.values()
        if not each.approved and (not state.has_accepted if each.rejected else each.questions)
    )


def question_text(changes: tuple[ProtectedFile, ...]) -> str:
    """What a person is asked about changes, in a sentence."""
    named = "; ".join(_told(each) for each in changes[:MOST_NAMED])
    more = f" and {len(changes) - MOST_NAMED} more" if len(changes) > MOST_NAMED else ""
    return f"protected files were changed: {named}{more}; approve counts the change, reject sends it back"


def _told(changed: ProtectedFile) -> str:
    what = f"{changed.step} {changed.change} {changed.file}" if changed.step else changed.file
    why = changed.question or f"rejected by {changed.rejected}"
    return f"{what} ({why})"


def rejections(state: RunState, ids: tuple[int, ...], note: str) -> dict[str, tuple[Finding, ...]]:
    """The findings for changes that a person rejects, by the judge that reports them; by the empty name if none is left."""
    found: dict[str, tuple[Finding, ...]] = {}
    for changed in state.protected.values():
        if changed.id in ids:
            judge = _reporting_judge(state, changed)
            found[judge] = (*found.get(judge, ()), _rejection(changed, note))
    return found


def _reporting_judge(state: RunState, changed: ProtectedFile) -> str:
    """The judge that asked, else the reviewer that rejected the change, else a judge of the step that made it."""
    judges = (*changed.questions, changed.rejected, *state.graph.judges_of.get(changed.step, ()))
    return next((name for name in judges if name in state.graph.judges and state.steps[name].verdict is not None), "")
