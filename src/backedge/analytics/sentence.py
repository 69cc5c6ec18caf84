"""What an escalation is about, in one sentence that a person understands without looking anything up."""

from __future__ import annotations

from collections.abc import Sequence

from backedge.analytics.rounds import LoopHistory
from backedge.core.escalation.opening import VERIFY_OPTIONS
from backedge.core.escalation.options import asks_verdict
from backedge.core.feedback.loop import Loop
from backedge.core.model import HUMAN, Breach, Kind
from backedge.core.scheduling.approval import approval_reasons
from backedge.core.state.run import ASKED, Escalation, RunState
from backedge.core.text import amount, counted, duration, finding_ids, shortened

_LIMITS = {
    "cost_usd": "cost",
    "wall_clock": "time at work",
    "rounds_total": "rounds",
    "recoveries_total": "recoveries",
}
"""What people are told instead of the name of a limit."""


def sentence(state: RunState, packet: Escalation, history: LoopHistory) -> str:
    """The question of an escalation in one or two sentences. `history` is that of its loop; without it, the rounds of
    the loop are counted."""
    loop = state.loop(packet.loop) if packet.loop else None
    if loop is not None:
        return _about_loop(state, packet, loop, history)
    if packet.step is not None:
        return _about_step(state, packet, packet.step)
    if packet.breach is not None:
        return f"The run has reached its limit: {breach_words(packet.breach)}."
    if packet.refused:
        refused = state.refused[packet.refused - 1]
        said = f" It said: {shortened(refused.message, 300)}" if refused.message else ""
        return f"Feedback from {refused.source} was not delivered: {_ended(shortened(refused.reason))}{said}"
    return _sentence(shortened(packet.reason))


def _about_loop(state: RunState, packet: Escalation, loop: Loop, history: LoopHistory) -> str:
    if loop.feedback is not None:
        return _about_feedback(packet, loop)
    times = sum(verdict.word == "fail" for verdict in history.verdicts) or loop.round + (not loop.delivered)
    count = often(times)
    if loop.by_check:
        said = f"The input of {loop.source} was refused {count}."
    else:
        said = f"{loop.source} rejected {_names(state.graph.steps[loop.source].judges)} {count}."
    wrong = _still_wrong(state, loop)
    if packet.breach is not None:
        return f"{said}{wrong}"
    reason = shortened(packet.reason)
    return f"{said}{_sentence(wrong) if wrong else ''} {_sentence(reason[:1].upper() + reason[1:])}"


def _still_wrong(state: RunState, loop: Loop) -> str:
    found = sorted((state.findings[id] for id in loop.finding_ids), key=lambda each: each.finding.severity.rank)
    if not found:
        return ""
    first, *rest = found
    more = f" (and {counted(len(rest), 'more finding')}: {finding_ids(each.id for each in rest)})" if rest else ""
    return f" Still wrong: {shortened(first.finding.description, 200)}{more}"


def _about_feedback(packet: Escalation, loop: Loop) -> str:
    assert loop.feedback is not None
    message, source = shortened(loop.feedback.message, 300), _who(loop.source)
    if packet.options == VERIFY_OPTIONS:
        return f"{_names(loop.targets)} reworked what you asked for. Is it resolved? You asked: {message}"
    if packet.reason == ASKED:
        if loop.choosing:
            return f"{source} asks you to choose: {message}"
        if loop.kind is Kind.CONTEXT_REQUEST:
            return f"{source} asks you: {message}"
        return f"{source} needs you ({loop.kind_name}): {message}"
    if packet.breach is None:
        return f"{_sentence(shortened(packet.reason))} {source} asked: {message}"
    rounds = counted(loop.round, "round")
    return f"After {rounds}, {_names(loop.targets)} did not satisfy {source} ({loop.kind_name}): {message}"


def _about_step(state: RunState, packet: Escalation, step: str) -> str:
    if state.graph.steps[step].approver and asks_verdict(state, packet):
        return (
            f"{_names(state.graph.steps[step].judges)} needs your approval: {'; '.join(approval_reasons(state, step))}."
        )
    question = shortened(state.graph.steps[step].question, 300)
    if asks_verdict(state, packet):
        return f"You judge {_names(state.graph.steps[step].judges)} as {step}: {question or 'pass or fail?'}"
    if packet.asks_approval:
        return f"{step} waits for your approval before it runs{f': {question}' if question else '.'}"
    if packet.reason == ASKED:
        return f"You do the step {step}{f': {question}' if question else '.'}"
    error = state.steps[step].last_error
    if packet.breach is not None and packet.breach.limit == "errors_in_a_row":
        times = int(packet.breach.count)
        last = (error.strip().splitlines() or [""])[-1]
        return f"{step} broke {often(times)}{' in a row' if times > 1 else ''}. Last error: {shortened(last, 300)}"
    said = shortened(packet.reason)
    return _sentence(said) if repr(step) in said else f"{step}: {said}"


def breach_words(breach: Breach) -> str:
    """How much of a limit is used: cost $1.25 of $1.00, rounds per loop 3 of 3."""
    count, bound = limit_amount(breach.limit, breach.count), limit_amount(breach.limit, breach.bound)
    return f"{limit_words(breach.limit)} {count} of {bound}"


def limit_words(limit: str) -> str:
    """The name of a limit in words."""
    return _LIMITS.get(limit, limit.replace("_", " "))


def limit_amount(limit: str, value: float) -> str:
    """A count or a bound of a limit, in its unit."""
    if limit == "cost_usd":
        return f"${value:.2f}"
    return duration(value) if limit == "wall_clock" else f"{value:,.0f}" if limit == "tokens" else amount(value)


def often(times: int) -> str:
    """once, twice, 3 times"""
    return {1: "once", 2: "twice"}.get(times, f"{times} times")


def _names(names: Sequence[str]) -> str:
    return " and ".join(_who(name) for name in names)


def _who(name: str) -> str:
    return "a person" if name == HUMAN else name


def _sentence(text: str) -> str:
    """A reason as a sentence."""
    return _ended(text[:1].upper() + text[1:])


def _ended(text: str) -> str:
    return text if text.endswith((".", "?", "!", "…")) else f"{text}."
