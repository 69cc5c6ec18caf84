"""The options that a choice offers. One whose rework no step could do is left out: nothing would follow from it."""

from __future__ import annotations

from backedge.core.feedback.loop import Loop
from backedge.core.model import Option
from backedge.core.scheduling.staleness import permanently_skipped
from backedge.core.state.run import RunState
from backedge.core.workflow.checks import Check


def offered_options(state: RunState, loop: Loop) -> tuple[Option, ...]:
    """The options of feedback, or of the check that found a disagreement, that can be carried out now."""
    judge = state.graph.engine_judges.get(loop.source) if loop.by_verdict else None
    options = judge.options if isinstance(judge, Check) else loop.options
    return tuple(option for option in options if _can_be_done(state, loop, option))


def find_option(state: RunState, loop: Loop, text: str) -> Option | None:
    """The offered option with this text. If none is offered, any text is an option."""
    offered = offered_options(state, loop)
    if not offered:
        return Option(text.strip()) if text.strip() else None
    return next((each for each in offered if same_option(each.option, text)), None)


def same_option(one: str, other: str) -> bool:
    """Whether two texts name the same option. Case and surrounding white space do not matter."""
    return one.strip().casefold() == other.strip().casefold()


def _can_be_done(state: RunState, loop: Loop, option: Option) -> bool:
    steps = loop.rework_for(option)
    return not steps or not all(permanently_skipped(state, name) for name in steps)
