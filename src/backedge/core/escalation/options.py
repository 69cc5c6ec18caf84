"""What each option of an escalation does, costs and implies, so that a person knows before deciding.

`core/escalation/answering.py` carries out what these texts promise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from backedge.core.commands import DEFAULT_ROUNDS
from backedge.core.feedback.loop import Loop
from backedge.core.feedback.offers import offered_options
from backedge.core.model import HUMAN, SIDE_MODES, Option
from backedge.core.state.run import ASKED, Escalation, RunState
from backedge.core.text import counted, duration, finding_ids
from backedge.core.value import Value, replace
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
    recommended: str = ""
    """Why it is recommended; empty if it is not."""


HISTORY = PacketOption("history", "prints every round in full; the question stays open", "none", "nothing changes")
"""What every escalation offers in addition to its decisions."""


def packet_options(state: RunState, packet: Escalation, loop: Loop | None) -> tuple[PacketOption, ...]:
    """The options of an escalation, the recommended one first, then options of the feedback, then its own order."""
    found = _options(state, packet, loop)
    choice, why = recommendation(state, packet, loop)
    best = [each for each in found if each.choice == choice and not each.option][:1]
    rest = [each for each in found if each not in best]
    return (*(replace(each, recommended=why) for each in best), *rest)


def choice_words(state: RunState, packet: Escalation) -> tuple[str, ...]:
    """The words that answer an escalation, each once, the recommended one first."""
    options = packet_options(state, packet, state.loop(packet.loop) if packet.loop else None)
    return tuple(dict.fromkeys(option.choice for option in options))


def recommendation(state: RunState, packet: Escalation, loop: Loop | None) -> tuple[str, str]:
    """The choice that helps most often, and why. None for what only a person can judge: a verdict, an approval, one of
    several options, an answer."""
    limit = packet.breach.limit if packet.breach is not None else ""
    if loop is None:
        if limit == "errors_in_a_row":
            return "continue", "if you have removed the cause of the error"
        return "", ""
    if "continue" not in packet.options or "revise" not in packet.options or not limit:
        return "", ""
    if limit in NOT_CONVERGING:
        return "revise", "another round of the same is likely to end the same"
    return _after_rounds(state, loop)


NOT_CONVERGING = ("same_finding", "no_change", "oscillation", "diverging")
"""The limits that say that more rounds of the same do not help."""


def _after_rounds(state: RunState, loop: Loop) -> tuple[str, str]:
    """What to do after the last round that the limits allow: go on if the last fix helped."""
    past = loop.past_rounds[-1] if loop.past_rounds else None
    before, now = set(past.findings if past else ()), set(loop.finding_ids)
    if loop.feedback is not None:
        same = past is not None and past.message == loop.feedback.message
        return ("revise", "the last fix did not help") if same else ("continue", "the last fix changed something")
    if past is None:
        return "continue", "nothing was tried yet"
    gone, stayed = len(before - now), len(before & now)
    if gone and stayed:
        return "continue", f"the last fix removed {gone} of {gone + stayed} findings"
    if gone:
        return "continue", "the last fix removed what was wrong, and something else was found"
    if loop.source in state.graph.engine_judges and all(state.findings[id].streak == 1 for id in now):
        return "continue", "the last fix changed what was measured"
    return "revise", "the last fix removed none of its findings"


def _options(state: RunState, packet: Escalation, loop: Loop | None) -> list[PacketOption]:
    if loop is not None:
        choices = [_of_loop(state, packet, loop, choice) for choice in packet.options]
        return [*_offered(state, loop), *choices] if "resolve" in packet.options else choices
    if packet.vote is not None and packet.step is not None:
        return list(_of_vote(state, packet.step, packet.vote, packet.options))
    if packet.step is not None:
        verdicts = _verdicts(state, packet.step) if asks_verdict(state, packet) else []
        choices = [_of_step(state, packet, packet.step, choice) for choice in packet.options]
        return [*verdicts, *(each for each in choices if not verdicts or each.choice != "resolve")]
    return [_of_run(state, packet, choice) for choice in packet.options]


def asks_verdict(state: RunState, packet: Escalation) -> bool:
    """Whether a person is asked to judge: the answer is a verdict."""
    about = packet.about
    return (
        packet.reason == ASKED
        and about is not None
        and about.mode not in SIDE_MODES
        and packet.step in state.graph.judges
    )


def _verdicts(state: RunState, step: str) -> list[PacketOption]:
    words = "your verdict becomes the verdict of"
    if state.graph.steps[step].approver:
        work = _listed(state.graph.steps[step].judges)
        back = f"your note goes back to {work} as a finding"
        return [
            PacketOption(
                "approve", f"the run continues with the work of {work}", "you look at it", "counted from here"
            ),
            PacketOption("reject", back, "one more round", "you are asked again", ("note",)),
        ]
    return [
        PacketOption("pass", f"{words} {step}; the run continues", "you look at it", "it counts as verified by you"),
        PacketOption("fail", f"{words} {step}; your note goes back as a finding", "one more round", "", ("note",)),
        PacketOption(
            "needs_improvement", f"{words} {step}; the run continues", "you look at it", "your note is kept for later"
        ),
    ]


def is_measured(state: RunState, loop: Loop) -> bool:
    """Whether a check, a gate or a test started a loop. These cannot use an answer: it is for the steps that rework."""
    if not loop.by_verdict:
        return False
    return loop.source in state.graph.engine_judges or state.graph.steps[loop.source].tests


def _offered(state: RunState, loop: Loop) -> list[PacketOption]:
    """The options of the feedback, or of the check, itself."""
    return [
        PacketOption(
            "resolve",
            _what_follows(loop, offer),
            offer.effort,
            offer.impact,
            option=offer.option,
        )
        for offer in offered_options(state, loop)
    ]


def _what_follows(loop: Loop, offer: Option) -> str:
    if loop.by_verdict and not offer.accept:
        return f"{_reworking(offer.rework or loop.targets)} with {offer.option!r}; then {loop.source} verifies the fix"
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
    debt = "are" if len(loop.finding_ids) > 1 else "is"
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
            other = f"the step that you name reworks {what} instead of {_listed(loop.targets)}"
            granted = f"every limit of {loop.id} is raised by {DEFAULT_ROUNDS} rounds"
            return PacketOption(choice, other, "one attempt, plus the steps that it makes stale", granted, ("target",))
        case "reclassify":
            goes, its = ("go", "their") if len(loop.finding_ids) > 1 else ("goes", "its")
            phase = f"{what} {goes} to the phase that you name as {its} cause"
            granted = f"every limit of {loop.id} is raised by {DEFAULT_ROUNDS} rounds"
            return PacketOption(choice, phase, "one attempt, plus the steps that it makes stale", granted, ("phase",))
        case "rollback":
            granted = f"every limit of {loop.id} is raised by {DEFAULT_ROUNDS} rounds"
            return PacketOption(choice, _rollback(state, loop), per_round, granted)
        case "resolve":
            needs = ("option", "note")
            if is_measured(state, loop):
                advised = f"{_rework(loop)} with your answer as advice; then {source} verifies the fix"
                return PacketOption(choice, advised, per_round, "one more round is granted", needs)
            after = f"your answer closes {loop.id}; {_once_more(loop)}"
            return PacketOption(choice, after, "your answer", "counts as resolved by you", needs)
        case "accept":
            closed = f"{loop.id} is closed; {accepted}; {what} {debt} recorded as debt"
            return PacketOption(choice, closed, "none", "the run ends as accepted at best")
        case "skip":
            skipped = f"{source} is skipped, and what needs it continues without it"
            then = f"{loop.id} is closed; the fix is not verified" if source == HUMAN else skipped
            return PacketOption(choice, then, "none", f"{what}: deferred; the run ends as accepted at best")
        case _:
            return _cancel()


def _of_vote(state: RunState, step: str, id: str, choices: Iterable[str]) -> Iterator[PacketOption]:
    """The options about a target of a choice that cannot take a position."""
    loop = state.loop(id)
    assert loop is not None
    position = f"counts as the position of {step}"
    for offer in offered_options(state, loop) if loop.choosing else ():
        yield PacketOption("resolve", f"{offer.option!r} {position}", offer.effort, offer.impact, option=offer.option)
    for choice in choices:
        match choice:
            case "resolve":
                yield PacketOption(choice, f"your answer {position}", "your answer", "", ("option", "note"))
            case "skip":
                yield PacketOption(choice, f"{id} is decided without {step}", "none", "the other positions stay")
            case "continue":
                yield PacketOption(choice, f"{step} is asked again", f"{DEFAULT_ROUNDS} more tries")
            case _:
                yield _cancel()


def _of_step(state: RunState, packet: Escalation, step: str, choice: str) -> PacketOption:
    match choice:
        case "continue":
            if packet.asks_approval:
                return PacketOption(
                    "approve", f"{step} runs with your approval", "one attempt", "you are asked again before it reruns"
                )
            more = counted(DEFAULT_ROUNDS, "more try") if packet.breach else "one attempt"
            return PacketOption(choice, f"{step} is tried again", more, "nothing else changes")
        case "resolve":
            answer = f"your answer becomes the outcome of {step}; the run continues with it"
            return PacketOption(choice, answer, "you do the step", "", ("option", "note"))
        case "skip":
            below = _listed(each for each in state.graph.steps if each in state.graph.downstream[step])
            then = f"{step} is skipped" + (f"; these steps continue without it: {below}" if below else "")
            return PacketOption(choice, then, "none", "the run ends as accepted at best")
        case _:
            return replace(_cancel(), choice="reject") if packet.asks_approval else _cancel()


def _up_to(limit: str, size: float) -> str:
    """How much of a budget a run may use in addition."""
    match limit:
        case "cost_usd":
            return f"up to ${size:g} more"
        case "wall_clock":
            return f"up to {duration(size)} more"
        case _:
            return f"up to {size:g} more {limit}"


def _of_run(state: RunState, packet: Escalation, choice: str) -> PacketOption:
    if choice == "continue" and packet.breach is not None and packet.breach.limit in BUDGETS:
        limit = packet.breach.limit
        size = getattr(state.workflow.limits, limit)
        more = f"the budget grows by {size:g}, or by the amount that you give"
        return PacketOption(choice, "the run continues", _up_to(limit, size), more)
    if packet.restores:
        return _of_files(choice)
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


def _of_files(choice: str) -> PacketOption:
    """The options about files of a rollback that were edited since."""
    match choice:
        case "continue":
            kept = "all files stay as they are, and the next round starts from them"
            return PacketOption(choice, kept, "none", "the judges judge what comes of it")
        case "rollback":
            restored = "all files of the rollback become what they were, edited or not"
            return PacketOption(choice, restored, "none", "what is undone is kept as a patch")
        case _:
            return _cancel()


def _rollback(state: RunState, loop: Loop) -> str:
    """What a rollback of the last fix would do."""
    fix = state.fixes.get(loop.id)
    if fix is None:
        return "the version before the last fix counts again"
    before = ((name, fix.steps[name].artifact) for name in fix.targets)
    versions = _listed(f"{name} to version {made.version}" for name, made in before if made is not None)
    ids = fix.loops[loop.id].finding_ids
    again = f"{finding_ids(ids)} stand{'s' if len(ids) == 1 else ''} again"
    return f"the last fix is undone, with its files ({versions}); {again}, and the next round starts from there"


def _cancel() -> PacketOption:
    return PacketOption(
        "cancel", "the run ends as cancelled, and everything open is closed", "none", "the work is kept"
    )


def _continuation(loop: Loop) -> str:
    if loop.unverified:
        return f"{loop.source} verifies the fix"
    if set(loop.targets) == {HUMAN}:
        return "the question goes to the inbox"
    if loop.choosing:
        return _rework(loop)
    then = "you verify the fix" if loop.source == HUMAN else f"{loop.source} verifies the fix"
    return f"{_rework(loop)}; then {then}"


def _rework(loop: Loop) -> str:
    if loop.choosing:
        return f"{_listed(loop.targets)} {'chooses' if len(loop.targets) == 1 else 'choose'} among the options"
    return f"{_reworking(loop.targets)} {_what(loop)}"


def _reworking(steps: Sequence[str]) -> str:
    return f"{_listed(steps)} {'reworks' if len(steps) == 1 else 'rework'}"


def _once_more(loop: Loop) -> str:
    return "nothing runs again" if loop.source == HUMAN else f"{loop.source} runs once more with it"


def _what(loop: Loop) -> str:
    return finding_ids(loop.finding_ids) or f"what {loop.source} asked for"


def _per_round(state: RunState, targets: Iterable[str]) -> str:
    """How many attempts one more round may take: its targets, and every step that they can make stale."""
    steps = [target for target in targets if target != HUMAN]
    touched = set(steps).union(*(state.graph.downstream[step] for step in steps))
    return f"up to {counted(len(touched), 'attempt')} per round" if touched else "your answer"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


__all__ = ["HISTORY", "PacketOption", "asks_verdict", "choice_words", "packet_options", "recommendation"]
