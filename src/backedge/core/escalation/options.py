"""What each option of an escalation does, costs and implies, so that a person knows before deciding.

`core/escalation/answering.py` carries out what these texts promise.
"""

from __future__ import annotations

from collections.abc import Iterable

from backedge.core.commands import DEFAULT_ROUNDS
from backedge.core.feedback.loop import Loop
from backedge.core.model import HUMAN, Option
from backedge.core.state.run import Escalation, RunState
from backedge.core.value import Value
from backedge.core.workflow.limits import BUDGETS, OF_THE_RUN


class PacketOption(Value, frozen=True):
    """One way to answer an escalation."""

    choice: str
    next: str
    """What happens when it is chosen."""
    effort: str = ""
    impact: str = ""
    needs: tuple[str, ...] = ()
    """What has to be given with it: option, note, target or phase. If several are listed, one of them."""
    option: str = ""
    """The option of the feedback itself that this answer chooses."""


def packet_options(state: RunState, packet: Escalation, loop: Loop | None) -> tuple[PacketOption, ...]:
    """The options of an escalation, in its own order. Options of the feedback come first."""
    if loop is not None:
        choices = [_of_loop(state, packet, loop, choice) for choice in packet.options]
        return (*_offered(loop), *choices) if "resolve" in packet.options else tuple(choices)
    if packet.step is not None:
        return tuple(_of_step(state, packet, packet.step, choice) for choice in packet.options)
    return tuple(_of_run(state, packet, choice) for choice in packet.options)


def _offered(loop: Loop) -> list[PacketOption]:
    """The options of the feedback itself."""
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
    what, source = _what(loop), loop.source
    accepted = f"{source} counts as passed" if loop.by_verdict else f"{source} continues as it is"
    per_round = _per_round(state, loop.targets)
    match choice:
        case "continue":
            limit = packet.breach.limit if packet.breach else ""
            of_run = f", and so is {limit} of the run" if limit in OF_THE_RUN else ""
            raised = f"every limit of {loop.id} is raised by {DEFAULT_ROUNDS} rounds{of_run}"
            return PacketOption(choice, _continuation(loop), per_round, raised)
        case "revise":
            reset = f"the counters of {loop.id} are reset; {_listed(loop.targets)} and {source} get your note"
            return PacketOption(choice, f"{_rework(loop)} with your new approach", per_round, reset, ("note",))
        case "reassign":
            other = f"the target that you name reworks {what} instead of {_listed(loop.targets)}"
            granted = f"every limit of {loop.id} is raised by {DEFAULT_ROUNDS} rounds"
            return PacketOption(choice, other, "one attempt, plus the steps that it makes stale", granted, ("target",))
        case "reclassify":
            phase = f"the phase that you name reworks {what}, and is recorded as the one that injected it"
            granted = f"every limit of {loop.id} is raised by {DEFAULT_ROUNDS} rounds"
            return PacketOption(choice, phase, "one attempt, plus the steps that it makes stale", granted, ("phase",))
        case "resolve":
            after = f"{loop.id} is closed with your answer; {_once_more(loop)}"
            return PacketOption(choice, after, "your answer", "counts as resolved by you", ("option", "note"))
        case "accept":
            debt = f"{what}: recorded as debt; the run ends as accepted at best"
            return PacketOption(choice, f"{loop.id} is closed; {accepted}", "none", debt)
        case "skip":
            deferred = f"{what}: deferred; the run ends as accepted at best"
            skipped = f"{source} is skipped, and the steps that need it continue without it"
            then = "the fix is not verified" if source == HUMAN else skipped
            return PacketOption(choice, f"{loop.id} is closed; {then}", "none", deferred)
        case _:
            return _cancel()


def _of_step(state: RunState, packet: Escalation, step: str, choice: str) -> PacketOption:
    match choice:
        case "continue":
            if packet.asks_approval:
                return PacketOption(
                    choice, f"{step} runs with your approval", "one attempt", "you are asked again before it reruns"
                )
            more = f"{DEFAULT_ROUNDS} more tries" if packet.breach else "one attempt"
            return PacketOption(choice, f"{step} is tried again", more, "nothing else changes")
        case "resolve":
            judge = step in state.graph.judges
            answer = "your verdict becomes the verdict" if judge else "your answer becomes the outcome"
            needs = ("option",) if judge else ("option", "note")
            return PacketOption(choice, f"{answer} of {step}; the run continues with it", "you do the step", "", needs)
        case "skip":
            below = _listed(each for each in state.graph.steps if each in state.graph.downstream[step])
            then = f"{step} is skipped" + (f"; these steps continue without it: {below}" if below else "")
            return PacketOption(choice, then, "none", "the run ends as accepted at best")
        case _:
            return _cancel()


def _of_run(state: RunState, packet: Escalation, choice: str) -> PacketOption:
    if choice == "continue" and packet.breach is not None and packet.breach.limit in BUDGETS:
        limit = packet.breach.limit
        size = getattr(state.workflow.limits, limit)
        more = f"the budget grows by {size:g}, or by the amount that you give"
        return PacketOption(choice, "the run continues", f"up to {size:g} more of {limit}", more)
    match choice:
        case "continue":
            return PacketOption(choice, "the run goes on; the feedback stays undelivered", "none", "you have seen it")
        case "approve":
            return PacketOption(choice, "the changed files count as they are now", "none", "the run can be verified")
        case "reject":
            back = "the changes go back, as findings, to the steps that made them"
            return PacketOption(choice, back, "one more round", "the old version counts")
        case _:
            return _cancel()


def _cancel() -> PacketOption:
    return PacketOption(
        "cancel", "the run ends as cancelled, and everything open is closed", "none", "the work is kept"
    )


def _continuation(loop: Loop) -> str:
    if loop.unverified:
        return f"{loop.source} verifies the fix"
    if set(loop.targets) == {HUMAN}:
        return "the question goes to the inbox"
    then = "you verify the fix" if loop.source == HUMAN else f"{loop.source} verifies the fix"
    return f"{_rework(loop)}; then {then}"


def _rework(loop: Loop) -> str:
    verb = "reworks" if len(loop.targets) == 1 else "rework"
    return f"{_listed(loop.targets)} {verb} {_what(loop)}"


def _once_more(loop: Loop) -> str:
    return "nothing runs again" if loop.source == HUMAN else f"{loop.source} runs once more with it"


def _what(loop: Loop) -> str:
    return _listed(f"F-{id}" for id in loop.finding_ids) or f"what {loop.source} asked for"


def _per_round(state: RunState, targets: Iterable[str]) -> str:
    """How many attempts one more round may take: its targets, and every step that they can make stale."""
    steps = [target for target in targets if target != HUMAN]
    touched = set(steps).union(*(state.graph.downstream[step] for step in steps))
    return f"up to {len(touched)} attempts per round" if touched else "your answer"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


__all__ = ["PacketOption", "packet_options"]
