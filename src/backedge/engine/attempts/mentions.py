"""Which artifacts mention a requirement: looked up where the outputs are, for the rules to decide with."""

from __future__ import annotations

from collections.abc import Sequence

from backedge.core.feedback.requirements import mentions, producers_before
from backedge.core.state.run import RunState
from backedge.engine.store import outputs
from backedge.ports import Journal


async def mentions_for(
    journal: Journal, state: RunState, source: str, requirements: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """The steps before a source, or all of them for a person, whose artifacts mention each of these requirements."""
    if not requirements:
        return {}
    made = await outputs(journal, state, producers_before(state, source))
    return {id: tuple(name for name, output in made.items() if mentions(output, id)) for id in requirements}
