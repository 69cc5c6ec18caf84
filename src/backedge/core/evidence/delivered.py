"""Judged is delivered: a verdict counts only for the files that the run leaves behind.

A later step may change files that were judged before. When everything else is done, the judges of such files judge once
more, at most once for each counted round, so that the run still ends.
"""

from __future__ import annotations

from backedge.core import events as e
from backedge.core.escalation.opening import escalate_step
from backedge.core.evidence.values import Evidence
from backedge.core.scheduling.skipping import is_skipped
from backedge.core.state.run import Running, RunState
from backedge.core.transaction import Transaction
from backedge.core.value import replace

MOST_NAMED = 20
"""How many files are named for each judge."""


def judged_files(state: RunState, step: str, files: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """For each reviewer that has judged or is judging: which of the files that a step changed it judges. The judges of the
    step itself are left out, because they judge the new version anyway."""
    found: dict[str, tuple[str, ...]] = {}
    if not files:
        return found
    changed = set(files)
    for judge, each in state.graph.steps.items():
        reviewer = state.steps[judge]
        if not each.judges or each.tool or step in each.judges or not (reviewer.verdict or reviewer.running):
            continue
        judged = {file for subject in each.judges for file in state.steps[subject].files}
        if common := sorted(changed & judged):
            found[judge] = tuple(common[:MOST_NAMED])
    return found


def with_later_tree(state: RunState, step: str, running: Running, seen: Evidence) -> Evidence:
    """What a judge's attempt saw, with the files as another attempt left them while it judged."""
    last = state.trees.get(seen.workspace)
    if step not in state.graph.judges or not seen.tree or last in (None, running.trees.get(seen.workspace)):
        return seen
    return replace(seen, after=last)


def outdated_judges(state: RunState) -> dict[str, tuple[str, ...]]:
    """The judges whose verdict is not about the files as they are now, with the names of these files, if they are known.
    Tools judge all files; a reviewer judges those that the steps under judgement changed."""
    found: dict[str, tuple[str, ...]] = {}
    for name in filter(lambda name: _counts(state, name), state.graph.judges):
        step, verdict = state.steps[name], state.steps[name].verdict
        assert verdict is not None
        now = state.trees.get(verdict.workspace, verdict.tree)
        if step.overtaken or (state.graph.steps[name].tool and verdict.tree and verdict.tree != now):
            found[name] = step.overtaken
    return dict(sorted(found.items()))


def _counts(state: RunState, judge: str) -> bool:
    """Whether the verdict of a judge counts for the end of the run."""
    verdict = state.steps[judge].verdict
    if verdict is None or verdict.accepted or state.steps[judge].skipped_by_decision:
        return False
    return not is_skipped(state, judge)


def judge_again(tx: Transaction) -> bool:
    """Have outdated judges judge once more, or ask a person if that did not help; False if there are none."""
    state, outdated = tx.state, outdated_judges(tx.state)
    if not outdated:
        return False
    every = {name: _with_users(state, name) for name in outdated}
    again = [name for name in outdated if not any(_judged_again(state, each) for each in every[name])]
    if again:
        files = sorted({file for name in again for file in outdated[name]})
        reason = f"changed since: {', '.join(files)}" if files else "files changed since"
        voided = dict.fromkeys(each for name in again for each in every[name])
        tx.add(e.VerdictsVoided(tx.now, tuple(voided), reason))
        return True
    for name, names in outdated.items():
        what = ", ".join(names) or "they changed again after it judged them once more"
        escalate_step(tx, name, None, f"the delivered files are not those that {name!r} judged: {what}")
    return True


def _judged_again(state: RunState, judge: str) -> bool:
    return state.steps[judge].rejudged_at == state.rounds + 1


def _with_users(state: RunState, judge: str) -> tuple[str, ...]:
    """A judge, and all judges that use its results: they judge again after it. No other step runs again for it."""
    found, queue = [judge], [judge]
    while queue:
        for name in state.graph.consumers[queue.pop()]:
            if name in state.graph.judges and name not in found and _counts(state, name):
                found.append(name)
                queue.append(name)
    return tuple(found)
