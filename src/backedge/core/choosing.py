"""Choices: the targets say which option they are for, the workflow's rule says whose word holds, and it happens.

A person's choice is final, whatever the rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from backedge.core import events as e
from backedge.core.bound import bounded_by_pairs
from backedge.core.draft import Draft, close, escalate_loop
from backedge.core.limits import first_breach
from backedge.core.loops import Loop, LoopState
from backedge.core.model import Decision, Option, Position, Resolution
from backedge.core.near import nearest
from backedge.core.positions import BY_DISAGREEMENT, BY_OPTION, positions_of
from backedge.core.routing import legal_targets

if TYPE_CHECKING:
    from backedge.core.model import Feedback
    from backedge.core.state import RunState


def option_called(loop: Loop, word: str) -> Option | None:
    """The option that a word names; where nothing was offered any text is one."""
    if not loop.offered:
        return Option(word.strip()) if word.strip() else None
    return next((each for each in loop.offered if _same(each.option, word)), None)


def choice_problem(loop: Loop, decision: Decision | None) -> str | None:
    """Why a decision is no choice in a loop; None if it is one."""
    offered = ", ".join(option.option for option in loop.offered)
    among = f" among {offered}" if offered else ""
    if decision is None or not decision.option.strip():
        return f"no decision: the step was asked to choose{among}; return decision with an option and a reason"
    if option_called(loop, decision.option) is None:
        return f"option {decision.option!r} was not offered: use one of {offered}"
    return None


def take_position(draft: Draft, id: str, who: str, decision: Decision) -> None:
    """Record what a target is for. If that settles the choice, what was chosen happens."""
    option = option_called(draft.state.loops[id], decision.option)
    assert option is not None
    draft.add(e.PositionTaken(draft.now, id, who, option.option, decision.reason))
    loop = draft.state.loops[id]
    if loop.state is LoopState.ESCALATING:
        return  # a person is asked about it already: what they decide comes first
    everyone = all(share.done for share in loop.shares.values())
    match draft.state.workflow.agreement:
        case "first":
            choose(draft, loop, option, who, decision.reason)
        case "authority" if everyone:
            position = _highest(draft.state, loop)
            choose(draft, loop, _option_of(loop, position), position.who, position.reason)
        case "all" if everyone:
            _agree(draft, loop)
        case "authority" | "all":
            return
        case _:
            assert_never(draft.state.workflow.agreement)


def _agree(draft: Draft, loop: Loop) -> None:
    """All for the same: chosen. Else they are asked once more, with all positions; then a person is."""
    first = loop.stated[0]
    if all(_same(position.option, first.option) for position in loop.stated):
        who = ", ".join(position.who for position in loop.stated)
        reasons = dict.fromkeys(position.reason for position in loop.stated if position.reason)
        choose(draft, loop, _option_of(loop, first), who, "; ".join(reasons))
    elif loop.disputed:
        escalate_loop(draft, loop, None, f"the targets do not agree: {in_words(loop.stated)}")
    else:
        draft.add(e.FeedbackRouted(draft.now, loop.id, dict.fromkeys(loop.shares, ()), {BY_DISAGREEMENT: ()}))
        _escalate_breach(draft, loop.id)


def choose(draft: Draft, loop: Loop, option: Option, by: str, reason: str) -> None:
    """Do what an option says: rework of the steps it names, acceptance as it is, or nothing but the answer. A kind
    that is resolved by rework goes on with that."""
    draft.add(e.ChoiceMade(draft.now, loop.id, option.option, by, reason))
    for packet in [each.id for each in draft.state.escalations.values() if each.loop == loop.id]:
        draft.add(e.EscalationDecided(draft.now, packet, "chosen", by=by, option=option.option))
    if option.accept:
        said = positions_of(draft.state.loops[loop.id])
        close(draft, loop, LoopState.ACCEPTED, Resolution("accepted", by, reason, option.option, said))
        return
    rework = draft.state.loops[loop.id].chosen_rework
    if rework:
        draft.add(e.FeedbackRouted(draft.now, loop.id, dict.fromkeys(rework, ()), {BY_OPTION: ()}))
        _escalate_breach(draft, loop.id)


def _escalate_breach(draft: Draft, id: str) -> None:
    loop = draft.state.loops[id]
    breach = first_breach(draft.state, draft.now, loop=loop)
    if breach is not None:
        escalate_loop(draft, loop, breach)


def _highest(state: RunState, loop: Loop) -> Position:
    """The position of whoever comes first in the order of authority; those that it does not name come last."""
    order = state.workflow.authority
    rank = {who: place for place, who in enumerate((*order, *(to for to in loop.targets if to not in order)))}
    return min(loop.stated, key=lambda position: rank[position.who])


def _option_of(loop: Loop, position: Position) -> Option:
    option = option_called(loop, position.option)
    assert option is not None
    return option


def _same(one: str, other: str) -> bool:
    """Whether two texts name the same option: capitals and white space at the ends do not matter."""
    return one.strip().casefold() == other.strip().casefold()


def in_words(positions: tuple[Position, ...]) -> str:
    """Positions as people read them."""
    return "; ".join(
        f"{each.who} is for {each.option!r}{f' ({each.reason})' if each.reason else ''}" for each in positions
    )


def option_refusal(state: RunState, source: str, feedback: Feedback) -> str | None:
    """Why the options of raised feedback cannot be offered; None if they can."""
    graph = state.graph
    scope = legal_targets(graph, source) if bounded_by_pairs(state.workflow) else tuple(graph.steps)
    for place, option in enumerate(feedback.options):
        if not option.option.strip():
            return "an option has no text: say what could be done"
        if any(_same(option.option, other.option) for other in feedback.options[:place]):
            return f"option {option.option!r} is offered twice: give each a text of its own"
        if option.accept and option.rework:
            return f"option {option.option!r} both accepts and asks for rework: make it two options"
        for name in option.rework:
            where = f"option {option.option!r} asks for rework of {name!r}"
            if name == source:
                return f"{where}, the source itself: it goes on with the resolution anyway"
            if name not in graph.steps:
                known = [step for step in graph.steps if step != source and not graph.is_judge(step)]
                return f"{where}, which is unknown: {nearest(name, known)}"
            if graph.is_judge(name):
                return f"{where}, a judge: name what it judges ({', '.join(graph.steps[name].judges)})"
            if name not in scope:
                hint = nearest(name, scope) if scope else "leave rework out"
                return f"{where}, out of scope of {source!r}, where only rounds_per_pair bounds the run: {hint}"
    return None
