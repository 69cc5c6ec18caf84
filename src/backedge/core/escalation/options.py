"""What each answer to an escalation costs, what it means, and what happens next, told before anybody decides.

`core/escalation/answering.py` does what is told here.
"""

from __future__ import annotations

from collections.abc import Iterable

from backedge.core.commands import DEFAULT_ROUNDS
from backedge.core.feedback.loop import Loop
from backedge.core.model import HUMAN, Option
from backedge.core.state.run import Escalation, RunState
from backedge.core.value import Value
from backedge.core.workflow.limits import BUDGETS


class PacketOption(Value, frozen=True):
    """One way to answer an escalation."""

    choice: str
    next: str
    """What happens when it is chosen."""
    effort: str = ""
    impact: str = ""
    needs: tuple[str, ...] = ()
    """What has to be said with it: option, note, target or phase; one of them if there are several."""
    option: str = ""
    """The feedback's own option that this chooses."""


def packet_options(state: RunState, packet: Escalation, loop: Loop | None) -> tuple[PacketOption, ...]:
    """The options of an escalation, in the order in which it names them; those of the feedback come first."""
    if loop is not None:
        told = [_of_loop(state, packet, loop, choice) for choice in packet.options]
        return (*_offered(loop), *told) if "resolve" in packet.options else tuple(told)
    if packet.step is not None:
        return tuple(_of_step(state, packet, packet.step, choice) for choice in packet.options)
    return tuple(_of_run(state, packet, choice) for choice in packet.options)


def _offered(loop: Loop) -> list[PacketOption]:
    """The options that the feedback itself brings."""
    offers = loop.feedback.options if loop.feedback else ()
    return [
        PacketOption(
            "resolve",
            _what_follows(loop, offer),
            offer.effort,
            offer.impact,
            option=offer.option,
        )
        for offer in offers
    ]


def _what_follows(loop: Loop, offer: Option) -> str:
    if offer.rework:
        return f"rework of {_listed(offer.rework)} with {offer.option!r}; {_once_more(loop)}"
    how = (
        f"accepted as {offer.option!r}: the run ends as accepted at best"
        if offer.accept
        else f"closed with {offer.option!r}"
    )
    return f"{loop.id} is {how}; {_once_more(loop)}"


def _of_loop(state: RunState, packet: Escalation, loop: Loop, choice: str) -> PacketOption:
    what, who = _what(loop), loop.source
    judge = f"{who} counts as passed" if loop.by_verdict else f"{who} goes on as it is"
    per_round = _per_round(state, loop.targets)
    match choice:
        case "continue":
            limit = packet.breach.limit if packet.breach else ""
            of_run = f", and {limit} of the run" if limit in ("rounds_total", "recoveries_total") else ""
            raised = f"every limit of {loop.id} is raised by {DEFAULT_ROUNDS} rounds{of_run}"
            return PacketOption(choice, _goes_on(loop), per_round, raised)
        case "revise":
            fresh = f"the counters of {loop.id} start again; your words go to {_listed(loop.targets)} and to {who}"
            return PacketOption(
                choice, f"rework of {what} by {_listed(loop.targets)} in your way", per_round, fresh, ("note",)
            )
        case "reassign":
            other = f"rework of {what} by the target that you name, instead of {_listed(loop.targets)}"
            granted = f"every limit of {loop.id} is raised by {DEFAULT_ROUNDS} rounds"
            return PacketOption(choice, other, "one attempt, and what it makes stale", granted, ("target",))
        case "reclassify":
            there = f"rework of {what} in the phase that you name, which is recorded as the one that injected it"
            granted = f"every limit of {loop.id} is raised by {DEFAULT_ROUNDS} rounds"
            return PacketOption(choice, there, "one attempt, and what it makes stale", granted, ("phase",))
        case "resolve":
            after = f"{loop.id} is closed with your answer; {_once_more(loop)}"
            return PacketOption(choice, after, "your answer", "counts as solved by you", ("option", "note"))
        case "accept":
            debt = f"{what}: on the list of debts; the run ends as accepted at best"
            return PacketOption(choice, f"{loop.id} is closed; {judge}", "none", debt)
        case "skip":
            deferred = f"{what}: deferred; the run ends as accepted at best"
            over = "nobody verifies it" if who == HUMAN else f"{who} is passed over, and what needs it goes on without"
            return PacketOption(choice, f"{loop.id} is closed; {over}", "none", deferred)
        case _:
            return _cancel()


def _of_step(state: RunState, packet: Escalation, step: str, choice: str) -> PacketOption:
    match choice:
        case "continue":
            if packet.asks_approval:
                return PacketOption(
                    choice, f"{step} runs: it is approved", "one attempt", "the next execution is asked for again"
                )
            more = f"{DEFAULT_ROUNDS} more tries" if packet.breach else "one attempt"
            return PacketOption(choice, f"{step} is tried again", more, "nothing is given up")
        case "resolve":
            judge = step in state.graph.judges
            said = "your verdict is that of" if judge else "what you say is the outcome of"
            needs = ("option",) if judge else ("option", "note")
            return PacketOption(choice, f"{said} {step}; the run goes on with it", "you do the step", "", needs)
        case "skip":
            below = _listed(each for each in state.graph.steps if each in state.graph.downstream[step])
            goes_on = f"{step} is passed over" + (f"; without it: {below}" if below else "")
            return PacketOption(choice, goes_on, "none", "the run ends as accepted at best")
        case _:
            return _cancel()


def _of_run(state: RunState, packet: Escalation, choice: str) -> PacketOption:
    if choice == "continue" and packet.breach is not None and packet.breach.limit in BUDGETS:
        limit = packet.breach.limit
        size = getattr(state.workflow.limits, limit)
        more = f"the budget grows by {size:g}, or by the amount that you say"
        return PacketOption(choice, "the run goes on", f"up to {size:g} more of {limit}", more)
    return _cancel()


def _cancel() -> PacketOption:
    return PacketOption("cancel", "the run ends as cancelled, and all that is open with it", "none", "the work is kept")


def _goes_on(loop: Loop) -> str:
    if loop.unverified:
        return f"{loop.source} verifies what was done"
    if set(loop.targets) == {HUMAN}:
        return "the question is put to a person"
    then = "you are asked about the fix" if loop.source == HUMAN else f"{loop.source} verifies it"
    return f"rework of {_what(loop)} by {_listed(loop.targets)}; then {then}"


def _once_more(loop: Loop) -> str:
    return "nothing runs again for it" if loop.source == HUMAN else f"{loop.source} runs once more with it"


def _what(loop: Loop) -> str:
    return _listed(f"F-{id}" for id in loop.finding_ids) or f"what {loop.source} asked for"


def _per_round(state: RunState, targets: Iterable[str]) -> str:
    """How many steps one more round may run: its targets, and all that can become stale by them."""
    steps = [target for target in targets if target != HUMAN]
    touched = set(steps).union(*(state.graph.downstream[step] for step in steps))
    return f"up to {len(touched)} attempts a round" if touched else "your answer"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


__all__ = ["PacketOption", "packet_options"]
