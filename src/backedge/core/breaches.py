"""Checks the limits: which one is hit first, and how much is left of each. Limits stop a loop only through
`first_breach`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from backedge.core.feedback.loop import Loop
from backedge.core.model import Breach
from backedge.core.state.run import PROVIDER_WAIT, RunState
from backedge.core.value import replace
from backedge.core.workflow.profiles import PROFILES

STREAKS = ("same_finding", "failures_in_a_row")
"""The limits on what one judge repeats in a row."""


def first_breach(state: RunState, now: float, loop: Loop | None = None, step: str | None = None) -> Breach | None:
    """The first limit that forbids the next attempt of `step`, or a further round of `loop`."""
    counts: Iterable[tuple[str, float, float | None]] = _counts(state, now, loop, step)
    if loop is not None and PROFILES[state.workflow.profile].streaks_first:
        counts = sorted(counts, key=lambda each: each[0] not in STREAKS)
    for name, count, bound in counts:
        if bound is not None and count >= bound:
            return Breach(name, count, bound)
    return None


def next_round_granted(loop: Loop) -> bool:
    """Whether a person granted the next round of a loop: `continue`, `reassign` and `reclassify` grant the rounds that
    were given with them, `revise` grants the first round of the new approach.

    Limits on a level need this. A counter can add what was granted to its bound, but a level may be above any such sum,
    and the person would be asked again at once.
    """
    return loop.round < loop.granted_until or loop.round == loop.waived.get("loop")


def _counts(
    state: RunState, now: float, loop: Loop | None, step: str | None
) -> Iterator[tuple[str, float, float | None]]:
    """The limits that apply, in the order in which they are reported: (name, count, bound including grants)."""
    grants = state.grants
    if step is not None:
        if state.graph.budgets:
            yield from _budgets(state, now)
        own = state.graph.limits_of(step)
        if own.errors_in_a_row is not None:
            errors, granted = state.steps[step].errors, state.steps[step].errors_granted
            yield "errors_in_a_row", errors, own.errors_in_a_row + granted
        if own.provider_wait is not None and state.steps[step].limits_in_a_row:
            yield PROVIDER_WAIT, state.steps[step].retry_at - state.steps[step].limited_since, own.provider_wait
    if loop is None:
        return
    own = loop.limits
    if own.rounds_total is not None:
        yield "rounds_total", state.rounds, own.rounds_total + grants.get("rounds_total", 0)
    if own.recoveries_total is not None:
        yield "recoveries_total", state.recoveries, own.recoveries_total + grants.get("recoveries_total", 0)
    more, off = loop.granted, loop.waived
    # If every share is delivered, no target waits. What is left is then reported for all targets.
    waiting = [target for target, share in loop.shares.items() if not share.counted] or list(loop.shares)
    if own.rounds_per_loop is not None and not loop.delivered:
        yield "rounds_per_loop", loop.round - off.get("loop", 0), own.rounds_per_loop + more
    if own.rounds_per_pair is not None:
        pairs = (state.pairs.get((loop.source, t), 0) - off.get(f"pair:{t}", 0) for t in waiting)
        yield "rounds_per_pair", max(pairs, default=0), own.rounds_per_pair + more
    if own.rounds_per_step is not None:
        rounds = (state.rounds_of(t) - off.get(f"step:{t}", 0) for t in waiting)
        yield "rounds_per_step", max(rounds, default=0), own.rounds_per_step + more
    if loop.delivered:
        return
    # The following limits apply to a round as a whole: once the first target has started it, the others may start too.
    if own.same_finding is not None:
        yield "same_finding", loop.longest_streak, own.same_finding + more
    if own.failures_in_a_row is not None:
        yield "failures_in_a_row", loop.failures, own.failures_in_a_row + more
    if own.no_change is not None:
        yield "no_change", loop.unchanged_reworks, own.no_change + more
    if own.oscillation is not None:
        yield "oscillation", loop.oscillations, own.oscillation + more
    if own.diverging and len(loop.balance) == 2 and not next_round_granted(loop):
        authored = sum(pair[0] for pair in loop.balance)
        removed = sum(pair[1] for pair in loop.balance)
        if authored:
            yield "diverging", authored, removed


def _budgets(state: RunState, now: float) -> Iterator[tuple[str, float, float | None]]:
    for name, bound in state.graph.budgets:
        yield name, spent(state, name, now), _exact(bound + state.grants.get(name, 0))


def _exact(amount: float) -> float:
    """Round off the error of binary fractions, so that eight times 0.1 is 0.8: it must not hide a breach or be shown."""
    return round(amount, 9)


def spent(state: RunState, budget: str, now: float) -> float:
    """How much of a budget of the run is spent."""
    match budget:
        case "cost_usd":
            return _exact(state.usage.cost_usd)
        case "tokens":
            return state.usage.tokens_in + state.usage.tokens_out
        case "attempts":
            return state.attempts - state.limited_attempts
        case _:
            return state.seconds_at_work(now)


def limit_counts(state: RunState, now: float, loop: Loop | None, step: str | None) -> tuple[Breach, ...]:
    """All limits that apply to a further try, hit or not, with their counts. Budgets are always included."""
    if loop is not None and loop.delivered:
        loop = replace(loop, delivered=False)
    counts = list(_counts(state, now, loop, step))
    if step is None:
        counts[:0] = _budgets(state, now)
    return tuple(Breach(name, count, bound) for name, count, bound in counts if bound is not None)


def limits_left(state: RunState, now: float, loop: Loop | None, step: str | None) -> dict[str, float]:
    """How much is left of each limit that applies, for briefings. A round counts as used once it is delivered."""
    if loop is not None and loop.delivered:
        loop = replace(loop, delivered=False)
    found = {name: _exact(bound - count) for name, count, bound in _counts(state, now, loop, step) if bound is not None}
    plans = step is not None and state.graph.steps[step].plans
    return {**found, "max_steps": state.workflow.max_steps - state.steps_ever} if plans else found
