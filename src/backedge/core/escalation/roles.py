"""Whose question it is: the roles that the steps in it name, and those that are asked about its findings."""

from __future__ import annotations

from backedge.core.events import EscalationOpened
from backedge.core.state.run import RunState


def roles_asked(state: RunState, opened: EscalationOpened) -> tuple[str, ...]:
    """The roles of the people whom a question is for; empty if it is for everybody."""
    loop = state.loops.get(opened.loop or opened.vote or "")
    steps = [opened.step, *(each.step for each in state.protected.values() if each.id in opened.protected)]
    if opened.refused:
        steps.append(state.refused[opened.refused - 1].source)
    categories: list[str] = []
    if loop is not None:
        steps.append(loop.source)
        categories = [state.findings[id].finding.category for id in loop.finding_ids]
    asked = {word.strip().casefold() for word in categories}
    by_step = (role for name in steps if name in state.graph.steps for role in state.graph.steps[name].for_roles)
    by_category = (role for role, known in state.workflow.roles if asked & {word.casefold() for word in known})
    return tuple(dict.fromkeys((*by_step, *by_category)))
