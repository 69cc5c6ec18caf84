"""Choices: each target takes a position, the workflow's `agreement` rule picks the option, and the option is carried out.

A person's choice is final, whatever the rule.
"""

from __future__ import annotations

from typing import assert_never

from backedge.core import events as e
from backedge.core.breaches import first_breach
from backedge.core.escalation.opening import escalate_loop, escalate_vote
from backedge.core.feedback.closing import close_loop
from backedge.core.feedback.loop import BY_DISAGREEMENT, BY_OPTION, Loop, LoopState, positions_by_target
from backedge.core.feedback.offers import find_option, offered_options, same_option
from backedge.core.feedback.routing import legal_targets
from backedge.core.model import Breach, Decision, Feedback, Option, Position, Resolution
from backedge.core.state.run import ASKED, RunState
from backedge.core.suggestions import did_you_mean
from backedge.core.transaction import Transaction
from backedge.core.workflow.bound import bounded_by_pairs


def choice_problem(state: RunState, loop: Loop, decision: Decision | None) -> str | None:
    """Why a decision is not a valid choice in a loop; None if it is."""
    offered = ", ".join(option.option for option in offered_options(state, loop))
    among = f" among {offered}" if offered else ""
    if decision is None or not decision.option.strip():
        return f"no decision: the step was asked to choose{among}; return `decision` with an option and a reason"
    if find_option(state, loop, decision.option) is None:
        return f"option {decision.option!r} was not offered: use one of {offered}"
    return None


def take_position(tx: Transaction, id: str, target: str, decision: Decision) -> None:
    """Record the position of a target. If that settles the choice, carry it out."""
    option = _option_named(tx.state.loops[id], decision.option)
    tx.add(e.PositionTaken(tx.now, id, target, option.option, decision.reason))
    settle_choice(tx, id)


def skip_target(tx: Transaction, id: str, target: str, reason: str) -> None:
    """Let the other targets of a choice decide without this one. If there is none, a person decides."""
    tx.add(e.TargetSkipped(tx.now, id, target, reason))
    loop = tx.state.loops[id]
    if loop.shares:
        settle_choice(tx, id)
    else:
        escalate_loop(tx, loop, None, f"no target is left to choose: {reason}", without=("continue", "revise"))


def lose_target(tx: Transaction, id: str, target: str, breach: Breach | None, reason: str) -> None:
    """Ask a person about a target of a choice whose agent cannot answer. The others choose without it."""
    loop = tx.state.loops[id]
    others = [each for each in loop.shares if each != target and not cannot_choose(tx.state, loop, each)]
    escalate_vote(tx, target, id, breach, reason, last=not others)
    settle_choice(tx, id)


def cannot_choose(state: RunState, loop: Loop, target: str) -> bool:
    """Whether a person was told that a target cannot take a position."""
    return any(packet.vote == loop.id and packet.step == target for packet in state.escalations.values())


def settle_choice(tx: Transaction, id: str) -> None:
    """Carry out a choice if the targets that can choose have settled it, by the workflow's agreement rule."""
    state, loop = tx.state, tx.state.loops[id]
    decided_by_person = any(packet.loop == id and packet.reason != ASKED for packet in state.escalations.values())
    if decided_by_person or not loop.current_positions:
        return
    complete = all(share.done or cannot_choose(state, loop, target) for target, share in loop.shares.items())
    match state.workflow.agreement:
        case "first":
            position = loop.current_positions[0]
            choose(tx, loop, _option_named(loop, position.option), position.who, position.reason)
        case "authority" if complete:
            position = _highest_authority(state, loop)
            choose(tx, loop, _option_named(loop, position.option), position.who, position.reason)
        case "all" if complete:
            _agree(tx, loop)
        case "authority" | "all":
            return
        case _:
            assert_never(state.workflow.agreement)


def _agree(tx: Transaction, loop: Loop) -> None:
    """Choose the option that all targets are for. If they differ, ask them once more with all positions, then a person."""
    first = loop.current_positions[0]
    if all(same_option(position.option, first.option) for position in loop.current_positions):
        names = ", ".join(position.who for position in loop.current_positions)
        reasons = dict.fromkeys(position.reason for position in loop.current_positions if position.reason)
        choose(tx, loop, _option_named(loop, first.option), names, "; ".join(reasons))
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


def _option_named(loop: Loop, text: str) -> Option:
    """The option with this text. A text that was not offered is an option without rework or acceptance."""
    return next((each for each in loop.options if same_option(each.option, text)), Option(text.strip()))


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
        if any(same_option(option.option, other.option) for other in feedback.options[:index]):
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
