"""Folds the events of evidence: what backedge saw of attempts, and who answered for changed tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from backedge.core import events as e
from backedge.core.evidence.values import Evidence, ProtectedFile, file_key
from backedge.core.state.run import RunState, StepState, with_step
from backedge.core.value import replace

MOST_FILES = 5_000
"""How many of the files that a step changed are remembered."""


def baseline_recorded(state: RunState, event: e.BaselineRecorded) -> RunState:
    return replace(state, baselines={**state.baselines, event.baseline.judge: event.baseline})


def evidence_recorded(state: RunState, event: e.EvidenceRecorded) -> RunState:
    seen, step = event.evidence, state.steps[event.step]
    files = tuple(sorted({*step.files, *seen.files}))[:MOST_FILES] if seen.files else step.files
    changed = replace(step, evidence=seen, files=files)
    if state.graph.steps[event.step].thresholds is not None and seen.files:
        changed = replace(changed, unapproved=tuple(sorted({*step.unapproved, *seen.files}))[:MOST_FILES])
    state = with_step(state, event.step, changed)
    for judge, names in event.overtakes.items():
        state = with_step(state, judge, _overtaken(state.steps[judge], names))
    if seen.tree:
        state = replace(state, trees={**state.trees, seen.workspace: seen.after or seen.tree})
    if event.step in state.graph.judges:
        judged = step.artifact is not None and step.artifact.attempt == event.attempt
        return _with_questions(state, event) if judged else state
    return _with_changes(state, event) if seen.tree else state


def _overtaken(reviewer: StepState, names: tuple[str, ...]) -> StepState:
    """A reviewer after another step changed files that it has judged, or is judging."""
    running = reviewer.running
    if running is not None:
        running = replace(running, overtaken=tuple(dict.fromkeys((*running.overtaken, *names))))
    overtaken = tuple(dict.fromkeys((*reviewer.overtaken, *names)))
    return replace(reviewer, overtaken=overtaken, running=running)


def _with_changes(state: RunState, event: e.EvidenceRecorded) -> RunState:
    """The protected files after a producer's attempt. A file that is again as it was at the start is left out; one that
    did not change since keeps what was said about it. What only a judge noticed stays until it judges again."""
    noticed = {key: each for key, each in state.protected.items() if not each.attempt}
    return _changed(state, event.evidence, noticed, [state.protected], event.step, event.attempt)


def _changed(
    state: RunState,
    seen: Evidence,
    noticed: Mapping[str, ProtectedFile],
    known: Sequence[Mapping[str, ProtectedFile]],
    step: str,
    attempt: int,
) -> RunState:
    """The protected files of a workspace as they were seen, with what only judges noticed there. What was said about a
    version of a file that is `known` stays."""
    count = state.protected_ever
    changed = {key: each for key, each in state.protected.items() if each.workspace != seen.workspace}
    changed |= {key: each for key, each in noticed.items() if each.workspace == seen.workspace}
    for each in seen.changes:
        key = file_key(seen.workspace, each.file)
        same = (found for files in known if (found := files.get(key)) is not None and found.digest == each.digest)
        before = next(same, None)
        if before is not None:
            changed[key] = before
            continue
        count += 1
        changed[key] = ProtectedFile(
            count,
            each.file,
            each.change,
            each.digest,
            step,
            attempt,
            seen.workspace,
            each.lines,
            approved=step if each.owned else "",
        )
    return replace(state, protected=changed, protected_ever=count)


def with_restored(state: RunState, seen: Evidence, before: Mapping[str, ProtectedFile]) -> RunState:
    """The run after a rollback restored the files of a workspace. What was said about a version of a protected file counts
    again, if the file has that version again."""
    if not seen.tree:
        return state
    state = replace(state, trees={**state.trees, seen.workspace: seen.tree})
    noticed = {key: each for key, each in before.items() if not each.attempt}
    return _changed(state, seen, noticed, [before, state.protected], "", 0)


def _with_questions(state: RunState, event: e.EvidenceRecorded) -> RunState:
    """The protected files with the questions of a judge's last attempt, and no earlier ones of the same judge. A change
    that a person rejected stays in question until it is undone."""
    name, seen, count = event.step, event.evidence, state.protected_ever
    protected: dict[str, ProtectedFile] = {}
    for key, each in state.protected.items():
        if name not in each.questions or (each.by_person and each.attempt):
            protected[key] = each
            continue
        left = {judge: question for judge, question in each.questions.items() if judge != name}
        if left or each.attempt or each.approved:
            protected[key] = replace(each, questions=left)
    for question in seen.questions:
        key = file_key(seen.workspace, question.file)
        before = state.protected.get(key)
        if before is None or before.digest != question.digest:
            count += 1
            step = before.step if before else ""
            changed = ProtectedFile(count, question.file, "changed", question.digest, step, 0, seen.workspace)
        else:
            changed = protected.get(key, before)
        changed = replace(changed, questions={**changed.questions, name: question})
        # A reviewer that passed the work without naming the change may not have known what it hides.
        passed = question.red and changed.approved in state.graph.judges and not changed.by_id
        protected[key] = replace(changed, approved="") if passed else changed
    return replace(state, protected=protected, protected_ever=count)


def protected_answered(state: RunState, event: e.ProtectedAnswered) -> RunState:
    by, approves = event.by or "a person", event.status == "approved"
    protected = {
        key: replace(
            each,
            approved=by if approves else "",
            rejected="" if approves else by,
            by_id=approves and (event.person or event.by_id),
            by_person=event.person and not approves,
        )
        if each.id in event.changes
        else each
        for key, each in state.protected.items()
    }
    return replace(state, protected=protected)


def verdicts_voided(state: RunState, event: e.VerdictsVoided) -> RunState:
    for name in event.judges:
        voided = replace(state.steps[name], rejudge=True, rejudged_at=state.rounds + 1)
        state = with_step(state, name, voided)
    return state
