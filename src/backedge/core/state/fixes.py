"""Remembers how everything was before each round of a judge's loop, so that the round can be rolled back."""

from __future__ import annotations

from backedge.core import events as e
from backedge.core.feedback.loop import LoopState
from backedge.core.model import SIDE_MODES
from backedge.core.state.run import Fix, RunState
from backedge.core.value import replace


def fixes_after_start(state: RunState, event: e.AttemptStarted) -> dict[str, Fix]:
    """The rounds that can be rolled back, after an attempt started. `state` is the one before that."""
    name = event.step
    if name in state.graph.judges or event.mode in SIDE_MODES or not (state.fixes or event.loops):
        return state.fixes
    fixes = {
        id: replace(fix, attempts=(*fix.attempts, (name, event.attempt))) if name in fix.steps else fix
        for id, fix in state.fixes.items()
        # Work that starts after the verdict builds on the fix.
        if name not in fix.steps or not is_judged(state, id)
    }
    others = any(not state.loops[id].by_verdict for id in event.loops)
    for id in (id for id in event.loops if state.loops[id].by_verdict):
        is_new = not state.loops[id].delivered
        before = None if is_new else fixes.get(id)
        if is_new:
            fixes.pop(id, None)
        if event.mode == "rework" and (is_new or before is not None):
            fixes[id] = _with_target(state, id, before, event, others)
        elif before is not None:
            del fixes[id]  # a target that has made nothing before has no version to go back to
    return fixes


def is_judged(state: RunState, id: str) -> bool:
    """Whether the judge of a loop has reported on the last round."""
    loop = state.loops.get(id)
    return loop is None or not loop.delivered


def _with_target(state: RunState, id: str, fix: Fix | None, event: e.AttemptStarted, others: bool) -> Fix:
    """The round of a loop with one more target that starts. What it can change is remembered as it is now."""
    name, graph = event.step, state.graph
    known = fix.steps if fix is not None else {}
    more = {each: state.steps[each] for each in (name, *sorted(graph.downstream[name])) if each not in known}
    loops = {
        loop.id: loop
        for loop in state.loops.values()
        if loop.by_verdict and loop.source in more and (fix is None or loop.id not in fix.loops)
    }
    if fix is None:
        attempts = ((name, event.attempt),)
        round = state.loops[id].round + 1
        return Fix(round, (name,), more, loops, state.findings, state.protected, attempts, others)
    return replace(
        fix,
        targets=tuple(dict.fromkeys((*fix.targets, name))),
        steps={**fix.steps, **more},
        loops={**fix.loops, **loops},
        attempts=fix.attempts if name in fix.steps else (*fix.attempts, (name, event.attempt)),
        answers_others=fix.answers_others or others,
    )


def fixes_after_close(state: RunState, event: e.LoopClosed) -> dict[str, Fix]:
    """The rounds that can be rolled back, after a loop was closed. What its judge has passed can still be rolled back if
    another judge finds that it made things worse; what a decision has closed cannot."""
    passed = event.state is LoopState.RESOLVED and not event.resolution.by
    if event.loop not in state.fixes or (passed and state.graph.rolls_back):
        return state.fixes
    return {id: fix for id, fix in state.fixes.items() if id != event.loop}
