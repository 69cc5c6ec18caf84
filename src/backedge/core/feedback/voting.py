"""Choices: each target takes a position, the workflow's `agreement` rule picks the option, and the option is carried out.

A person's choice is final, whatever the rule.
"""

from __future__ import annotations

from typing import assert_never

from backedge.core import events as e
from backedge.core.breaches import first_breach
from backedge.core.escalation.opening import escalate_loop
from backedge.core.feedback.closing import close_loop
from backedge.core.feedback.loop import BY_DISAGREEMENT, BY_OPTION, Loop, LoopState, positions_by_target
from backedge.core.feedback.routing import legal_targets
from backedge.core.model import Decision, Feedback, Option, Position, Resolution
from backedge.core.state.run import RunState
from backedge.core.suggestions import did_you_mean
from backedge.core.transaction import Transaction
from backedge.core.workflow.bound import bounded_by_pairs


def find_option(loop: Loop, text: str) -> Option | None:
    """The option with this text. If the feedback offers no options, any text is an option."""
    if not loop.options:
        return Option(text.strip()) if text.strip() else None
    return next((each for each in loop.options if _same(each.option, text)), None)


def choice_problem(loop: Loop, decision: Decision | None) -> str | None:
    """Why a decision is not a valid choice in a loop; None if it is."""
    offered = ", ".join(option.option for option in loop.options)
    among = f" among {offered}" if offered else ""
    if decision is None or not decision.option.strip():
        return f"no decision: the step was asked to choose{among}; return `decision` with an option and a reason"
    if find_option(loop, decision.option) is None:
        return f"option {decision.option!r} was not offered: use one of {offered}"
    return None


def take_position(tx: Transaction, id: str, target: str, decision: Decision) -> None:
    """Record the position of a target. If that settles the choice, carry it out."""
    option = find_option(tx.state.loops[id], decision.option)
    assert option is not None
    tx.add(e.PositionTaken(tx.now, id, target, option.option, decision.reason))
    loop = tx.state.loops[id]
    if loop.state is LoopState.ESCALATING:
        return  # a person is already deciding about it: that decision comes first
    complete = all(share.done for share in loop.shares.values())
    match tx.state.workflow.agreement:
        case "first":
            choose(tx, loop, option, target, decision.reason)
        case "authority" if complete:
            position = _highest_authority(tx.state, loop)
            choose(tx, loop, _option_of(loop, position), position.who, position.reason)
        case "all" if complete:
            _agree(tx, loop)
        case "authority" | "all":
            return
        case _:
            assert_never(tx.state.workflow.agreement)


def _agree(tx: Transaction, loop: Loop) -> None:
    """Choose the option that all targets are for. If they differ, ask them once more with all positions, then a person."""
    first = loop.current_positions[0]
    if all(_same(position.option, first.option) for position in loop.current_positions):
        names = ", ".join(position.who for position in loop.current_positions)
        reasons = dict.fromkeys(position.reason for position in loop.current_positions if position.reason)
        choose(tx, loop, _option_of(loop, first), names, "; ".join(reasons))
    elif loop.disputed:
        escalate_loop(tx, loop, None, f"the targets do not agree: {describe_positions(loop.current_positions)}")
    else:
        tx.add(e.FeedbackRouted(tx.now, loop.id, dict.fromkeys(loop.shares, ()), {BY_DISAGREEMENT: ()}))
        _escalate_breach(tx, loop.id)


def choose(tx: Transaction, loop: Loop, option: Option, by: str, reason: str) -> None:
    """Carry out an option: rework the steps it names, accept the work as it is, or just pass the answer on. A kind that
    is resolved by rework is reworked in any case."""
    tx.add(e.ChoiceMade(tx.now, loop.id, option.option, by, reason))
    for packet in [each.id for each in tx.state.escalations.values() if each.loop == loop.id]:
        tx.add(e.EscalationDecided(tx.now, packet, "chosen", by=by, option=option.option))
    if option.accept:
        positions = positions_by_target(tx.state.loops[loop.id])
        close_loop(tx, loop, LoopState.ACCEPTED, Resolution("accepted", by, reason, option.option, positions))
        return
    rework = tx.state.loops[loop.id].chosen_rework
    if rework:
        tx.add(e.FeedbackRouted(tx.now, loop.id, dict.fromkeys(rework, ()), {BY_OPTION: ()}))
        _escalate_breach(tx, loop.id)


def _escalate_breach(tx: Transaction, id: str) -> None:
    loop = tx.state.loops[id]
    breach = first_breach(tx.state, tx.now, loop=loop)
    if breach is not None:
        escalate_loop(tx, loop, breach)


def _highest_authority(state: RunState, loop: Loop) -> Position:
    """The position of the target with the highest authority. Targets that `authority` does not name come last."""
    order = state.workflow.authority
    rank = {target: index for index, target in enumerate((*order, *(to for to in loop.targets if to not in order)))}
    return min(loop.current_positions, key=lambda position: rank[position.who])


def _option_of(loop: Loop, position: Position) -> Option:
    option = find_option(loop, position.option)
    assert option is not None
    return option


def _same(one: str, other: str) -> bool:
    """Whether two texts name the same option. Case and surrounding white space do not matter."""
    return one.strip().casefold() == other.strip().casefold()


def describe_positions(positions: tuple[Position, ...]) -> str:
    """Positions as a sentence for people."""
    return "; ".join(
        f"{each.who} is for {each.option!r}{f' ({each.reason})' if each.reason else ''}" for each in positions
    )


def option_refusal(state: RunState, source: str, feedback: Feedback) -> str | None:
    """Why the options of raised feedback are refused; None if they are valid."""
    graph = state.graph
    scope = legal_targets(graph, source) if bounded_by_pairs(state.workflow) else tuple(graph.steps)
    for index, option in enumerate(feedback.options):
        if not option.option.strip():
            return "an option has no text: describe what could be done"
        if any(_same(option.option, other.option) for other in feedback.options[:index]):
            return f"option {option.option!r} is offered twice: give each option its own text"
        if option.accept and option.rework:
            return f"option {option.option!r} both accepts and asks for rework: split it into two options"
        for name in option.rework:
            prefix = f"option {option.option!r} asks for rework of {name!r}"
            if name == source:
                return f"{prefix}, the source itself: remove it, the source runs again with the resolution anyway"
            if name not in graph.steps:
                known = [step for step in graph.steps if step != source and step not in graph.judges]
                return f"{prefix}, which does not exist: {did_you_mean(name, known)}"
            if name in graph.judges:
                return f"{prefix}, a judge: name the step under judgement ({', '.join(graph.steps[name].judges)})"
            if name not in scope:
                hint = did_you_mean(name, scope) if scope else "leave rework out"
                return f"{prefix}, which is out of scope for {source!r} (only rounds_per_pair bounds this run): {hint}"
    return None
